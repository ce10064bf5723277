package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/fpm-project/fpm/internal/pyjson"
)

// blockTokens is the size of a block of the KV cache.
const blockTokens = 64

// point is one coordinate of the grid. Its totals are those of one iteration on each
// rank.
type point struct {
	id      int  // benchmark id
	prefill bool // else decode
	batch   int  // requests
	tokens  int  // new prefill tokens
	kv      int  // KV tokens read
	realKV  bool // decode: the KV cache holds computed content
	eager   bool // a discarded replica runs before it on every rank
}

// captureSizes are the sizes that CUDA graphs are captured for.
func captureSizes() []int { return []int{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256} }

// graphTokens is the size that decides which graph is used.
func (p *point) graphTokens() int {
	if p.prefill {
		return p.tokens
	}
	return p.batch
}

// capture returns the expected graph mode and capture size; NONE and 0 when no captured
// size fits.
func (p *point) capture() (mode string, size int) {
	for _, size := range captureSizes() {
		if size < p.graphTokens() {
			continue
		}
		if p.prefill {
			return "PIECEWISE", size
		}
		return "FULL", size
	}
	return "NONE", 0
}

// samples is the number of raw samples that the point's measurement takes.
func (p *point) samples(raw int) int {
	if p.prefill {
		return 1
	}
	return raw
}

// regime names how the KV cache was filled.
func (p *point) regime() string {
	switch {
	case p.prefill:
		return "not_applicable"
	case p.realKV:
		return "real_kv"
	}
	return "fake_fallback"
}

func (p *point) kind() string {
	if p.prefill {
		return "prefill"
	}
	return "decode"
}

func (p *point) reasons() pyjson.Array {
	reasons := pyjson.Array{"lattice"}
	if _, size := p.capture(); size == p.graphTokens() {
		reasons[0] = "graph_boundary"
	}
	switch {
	case p.prefill:
		return reasons
	case p.realKV:
		return append(reasons, "kvwarm_real_kv")
	}
	return append(reasons, "kvwarm_fake_fallback")
}

func (p *point) object() pyjson.Object {
	mode, size := p.capture()
	var captured, padding any
	if size > 0 {
		captured, padding = size, size-p.graphTokens()
	}
	return pyjson.Object{
		{Key: "point_type", Value: p.kind()},
		{Key: "benchmark_id", Value: p.id},
		{Key: "total_prefill_tokens", Value: p.tokens},
		{Key: "total_kv_read_tokens", Value: p.kv},
		{Key: "batch_size", Value: p.batch},
		{Key: "expected_cudagraph_mode", Value: mode},
		{Key: "expected_capture_size", Value: captured},
		{Key: "padding_tokens", Value: padding},
		{Key: "sample_reasons", Value: p.reasons()},
		{Key: "partition", Value: nil},
		{Key: "rows", Value: nil},
	}
}

// contentKey is the point's identity, whatever grid it is in.
func (p *point) contentKey() string {
	return digest(pyjson.Object{
		{Key: "point_type", Value: p.kind()},
		{Key: "batch_size", Value: p.batch},
		{Key: "total_prefill_tokens", Value: p.tokens},
		{Key: "total_kv_read_tokens", Value: p.kv},
		{Key: "partition", Value: nil},
		{Key: "rows", Value: nil},
	})
}

// digest is the SHA-256 of a value's canonical JSON.
func digest(v any) string {
	sum := sha256.Sum256(pyjson.AppendSorted(nil, v))
	return hex.EncodeToString(sum[:])
}

// makeGrid returns the points in execution order: prefill, a quarter of them, and then
// decode, unless they are to be shuffled.
func makeGrid(ctx context.Context, opt Options) ([]point, error) {
	prefill := opt.Points / 4
	if opt.Points > 1 {
		prefill = max(prefill, 1)
	}
	taken := map[point]bool{}
	grid := make([]point, 0, opt.Points)
	for i := range opt.Points {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d := roll(opt.Seed, forPoint, i, 0)
		p := makePoint(d, i < prefill, taken)
		p.id = i + 1
		p.realKV = !p.prefill && d.chance(0.9)
		mode, _ := p.capture()
		p.eager = mode == "NONE" && d.chance(0.3)
		grid = append(grid, p)
	}
	if opt.Shuffle {
		d := roll(opt.Seed, forOrder, 0, 0)
		for i := len(grid) - 1; i > 0; i-- {
			k := d.below(i + 1)
			grid[i], grid[k] = grid[k], grid[i]
		}
	}
	return grid, nil
}

// makePoint draws a coordinate that is not taken yet. Each further try looks in a range
// of KV lengths twice as wide, so that large grids find a place too.
func makePoint(d *dice, prefill bool, taken map[point]bool) point {
	p := point{prefill: prefill}
	step := 1
	if prefill {
		p.batch = pick(d, 1, 1, 1, 2, 4, 8)
		p.tokens = p.batch*pick(d, 16, 32, 64, 128, 256, 512, 1024, 2048) + d.below(p.batch)
		step = p.batch * blockTokens
		p.kv = step * pick(d, 0, 0, 1, 4, 16, 64, 256)
	} else {
		p.batch = pick(d, 1, 2, 4, 8, 16, 32, 33, 64, 128, 256)
		step = p.batch
		p.kv = step*pick(d, 16, 128, 512, 1024, 4096, 16384, 65536) + d.below(p.batch)
	}
	for width := 1; taken[p]; width = min(2*width, 1<<24) {
		p.kv += step * (1 + d.below(width))
	}
	taken[p] = true
	return p
}

// gridDigest is the identity of the whole grid, in its order.
func gridDigest(grid []point) string {
	hash := sha256.New()
	var text []byte
	for i := range grid {
		text = append(text[:0], ',')
		if i == 0 {
			text[0] = '['
		}
		hash.Write(pyjson.AppendSorted(text, grid[i].object()))
	}
	hash.Write([]byte("]"))
	return hex.EncodeToString(hash.Sum(nil))
}

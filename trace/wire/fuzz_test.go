package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/fpm-project/fpm/trace/wire"
)

// The slow reader: MessagePack after its specification, with nothing in common with the
// package's own, as JSON by way of Go values.

var errSlow = errors.New("not decodable")

// member is a key and its value; a map is a list of them.
type member struct {
	key   string
	value any
}

// slow reads a value.
func slow(b []byte, depth int) (v any, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errSlow
	}
	lead := b[0]
	b = b[1:]
	uintOf := func(n int) (x uint64) {
		if len(b) < n {
			err = errSlow
			return 0
		}
		for _, c := range b[:n] {
			x = x<<8 | uint64(c)
		}
		b = b[n:]
		return x
	}
	switch {
	case lead < 0x80:
		return uint64(lead), b, nil
	case lead < 0x90:
		return slowMap(b, uint64(lead&15), depth+1)
	case lead < 0xa0:
		return slowArray(b, uint64(lead&15), depth+1)
	case lead < 0xc0:
		return slowString(b, uint64(lead&31))
	case lead >= 0xe0:
		return int64(int8(lead)), b, nil
	}
	switch lead {
	case 0xc0:
		return nil, b, nil
	case 0xc2, 0xc3:
		return lead == 0xc3, b, nil
	case 0xca:
		f := float64(math.Float32frombits(uint32(uintOf(4))))
		return slowFloat(f, b, err)
	case 0xcb:
		f := math.Float64frombits(uintOf(8))
		return slowFloat(f, b, err)
	case 0xcc, 0xcd, 0xce, 0xcf:
		x := uintOf(1 << (lead - 0xcc))
		return x, b, err
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := 1 << (lead - 0xd0)
		x := int64(uintOf(size)<<(64-8*size)) >> (64 - 8*size)
		if x >= 0 {
			return uint64(x), b, err
		}
		return x, b, err
	case 0xd9, 0xda, 0xdb:
		n := uintOf(1 << (lead - 0xd9))
		if err != nil {
			return nil, nil, err
		}
		return slowString(b, n)
	case 0xdc, 0xdd:
		n := uintOf(2 << (lead - 0xdc))
		if err != nil {
			return nil, nil, err
		}
		return slowArray(b, n, depth+1)
	case 0xde, 0xdf:
		n := uintOf(2 << (lead - 0xde))
		if err != nil {
			return nil, nil, err
		}
		return slowMap(b, n, depth+1)
	}
	return nil, nil, errSlow
}

func slowFloat(f float64, b []byte, err error) (any, []byte, error) {
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, nil, errSlow
	}
	return f, b, nil
}

func slowString(b []byte, n uint64) (any, []byte, error) {
	if n > uint64(len(b)) || !utf8.Valid(b[:n]) {
		return nil, nil, errSlow
	}
	return string(b[:n]), b[n:], nil
}

func slowArray(b []byte, n uint64, depth int) (any, []byte, error) {
	list := []any{}
	if depth > wire.MaxDepth {
		return nil, nil, errSlow
	}
	for range n {
		v, rest, err := slow(b, depth)
		if err != nil {
			return nil, nil, err
		}
		list, b = append(list, v), rest
	}
	return list, b, nil
}

func slowMap(b []byte, n uint64, depth int) (any, []byte, error) {
	list := []member{}
	seen := map[string]bool{}
	if depth > wire.MaxDepth {
		return nil, nil, errSlow
	}
	for range n {
		k, rest, err := slow(b, depth)
		if err != nil {
			return nil, nil, err
		}
		key, ok := k.(string)
		if !ok || seen[key] {
			return nil, nil, errSlow
		}
		seen[key] = true
		v, rest, err := slow(rest, depth)
		if err != nil {
			return nil, nil, err
		}
		list, b = append(list, member{key, v}), rest
	}
	return list, b, nil
}

// get returns the value of a key, or errSlow in its place.
func get(m []member, key string) any {
	for _, kv := range m {
		if kv.key == key {
			return kv.value
		}
	}
	return errSlow
}

// slowJudge returns the reason after the contract, with no regard to speed.
func slowJudge(seq uint64, payload []byte) (reason string, v any) {
	v, rest, err := slow(payload, 0)
	if err != nil || len(rest) > 0 {
		return "msgpack", nil
	}
	m, ok := v.([]member)
	if !ok {
		return "not-a-map", nil
	}
	if get(m, "version") != any(uint64(1)) {
		return "version", nil
	}
	_, worker := get(m, "worker_id").(string)
	index := func(key string) (uint64, bool) {
		x, ok := get(m, key).(uint64)
		return x, ok && x <= math.MaxInt64
	}
	_, rank := index("dp_rank")
	counter, count := index("counter_id")
	if !worker || !rank || !count || counter != seq || !measure(get(m, "wall_time")) {
		return "field", nil
	}
	counts := []string{"num_prefill_requests", "sum_prefill_tokens", "num_decode_requests", "sum_decode_kv_tokens"}
	if !slowLoad(get(m, "queued_requests"), counts) || !slowLoad(get(m, "scheduled_requests"), append(counts, "sum_prefill_kv_tokens")) {
		return "field", nil
	}
	return "", v
}

func measure(v any) bool {
	f, ok := v.(float64)
	_, whole := v.(uint64)
	return whole || ok && f >= 0
}

func slowLoad(v any, counts []string) bool {
	m, ok := v.([]member)
	for _, key := range counts {
		_, count := get(m, key).(uint64)
		ok = ok && count
	}
	return ok && measure(get(m, "var_prefill_length")) && measure(get(m, "var_decode_kv_tokens"))
}

// same tells whether JSON says what a value is, with order, and integers and floats told
// apart.
func same(d *json.Decoder, v any) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	mismatch := fmt.Errorf("%v (%T) came out as %v", v, v, token)
	switch v := v.(type) {
	case nil, bool, string:
		if token != v {
			return mismatch
		}
	case uint64, int64:
		if n, ok := token.(json.Number); !ok || n.String() != fmt.Sprint(v) {
			return mismatch
		}
	case float64:
		n, ok := token.(json.Number)
		f, err := strconv.ParseFloat(n.String(), 64)
		if !ok || err != nil || math.Float64bits(f) != math.Float64bits(v) || !bytes.ContainsAny([]byte(n), ".e") {
			return mismatch
		}
	case []any:
		for _, item := range v {
			if err := same(d, item); err != nil {
				return err
			}
		}
		_, err = d.Token()
	case []member:
		for _, kv := range v {
			if err := errors.Join(same(d, kv.key), same(d, kv.value)); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return err
}

// agree checks the decoder's judgement of a message against the slow one's.
func agree(t *testing.T, d *wire.Decoder, seq uint64, payload []byte) {
	t.Helper()
	want, v := slowJudge(seq, payload)
	f, _, err := d.Decode(nil, message(seq, payload))
	if want != "" {
		var rejected *wire.RejectError
		if !errors.As(err, &rejected) || rejected.Reason.String() != want {
			t.Fatalf("% x: %v; want %s", payload, err, want)
		}
		return
	}
	if err != nil {
		t.Fatalf("% x: %v", payload, err)
	}
	if !json.Valid(f.JSON) || bytes.ContainsAny(f.JSON, "\n\r") {
		t.Fatalf("% x: not a line of JSON: %q", payload, f.JSON)
	}
	dec := json.NewDecoder(bytes.NewReader(f.JSON))
	dec.UseNumber()
	if err := same(dec, v); err != nil {
		t.Fatalf("% x: %s: %v", payload, f.JSON, err)
	}
}

// FuzzDecode compares the decoder with the slow one on any payload.
func FuzzDecode(f *testing.F) {
	for _, p := range []pairs{pass(7), idle(7), pass(7).without("version"), scheduledWith("list", []byte{0x92, 1, 0xc0})} {
		f.Add(uint64(7), p.encode())
	}
	f.Add(uint64(0), []byte{0xc1})
	f.Fuzz(func(t *testing.T, seq uint64, payload []byte) {
		if len(payload) > wire.MaxFrame {
			return
		}
		agree(t, new(wire.Decoder), seq, payload)
	})
}

// FuzzFrames checks that frames of any shape are refused or accepted and never panic.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{}, []byte{0, 0, 0, 0, 0, 0, 0, 7}, pass(7).encode(), 3)
	f.Fuzz(func(t *testing.T, a, b, c []byte, n int) {
		frames := [][]byte{a, b, c, a, b}[:max(0, min(n, 5))]
		var d wire.Decoder
		_, _, err := d.Decode(nil, frames)
		var rejected *wire.RejectError
		if err != nil && !errors.As(err, &rejected) {
			t.Fatalf("error of another kind: %v", err)
		}
		if len(frames) != 3 && (rejected == nil || rejected.Reason != wire.Frames) {
			t.Fatalf("%d frames: %v", len(frames), err)
		}
	})
}

// Payloads that are nearly right meet the rules more often than a fuzzer's.
func TestAgreesWithSlowReader(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var d wire.Decoder
	reasons := map[string]int{}
	for range 5000 {
		seq := rng.Uint64N(300)
		payload := random(rng, seq).encode()
		switch rng.IntN(20) {
		case 0:
			payload[rng.IntN(len(payload))] = byte(rng.Uint32())
		case 1:
			payload = payload[:rng.IntN(len(payload)+1)]
		case 2:
			payload = append(payload, byte(rng.Uint32()))
		}
		reason, _ := slowJudge(seq, payload)
		reasons[reason]++
		agree(t, &d, seq, payload)
	}
	for _, reason := range []string{"", "msgpack", "version", "field"} {
		if reasons[reason] < 50 {
			t.Errorf("only %d payloads were judged %q", reasons[reason], reason)
		}
	}
}

// random returns a payload with some of its values and keys changed.
func random(rng *rand.Rand, seq uint64) pairs {
	l, q := load(), load().without("sum_prefill_kv_tokens")
	p := pass(seq)
	for range rng.IntN(3) {
		switch target := rng.IntN(3); target {
		case 0:
			l[rng.IntN(len(l))].value = anything(rng, 0)
		case 1:
			q[rng.IntN(len(q))].value = anything(rng, 0)
		default:
			p[rng.IntN(len(p))].value = anything(rng, 0)
		}
	}
	if rng.IntN(3) == 0 {
		rng.Shuffle(len(l), func(a, b int) { l[a], l[b] = l[b], l[a] })
		p = p.with("scheduled_requests", l.encode()).with("queued_requests", q.encode())
	}
	if rng.IntN(3) == 0 {
		p = append(p, pair{string(rune('a' + rng.IntN(3))), anything(rng, 0)}, pair{"b", anything(rng, 0)})
	}
	if rng.IntN(4) == 0 {
		rng.Shuffle(len(p), func(a, b int) { p[a], p[b] = p[b], p[a] })
	}
	if rng.IntN(10) == 0 {
		p = p.without(p[rng.IntN(len(p))].key)
	}
	return p
}

// anything returns an encoded value of any type.
func anything(rng *rand.Rand, depth int) []byte {
	switch n := rng.IntN(14); {
	case n < 2:
		return f64(math.Float64frombits(rng.Uint64()))
	case n == 2:
		return binary.BigEndian.AppendUint32([]byte{0xca}, rng.Uint32())
	case n < 5:
		return u(rng.Uint64() >> rng.IntN(64))
	case n == 5:
		return i(int64(rng.Uint64()) >> rng.IntN(64))
	case n == 6:
		return f64(rng.Float64() * math.Pow10(rng.IntN(40)-20))
	case n == 7:
		return str(string([]rune{rune(rng.IntN(0x3000)), rune(rng.IntN(128)), '<'}))
	case n == 8:
		return []byte{0xc2 + byte(rng.IntN(2))}
	case n == 9:
		return []byte{0xc0}
	case n == 10 && depth < 4:
		return append(append([]byte{0x92}, anything(rng, depth+1)...), anything(rng, depth+1)...)
	case n == 11 && depth < 4:
		return pairs{{"k", anything(rng, depth+1)}, {string(rune('j' + rng.IntN(3))), anything(rng, depth+1)}}.encode()
	}
	return u(rng.Uint64N(5))
}

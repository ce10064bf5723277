package show

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/table"
)

func (d *Document) samplesTitle() string {
	p := d.Samples
	if p == nil {
		return "samples: no artifact here has the point"
	}
	return fmt.Sprintf("samples of %s, position %d, group wall time %s ms", p.Text(), p.Position, millis(p.Wall))
}

// sampleLines shows what every rank measured at a point, and the raw samples of it.
func (d *Document) sampleLines(l Layout) []string {
	if d.Samples == nil {
		return nil
	}
	lines := l.lines(measurementTable(d.Samples), l.rows(manyRows))
	raw := sampleTable(d.Samples)
	if len(raw.Rows) == 0 {
		return append(lines, table.Paragraph("", "There are no raw samples: the artifact is of a producer that did not record them.", l.Width)...)
	}
	lines = append(append(lines, ""), l.lines(raw, l.rows(manyRows))...)
	return append(lines, table.Paragraph("", "(used: the estimate takes this sample; of median: the wall time over the median of the rank's raw samples, the lower one of an even number; forward indices and clocks of different ranks do not compare)", l.Width)...)
}

func rankName(rank int) string {
	if rank == finding.NoRank {
		return "-"
	}
	return strconv.Itoa(rank)
}

func measurementTable(p *inspect.PointDetail) *table.Table {
	t := &table.Table{Noun: "ranks", Columns: []table.Column{
		{Title: "rank", Right: true}, {Title: "wall [ms]", Right: true}, {Title: "estimate", Flex: true},
		{Title: "raw", Right: true}, {Title: "expected", Right: true}, {Title: "regime", Priority: 1, Flex: true},
		{Title: "points before", Right: true, Priority: 3}, {Title: "warmups before", Right: true, Priority: 3},
		{Title: "prompts", Priority: 2}, {Title: "requests", Right: true, Priority: 2}, {Title: "tokens", Right: true, Priority: 2},
		{Title: "prompt hash", Priority: 4, Flex: true}, {Title: "worker", Priority: 5, Flex: true},
	}}
	for _, r := range p.Ranks {
		row := []string{rankName(r.Rank), millis(r.Wall)}
		if r.Measured {
			row = append(row, r.Method, strconv.Itoa(r.SamplesTotal), number(r.Expected), r.Regime, number(r.CompletedBefore), number(r.WarmupBefore),
				r.Prompts.Status, strconv.Itoa(r.Prompts.Requests), strconv.FormatInt(r.Prompts.Tokens, 10), r.Prompts.Hash, r.Worker)
		} else {
			row = append(row, "no evidence", "", "", "", "", "", "", "", "", "", r.Worker)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func sampleTable(p *inspect.PointDetail) *table.Table {
	t := &table.Table{Noun: "raw samples", Columns: []table.Column{
		{Title: "rank", Right: true}, {Title: "sample", Right: true}, {Title: "forward", Right: true, Priority: 2},
		{Title: "wall [ms]", Right: true}, {Title: "of median", Right: true}, {Title: "used"},
		{Title: "dispatch", Flex: true}, {Title: "tokens", Right: true, Priority: 1}, {Title: "padded", Right: true, Priority: 1},
		{Title: "basis", Priority: 3, Flex: true}, {Title: "start [s]", Right: true, Priority: 4}, {Title: "end [s]", Right: true, Priority: 4},
	}}
	for i := range p.Ranks {
		r := &p.Ranks[i]
		t.Total += r.SamplesTotal
		median := medianOf(r)
		for _, s := range r.Samples {
			t.Rows = append(t.Rows, sampleRow(r, s, median))
		}
	}
	return t
}

func sampleRow(r *inspect.RankDetail, s inspect.SampleDetail, median float64) []string {
	used := ""
	if s.Index >= 0 && slices.Contains(r.Indices, s.Index) {
		used = "yes"
	}
	above := ""
	if x := s.Wall / median; !math.IsNaN(x) && !math.IsInf(x, 0) {
		above = ratio(x)
	}
	mode := s.Mode
	if mode == "" {
		mode = s.Status
	}
	return []string{
		rankName(r.Rank), number(s.Index), number(s.Forward), millis(s.Wall), above, used, mode,
		number(s.Unpadded), number(s.Padded), s.Basis, clock(s.Start), clock(s.End),
	}
}

// clock is a reading of a rank's own clock.
func clock(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	if math.Abs(v) >= 1e12 {
		return strconv.FormatFloat(v, 'g', 10, 64)
	}
	return strconv.FormatFloat(v, 'f', 6, 64)
}

// medianOf returns the median of a rank's raw samples, the lower one of an even number, as
// the facts about outliers take it; NaN without any.
func medianOf(r *inspect.RankDetail) float64 {
	var walls []float64
	for _, s := range r.Samples {
		if !math.IsNaN(s.Wall) {
			walls = append(walls, s.Wall)
		}
	}
	if len(walls) == 0 {
		return math.NaN()
	}
	slices.Sort(walls)
	return walls[(len(walls)-1)/2]
}

// samplesData is what [Document.sampleLines] shows; null when no artifact has the point.
func (d *Document) samplesData() any {
	p := d.Samples
	if p == nil {
		return nil
	}
	ranks := []report.Object{}
	for i := range p.Ranks {
		ranks = append(ranks, measurementData(&p.Ranks[i]))
	}
	return report.Object{
		{Key: "benchmark_id", Value: p.ID}, {Key: "position", Value: p.Position}, {Key: "point_type", Value: p.Type},
		{Key: "batch_size", Value: known(p.BatchSize)}, {Key: "total_prefill_tokens", Value: known(p.PrefillTokens)}, {Key: "total_kv_read_tokens", Value: known(p.KVReadTokens)},
		{Key: "wall_time", Value: number64(p.Wall)}, {Key: "ranks", Value: ranks},
	}
}

func measurementData(r *inspect.RankDetail) report.Object {
	samples := []report.Object{}
	for _, s := range r.Samples {
		samples = append(samples, report.Object{
			{Key: "sample_index", Value: known(s.Index)}, {Key: "forward_index", Value: known(s.Forward)}, {Key: "wall_time", Value: number64(s.Wall)},
			{Key: "basis", Value: text(s.Basis)}, {Key: "start_monotonic", Value: number64(s.Start)}, {Key: "end_monotonic", Value: number64(s.End)},
			{Key: "cudagraph_status", Value: text(s.Status)}, {Key: "runtime_mode", Value: text(s.Mode)},
			{Key: "num_unpadded_tokens", Value: known(s.Unpadded)}, {Key: "num_padded_tokens", Value: known(s.Padded)}, {Key: "num_paddings", Value: known(s.Paddings)},
		})
	}
	return report.Object{
		{Key: "rank", Value: known(r.Rank)}, {Key: "worker_id", Value: text(r.Worker)}, {Key: "wall_time", Value: number64(r.Wall)}, {Key: "measured", Value: r.Measured},
		{Key: "prompts", Value: report.Object{{Key: "status", Value: text(r.Prompts.Status)}, {Key: "sha256", Value: text(r.Prompts.Hash)}, {Key: "requests", Value: r.Prompts.Requests}, {Key: "num_tokens", Value: r.Prompts.Tokens}}},
		{Key: "kv_seed_regime", Value: text(r.Regime)}, {Key: "completed_points_before", Value: known(r.CompletedBefore)}, {Key: "warmup_records_before", Value: known(r.WarmupBefore)},
		{Key: "expected_internal_samples", Value: known(r.Expected)}, {Key: "method", Value: text(r.Method)}, {Key: "raw_sample_indices", Value: append([]int64{}, r.Indices...)},
		{Key: "median", Value: number64(medianOf(r))}, {Key: "samples_total", Value: r.SamplesTotal}, {Key: "samples", Value: samples},
	}
}

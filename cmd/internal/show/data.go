package show

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/report"
)

// Data returns a document for machines: what [Document.Text] says, with nothing left out
// for lack of room.
func (d *Document) Data(sel Selection) report.Object {
	o := report.Object{{Key: "kind", Value: d.Kind}, {Key: "files", Value: d.Files}}
	add := func(key string, value any) { o = append(o, report.Detail{Key: key, Value: value}) }
	if d.Kind == detect.Sidecar {
		add("sidecar", d.Sidecar.data())
		return o
	}
	if d.Kind == detect.Trace {
		add("trace", d.traceData())
		return o
	}
	if sel.none() {
		add("run", d.runData())
		add("explanations", append(inspect.Explanations{}, d.explanations()...))
	}
	if sel.none() || sel.Points {
		add("points", d.pointsData())
	}
	if sel.Warmup {
		add("warmup", d.warmupData())
		add("kvwarm", d.blockData("kvwarm"))
	}
	if sel.Engine {
		add("engine", d.blockData("engine"))
	}
	if sel.Samples {
		add("samples", d.samplesData())
	}
	if sel.Warmup || sel.Samples {
		add("not_concluded", inspect.NotConcluded())
	}
	return o
}

// number64 is a number that is null in JSON when it is not finite.
type number64 float64

func (n number64) MarshalJSON() ([]byte, error) { return appendNumber(nil, float64(n)), nil }

// numbers is a list of them. A run has millions, so that each is not a value of its own.
type numbers []float64

func (list numbers) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(b, v)
	}
	return append(b, ']'), nil
}

func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// known is an integer that is null when it is negative, which stands for unknown.
type known int64

func (n known) MarshalJSON() ([]byte, error) {
	if n < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(n), 10), nil
}

// text is a string that is null when it is empty.
type text string

func (t text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(t))
}

// raw is a value as it stands in its file.
func raw(v *jsonvalue.Value) any {
	if v == nil {
		return nil
	}
	return json.RawMessage(v.AppendCompact(nil))
}

func (d *Document) runData() report.Object {
	var ranks []report.Object
	for _, f := range d.Facts {
		ranks = append(ranks, rankData(f))
	}
	o := report.Object{}
	if m := d.Merged; m != nil {
		o = append(o,
			report.Detail{Key: "global_ranks", Value: append([]int{}, m.GlobalRanks...)},
			report.Detail{Key: "source_ranks", Value: append([]int{}, m.SourceRanks...)},
			report.Detail{Key: "rank_files", Value: append([]string{}, m.RankFiles...)},
			report.Detail{Key: "merged_output_path", Value: text(m.Output)},
			report.Detail{Key: "rank_benchmark_elapsed_seconds", Value: append([]inspect.RankSeconds{}, m.Elapsed...)},
		)
	}
	blocks := report.Object{}
	for _, name := range []string{"config", "limits", "measurement_policy", "synthetic_prompts", "capacity", "cudagraph", "kvwarm", "recurrent_state", "measurement_protocol"} {
		if list := d.blockData(name); len(list) > 0 {
			blocks = append(blocks, report.Detail{Key: name, Value: list})
		}
	}
	engine := report.Object{}
	for _, name := range []string{"model", "versions", "parallel"} {
		if f := d.withEngine(); f != nil {
			engine = append(engine, report.Detail{Key: name, Value: raw(f.Blocks["engine"].Get(name))})
		}
	}
	return append(o,
		report.Detail{Key: "artifacts", Value: append([]report.Object{}, ranks...)},
		report.Detail{Key: "grid", Value: append([]inspect.Grid{}, d.grids()...)},
		report.Detail{Key: "rank_skew", Value: d.skewData()},
		report.Detail{Key: "engine", Value: engine},
		report.Detail{Key: "blocks", Value: blocks},
	)
}

// skewData compares the ranks over all points.
func (d *Document) skewData() []report.Object {
	if f := d.reference(); f != nil {
		return inspect.SkewData(inspect.RankSkews(f.Points))
	}
	return []report.Object{}
}

// withEngine returns the first artifact with an engine block.
func (d *Document) withEngine() *inspect.Facts {
	for _, f := range d.Facts {
		if f.Blocks["engine"] != nil {
			return f
		}
	}
	return nil
}

func rankData(f *inspect.Facts) report.Object {
	return report.Object{
		{Key: "file", Value: f.File}, {Key: "rank", Value: known(f.Rank)}, {Key: "size", Value: f.Size},
		{Key: "run_id", Value: text(f.RunID)}, {Key: "grid_digest", Value: text(f.GridDigest)},
		{Key: "status", Value: text(f.Status)}, {Key: "valid", Value: f.Valid}, {Key: "usable", Value: f.Usable},
		{Key: "timing_valid", Value: f.TimingValid}, {Key: "stop_reason", Value: text(f.StopReason)}, {Key: "error", Value: text(f.Error)},
		{Key: "expected_points", Value: known(f.Expected)}, {Key: "completed_points", Value: known(f.Completed)}, {Key: "skipped_points", Value: known(f.SkippedCount)},
		{Key: "missing_phases", Value: append([]string{}, f.Missing...)},
		{Key: "started_at", Value: text(f.StartedAt)}, {Key: "completed_at", Value: text(f.CompletedAt)},
		{Key: "benchmark_elapsed_seconds", Value: number64(f.Elapsed)}, {Key: "measured_iteration_seconds", Value: number64(f.Measured)},
		{Key: "warmup_status", Value: text(f.WarmupStatus)}, {Key: "warmup_records", Value: f.WarmupTotal},
		{Key: "raw_samples", Value: f.Samples.Raw}, {Key: "later_samples", Value: f.Samples.Later}, {Key: "slow_first_samples", Value: f.Samples.SlowFirst}, {Key: "outliers", Value: f.Samples.Outliers},
	}
}

// blockData returns the different forms of a block, each with the artifacts that have it.
func (d *Document) blockData(name string) []report.Object {
	list := []report.Object{}
	value := map[string]*jsonvalue.Value{}
	for _, g := range inspect.GroupBy(d.Facts, func(f *inspect.Facts) string {
		b := f.Blocks[name]
		compact := string(b.AppendCompact(nil))
		value[compact] = b
		return compact
	}) {
		list = append(list, report.Object{{Key: "ranks", Value: append([]int{}, g.Ranks...)}, {Key: "files", Value: append([]string{}, g.Files...)}, {Key: "value", Value: raw(value[g.Text])}})
	}
	return list
}

// pointData is a point in the JSON formats.
type pointData struct {
	ID            int64      `json:"benchmark_id"`
	Position      int        `json:"position"`
	Type          string     `json:"point_type"`
	BatchSize     known      `json:"batch_size"`
	PrefillTokens known      `json:"total_prefill_tokens"`
	KVReadTokens  known      `json:"total_kv_read_tokens"`
	Reasons       []string   `json:"sample_reasons"`
	Regimes       []string   `json:"kv_seed_regimes"` // more than one where ranks differ
	ExpectedMode  text       `json:"expected_cudagraph_mode"`
	CaptureSize   known      `json:"expected_capture_size"`
	Padding       known      `json:"padding_tokens"`
	Observed      []dispatch `json:"observed_dispatch"`
	Unexpected    bool       `json:"unexpected_dispatch"`
	Wall          number64   `json:"wall_time"`
	Walls         numbers    `json:"rank_wall_times"`
	Median        number64   `json:"median_rank_wall_time"`
	Slowest       known      `json:"slowest_rank"`
	Skew          number64   `json:"skew"`
}

type dispatch struct {
	Mode    string `json:"mode"`
	Samples int    `json:"samples"`
}

// pointsData makes the points one by one.
func (d *Document) pointsData() report.List {
	return func(yield func(any) bool) {
		f := d.reference()
		if f == nil {
			return
		}
		points := d.sorted(f.Points)
		regimes := d.regimes(points)
		for _, p := range points {
			if !yield(newPointData(p, regimes[p.ID])) {
				return
			}
		}
	}
}

func newPointData(p *inspect.Point, regimes []string) pointData {
	s := p.Skew()
	observed := []dispatch{}
	for _, d := range p.Dispatch {
		observed = append(observed, dispatch(d))
	}
	return pointData{
		ID: p.ID, Position: p.Position, Type: p.Type, BatchSize: known(p.BatchSize), PrefillTokens: known(p.PrefillTokens), KVReadTokens: known(p.KVReadTokens),
		Reasons: append([]string{}, p.Reasons...), Regimes: append([]string{}, regimes...),
		ExpectedMode: text(p.ExpectedMode), CaptureSize: known(p.CaptureSize), Padding: known(p.Padding),
		Observed: observed, Unexpected: p.Unexpected(),
		Wall: number64(p.Wall), Walls: numbers(p.Walls), Median: number64(s.Median), Slowest: known(s.Slowest), Skew: number64(s.Ratio),
	}
}

// eventData is a row of a timeline in the JSON formats: a warmup record, or points.
type eventData struct {
	What            string  `json:"what"` // "warmup" or "points"
	First           known   `json:"forward_index"`
	Last            known   `json:"forward_index_end"` // of points: the first index of the last one
	Points          []int64 `json:"benchmark_ids,omitempty"`
	Index           *int    `json:"record,omitempty"`
	Kind            text    `json:"kind"`
	Status          text    `json:"status"`
	Validation      text    `json:"validation"`
	Reason          text    `json:"reason"`
	Count           known   `json:"observed_forward_count"`
	CompletedBefore known   `json:"completed_points_before"`
	Shape           text    `json:"requested_shape"`
}

func (d *Document) warmupData() []report.Object {
	list := []report.Object{}
	for _, f := range d.ledgers() {
		events, unplaced := inspect.Timeline(f)
		rows := []eventData{}
		for _, e := range events {
			row := eventData{What: "points", First: known(e.First), Last: known(e.Last), Points: e.Points, Count: -1, CompletedBefore: -1}
			if r := e.Record; r != nil {
				row = eventData{
					What: "warmup", First: known(e.First), Last: known(e.Last), Index: &e.Index, Kind: text(r.Kind), Status: text(r.Status),
					Validation: text(r.Validation), Reason: text(r.Reason), Count: known(r.Count), CompletedBefore: known(r.CompletedBefore), Shape: text(r.Shape),
				}
			}
			rows = append(rows, row)
		}
		o := report.Object{{Key: "rank", Value: known(f.Rank)}}
		if f.Rank == finding.NoRank {
			o = append(o, report.Detail{Key: "file", Value: f.File})
		}
		list = append(list, append(o,
			report.Detail{Key: "status", Value: text(f.WarmupStatus)}, report.Detail{Key: "records", Value: f.WarmupTotal},
			report.Detail{Key: "points_without_forward_index", Value: unplaced}, report.Detail{Key: "timeline", Value: rows}))
	}
	return list
}

func (s *Sidecar) data() report.Object {
	return report.Object{
		{Key: "run_id", Value: text(s.RunID)}, {Key: "merged_output_path", Value: text(s.Merged)}, {Key: "rank_files", Value: s.RankFiles},
		{Key: "view", Value: s.View}, {Key: "replies_total", Value: s.Total},
		{Key: "replies", Value: append([]Reply{}, s.Replies...)}, {Key: "ranks", Value: append([]RankOf{}, s.Ranks...)},
	}
}

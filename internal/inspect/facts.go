// Package inspect reads what a rank artifact says, beside whether it is sound: the run it
// belongs to, its points with the wall time of every rank, the raw samples' dispatch and
// outliers, the warmup timeline, what was skipped and why.
//
// A merge proves that files are one run and keeps nothing of their content; people, and
// stricter consumers, ask about the content. [Read] therefore is a reading of its own, on
// the stream and in typed form, and holds some tens of bytes for each point and rank. In
// the same reading it applies, when asked, the rules that stricter consumers require beyond
// a merge: those of rows and groups (strict.*) here, those of the evidence in the packages
// that own it (protocol, warmup).
//
// Nothing here judges what a merge judges. A value that is missing or mistyped is left out
// of the facts; the merge's rules say so.
package inspect

import (
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// MaxPoints is how many points [Read] keeps in full. Of those beyond only the number is
// kept, so that a crafted file cannot fill the memory. For the same reason entries that are
// shorter than any sound one are kept only as far as the text is long: see inProportion.
const MaxPoints = 1 << 17

// The least bytes of text that a group and a result take, and the entries of each that are
// kept however short they are.
const (
	leastGroup  = 128
	leastResult = 48
	freeEntries = 1 << 14
)

// inProportion tells whether so many entries can stand in the text before an offset when
// each takes at least so many bytes. What is kept of one takes more room than an empty one.
func inProportion(entries int, offset, least int64) bool {
	return entries < freeEntries || int64(entries)*least < offset
}

// Facts is what one rank artifact says. Texts are as they stand in the file, unescaped: they
// are untrusted. One of more than 512 bytes is cut and ends with "…"; in a file with more
// than 1 MiB of different texts, those that come later are "…".
type Facts struct {
	File   string // path as the user gave it
	Offset int64  // of the document's object
	Rank   int    // dp.rank; finding.NoRank when it does not tell
	Size   int    // dp.size; 0 when it does not tell

	RunID, GridDigest          string
	Status, StopReason, Error  string // empty when null or absent
	Valid, Usable, TimingValid *bool  // nil when absent or no boolean

	Expected, Completed, SkippedCount int64    // coverage; -1 when unsound
	Missing                           []string // missing_phases

	StartedAt, CompletedAt string
	Elapsed, Measured      float64 // seconds; NaN when they do not tell

	// Blocks holds the small blocks as they stand: config, limits, measurement_policy,
	// synthetic_prompts, capacity, cudagraph, kvwarm, recurrent_state, measurement_protocol
	// and engine. One of more than 1 MiB or 50,000 values is left out and named in TooLarge.
	Blocks   map[string]*jsonvalue.Value
	TooLarge []string
	BlockAt  map[string]int64 // offset of each block, of those left out too

	Skipped      []Skipped // at most 1,000; SkippedTotal counts them all
	SkippedTotal int

	// Points are those of iteration_groups, in execution order, at most MaxPoints and at
	// most 2,097,152 wall times. They are empty where the groups were not to be read.
	Points      []Point
	PointsTotal int
	Results     []Result // of the file's own results, in their order, at most MaxPoints

	Warmup       []WarmupRecord // at most 10,000; WarmupTotal counts them all
	WarmupTotal  int
	WarmupStatus string // recorded, unavailable; empty when there is no ledger

	Samples Samples // of the rank's own results
}

// Coordinates is what a point asked for. Totals are those of one iteration on each rank.
type Coordinates struct {
	ID            int64    // benchmark_id
	Type          string   // prefill or decode
	BatchSize     int64    // requests
	PrefillTokens int64    // total_prefill_tokens
	KVReadTokens  int64    // total_kv_read_tokens
	ExpectedMode  string   // expected_cudagraph_mode
	CaptureSize   int64    // expected_capture_size; -1 when null or absent
	Padding       int64    // padding_tokens; -1 when null or absent
	Reasons       []string // sample_reasons, at most 16; shared between points, not to be changed
}

// Point is one iteration group.
type Point struct {
	Coordinates
	Position int        // in iteration_groups
	Wall     float64    // the group's wall_time (seconds); NaN when it is no finite number
	Walls    []float64  // wall time of each global rank's FPM (seconds), by rank; NaN where there is none
	Forward  int64      // first forward index of this file's rank at the point; -1 unknown
	Dispatch []Dispatch // observed graph dispatch over all ranks' raw samples; shared between points, not to be changed
}

// Dispatch counts the raw samples of one observed graph dispatch. A point has at most 16,
// the most frequent first; further modes are counted as "…".
type Dispatch struct {
	Mode    string // last part of runtime_mode: NONE, PIECEWISE, FULL; "unavailable" when it was not observed
	Samples int
}

// Result is one entry of a file's own results.
type Result struct {
	ID     int64
	Regime string  // kv_seed_regime; empty when absent
	Wall   float64 // wall_time of the FPM (seconds); NaN when it is no finite number
	Type   string  // prefill or decode

	Forward int64 // first forward index of the rank at the point; -1 unknown
	Offset  int64 // of the point's benchmark_id, or of what should hold it
}

// Skipped is one entry of skipped_points.
type Skipped struct {
	Coordinates
	Reason, Regime string
}

// WarmupRecord is one record of the warmup ledger.
type WarmupRecord struct {
	Kind, Status, Validation, Reason string
	Start, End, Count                int64  // forward indices and observed_forward_count; -1 unknown
	CompletedBefore                  int64  // completed_points_before; -1 unknown
	Shape                            string // requested_shape as compact JSON, at most 200 bytes
}

// Samples is what the raw samples of a rank's own points show. Nothing is removed because
// of it. The median of a point is that of its raw samples, the lower one of an even number:
// of two samples, it is the faster one.
type Samples struct {
	Raw       int       // raw samples in all
	Later     int       // of them, those with a wall time that are no point's first
	SlowFirst int       // points whose first raw sample took more than 3 times their median
	Outliers  int       // raw samples beyond 3 times their point's median, first ones left out
	Worst     []Outlier // the worst 20 of both, worst first
}

// Outlier is a raw sample far above its point's median.
type Outlier struct {
	ID           int64
	Sample       int
	Wall, Median float64 // seconds
}

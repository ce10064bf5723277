package tracestats

import (
	"time"

	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/trace"
)

// Details is what a report says of a trace, its streams aside.
func Details(stats *trace.Stats) report.Object {
	all := stats.Total()
	details := report.Object{
		{Key: "files", Value: stats.Files}, {Key: "rows", Value: stats.Rows},
		{Key: "invalid_rows", Value: stats.BadRows}, {Key: "rows_of_other_streams", Value: stats.Others},
	}
	if stats.Rows > 0 {
		details = append(details, report.Object{
			{Key: "first", Value: stamp(all.FirstUnixMS)}, {Key: "last", Value: stamp(all.LastUnixMS)},
		}...)
	}
	return append(details, report.Object{
		{Key: "quantile_error", Value: trace.QuantileError},
		{Key: "damaged", Value: stats.Holes}, {Key: "torn", Value: Torn(stats.Torn)},
	}...)
}

// Stream is a stream in the JSON formats. What a sampled capture cannot tell is null.
func Stream(s *trace.Stream) report.Object {
	object := report.Object{
		{Key: "namespace", Value: s.ID.Namespace}, {Key: "component", Value: s.ID.Component},
		{Key: "producer_id", Value: s.ID.Producer}, {Key: "worker_id", Value: s.ID.Worker}, {Key: "dp_rank", Value: s.ID.Rank},
		{Key: "capture_mode", Value: CaptureMode(s)},
		{Key: "rows", Value: s.Rows}, {Key: "busy_rows", Value: s.Busy},
		{Key: "first_unix_ms", Value: s.FirstUnixMS}, {Key: "last_unix_ms", Value: s.LastUnixMS}, {Key: "span_s", Value: s.Seconds()},
		{Key: "busy_share", Value: s.BusyShare()},
		{Key: "wall_time_s", Value: report.Object{
			{Key: "count", Value: s.Wall.Count()}, {Key: "sum", Value: s.WallSum},
			{Key: "p50", Value: s.Percentile(0.5)}, {Key: "p90", Value: s.Percentile(0.9)}, {Key: "p99", Value: s.Percentile(0.99)},
			{Key: "max", Value: s.WallMax},
		}},
		{Key: "prefill_tokens", Value: s.Prefill}, {Key: "decode_tokens", Value: s.Decode},
	}
	return append(object, streamRates(s)...)
}

func streamRates(s *trace.Stream) report.Object {
	var prefill, decode, missing, runs, longest any // null
	gaps := []trace.Gap{}
	if s.Complete() {
		prefill, decode = s.PerSecond(s.Prefill), s.PerSecond(s.Decode)
		missing, runs, longest = s.Missing, s.GapRuns, s.LongestGap
		gaps = append(gaps, s.Gaps...)
	}
	return report.Object{
		{Key: "prefill_tokens_per_s", Value: prefill}, {Key: "decode_tokens_per_s", Value: decode},
		{Key: "prefill_tokens_per_busy_s", Value: s.PerBusySecond(s.Prefill)}, {Key: "decode_tokens_per_busy_s", Value: s.PerBusySecond(s.Decode)},
		{Key: "queued_requests", Value: report.Object{{Key: "mean", Value: s.QueueMean()}, {Key: "max", Value: s.QueuedMax}}},
		{Key: "missing", Value: missing}, {Key: "gap_runs", Value: runs}, {Key: "longest_gap", Value: longest}, {Key: "gaps", Value: gaps},
		{Key: "unrecorded", Value: s.Unrecorded}, {Key: "restarts", Value: s.Restarts}, {Key: "repeated_counters", Value: s.Repeats},
	}
}

// CaptureMode returns the mode of a stream's rows, "mixed" or "" when it has none.
func CaptureMode(s *trace.Stream) string {
	switch {
	case s.Full == s.Rows:
		return "full"
	case s.Sampled == s.Rows:
		return "sampled"
	case s.Full+s.Sampled == 0:
		return ""
	default:
		return "mixed"
	}
}

// Torn returns the parts of files that could not be read, for the JSON formats.
func Torn(torn []trace.Torn) []report.Object {
	list := make([]report.Object, len(torn))
	for i, t := range torn {
		list[i] = report.Object{
			{Key: "file", Value: t.File}, {Key: "fault", Value: t.Fault}, {Key: "offset", Value: t.Offset},
			{Key: "end", Value: t.End}, {Key: "rows_used", Value: t.Rows},
		}
	}
	return list
}

// stamp returns a wall clock time as it is printed.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

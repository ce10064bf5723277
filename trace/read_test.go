package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/wire"
)

// sample describes a row of a test.
type sample struct {
	producer string
	rank     int64
	counter  int64
	at       int64 // ms
	wall     float64
	mode     wire.Mode
	decode   int
	queued   int
	since    int64 // the start of the recorder (ms)
}

// line returns the row. The zero sample is a heartbeat of rank 0 of producer w.
func (s sample) line() string {
	if s.producer == "" {
		s.producer = "w"
	}
	if s.mode == "" {
		s.mode = wire.Full
	}
	fpm := fmt.Appendf(nil, `{"version":1,"worker_id":%q,"dp_rank":%d,"counter_id":%d,"wall_time":%v,"scheduled_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"var_prefill_length":0.0,"sum_prefill_kv_tokens":0,"num_decode_requests":%d,"sum_decode_kv_tokens":0,"var_decode_kv_tokens":0.0},"queued_requests":{"num_prefill_requests":%d,"sum_prefill_tokens":0,"num_decode_requests":0,"sum_decode_kv_tokens":0}}`,
		s.producer, s.rank, s.counter, s.wall, s.decode, s.queued)
	row := wire.AppendRow(nil, wire.Row{Namespace: "n", Component: "c", ProducerID: s.producer, Mode: s.mode, TimestampMS: s.since, ObservedUnixMS: s.at, FPM: fpm})
	return strings.TrimSuffix(string(row), "\n")
}

// counters returns rows of one rank with these counters, a second apart.
func counters(list ...int64) (lines []string) {
	for i, c := range list {
		lines = append(lines, sample{counter: c, at: 1000 * int64(i), wall: 0.5, decode: 10}.line())
	}
	return lines
}

func zip(t testing.TB, lines ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, line := range lines {
		if _, err := z.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// write writes files into a new directory and returns a prefix in it, run.
func write(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "run")
}

func find(t testing.TB, args ...string) []*segment.Source {
	t.Helper()
	sources, err := segment.Find(args)
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

func summarise(t testing.TB, lines ...string) *Stats {
	t.Helper()
	stats, err := Summarise(t.Context(), find(t, write(t, map[string][]byte{"run.w.000000.jsonl.gz": zip(t, lines...)})), nil)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

func TestStream(t *testing.T) {
	stats := summarise(t, slices.Concat(counters(5, 6, 7, 10, 10, 12), []string{
		sample{counter: 13, at: 9000, queued: 7}.line(), sample{counter: 14, at: 10_000}.line(),
	})...)
	if len(stats.Streams) != 1 || stats.Rows != 8 {
		t.Fatalf("%+v", stats)
	}
	s := stats.Streams[0]
	gaps := []Gap{{First: 8, Last: 9, Line: 4, Missing: 2}, {First: 11, Last: 11, Line: 6, Missing: 1}}
	for i := range s.Gaps {
		s.Gaps[i].File = ""
	}
	if diff := cmp.Diff(gaps, s.Gaps); diff != "" || s.Missing != 3 || s.GapRuns != 2 || s.LongestGap != 2 || s.Repeats != 1 || s.Restarts != 0 {
		t.Errorf("gaps: %+v %s", s, diff)
	}
	if s.Seconds() != 10 || s.BusyShare() != 0.3 || s.Busy != 7 || s.Rate(s.Decode) != 6 || s.QueueMean() != 7.0/8 || s.QueuedMax != 7 || s.WallMax != 0.5 {
		t.Errorf("%+v: %v busy, %v decode", s, s.BusyShare(), s.Rate(s.Decode))
	}
}

// A restart is an epoch of its own, and the first counter after it a late join.
func TestRestart(t *testing.T) {
	s := summarise(t, counters(100, 101, 3, 4, 6)...).Streams[0]
	if s.Restarts != 1 || s.Missing != 1 {
		t.Errorf("%+v", s)
	}
}

// Gaps are those between two rows of full captures.
func TestSampledHasNoGaps(t *testing.T) {
	var lines []string
	for i := range int64(5) {
		lines = append(lines, sample{counter: 10 * i, at: i * 5000, mode: wire.Sampled, wall: 0.5, decode: 4}.line())
	}
	// The full rows beside them are judged on their own.
	both := summarise(t, append(lines, sample{counter: 90}.line(), sample{counter: 92}.line())...).Streams
	if len(both) != 2 || both[0].Missing != 1 || !both[0].Complete() || both[1].Missing != 0 || both[1].Complete() {
		t.Errorf("%+v", both)
	}
	s := summarise(t, lines...).Streams[0]
	if s.Missing != 0 || s.GapRuns != 0 || s.Complete() || s.BusyShare() != 1 || s.Rate(s.Decode) != 8 {
		t.Errorf("%+v: %v busy, %v decode", s, s.BusyShare(), s.Rate(s.Decode))
	}
}

func TestStreamsAreToldApart(t *testing.T) {
	var lines []string
	for _, p := range []string{"w10", "w9", "v"} {
		for _, rank := range []int64{10, 9, 17} { // 9 and 17 share a slot
			lines = append(lines, sample{producer: p, rank: rank}.line(), sample{producer: p, rank: rank, counter: 1}.line())
		}
	}
	var got []string
	for _, s := range summarise(t, lines...).Streams {
		got = append(got, fmt.Sprintf("%s/%d:%d", s.ID.Producer, s.ID.Rank, s.Rows))
	}
	if diff := cmp.Diff([]string{"v/9:2", "v/10:2", "v/17:2", "w9/9:2", "w9/10:2", "w9/17:2", "w10/9:2", "w10/10:2", "w10/17:2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTooManyStreams(t *testing.T) {
	var tl tally
	tl.streams = map[StreamID]*Stream{}
	row, src := Row{}, segment.Record{Source: &segment.Source{}}
	for i := range int64(MaxStreams + 5) {
		row.DPRank = i
		tl.row(src, &row)
	}
	if stats := tl.result(); len(stats.Streams) != MaxStreams || stats.Others != 5 || stats.Rows != MaxStreams+5 {
		t.Errorf("%d streams, %d others", len(stats.Streams), stats.Others)
	}
}

// The quantiles are within the error that is promised, whatever the values.
func TestHistogram(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 4))
		var h Histogram
		var values []float64
		for range 1 + r.IntN(500) {
			v := min(max(minValue, math.Exp(r.NormFloat64()*float64(1+seed%5)-4)), maxValue)
			values = append(values, v)
			h.Add(v)
		}
		slices.Sort(values)
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
			want := values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
			if got := h.Quantile(q); math.Abs(got-want) > QuantileError*want*(1+1e-9) {
				t.Errorf("seed %d: quantile %v is %v, want %v", seed, q, got, want)
			}
		}
	}
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Count() != 0 {
		t.Error("an empty histogram has a quantile")
	}
	for _, v := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, 1} {
		h.Add(v)
	}
	if len(h.counts) > 2100 || math.Abs(h.Quantile(0.5)-1) > QuantileError*(1+1e-9) {
		t.Errorf("%d buckets, median %v", len(h.counts), h.Quantile(0.5))
	}
}

// verify returns the findings as "rule file:line: message", files without directory.
func verify(t *testing.T, prefix string, opt VerifyOptions) (found []string, stats *Stats) {
	t.Helper()
	opt.Out = finding.NewCollector(0)
	stats, err := Verify(t.Context(), find(t, prefix), opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range opt.Out.Findings() {
		text := string(f.Rule)
		if f.File != "" {
			text += " " + filepath.Base(f.File)
		}
		if f.Line > 0 {
			text += fmt.Sprintf(":%d:%d", f.Line, f.Column)
		}
		found = append(found, text+": "+f.Message)
	}
	slices.Sort(found)
	return found, stats
}

func TestVerify(t *testing.T) {
	good := counters(4, 5, 6)
	long := zip(t, counters(4, 5, 6, 7, 8, 9)...)
	for name, c := range map[string]struct {
		files map[string][]byte
		opt   VerifyOptions
		want  []string
	}{
		"whole": {map[string][]byte{"run.w.000000.jsonl.gz": zip(t, good...)}, VerifyOptions{ProducerCount: 1, Producers: []string{"w"}, Ranks: []int{0}}, nil},
		"row": {map[string][]byte{"run.w.000000.jsonl.gz": zip(t, good[0], "", strings.Replace(good[1], `"version":1`, `"version":2`, 1), good[2][:50])}, VerifyOptions{}, []string{
			"trace.row run.w.000000.jsonl.gz:3:183: not version 1",
			"trace.row run.w.000000.jsonl.gz:4:34: not JSON: a string without end",
		}},
		"gap": {map[string][]byte{"run.w.000000.jsonl.gz": zip(t, counters(1, 2)...), "run.w.000001.jsonl.gz": zip(t, counters(4, 9)...)}, VerifyOptions{}, []string{
			"trace.gap run.w.000001.jsonl.gz:1:1: 1 message is missing of rank 0 of producer w",
			"trace.gap run.w.000001.jsonl.gz:2:1: 4 messages are missing of rank 0 of producer w",
		}},
		"torn at the end": {map[string][]byte{"run.w.000000.jsonl.gz": long[:len(long)-20]}, VerifyOptions{}, []string{
			fmt.Sprintf("trace.torn run.w.000000.jsonl.gz:6:1: a gzip member is cut off, %d bytes at byte 0 of the file: 5 rows before the cut are used; nothing readable follows", len(long)-20),
		}},
		"torn in the middle": {map[string][]byte{"run.w.000000.jsonl.gz": slices.Concat(zip(t, good...), []byte("garbage"), zip(t, counters(7)...))}, VerifyOptions{}, []string{
			fmt.Sprintf("trace.torn run.w.000000.jsonl.gz:4:1: no gzip member begins there, 7 bytes at byte %d of the file; reading goes on with the next member", len(zip(t, good...))),
		}},
		"segment": {map[string][]byte{
			"run.w.000003.jsonl.gz": zip(t, counters(1)...), "run.w.000005.jsonl.gz": zip(t, counters(2)...), "run.w.000009.jsonl.gz": zip(t, counters(3)...), "run.v.000007.jsonl.gz": zip(t, counters(4)...),
		}, VerifyOptions{}, []string{
			"trace.segment run.w.000005.jsonl.gz: the segment 000004 before it is missing",
			"trace.segment run.w.000009.jsonl.gz: 3 segments between 000005 and 000009 are missing",
		}},
		"expected": {map[string][]byte{"run.w.000000.jsonl.gz": zip(t, good...)}, VerifyOptions{ProducerCount: 2, Producers: []string{"x", "w"}, Ranks: []int{0, 1}}, []string{
			"trace.producer: fewer producers have rows than were expected",
			"trace.producer: no row of the producer x, which was expected",
			"trace.rank: no row of rank 1, which was expected",
		}},
		"mixed over files": {map[string][]byte{
			"run.w.000000.jsonl.gz": zip(t, good...), "run.w.000001.jsonl.gz": zip(t, "x", sample{counter: 7}.line(), sample{counter: 8, mode: wire.Sampled}.line()),
			"run.x.000000.jsonl.gz": zip(t, "x", sample{producer: "x", mode: wire.Sampled}.line()), "run.x.000001.jsonl.gz": zip(t, sample{producer: "x"}.line()),
		}, VerifyOptions{}, []string{
			"trace.mixed run.w.000001.jsonl.gz:3:1: rows of the sampled capture mode follow rows of the full capture mode in one series",
			"trace.mixed run.x.000001.jsonl.gz:1:1: rows of the full capture mode follow rows of the sampled capture mode in one series",
			"trace.row run.w.000001.jsonl.gz:1:1: not a JSON object",
			"trace.row run.x.000000.jsonl.gz:1:1: not a JSON object",
			"trace.sampled: 2 of 4 streams are no full captures: their gaps are not judged",
		}},
		"mixed schemas": {map[string][]byte{
			"run.w.000000.jsonl.gz": zip(t, append(slices.Clone(good), strings.Replace(good[0], "trace.v1", "trace.v2", 1))...),
		}, VerifyOptions{}, []string{
			"trace.mixed run.w.000000.jsonl.gz:4:1: rows of the schema \"dynamo.fpm.trace.v2\" follow rows of the full capture mode in one series",
			"trace.row run.w.000000.jsonl.gz:4:34: \"dynamo.fpm.trace.v2\" is not the schema dynamo.fpm.trace.v1",
		}},
		"empty": {map[string][]byte{"run.w.000000.jsonl.gz": nil}, VerifyOptions{}, []string{
			"trace.empty run.w.000000.jsonl.gz: the file has no rows", "trace.empty: there is no row at all",
		}},
		"warnings": {map[string][]byte{"run.w.000000.jsonl.gz": zip(t, append(good,
			sample{counter: 7, wall: 601}.line(), sample{counter: 8, wall: 602}.line(), sample{counter: 2, mode: wire.Sampled}.line())...)}, VerifyOptions{}, []string{
			"trace.mixed run.w.000000.jsonl.gz:6:1: rows of the sampled capture mode follow rows of the full capture mode in one series",
			"trace.sampled: 1 of 2 streams is no full capture: its gaps are not judged",
			"trace.wall-time run.w.000000.jsonl.gz:4:1: rank 0 of producer w has 2 rows with a wall time that no forward pass has, this one 601 s",
		}},
	} {
		got, _ := verify(t, write(t, c.files), c.opt)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// What is published between two recorders is not missing of a capture.
func TestRecorderRestart(t *testing.T) {
	const start = 1_000_000
	row := func(counter, begun, since int64) string {
		return sample{counter: counter, at: begun + since, since: since}.line()
	}
	const paused = "trace.restart run.w.000000.jsonl.gz:3:1: 17 messages of rank 0 of producer w published while no recorder ran "
	const gap = "trace.gap run.w.000000.jsonl.gz:3:1: 17 messages are missing of rank 0 of producer w"
	manifest := func(state string) string {
		return `{"schema":"fpm.trace.manifest","state":"stopped","complete":true,"started_unix_ms":1020000,
			"previous":{"state":"` + state + `","complete":true,"started_unix_ms":1000000,"updated_unix_ms":1009000}}`
	}
	for name, c := range map[string]struct {
		third    string
		manifest string
		want     []string
	}{
		"the rows show it":        {row(20, start+20_000, 1000), "", []string{paused + "(1970-01-01T00:16:46.000Z - 1970-01-01T00:17:00.000Z)"}},
		"the manifest shows it":   {row(20, start+20_000, 8000), manifest("stopped"), []string{paused + "(1970-01-01T00:16:49.000Z - 1970-01-01T00:17:00.000Z)"}},
		"it was killed":           {row(20, start+20_000, 1000), manifest("recording"), []string{paused + "(1970-01-01T00:16:49.000Z - 1970-01-01T00:17:00.000Z); the recorder before was killed, which can cost its last second"}},
		"one recorder":            {row(20, start, 8000), "", []string{gap}},
		"one, whose clock jumped": {row(20, start+20_000, 8000), "", []string{gap}},
		"two at a time":           {row(20, start+2000, 5000), manifest("stopped"), []string{gap}},
		"nothing between them":    {row(3, start+20_000, 1000), "", nil},
	} {
		files := map[string][]byte{"run.w.000000.jsonl.gz": zip(t, row(1, start, 5000), row(2, start, 6000), c.third)}
		if c.manifest != "" {
			files["run.manifest.json"] = []byte(c.manifest)
		}
		got, stats := verify(t, write(t, files), VerifyOptions{})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if all := stats.Total(); all.Missing+all.Unrecorded != 17 && c.want != nil {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// Counters of two recordings say nothing about each other, and recorders that share a prefix
// are judged each by itself.
func TestRecordingsAreJudgedApart(t *testing.T) {
	row := func(counter, begun, since int64) string {
		return sample{counter: counter, at: begun + since, since: since}.line()
	}
	const a, b = 100_000, 104_000 // starts of two recorders
	for name, c := range map[string]struct {
		files map[string][]string
		want  []string
	}{
		"two prefixes": {map[string][]string{
			"run.w.000000.jsonl.gz": {row(1, a, 0), row(2, a, 1000)}, "sun.w.000000.jsonl.gz": {row(90, a, 1500), row(91, a, 2000)},
			"tun.w.000000.jsonl.gz": {row(5, b, 0), row(6, b, 10)},
		}, nil},
		"other files of two recordings": {map[string][]string{"1.jsonl.gz": {row(1, a, 0), row(2, a, 1000)}, "2.jsonl.gz": {row(90, b, 0)}}, nil},
		"other files of one": {map[string][]string{"1.jsonl.gz": {row(1, a, 0), row(2, a, 1000)}, "2.jsonl.gz": {row(9, a, 2000)}},
			[]string{"trace.gap 2.jsonl.gz:1:1: 6 messages are missing of rank 0 of producer w"}},
		"two recorders of one prefix": {map[string][]string{
			"run.w.000000.jsonl.gz": {row(1, a, 0), row(2, a, 5000), row(3, a, 6000)}, "run.w.000001.jsonl.gz": {row(2, b, 1000), row(3, b, 2000)},
			"run.w.000002.jsonl.gz": {row(4, a, 7000), row(5, a, 8000)}, "run.w.000003.jsonl.gz": {row(4, b, 3000), row(6, b, 5000)},
			"run.w.000004.jsonl.gz": {row(8, a, 9000)},
			"sun.w.000000.jsonl.gz": {row(1, a, 0), row(9, a, 9000)}, "sun.w.000001.jsonl.gz": {row(3, a+9, 3000), row(8, a+9, 8000)},
			"sun.w.000002.jsonl.gz": {row(10, a, 10_000)}, "sun.w.000003.jsonl.gz": {row(9, a+8, 9000)},
		}, []string{
			"trace.gap run.w.000003.jsonl.gz:2:1: 1 message is missing of rank 0 of producer w",
			"trace.gap run.w.000004.jsonl.gz:1:1: 2 messages are missing of rank 0 of producer w",
			"trace.gap sun.w.000000.jsonl.gz:2:1: 7 messages are missing of rank 0 of producer w",
			"trace.gap sun.w.000001.jsonl.gz:2:1: 4 messages are missing of rank 0 of producer w",
		}},
	} {
		files := map[string][]byte{}
		for name, lines := range c.files {
			files[name] = zip(t, lines...)
		}
		got, _ := verify(t, filepath.Dir(write(t, files)), VerifyOptions{})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Retention explains what is missing below the oldest segment that is there, whatever the
// manifests of however many recorders name.
func TestVerifyRetention(t *testing.T) {
	manifest := func(max int, files string) []byte {
		return fmt.Appendf(nil, `{"schema":"fpm.trace.manifest","state":"recording","max_segments":%d,"producers":[{"producer_id":"w","files":[%s]}]}`, max, files)
	}
	const killed = `"run.w.000443.jsonl.gz","run.w.000444.jsonl.gz"`
	here := map[string][]byte{"run.w.000797.jsonl.gz": zip(t, counters(1)...), "run.w.000798.jsonl.gz": zip(t, counters(2)...)}
	const missing = " of producer w, which is not there"
	for name, c := range map[string]struct {
		manifests map[string][]byte
		want      []string
	}{
		"long ago":                 {map[string][]byte{"run.manifest.json": manifest(2, killed)}, nil},
		"two recorders":            {map[string][]byte{"run.manifest.json": manifest(4, killed), "run.manifest-2.json": manifest(2, `"run.w.000700.jsonl.gz"`)}, nil},
		"the second one's":         {map[string][]byte{"run.manifest-2.json": manifest(2, `"run.w.000799.jsonl.gz"`)}, []string{"trace.segment run.manifest-2.json: the manifest names run.w.000799.jsonl.gz" + missing}},
		"too few to displace":      {map[string][]byte{"run.manifest-12.json": manifest(3, `"run.w.000796.jsonl.gz"`)}, []string{"trace.segment run.manifest-12.json: the manifest names run.w.000796.jsonl.gz" + missing}},
		"no manifest of this kind": {map[string][]byte{"run.manifest-x.json": manifest(3, killed), "run.x.manifest.json": manifest(3, killed)}, nil},
	} {
		files := maps.Clone(here)
		maps.Copy(files, c.manifests)
		got, stats := verify(t, write(t, files), VerifyOptions{})
		if diff := cmp.Diff(c.want, got); diff != "" || len(stats.Failures) > 0 {
			t.Errorf("%s: %v %s", name, stats.Failures, diff)
		}
	}
}

// What a recorder has just created, or had when it was killed, holds no rows so far.
func TestVerifyBegunSegment(t *testing.T) {
	for state, want := range map[string][]string{"recording": nil, "stopped": {"trace.empty run.w.000001.jsonl.gz: the file has no rows"}} {
		got, _ := verify(t, write(t, map[string][]byte{
			"run.w.000000.jsonl.gz": zip(t, counters(1)...), "run.w.000001.jsonl.gz": nil,
			"run.manifest.json": fmt.Appendf(nil, `{"schema":"fpm.trace.manifest","state":%q}`, state),
		}), VerifyOptions{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", state, diff)
		}
	}
}

// Links and directories on an index are no segments, and retention passes over them.
func TestVerifyForeignNames(t *testing.T) {
	prefix := write(t, map[string][]byte{"run.w.000008.jsonl.gz": zip(t, counters(1)...), "run.w.000009.jsonl.gz": zip(t, counters(2)...), "run.w.000012.jsonl.gz": zip(t, counters(3)...), "old.jsonl.gz": zip(t, counters(0)...)})
	dir := filepath.Dir(prefix)
	for name, target := range map[string]string{"run.w.000000.jsonl.gz": "nowhere", "run.w.000001.jsonl.gz": "old.jsonl.gz", "run.w.000003.jsonl.gz": "."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"run.w.000005.jsonl.gz", "run.w.000010.jsonl.gz", "run.w.000011.jsonl.gz"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got, stats := verify(t, prefix, VerifyOptions{}); len(got)+len(stats.Failures) > 0 || stats.Rows != 4 {
		t.Errorf("%v, %v, %d rows", got, stats.Failures, stats.Rows)
	}
}

// A segment that retention deletes between finding and opening it is not missing, nor is
// what was in it. What anybody else deletes is.
func TestVerifyWhileRecording(t *testing.T) {
	files := map[string][]byte{}
	for i := range int64(5) {
		files[fmt.Sprintf("run.w.%06d.jsonl.gz", i)] = zip(t, counters(2*i, 2*i+1)...)
	}
	for name, c := range map[string]struct {
		deleted  []int
		want     []string
		failures int
	}{
		"by retention": {[]int{0, 1, 2}, nil, 0},
		"all of them":  {[]int{0, 1, 2, 3, 4}, nil, 5}, // which is no whole capture
		"by somebody":  {[]int{3}, nil, 1},             // a failure is enough
	} {
		sources := find(t, write(t, files))
		for _, i := range c.deleted {
			if err := os.Remove(sources[i].Path); err != nil {
				t.Fatal(err)
			}
		}
		out := finding.NewCollector(0)
		stats, err := Verify(t.Context(), sources, VerifyOptions{Out: out})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range out.Findings() {
			got = append(got, fmt.Sprintf("%s %s: %s", f.Rule, filepath.Base(f.File), f.Message))
		}
		if diff := cmp.Diff(c.want, got); diff != "" || len(stats.Failures) != c.failures {
			t.Errorf("%s: %v\n%s", name, stats.Failures, diff)
		}
	}
}

// A gap that the recorder explains says so.
func TestGapHint(t *testing.T) {
	prefix := write(t, map[string][]byte{"run.w.000000.jsonl.gz": zip(t, counters(1, 4)...), "run.manifest.json": []byte(
		`{"schema":"fpm.trace.manifest","producers":[{"producer_id":"w","streams":[{"dp_rank":0,"worker_id":"w","rejected":{"field":1,"version":1}}]}]}`)})
	out := finding.NewCollector(0)
	if _, err := Verify(t.Context(), find(t, prefix), VerifyOptions{Out: out}); err != nil {
		t.Fatal(err)
	}
	if list := out.Findings(); len(list) != 1 || !strings.Contains(list[0].Hint, "run.manifest.json says that the recorder refused 2 messages of this rank") {
		t.Errorf("%+v", list)
	}
}

// What the manifest names is there, or has been displaced by newer segments.
func TestVerifyManifest(t *testing.T) {
	manifest := func(max int, files ...string) []byte {
		return fmt.Appendf(nil, `{"schema":"fpm.trace.manifest","schema_version":1,"state":"recording","complete":false,"max_segments":%d,"producers":[{"producer_id":"w","files":[%q]}]}`,
			max, strings.Join(files, `","`))
	}
	text := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`\"`), []byte(`"`)) }
	two := map[string][]byte{"run.w.000002.jsonl.gz": zip(t, counters(1)...), "run.w.000003.jsonl.gz": zip(t, counters(2)...)}
	for _, c := range []struct {
		manifest []byte
		want     []string
	}{
		{text(manifest(2, "run.w.000001.jsonl.gz", "run.w.000002.jsonl.gz")), nil},
		{text(manifest(3, "run.w.000001.jsonl.gz", "run.w.000002.jsonl.gz")), []string{"trace.segment run.manifest.json: the manifest names run.w.000001.jsonl.gz of producer w, which is not there"}},
		{text(manifest(1, "run.w.000003.jsonl.gz", "../../etc/passwd", "run.w.000004.jsonl.gz")), []string{"trace.segment run.manifest.json: the manifest names run.w.000004.jsonl.gz of producer w, which is not there"}},
	} {
		files := map[string][]byte{"run.manifest.json": c.manifest}
		for name, data := range two {
			files[name] = data
		}
		got, stats := verify(t, write(t, files), VerifyOptions{})
		if diff := cmp.Diff(c.want, got); diff != "" || len(stats.Accounts) != 1 {
			t.Errorf("%s: %s", c.manifest, diff)
		}
	}
	files := map[string][]byte{"run.manifest.json": []byte(`{"schema":"x"}`), "run.w.000000.jsonl.gz": zip(t, counters(1)...)}
	if got, stats := verify(t, write(t, files), VerifyOptions{}); len(got) > 0 || len(stats.Failures) != 1 {
		t.Errorf("%v, %v", got, stats.Failures)
	}
}

// What is not right behind the cut of a member is the cut's doing.
func TestRowsOfACutMemberAreNotBlamed(t *testing.T) {
	lines := slices.Concat(counters(1, 2), []string{`{"odd":1}`}, counters(3, 4, 5, 6, 7, 8))
	data := zip(t, lines...)
	got, _ := verify(t, write(t, map[string][]byte{"run.w.000000.jsonl.gz": data[:len(data)-12]}), VerifyOptions{})
	if len(got) != 1 || !strings.HasPrefix(got[0], "trace.torn") {
		t.Errorf("%v", got)
	}
}

// A member that is cut off at the end of a file is what a killed recorder leaves; in front of
// others it is a hole in what was recorded.
func TestDamageIsWhatIsNotAtTheEnd(t *testing.T) {
	whole := zip(t, counters(1, 2, 3)...)
	var noise []string
	for i := range 500 {
		noise = append(noise, sample{counter: int64(4 + i), wall: float64(i*i%977) / 977}.line())
	}
	long := zip(t, noise...)
	cut := long[:len(long)/2]
	for name, c := range map[string]struct {
		data    []byte
		damaged uint64
	}{
		"last":   {slices.Concat(whole, cut), 0},
		"middle": {slices.Concat(whole, cut, whole), 1},
	} {
		_, copied := cat(t, CatOptions{}, write(t, map[string][]byte{"run.w.000000.jsonl.gz": c.data}))
		if uint64(copied.Damaged) != c.damaged || len(copied.Torn) != 1 || copied.Torn[0].Fault != segment.Cut {
			t.Errorf("%s: %+v", name, copied)
		}
	}
}

func cat(t *testing.T, opt CatOptions, args ...string) (string, *Copied) {
	t.Helper()
	var b bytes.Buffer
	copied, err := Cat(t.Context(), &b, find(t, args...), opt)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), copied
}

func TestCat(t *testing.T) {
	lines := []string{
		sample{counter: 1, at: 1000, wall: 0.5}.line(), `{"not a row":1}`, " " + strings.ReplaceAll(sample{counter: 2, at: 2000}.line(), ":", ": ") + "\r", "",
		sample{producer: "a:b", counter: 3, rank: 2, at: 3000, wall: 1e-7}.line(),
	}
	prefix := write(t, map[string][]byte{"run.w.000000.jsonl.gz": zip(t, lines...)})
	for name, c := range map[string]struct {
		opt  CatOptions
		want []int // of lines
		bad  uint64
	}{
		"all":            {CatOptions{}, []int{0, 1, 2, 4}, 0}, // but what is blank
		"since":          {CatOptions{Filter: Filter{Since: time.UnixMilli(2000)}}, []int{2, 4}, 1},
		"until":          {CatOptions{Filter: Filter{Until: time.UnixMilli(2000)}}, []int{0}, 1},
		"both":           {CatOptions{Filter: Filter{Since: time.UnixMilli(1001), Until: time.UnixMilli(2999)}}, []int{2}, 1},
		"rank":           {CatOptions{Filter: Filter{Ranks: []int{1, 2}}}, []int{4}, 1},
		"producer":       {CatOptions{Filter: Filter{Producers: []string{"x", "a:b"}}}, []int{4}, 1},
		"producer, file": {CatOptions{Filter: Filter{Producers: []string{"a_b"}}}, []int{4}, 1},
		"busy":           {CatOptions{Filter: Filter{Kind: Busy}}, []int{0, 4}, 1},
		"heartbeat":      {CatOptions{Filter: Filter{Kind: Heartbeat}}, []int{2}, 1},
		"none":           {CatOptions{Filter: Filter{Producers: []string{"x"}}}, nil, 1},
	} {
		var want strings.Builder
		for _, i := range c.want {
			want.WriteString(lines[i] + "\n")
		}
		got, copied := cat(t, c.opt, prefix)
		if diff := cmp.Diff(want.String(), got); diff != "" || copied.BadRows != c.bad || copied.Lines != uint64(len(c.want)) {
			t.Errorf("%s: %+v %s", name, copied, diff)
		}
	}
	got, _ := cat(t, CatOptions{Metric: true, Filter: Filter{Ranks: []int{2}}}, prefix)
	if _, metric, _ := strings.Cut(strings.TrimSuffix(lines[4], "}}"), `"fpm":`); got != metric+"\n" {
		t.Errorf("metric %s", got)
	}
}

func TestCatEnds(t *testing.T) {
	prefix := write(t, map[string][]byte{"run.w.000000.jsonl.gz": zip(t, counters(1, 2, 3)...)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Cat(ctx, &bytes.Buffer{}, find(t, prefix), CatOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Summarise(ctx, find(t, prefix), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	full := errors.New("full")
	if _, err := Cat(t.Context(), broken{full}, find(t, prefix), CatOptions{}); !errors.Is(err, full) {
		t.Errorf("a writer that fails: %v", err)
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// notify tells of each write, so that a test can wait for it.
type notify chan string

func (n notify) Write(p []byte) (int, error) {
	n <- string(p)
	return len(p), nil
}

func TestFollow(t *testing.T) {
	prefix := write(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ticks, out, ended := make(chan time.Time), make(notify), make(chan *Copied)
	go func() {
		copied, err := Follow(ctx, out, []string{prefix}, CatOptions{Filter: Filter{Kind: Busy}}, ticks)
		if err != nil {
			t.Error(err)
		}
		ended <- copied
	}()
	w, err := segment.NewWriter(segment.Options{Prefix: prefix, Producer: "w", RollBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(6) {
		line := sample{counter: i, wall: 1}.line()
		for _, err := range []error{w.Append([]byte(sample{}.line() + "\n")), w.Append([]byte(line + "\n")), w.Flush()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for got := ""; got == ""; {
			select {
			case ticks <- time.Time{}:
			case got = <-out:
				if got != line+"\n" {
					t.Fatalf("got %s, want %s", got, line)
				}
			}
		}
	}
	cancel()
	if copied := <-ended; copied.Lines != 6 || copied.Skipped != 6 {
		t.Errorf("%+v", copied)
	}
	if _, err := Follow(t.Context(), out, nil, CatOptions{}, ticks); err == nil {
		t.Error("nothing to follow is no error")
	}
}

// The figures of the documentation.
func TestCapacity(t *testing.T) {
	sampled := Flow{RowBytes: 600, RowsPerSec: RowsPerSecond(wire.Sampled, 1, 5*time.Second, 10), Compression: 8, Producers: 3}
	c := sampled.Capacity(256<<20, 4)
	if c.RowsPerDay != 17280 || c.BytesPerDay != 10_368_000 || c.StoredPerDay != 1_296_000 || c.AllStoredPerDay != 3*1_296_000 {
		t.Errorf("%+v", c)
	}
	if want := 4 * float64(256<<20) / 120; c.Retained != want || c.RetainedAtLeast != want*3/4 || c.MaxStored != 4*(256<<20)/8 {
		t.Errorf("%+v", c)
	}
	full := Flow{RowBytes: 600, RowsPerSec: RowsPerSecond(wire.Full, 1, 0, 10), Compression: 1, Producers: 1}
	if c := full.Capacity(1, 1); c.BytesPerDay != 518_400_000 {
		t.Errorf("%+v", c)
	}
	if got := RowsPerSecond(wire.Sampled, 2, time.Second, 0.5); got != 1 {
		t.Errorf("%v rows a second of two slow ranks", got)
	}
}

func TestMeasure(t *testing.T) {
	lines := append(counters(1, 2, 3), sample{producer: "v", at: 2000, counter: 1}.line(), "x")
	prefix := write(t, map[string][]byte{"run.w.000000.jsonl.gz": zip(t, lines...)})
	m, err := Measure(t.Context(), find(t, prefix), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := uint64(len(strings.Join(lines[:4], "\n")) + 1)
	if m.Rows != 4 || m.Text != text || m.Seconds != 2 || m.Producers != 2 || m.Streams != 2 || m.BadRows != 1 || m.RowsPerSec != 0.5 || m.RowBytes != float64(text)/4 || m.Compression < 1 {
		t.Errorf("%+v", m)
	}
}

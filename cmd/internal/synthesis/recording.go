package synthesis

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/wire"
)

// The shape of a recording: few workers, each of which writes a series of its own.
const (
	recordingName     = "recording"
	recordingWorkers  = 2
	recordingSegments = 3 // of each worker: one is neither the first nor the last
	recordingPasses   = 2 // of each rank in each segment
	recordingStart    = 1767225600000
)

// An OccupiedError says that there are segments with a recording's prefix that are not its
// own. They would be read with it.
type OccupiedError struct{ Path string }

func (e *OccupiedError) Error() string {
	return e.Path + ": the segment is there and is none of the recording that is to be written"
}

// recording is a recording before it is written.
type recording struct {
	workers [][]part // by worker and segment
}

// part is what one segment is made of.
type part struct {
	rows   []row // none for no segment
	absent bool  // removed when the series is written
	cut    int64 // bytes off its end
	empty  bool  // a file without a byte follows it
}

// row is a row with its payload as values.
type row struct {
	worker     string
	rank       int
	counter    int
	mode       wire.Mode
	at         int64 // milliseconds since the recording began
	wall       string
	kv, queued int
}

// newRecording returns the full capture of a small fleet: every rank has a pass every ten
// milliseconds, and each segment has passes of every rank.
func newRecording(opt simulate.Options) *recording {
	r := &recording{}
	dice := rand.New(rand.NewPCG(opt.Seed, 0x7472616365))
	for w := range recordingWorkers {
		var parts []part
		for s := range recordingSegments {
			var p part
			for pass := range recordingPasses {
				for rank := range opt.Ranks {
					n := s*recordingPasses + pass
					p.rows = append(p.rows, row{
						worker: workerName(w), rank: rank, counter: 100 + n, mode: wire.Full, at: int64(10*n + rank%10),
						wall: fmt.Sprintf("0.00%d", 700+dice.IntN(200)), kv: 4096 + dice.IntN(512), queued: dice.IntN(3),
					})
				}
			}
			parts = append(parts, p)
		}
		r.workers = append(r.workers, parts)
	}
	return r
}

// last returns the last segment of the last worker.
func (r *recording) last() *part {
	parts := r.workers[len(r.workers)-1]
	return &parts[len(parts)-1]
}

// append appends the row as a recorder writes it.
func (w row) append(dst []byte) []byte {
	const payload = `{"version":1,"worker_id":%q,"dp_rank":%d,"counter_id":%d,"wall_time":%s,` +
		`"scheduled_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"var_prefill_length":0.0,"sum_prefill_kv_tokens":0,"num_decode_requests":8,"sum_decode_kv_tokens":%d,"var_decode_kv_tokens":0.0},` +
		`"queued_requests":{"num_prefill_requests":%d,"sum_prefill_tokens":%d,"var_prefill_length":0.0,"num_decode_requests":0,"sum_decode_kv_tokens":0,"var_decode_kv_tokens":0.0}}`
	return wire.AppendRow(dst, wire.Row{
		TimestampMS: w.at, Namespace: "dynamo", Component: "backend", ProducerID: w.worker, Mode: w.mode, ObservedUnixMS: recordingStart + w.at,
		FPM: fmt.Appendf(nil, payload, w.worker, w.rank, w.counter, w.wall, w.kv, w.queued, 128*w.queued),
	})
}

func workerName(worker int) string { return fmt.Sprintf("worker-%d", worker) }

// RecordingFiles returns where the segments of a recording go, and the empty one that a
// broken recording can have.
func RecordingFiles(opt simulate.Options) (paths []string) {
	for w := range recordingWorkers {
		for i := range recordingSegments + 1 {
			paths = append(paths, segmentPath(opt, w, i))
		}
	}
	return paths
}

func segmentPath(opt simulate.Options, worker, index int) string {
	return segment.Name{Prefix: filepath.Join(opt.Dir, recordingName), Producer: workerName(worker), Index: uint64(index)}.Path()
}

// record writes the recording.
func (s *synthesis) record() error {
	if err := s.opt.Check(); err != nil {
		return err
	}
	r := newRecording(s.opt)
	if s.mutation.recording != nil {
		s.mutation.recording(r)
	}
	if err := errors.Join(os.MkdirAll(s.opt.Dir, 0o777), clearRecording(s.opt)); err != nil {
		return err
	}
	encoder, err := segment.NewEncoder(segment.DefaultLevel)
	if err != nil {
		return err
	}
	for w, parts := range r.workers {
		for i := range parts {
			if err := errors.Join(s.ctx.Err(), s.writePart(encoder, w, i, &parts[i])); err != nil {
				return err
			}
		}
		for i := range parts { // a writer numbers a segment after those that are there
			if err := s.damage(w, i, &parts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// clearRecording removes the segments of an older recording of this kind.
func clearRecording(opt simulate.Options) error {
	for _, path := range RecordingFiles(opt) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	others, err := segment.Find([]string{filepath.Join(opt.Dir, recordingName)})
	if err == nil {
		return &OccupiedError{others[0].Path}
	}
	return nil // there is none with that prefix
}

// writePart writes a segment.
func (s *synthesis) writePart(encoder *segment.Encoder, worker, index int, p *part) error {
	w, err := segment.NewWriter(segment.Options{
		Prefix: filepath.Join(s.opt.Dir, recordingName), Producer: workerName(worker), MaxSegments: recordingSegments + 1, Encoder: encoder,
	})
	if err != nil {
		return err
	}
	for _, row := range p.rows {
		err = errors.Join(err, w.Append(row.append(nil)))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	if path := segmentPath(s.opt, worker, index); len(p.rows) > 0 && !p.absent {
		s.result.Files = append(s.result.Files, path)
	}
	return nil
}

// damage does to a segment that is written what no recorder does.
func (s *synthesis) damage(worker, index int, p *part) error {
	path := segmentPath(s.opt, worker, index)
	switch {
	case p.absent:
		return os.Remove(path)
	case p.cut > 0:
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Truncate(path, info.Size()-p.cut)
	case p.empty:
		next := segmentPath(s.opt, worker, index+1)
		s.result.Files = append(s.result.Files, next)
		return os.WriteFile(next, nil, 0o666)
	}
	return nil
}

// traceBreaks are those of a recording.
func traceBreaks() (all []mutation) {
	for _, b := range []struct {
		rule    finding.ID
		entails []finding.ID
		ranks   int
		change  func(*recording)
		how     string
	}{
		{finding.TraceRow, nil, 1, func(r *recording) { r.final().wall = "-0.5" }, "the last row has a negative wall time"},
		{finding.TraceGap, nil, 1, func(r *recording) { p := r.middle(); p.rows = p.rows[1:] }, "a row of the middle segment is not there"},
		{finding.TraceTorn, nil, 1, func(r *recording) { r.last().cut = 4 }, "the last four bytes of the last segment are cut off"},
		{finding.TraceSegment, []finding.ID{finding.TraceGap}, 1, func(r *recording) { r.middle().absent = true }, "the middle segment is not there, and its rows with it"},
		{finding.TraceProducer, nil, 1, func(r *recording) { r.workers = r.workers[:1] }, "the second producer recorded nothing"},
		{finding.TraceRank, nil, 2, withoutRank, "there is no row of rank 1"},
		{finding.TraceEmpty, nil, 1, func(r *recording) { r.last().empty = true }, "a segment without a byte follows the last one"},
		{finding.TraceRestart, nil, 1, restart, "in the last segment a producer's counters begin again"},
		{finding.TraceSampled, nil, 1, sampled, "the second producer's rows are of a sampled capture"},
		{finding.TraceWallTime, nil, 1, func(r *recording) { r.final().wall = "12345.6" }, "the last row has a wall time of hours"},
		{finding.TraceMixed, []finding.ID{finding.TraceSampled}, 1, func(r *recording) { r.final().mode = wire.Sampled }, "the last row is of a sampled capture"},
	} {
		all = append(all, mutation{
			Break:     Break{Break: simulate.Break{Rule: b.rule, Entails: b.entails, How: b.how, MinRanks: b.ranks}, Kind: Recording},
			recording: b.change,
		})
	}
	return all
}

// middle returns the segment of the last worker that is neither its first nor its last.
func (r *recording) middle() *part { return &r.workers[len(r.workers)-1][1] }

// final returns the last row.
func (r *recording) final() *row {
	p := r.last()
	return &p.rows[len(p.rows)-1]
}

func withoutRank(r *recording) {
	for w := range r.workers {
		for i := range r.workers[w] {
			p := &r.workers[w][i]
			p.rows = slices.DeleteFunc(p.rows, func(row row) bool { return row.rank == 1 })
		}
	}
}

func restart(r *recording) {
	p := r.last()
	first := p.rows[0].counter
	for i := range p.rows {
		p.rows[i].counter -= first
	}
}

func sampled(r *recording) {
	for _, p := range r.workers[len(r.workers)-1] {
		for i := range p.rows {
			p.rows[i].mode = wire.Sampled
		}
	}
}

package trace

import (
	"context"
	"os"
	"time"

	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/wire"
)

// Flow is what a producer writes, from which [Flow.Capacity] computes what it takes.
type Flow struct {
	RowBytes    float64 // mean size of a row as text, line end included (bytes)
	RowsPerSec  float64 // of all ranks of the producer together
	Compression float64 // text bytes for each byte on disk
	Producers   int     // that write so
}

// Capacity is what a flow takes.
type Capacity struct {
	RowsPerDay       float64 // of one producer
	BytesPerDay      float64 // of text, one producer
	StoredPerDay     float64 // on disk, one producer
	AllStoredPerDay  float64 // on disk, all producers
	Retained         float64 // seconds that the segments of a producer reach back, at most
	RetainedAtLeast  float64 // seconds, right after a roll
	MaxStored        float64 // bytes on disk of a producer's segments, at most
	AllMaxStored     float64 // bytes on disk, all producers
	SegmentsPerDay   float64
	SecondsToSegment float64 // how long it takes to fill one
}

const secondsPerDay = 86400

// Capacity computes what a flow takes with segments of rollBytes of text, of which
// maxSegments are kept for each producer.
func (l Flow) Capacity(rollBytes uint64, maxSegments int) Capacity {
	perSec := l.RowBytes * l.RowsPerSec
	roll := float64(rollBytes)
	c := Capacity{
		RowsPerDay:      l.RowsPerSec * secondsPerDay,
		BytesPerDay:     perSec * secondsPerDay,
		StoredPerDay:    ratio(perSec*secondsPerDay, l.Compression),
		MaxStored:       ratio(roll*float64(maxSegments), l.Compression),
		SegmentsPerDay:  ratio(perSec*secondsPerDay, roll),
		Retained:        ratio(roll*float64(maxSegments), perSec),
		RetainedAtLeast: ratio(roll*float64(maxSegments-1), perSec),
	}
	c.SecondsToSegment = ratio(roll, perSec)
	c.AllStoredPerDay = c.StoredPerDay * float64(l.Producers)
	c.AllMaxStored = c.MaxStored * float64(l.Producers)
	return c
}

// RowsPerSecond returns how many rows a producer of so many ranks writes in a mode: in a
// sampled capture one for each rank and interval, as long as its counter changes, which an
// idle rank's does; in a full one a row for each forward pass.
func RowsPerSecond(mode wire.Mode, ranks int, interval time.Duration, passesPerSec float64) float64 {
	if mode == wire.Full {
		return float64(ranks) * passesPerSec
	}
	perSec := ratio(1, interval.Seconds())
	if passesPerSec > 0 {
		perSec = min(perSec, passesPerSec) // an unchanged counter is not repeated
	}
	return float64(ranks) * perSec
}

// Measured is a flow as it is found in files.
type Measured struct {
	Flow
	Rows     uint64
	Text     uint64  // bytes, line ends included
	Stored   uint64  // bytes on disk
	Seconds  float64 // between the first and the last row
	Streams  int
	BadRows  uint64
	Holes    uint64
	Failures []error
	first    int64
	last     int64
	sources  map[string]bool
	streams  map[StreamID]bool
}

// Measure reads files and returns the flow that they show: the mean row, how many a second
// each producer wrote, and how well they are compressed. Rows that span no time have no rate:
// RowsPerSec is then 0. The error is that of the context.
func Measure(ctx context.Context, sources []*segment.Source, read func(int64)) (*Measured, error) {
	m := &Measured{sources: map[string]bool{}, streams: map[StreamID]bool{}}
	for _, s := range sources {
		if info, err := os.Stat(s.Path); err == nil {
			m.Stored += uint64(info.Size())
		}
	}
	if err := visit(ctx, sources, read, m); err != nil {
		return nil, err
	}
	m.Streams = len(m.streams)
	m.Seconds = float64(m.last-m.first) / 1000
	m.Producers = max(1, len(m.sources))
	m.RowBytes = ratio(float64(m.Text), float64(m.Rows))
	// A row of each stream only begins the time: two rows that are 5 s apart are one in 5 s.
	m.RowsPerSec = ratio(float64(m.Rows)-float64(m.Streams), m.Seconds) / float64(m.Producers)
	m.Compression = ratio(float64(m.Text), float64(m.Stored))
	return m, nil
}

func (m *Measured) row(rec segment.Record, row *Row) {
	if m.Rows++; m.Rows == 1 {
		m.first, m.last = row.ObservedUnixMS, row.ObservedUnixMS
	}
	m.first, m.last = min(m.first, row.ObservedUnixMS), max(m.last, row.ObservedUnixMS)
	m.Text += uint64(len(rec.Line)) + 1
	if len(m.streams) < MaxStreams {
		m.sources[row.ProducerID] = true
		m.streams[StreamID{row.Namespace, row.Component, row.ProducerID, row.WorkerID, row.DPRank, row.Mode}] = true
	}
}

func (m *Measured) bad(segment.Record, *RowError) { m.BadRows++ }
func (m *Measured) hole(segment.Record)           { m.Holes++ }
func (m *Measured) failure(err error)             { m.Failures = append(m.Failures, err) }

package wire_test

import (
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/fpm-project/fpm/trace/wire"
)

// BenchmarkDecode measures judging a busy pass and rendering it as JSON, and says how many
// times faster that is than msgp's own, unchecked way to JSON.
func BenchmarkDecode(b *testing.B) {
	all := busy(256)
	var d wire.Decoder
	var buf []byte
	b.ReportAllocs()
	b.SetBytes(int64(len(all[0][2])))
	var n int
	for b.Loop() {
		_, out, err := d.Decode(buf[:0], all[n%len(all)])
		if err != nil {
			b.Fatal(err)
		}
		buf = out
		n++
	}
	own := b.Elapsed() / time.Duration(n)
	b.ReportMetric(float64(generic(b, all))/float64(own), "x-faster-than-msgp")
}

// generic returns the time that msgp needs for a message.
func generic(b *testing.B, all [][][]byte) time.Duration {
	const rounds = 20
	var sink discard
	start := time.Now()
	for range rounds {
		for _, m := range all {
			if _, err := msgp.UnmarshalAsJSON(&sink, m[2]); err != nil {
				b.Fatal(err)
			}
		}
	}
	return time.Since(start) / time.Duration(rounds*len(all))
}

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkRow measures the line of the trace for a decoded pass.
func BenchmarkRow(b *testing.B) {
	var d wire.Decoder
	f, _, err := d.Decode(nil, busy(1)[0])
	if err != nil {
		b.Fatal(err)
	}
	row := wire.Row{TimestampMS: 123456, Namespace: "dynamo", Component: "backend", ProducerID: f.WorkerID,
		Mode: wire.Full, ObservedUnixMS: 1764480000123, FPM: f.JSON}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = wire.AppendRow(buf[:0], row)
	}
	b.SetBytes(int64(len(buf)))
}

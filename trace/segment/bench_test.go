package segment

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchRows returns rows as a busy rank makes them.
func benchRows(n int) (rows [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		rows = append(rows, fmt.Appendf(nil, `{"timestamp":%d,"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"dynamo","component":"backend","producer_id":"worker-%d"},"capture_mode":"full","observed_at_unix_ms":%d,"fpm":{"version":1,"worker_id":"worker-%d","dp_rank":%d,"counter_id":%d,"wall_time":%v,"scheduled_requests":{"num_prefill_requests":%d,"sum_prefill_tokens":%d,"var_prefill_length":%v,"sum_prefill_kv_tokens":%d,"num_decode_requests":%d,"sum_decode_kv_tokens":%d,"var_decode_kv_tokens":%v},"queued_requests":{"num_prefill_requests":%d,"sum_prefill_tokens":%d,"var_prefill_length":0.0,"num_decode_requests":0,"sum_decode_kv_tokens":0,"var_decode_kv_tokens":0.0}}}`+"\n",
			i*10, i%2, 1790000000000+int64(i)*10, i%2, i%8, i/8, 0.01+r.Float64()*0.02, r.IntN(4), r.IntN(8192), r.Float64()*1e5, r.IntN(100000), 40+r.IntN(30), 90000+r.IntN(20000), r.Float64()*1e6, r.IntN(3), r.IntN(4096)))
	}
	return rows
}

func BenchmarkLevel(b *testing.B) {
	text := bytes.Join(benchRows(1600), nil)
	for level := 1; level <= 9; level++ {
		b.Run(fmt.Sprint(level), func(b *testing.B) {
			e, err := NewEncoder(level)
			if err != nil {
				b.Fatal(err)
			}
			var out bytes.Buffer
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				out.Reset()
				if err := e.member(&out, text); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(text))/float64(out.Len()), "ratio")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1600, "ns/row")
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	rows := benchRows(1600)
	w, err := NewWriter(Options{Prefix: b.TempDir() + "/t", Producer: "p"})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(rows[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := w.Append(rows[i%len(rows)]); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

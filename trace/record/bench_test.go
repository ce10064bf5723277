package record

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

// BenchmarkRecorder is what a message costs from its frames to the file: decoding, the
// queue, compression and the write, in one goroutine.
func BenchmarkRecorder(b *testing.B) {
	opt := Options{Output: b.TempDir() + "/t", Mode: wire.Full, MaxSegments: 4}
	for range 8 {
		opt.Endpoints = append(opt.Endpoints, subscribe.Endpoint{Address: "tcp://h:1", Namespace: "dynamo", Component: "backend"})
	}
	r, err := New(opt)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	dice := rand.New(rand.NewPCG(1, 2))
	var bodies [512][]byte
	for i := range bodies {
		bodies[i] = busy(dice, int64(i%8))
	}
	const at = 1 + 8 + 1 + 10 + 17 + 8 + 1 + 11 + 1 // where the counter is
	message := [][]byte{{}, make([]byte, 8), nil}
	counter := uint64(1 << 32)
	b.SetBytes(int64(len(bodies[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		body := bodies[i%512]
		if i%8 == 0 {
			counter++
		}
		binary.BigEndian.PutUint64(message[1], counter)
		binary.BigEndian.PutUint64(body[at:], counter)
		message[2] = body
		r.endpoints[i%8].message(message, time.Now())
		if i%1024 == 0 {
			r.writer.step()
		}
	}
	r.writer.finish()
	if t := r.Snapshot().Totals; t.Lost() > 0 || t.Rejected > 0 {
		b.Errorf("%+v", t)
	}
}

// busy returns the payload of a busy pass, with a counter of full size.
func busy(dice *rand.Rand, rank int64) []byte {
	p := msgp.AppendMapHeader(nil, 8)
	p = msgp.AppendInt(msgp.AppendString(p, "version"), 1)
	p = msgp.AppendString(msgp.AppendString(p, "worker_id"), "7587890123456789")
	p = msgp.AppendInt64(msgp.AppendString(p, "dp_rank"), rank)
	p = msgp.AppendUint64(msgp.AppendString(p, "counter_id"), 1<<32)
	p = msgp.AppendFloat64(msgp.AppendString(p, "wall_time"), 0.004+dice.Float64()*0.03)
	decode := 1 + dice.IntN(64)
	for _, name := range []string{"scheduled_requests", "queued_requests"} {
		scheduled := name == "scheduled_requests"
		p = msgp.AppendString(p, name)
		size := uint32(6)
		if scheduled {
			size++
		}
		p = msgp.AppendMapHeader(p, size)
		p = msgp.AppendInt(msgp.AppendString(p, "num_prefill_requests"), dice.IntN(3))
		p = msgp.AppendInt(msgp.AppendString(p, "sum_prefill_tokens"), dice.IntN(4096))
		p = msgp.AppendFloat64(msgp.AppendString(p, "var_prefill_length"), dice.Float64()*1e4)
		if scheduled {
			p = msgp.AppendInt(msgp.AppendString(p, "sum_prefill_kv_tokens"), dice.IntN(256))
		}
		p = msgp.AppendInt(msgp.AppendString(p, "num_decode_requests"), decode)
		p = msgp.AppendInt(msgp.AppendString(p, "sum_decode_kv_tokens"), decode*dice.IntN(4096))
		p = msgp.AppendFloat64(msgp.AppendString(p, "var_decode_kv_tokens"), dice.Float64()*1e6)
	}
	return msgp.AppendString(msgp.AppendString(p, "timing_scope"), "cuda_event")
}

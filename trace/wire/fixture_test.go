package wire_test

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/tinylib/msgp/msgp"
)

// pair is a key and its encoded value; a payload is a list of them, so that tests can
// drop, replace, repeat and reorder them.
type pair struct {
	key   string
	value []byte
}

type pairs []pair

// encode returns the pairs as a MessagePack map.
func (p pairs) encode() []byte {
	b := msgp.AppendMapHeader(nil, uint32(len(p)))
	for _, kv := range p {
		b = append(msgp.AppendString(b, kv.key), kv.value...)
	}
	return b
}

// with returns the pairs with one value replaced, or added at the end.
func (p pairs) with(key string, value []byte) pairs {
	out := append(pairs(nil), p...)
	for i := range out {
		if out[i].key == key {
			out[i].value = value
			return out
		}
	}
	return append(out, pair{key, value})
}

// without returns the pairs without one key.
func (p pairs) without(key string) pairs {
	var out pairs
	for _, kv := range p {
		if kv.key != key {
			out = append(out, kv)
		}
	}
	return out
}

func u(n uint64) []byte    { return msgp.AppendUint64(nil, n) }
func i(n int64) []byte     { return msgp.AppendInt64(nil, n) }
func f64(x float64) []byte { return msgp.AppendFloat64(nil, x) }
func str(s string) []byte  { return msgp.AppendString(nil, s) }

// load is a scheduled load with distinct values.
func load() pairs {
	return pairs{
		{"num_prefill_requests", u(3)}, {"sum_prefill_tokens", u(4096)}, {"var_prefill_length", f64(12.5)},
		{"sum_prefill_kv_tokens", u(192)}, {"num_decode_requests", u(40)}, {"sum_decode_kv_tokens", u(81920)},
		{"var_decode_kv_tokens", f64(123456.78901234567)},
	}
}

// pass is the payload of a busy pass with the given counter.
func pass(counter uint64) pairs {
	return pairs{
		{"version", u(1)}, {"worker_id", str("7587890123456789")}, {"dp_rank", u(2)}, {"counter_id", u(counter)},
		{"wall_time", f64(0.012345678901234567)},
		{"scheduled_requests", load().encode()},
		{"queued_requests", load().without("sum_prefill_kv_tokens").encode()},
	}
}

// idle is a heartbeat.
func idle(counter uint64) pairs {
	zeros := load()
	for n, kv := range zeros {
		zeros[n].value = u(0)
		if kv.key[:3] == "var" {
			zeros[n].value = f64(0)
		}
	}
	return pass(counter).with("wall_time", f64(0)).with("scheduled_requests", zeros.encode()).
		with("queued_requests", zeros.without("sum_prefill_kv_tokens").encode())
}

// message returns the three frames of a payload.
func message(seq uint64, payload []byte) [][]byte {
	return [][]byte{{}, binary.BigEndian.AppendUint64(nil, seq), payload}
}

// busy returns n messages of busy passes with random loads.
func busy(n int) [][][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([][][]byte, n)
	for seq := range all {
		l := load().with("num_decode_requests", u(rng.Uint64N(64))).with("sum_decode_kv_tokens", u(rng.Uint64N(1<<20))).
			with("var_decode_kv_tokens", f64(rng.Float64()*1e6)).with("var_prefill_length", f64(rng.Float64()*1e4))
		p := pass(uint64(seq)).with("wall_time", f64(rng.Float64()*0.03)).with("scheduled_requests", l.encode())
		all[seq] = message(uint64(seq), p.encode())
	}
	return all
}

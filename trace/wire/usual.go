package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
)

// usualKey is a known key as a publisher packs it, and as it stands in JSON behind what is
// before it.
type usualKey struct {
	at     field
	packed string // with the byte that says how long it is
	json   string
	count  bool // an integer; else a float
}

// usualForm is the keys of a load in their usual order, and the byte that begins its map.
type usualForm struct {
	header byte
	keys   []usualKey
}

func formOf(s schema) usualForm {
	var form usualForm
	for at, k := range s {
		if k.name == "" {
			continue
		}
		separator := ","
		if len(form.keys) == 0 {
			separator = "{"
		}
		packed := string([]byte{0xa0 | byte(len(k.name))}) + k.name
		form.keys = append(form.keys, usualKey{field(at), packed, separator + k.json, k.rule == isCount})
	}
	form.header = 0x80 | byte(len(form.keys))
	return form
}

var usualScheduled, usualQueued = formOf(scheduledSchema), formOf(queuedSchema)

// usualLoad reads a load in the form in which publishers pack it: the known keys and no
// other, in their order, with values that keep their rules. Nearly every load is of that
// form, and needs none of what the general way keeps track of; that is two fifths of the
// time of a message. For any other it returns false, and nothing is read.
func usualLoad(r *recent, dst, b []byte, form *usualForm, l *Load) (out, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != form.header {
		return dst, b, false
	}
	start, from := len(dst), b
	b = b[1:]
	for i := range form.keys {
		k := &form.keys[i]
		if len(b) <= len(k.packed) || string(b[:len(k.packed)]) != k.packed {
			return dst[:start], from, false
		}
		b = b[len(k.packed):]
		dst = append(dst, k.json...)
		if k.count {
			u, size := usualCount(b)
			if size == 0 {
				return dst[:start], from, false
			}
			l.setCount(k.at, u)
			dst, b = appendCount(dst, u), b[size:]
			continue
		}
		f, ok := usualMeasure(b)
		if !ok {
			return dst[:start], from, false
		}
		l.setMeasure(k.at, f)
		dst, b = r.appendFloat(dst, f), b[9:]
	}
	return append(dst, '}'), b, true
}

// worker is a worker id as it was packed, and as JSON.
type worker struct {
	id           string
	packed, json []byte
}

// note keeps an id for the next message, unless it is too long.
func (w *worker) note(id string, packed, json []byte) {
	if len(id) <= maxInternedID {
		w.id, w.packed, w.json = id, append(w.packed[:0], packed...), append(w.json[:0], json...)
	}
}

// usualHead reads the keys before the loads in the form in which publishers pack them, of
// the worker of the message before. For any other it returns false, and nothing is read.
func (d *Decoder) usualHead(f *FPM, dst, b []byte) (out, rest []byte, ok bool) {
	const begin, rank, counter, time = "\xa7version\x01\xa9worker_id", "\xa7dp_rank", "\xaacounter_id", "\xa9wall_time"
	worker := &d.usual
	if len(worker.packed) == 0 || !hasPrefix(b, begin) || !bytes.HasPrefix(b[len(begin):], worker.packed) {
		return dst, b, false
	}
	out = append(append(dst, `"version":1,"worker_id":`...), worker.json...)
	rest = b[len(begin)+len(worker.packed):]
	var numbers [2]uint64
	for i, key := range [2]usualKey{{packed: rank, json: `,"dp_rank":`}, {packed: counter, json: `,"counter_id":`}} {
		if !hasPrefix(rest, key.packed) || len(rest) == len(key.packed) {
			return dst, b, false
		}
		u, size := usualCount(rest[len(key.packed):])
		if size == 0 || u > math.MaxInt64 {
			return dst, b, false
		}
		numbers[i], rest = u, rest[len(key.packed)+size:]
		out = appendCount(append(out, key.json...), u)
	}
	if !hasPrefix(rest, time) {
		return dst, b, false
	}
	v, ok := usualMeasure(rest[len(time):])
	if !ok {
		return dst, b, false
	}
	f.WorkerID, f.DPRank, f.CounterID, f.WallTime = worker.id, int64(numbers[0]), int64(numbers[1]), v
	return d.floats.appendFloat(append(out, `,"wall_time":`...), v), rest[len(time)+9:], true
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// usualNumber reads a number of the payload's own in the form in which publishers pack it,
// when it keeps its rule. For any other it returns false, and nothing is read.
func (d *Decoder) usualNumber(f *FPM, at field, r rule, dst, b []byte) (out, rest []byte, ok bool) {
	switch r {
	case isVersion, isIndex:
		if len(b) == 0 {
			return dst, b, false
		}
		u, size := usualCount(b)
		if size == 0 || u > math.MaxInt64 || (r == isVersion && u != 1) {
			return dst, b, false
		}
		d.last.kind, d.last.u = kindUint, u
		f.set(at, &d.last)
		return appendCount(dst, u), b[size:], true
	case isMeasure:
		v, ok := usualMeasure(b)
		if !ok {
			return dst, b, false
		}
		d.last.kind, d.last.f = kindFloat, v
		f.set(at, &d.last)
		return d.floats.appendFloat(dst, v), b[9:], true
	default:
		return dst, b, false
	}
}

// usualMeasure reads a 64-bit float that is finite and at least 0.
func usualMeasure(b []byte) (f float64, ok bool) {
	if len(b) < 9 || b[0] != leadFloat64 {
		return 0, false
	}
	f = math.Float64frombits(binary.BigEndian.Uint64(b[1:]))
	return f, f >= 0 && f <= math.MaxFloat64
}

// leadFloat64 is the first byte of a 64-bit float.
const leadFloat64 = 0xcb

// usualCount reads an integer from 0 on. Publishers use the unsigned forms, as all do but
// some that use the signed ones for what fits. The size is 0 when b begins with none.
func usualCount(b []byte) (u uint64, size int) {
	c := b[0]
	if c < 0x80 {
		return uint64(c), 1
	}
	unsigned, signed := c >= leadUint8 && c <= leadUint64, c >= leadInt8 && c <= leadInt64
	if !unsigned && !signed {
		return 0, 0
	}
	bytes := 1 << (c & 3) // both leads of single bytes are multiples of 4
	if len(b) <= bytes {
		return 0, 0
	}
	switch bytes {
	case 1:
		u = uint64(b[1])
	case 2:
		u = uint64(binary.BigEndian.Uint16(b[1:]))
	case 4:
		u = uint64(binary.BigEndian.Uint32(b[1:]))
	default:
		u = binary.BigEndian.Uint64(b[1:])
	}
	if signed && u>>(8*bytes-1) != 0 {
		return 0, 0 // negative
	}
	return u, 1 + bytes
}

// The first bytes of integers by their form.
const (
	leadUint8 = 0xcc
	leadInt8  = 0xd0
	leadInt64 = 0xd3
)

func appendCount(dst []byte, u uint64) []byte {
	if u < 10 {
		return append(dst, '0'+byte(u))
	}
	return strconv.AppendUint(dst, u, 10)
}

func (l *Load) setCount(at field, u uint64) {
	switch at {
	case numPrefillRequests:
		l.NumPrefillRequests = u
	case sumPrefillTokens:
		l.SumPrefillTokens = u
	case sumPrefillKVTokens:
		l.SumPrefillKVTokens = u
	case numDecodeRequests:
		l.NumDecodeRequests = u
	case sumDecodeKVTokens:
		l.SumDecodeKVTokens = u
	}
}

func (l *Load) setMeasure(at field, f float64) {
	switch at {
	case varPrefillLength:
		l.VarPrefillLength = f
	case varDecodeKVTokens:
		l.VarDecodeKVTokens = f
	}
}

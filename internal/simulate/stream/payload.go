package stream

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Bad is a way in which a message can be wrong.
type Bad string

// The ways in which a message can be wrong.
const (
	BadFrames    Bad = "frames"    // not three frames
	BadSequence  Bad = "sequence"  // a sequence of four bytes
	BadGarbage   Bad = "garbage"   // a payload of random bytes
	BadArray     Bad = "array"     // a payload that is an array
	BadVersion   Bad = "version"   // version 2
	BadNegative  Bad = "negative"  // a counter of -1
	BadNaN       Bad = "nan"       // a wall time that is no number
	BadBool      Bad = "bool"      // a rank that is true
	BadTruncated Bad = "truncated" // half a payload
	BadTrailing  Bad = "trailing"  // a byte behind the payload
	BadBinKey    Bad = "binkey"    // a key that is no string
	BadHuge      Bad = "huge"      // an array that claims 2^32-1 elements
)

// BadKinds returns every way in which a message can be wrong.
func BadKinds() []Bad {
	return []Bad{BadFrames, BadSequence, BadGarbage, BadArray, BadVersion, BadNegative, BadNaN, BadBool, BadTruncated, BadTrailing, BadBinKey, BadHuge}
}

// The bytes of MessagePack that are used.
const (
	mapOf7, mapOf6, mapOf8 = 0x87, 0x86, 0x88
	arrayOf7               = 0x97
	uint16Tag, uint64Tag   = 0xcd, 0xcf
	float64Tag             = 0xcb
	nilTag, trueTag        = 0xc0, 0xc3
	str8Tag, str16Tag      = 0xd9, 0xda
)

// payload is the MessagePack of a rank's forward passes. It is encoded once: numbers have
// 64 bits whatever their value, so that those of the next pass are written over those of
// the last.
type payload struct {
	body   []byte
	values [7][2]int // where the value of each member begins and ends
}

// The members of a payload, in its order.
const (
	fieldVersion = iota
	fieldWorker
	fieldRank
	fieldCounter
	fieldWall
	fieldScheduled
	fieldQueued
)

func newPayload(worker string, rank int) *payload {
	p := &payload{body: []byte{mapOf7}}
	p.member(fieldVersion, "version", []byte{1})
	p.member(fieldWorker, "worker_id", appendString(nil, worker))
	p.member(fieldRank, "dp_rank", binary.BigEndian.AppendUint16([]byte{uint16Tag}, uint16(rank)))
	p.member(fieldCounter, "counter_id", append([]byte{uint64Tag}, make([]byte, 8)...))
	p.member(fieldWall, "wall_time", append([]byte{float64Tag}, make([]byte, 8)...))
	p.member(fieldScheduled, "scheduled_requests", encodeLoad(mapOf7))
	p.member(fieldQueued, "queued_requests", encodeLoad(mapOf6))
	return p
}

func (p *payload) member(field int, key string, value []byte) {
	p.body = appendString(p.body, key)
	begin := len(p.body)
	p.body = append(p.body, value...)
	p.values[field] = [2]int{begin, len(p.body)}
}

// encodeLoad returns a load of zeros; one with six members has no sum_prefill_kv_tokens.
func encodeLoad(header byte) []byte {
	b := []byte{header}
	for _, key := range [...]string{
		"num_prefill_requests", "sum_prefill_tokens", "var_prefill_length", "sum_prefill_kv_tokens",
		"num_decode_requests", "sum_decode_kv_tokens", "var_decode_kv_tokens",
	} {
		if header == mapOf6 && key == "sum_prefill_kv_tokens" {
			continue
		}
		tag := byte(uint64Tag)
		if strings.HasPrefix(key, "var_") {
			tag = float64Tag
		}
		b = append(append(appendString(b, key), tag), make([]byte, 8)...)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	switch {
	case len(s) < 32:
		b = append(b, 0xa0|byte(len(s)))
	case len(s) < 256:
		b = append(b, str8Tag, byte(len(s)))
	default:
		b = binary.BigEndian.AppendUint16(append(b, str16Tag), uint16(len(s)))
	}
	return append(b, s...)
}

// set writes a pass with its counter over the last one.
func (p *payload) set(counter uint64, next *pass) {
	p.put(fieldCounter, counter)
	p.put(fieldWall, math.Float64bits(next.wall))
	s, q := &next.scheduled, &next.queued
	p.putLoad(fieldScheduled, s.prefills, s.prefillTokens, math.Float64bits(s.varPrefill), s.prefillKV, s.decodes, s.decodeKV, math.Float64bits(s.varDecode))
	p.putLoad(fieldQueued, q.prefills, q.prefillTokens, math.Float64bits(q.varPrefill), q.decodes, q.decodeKV, math.Float64bits(q.varDecode))
}

// put writes the bits of a number behind the tag of its value.
func (p *payload) put(field int, bits uint64) {
	binary.BigEndian.PutUint64(p.body[p.values[field][0]+1:], bits)
}

// putLoad writes the bits of the numbers of a load. Its layout is fixed: behind the header
// a key of one byte more than its name, a tag, and eight bytes, each time.
func (p *payload) putLoad(field int, bits ...uint64) {
	at := p.values[field][0] + 1
	for _, b := range bits {
		at += 1 + int(p.body[at]&0x1f) + 1
		binary.BigEndian.PutUint64(p.body[at:], b)
		at += 8
	}
}

// replaced returns the payload with another value of a member.
func (p *payload) replaced(field int, value ...byte) []byte {
	return slices.Concat(p.body[:p.values[field][0]], value, p.body[p.values[field][1]:])
}

// array returns the payload's values without their keys.
func (p *payload) array() []byte {
	b := []byte{arrayOf7}
	for _, v := range p.values {
		b = append(b, p.body[v[0]:v[1]]...)
	}
	return b
}

// spoil returns the frames of a message that is wrong in one way.
func (p *payload) spoil(kind Bad, counter uint64, dice *rand.Rand) [][]byte {
	topic, stamp := []byte{}, binary.BigEndian.AppendUint64(nil, counter)
	if kind == BadFrames {
		choices := [][][]byte{{p.body}, {topic, p.body}, {topic, stamp, p.body, []byte("x")}}
		return choices[dice.IntN(len(choices))]
	}
	if kind == BadSequence {
		return [][]byte{topic, stamp[:4], p.body}
	}
	return [][]byte{topic, stamp, p.spoilBody(kind, dice)}
}

// spoilBody returns a payload that is wrong in one way.
func (p *payload) spoilBody(kind Bad, dice *rand.Rand) []byte {
	switch kind {
	case BadGarbage:
		return garbage(64, dice)
	case BadArray:
		return p.array()
	case BadVersion:
		return p.replaced(fieldVersion, 2)
	case BadNegative:
		return p.replaced(fieldCounter, 0xff) // -1
	case BadNaN:
		return p.replaced(fieldWall, binary.BigEndian.AppendUint64([]byte{float64Tag}, math.Float64bits(math.NaN()))...)
	case BadBool:
		return p.replaced(fieldRank, trueTag)
	case BadTruncated:
		return slices.Clone(p.body[:len(p.body)/2])
	case BadTrailing:
		return append(slices.Clone(p.body), nilTag)
	case BadBinKey:
		return slices.Concat([]byte{mapOf8}, p.body[1:], []byte{0xc4, 1, 'k', 1})
	case BadHuge:
		return append([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, p.body...)
	default:
		panic(fmt.Sprintf("stream: no way %q of being wrong", kind)) // Options.check has let it through
	}
}

// garbage returns random bytes that no payload begins with: the first one is reserved in
// MessagePack, so that chance never makes a value of them.
func garbage(n int, dice *rand.Rand) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(dice.Uint32())
	}
	b[0] = 0xc1
	return b
}

// Frames of ZMTP: flags, the length in one byte or in eight, the body.
const (
	flagMore, flagLong, flagCommand = 1, 2, 4
)

// appendMessage appends the frames of one message as they are sent.
func appendMessage(b []byte, frames ...[]byte) []byte {
	for i, frame := range frames {
		var flags byte
		if i < len(frames)-1 {
			flags = flagMore
		}
		b = appendFrame(b, flags, frame)
	}
	return b
}

func appendFrame(b []byte, flags byte, body []byte) []byte {
	if len(body) > math.MaxUint8 {
		b = binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(len(body)))
	} else {
		b = append(b, flags, byte(len(body)))
	}
	return append(b, body...)
}

// message is a payload in its frames. The payload's body is a part of the bytes that are
// sent, so that a pass is written once and sent as it is.
type message struct {
	*payload
	wire  []byte
	stamp []byte // the sequence frame's bytes in wire
}

func newMessage(worker string, rank int) *message {
	p := newPayload(worker, rank)
	wire := appendMessage(nil, nil, make([]byte, 8), p.body)
	m := &message{payload: p, wire: wire, stamp: wire[4:12]}
	p.body = wire[len(wire)-len(p.body):]
	return m
}

// set writes a pass over the last one and returns the bytes of its message, which are
// valid until the next call.
func (m *message) set(counter uint64, next *pass) []byte {
	binary.BigEndian.PutUint64(m.stamp, counter)
	m.payload.set(counter, next)
	return m.wire
}

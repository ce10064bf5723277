package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tinylib/msgp/msgp"
)

// Decoder reads messages. It keeps scratch memory and the worker ids that it has seen, so
// that a message costs no allocation; the zero value is ready. It is not safe for
// concurrent use: each endpoint has its own.
type Decoder struct {
	last    value    // the value read last
	problem problem  // the first version or field problem of the payload
	whole   []byte   // the payload
	keys    []keyAt  // unknown keys of the open maps
	deepest int      // nesting that is read on this stack
	ids     interned // worker ids
	usual   worker   // of the message before
	floats  recent   // their text
}

// keyAt is a key as its place in the payload. A payload has room for half a million of
// them; as slices they would take three times as much.
type keyAt struct{ from, to uint32 }

// keptKeys is for how many keys memory is kept between payloads.
const keptKeys = 256

// problem is a broken rule that is reported only once the whole payload has turned out to
// be decodable, because msgpack comes before version and field.
type problem struct {
	version, field *RejectError
}

// note keeps the first problem of each reason.
func (p *problem) note(err *RejectError) {
	at := &p.field
	if err.Reason == Version {
		at = &p.version
	}
	if *at == nil {
		*at = err
	}
}

// Decode judges a message, appends its payload as JSON to dst and returns it with the
// extended buffer. On any error, which is a *[RejectError], dst comes back as it was
// given. The frames are only read; the result refers to dst, never to them.
func (d *Decoder) Decode(dst []byte, frames [][]byte) (FPM, []byte, error) {
	if err := checkFrames(frames); err != nil {
		return FPM{}, dst, err
	}
	var f FPM
	out, err := d.payload(&f, dst, frames[2])
	if err != nil {
		return FPM{}, dst, err
	}
	if seq := binary.BigEndian.Uint64(frames[1]); seq != uint64(f.CounterID) {
		return FPM{}, dst, reject(Field, "counter_id is %d, the sequence frame says %d", f.CounterID, seq)
	}
	f.JSON = out[len(dst):len(out):len(out)]
	return f, out, nil
}

// checkFrames judges the shape of a message. Any topic is accepted: the subscription is
// to all of them, and nothing is read from it.
func checkFrames(frames [][]byte) error {
	if len(frames) != FrameCount {
		return reject(Frames, "%d instead of %d frames (topic, sequence, payload)", len(frames), FrameCount)
	}
	for i, frame := range frames {
		if len(frame) > MaxFrame {
			return reject(TooLarge, "frame %d has %d bytes; at most %d are read", i+1, len(frame), MaxFrame)
		}
	}
	if len(frames[1]) != 8 {
		return reject(Sequence, "the sequence frame has %d bytes instead of 8", len(frames[1]))
	}
	return nil
}

// shallow is the nesting of payloads that are decoded on the caller's stack: one more than
// lists in a load need.
const shallow = 4

// payload decodes and judges the third frame.
func (d *Decoder) payload(f *FPM, dst, b []byte) (out []byte, err error) {
	d.whole = b
	if out, err = d.judge(f, dst, b, shallow); err == errDeeper {
		out, err = d.deep(f, dst, b)
	}
	d.tidy()
	return out, err
}

// deep is judge on a stack of its own. A stack that has grown stays so for long: one that
// has been 100 levels deep has 128 KiB, and there may be a thousand endpoints.
func (d *Decoder) deep(f *FPM, dst, b []byte) (out []byte, err error) {
	var fpm FPM
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = d.judge(&fpm, dst, b, MaxDepth)
	}()
	<-done
	*f = fpm
	return out, err
}

// errDeeper is the error of a payload that is nested deeper than the caller's stack is for.
var errDeeper = errors.New("nested deeper")

// judge decodes and judges a payload nested to so many levels.
func (d *Decoder) judge(f *FPM, dst, b []byte, deepest int) ([]byte, error) {
	d.problem, d.keys, d.deepest = problem{}, d.keys[:0], deepest
	if len(b) == 0 {
		return dst, reject(MessagePack, "the payload is empty")
	}
	isMap := msgp.NextType(b) == msgp.MapType
	var rest []byte
	var err error
	if isMap {
		dst, rest, err = d.object(dst, b, 1, payloadSchema, f, nil)
	} else {
		dst, rest, err = d.value(dst, b, 0)
	}
	switch {
	case err != nil:
		return dst, asReject(err)
	case len(rest) > 0:
		return dst, reject(MessagePack, "%d bytes follow the payload's value", len(rest))
	case !isMap:
		return dst, reject(NotMap, "the payload is %s, not a map", kindNames[d.last.kind])
	case d.problem.version != nil:
		return dst, d.problem.version
	case d.problem.field != nil:
		return dst, d.problem.field
	}
	return dst, nil
}

// tidy forgets the payload, and memory that few payloads need.
func (d *Decoder) tidy() {
	if d.whole = nil; cap(d.keys) > keptKeys {
		d.keys = nil
	}
}

// asReject makes a refusal of an error of msgp's readers.
func asReject(err error) error {
	var own *RejectError
	switch {
	case err == errDeeper:
		return err
	case errors.As(err, &own):
		return own
	case errors.Is(err, msgp.ErrShortBytes):
		return errShort
	}
	return reject(MessagePack, "%v", err)
}

// value reads any value within depth levels of maps and arrays and appends it as JSON.
func (d *Decoder) value(dst, b []byte, depth int) (out, rest []byte, err error) {
	if len(b) == 0 {
		return dst, b, errShort
	}
	switch t := msgp.NextType(b); t {
	case msgp.MapType:
		return d.object(dst, b, depth+1, nil, nil, nil)
	case msgp.ArrayType:
		return d.array(dst, b, depth+1)
	default:
		return d.last.scalar(&d.floats, dst, b, t)
	}
}

func (d *Decoder) array(dst, b []byte, depth int) (out, rest []byte, err error) {
	if depth > d.deepest {
		return dst, b, d.tooDeep()
	}
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return dst, b, err
	}
	// Each element has a byte at least; without this a header could announce 4 G of them.
	if uint64(n) > uint64(len(b)) {
		return dst, b, errShort
	}
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, b, err = d.value(dst, b, depth); err != nil {
			return dst, b, err
		}
	}
	d.last.kind = kindArray
	return append(dst, ']'), b, nil
}

func (d *Decoder) tooDeep() error {
	if d.deepest < MaxDepth {
		return errDeeper
	}
	return errDepth
}

// object reads a map. With a schema its known keys are judged; those of a payload go to
// f, those of a load to l.
func (d *Decoder) object(dst, b []byte, depth int, s schema, f *FPM, l *Load) (out, rest []byte, err error) {
	if depth > d.deepest {
		return dst, b, d.tooDeep()
	}
	n, b, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return dst, b, err
	}
	if 2*uint64(n) > uint64(len(b)) {
		return dst, b, errShort
	}
	m := members{schema: s, f: f, l: l, base: len(d.keys)}
	dst = append(dst, '{')
	first := uint32(0)
	if f != nil && n >= uint32(scheduled) {
		if out, rest, ok := d.usualHead(f, dst, b); ok {
			dst, b, first = out, rest, uint32(scheduled)
			m.next, m.seen = scheduled, 1<<scheduled-1
		}
	}
	for i := first; i < n; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, b, err = d.member(&m, dst, b, depth); err != nil {
			return dst, b, err
		}
	}
	if err := d.closeKeys(m.base); err != nil {
		return dst, b, err
	}
	d.missing(&m)
	d.last.kind = kindMap
	return append(dst, '}'), b, nil
}

// members is the state of one open map.
type members struct {
	schema schema
	f      *FPM
	l      *Load
	next   field  // the known key that comes next when the publisher keeps the order
	seen   uint32 // the known keys that were there
	base   int    // where the unknown keys of this map begin
}

// member reads a key and its value.
func (d *Decoder) member(m *members, dst, b []byte, depth int) (out, rest []byte, err error) {
	at := m.expected(b)
	if at >= 0 {
		b = b[1+len(m.schema[at].name):]
		dst = append(dst, m.schema[at].json...)
	} else if at, dst, b, err = d.key(m, dst, b); err != nil {
		return dst, b, err
	}
	if at < 0 {
		return d.value(dst, b, depth)
	}
	m.next = at + 1
	if bit := uint32(1) << at; m.seen&bit != 0 {
		return dst, b, reject(MessagePack, "the key %s comes twice", m.schema[at].name)
	} else {
		m.seen |= bit
	}
	return d.field(m, at, dst, b, depth)
}

// expected returns the known key that comes next in the usual order if it is what b
// begins with, else -1. It spares nearly every key the search and the check of its text.
func (m *members) expected(b []byte) field {
	at := m.next
	if int(at) < len(m.schema) && m.schema[at].name == "" {
		at++
	}
	if int(at) >= len(m.schema) {
		return -1
	}
	name := m.schema[at].name
	if len(b) > len(name) && b[0] == 0xa0|byte(len(name)) && string(b[1:1+len(name)]) == name {
		return at
	}
	return -1
}

// key reads any key, appends it as JSON, and returns which known one it is.
func (d *Decoder) key(m *members, dst, b []byte) (at field, out, rest []byte, err error) {
	if len(b) == 0 {
		return -1, dst, b, errShort
	}
	if msgp.NextType(b) != msgp.StrType {
		return -1, dst, b, errKey
	}
	name, rest, err := msgp.ReadStringZC(b)
	if err != nil {
		return -1, dst, b, err
	}
	if dst, err = appendString(dst, name); err != nil {
		return -1, dst, b, err
	}
	if at = m.schema.find(name); at < 0 {
		to := len(d.whole) - len(rest)
		d.keys = append(d.keys, keyAt{uint32(to - len(name)), uint32(to)})
	}
	return at, append(dst, ':'), rest, nil
}

// closeKeys forgets the unknown keys of a map, unless one of them came twice.
func (d *Decoder) closeKeys(base int) error {
	keys := d.keys[base:]
	d.keys = d.keys[:base]
	if len(keys) < 2 {
		return nil
	}
	// Sorted, for a hostile payload has room for half a million keys.
	slices.SortFunc(keys, func(x, y keyAt) int { return bytes.Compare(d.text(x), d.text(y)) })
	for i := range keys[1:] {
		if key := d.text(keys[i]); bytes.Equal(key, d.text(keys[i+1])) {
			return reject(MessagePack, "the key %.64q comes twice", key)
		}
	}
	return nil
}

func (d *Decoder) text(k keyAt) []byte { return d.whole[k.from:k.to] }

// field reads the value of a known key and judges it.
func (d *Decoder) field(m *members, at field, dst, b []byte, depth int) (out, rest []byte, err error) {
	k := &m.schema[at]
	if k.rule >= isScheduled && len(b) > 0 && msgp.NextType(b) == msgp.MapType {
		return d.load(m.f, at, dst, b, depth)
	}
	if m.l == nil {
		if out, rest, ok := d.usualNumber(m.f, at, k.rule, dst, b); ok {
			return out, rest, nil
		}
	}
	start, packed := len(dst), b
	if dst, b, err = d.value(dst, b, depth); err != nil {
		return dst, b, err
	}
	if !d.last.keeps(k.rule) {
		d.broken(k, dst[start:])
		return dst, b, nil
	}
	switch {
	case m.l != nil:
		m.l.set(at, &d.last)
	case at == workerID:
		m.f.WorkerID = d.ids.get(d.last.s)
		d.usual.note(m.f.WorkerID, packed[:len(packed)-len(b)], dst[start:])
	default:
		m.f.set(at, &d.last)
	}
	return dst, b, nil
}

func (d *Decoder) load(f *FPM, at field, dst, b []byte, depth int) (out, rest []byte, err error) {
	form, l := &usualScheduled, &f.Scheduled
	if at == queued {
		form, l = &usualQueued, &f.Queued
	}
	if out, rest, ok := usualLoad(&d.floats, dst, b, form, l); ok {
		return out, rest, nil
	}
	*l = Load{} // as far as it was read
	if at == scheduled {
		return d.object(dst, b, depth+1, scheduledSchema, nil, &f.Scheduled)
	}
	return d.object(dst, b, depth+1, queuedSchema, nil, &f.Queued)
}

// broken notes that the value just read breaks the rule of its key.
func (d *Decoder) broken(k *schemaKey, json []byte) {
	reason := Field
	if k.rule == isVersion {
		reason = Version
	}
	what := kindNames[d.last.kind]
	if d.last.kind < kindString {
		what = string(json)
	}
	d.problem.note(reject(reason, "%s is %s instead of %s", k.name, what, expectations[k.rule]))
}

// missing notes the first known key that a map has not.
func (d *Decoder) missing(m *members) {
	lost := m.schema.all() &^ m.seen
	if lost == 0 {
		return
	}
	for i := range m.schema {
		if lost&(1<<i) == 0 {
			continue
		}
		reason := Field
		if m.schema[i].rule == isVersion {
			reason = Version
		}
		d.problem.note(reject(reason, "%s is missing", m.schema[i].name))
	}
}

// Bounds of the intern table. A publisher has one worker id, or a few in turn; a hostile one
// must not cost more than some kilobytes, for there may be a thousand.
const (
	maxInterned   = 32
	maxInternedID = 64
)

// interned keeps the worker ids that were seen, so that equal ids share one string.
type interned struct {
	last string
	all  map[string]string
}

// get returns b as a string. Ids that are too long to keep are allocated each time; a
// table that is full is begun anew, which costs a fleet within the bound nothing.
func (t *interned) get(b []byte) string {
	if string(b) == t.last {
		return t.last
	}
	id, ok := t.all[string(b)]
	if !ok {
		id = string(b)
		if len(id) > maxInternedID {
			return id
		}
		if t.all == nil || len(t.all) >= maxInterned {
			t.all = make(map[string]string)
		}
		t.all[id] = id
	}
	t.last = id
	return id
}

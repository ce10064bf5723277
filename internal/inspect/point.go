package inspect

import (
	"slices"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

const (
	maxReasons     = 16   // of one point
	maxReasonLists = 1024 // different ones of a file; points beyond have none
)

// markers are the reasons that tell how a point's KV cache was filled.
type markers struct {
	realKV, fakeKV         bool // decode
	realPrefix, fakePrefix bool // prefill
}

// point is a point as it stands in a group or a result.
type point struct {
	Coordinates
	at                          jsonstream.Field // kind and place
	typ, id, batch, prefill, kv jsonstream.Field
	markers                     markers
	reasons                     jsonstream.Field // kind and place
}

func (r *reader) readPoint(s *jsonstream.Scanner) (p point, err error) {
	p.CaptureSize, p.Padding = -1, -1
	p.at.Kind = s.Peek()
	p.at.Offset, _, err = s.Object(func(name []byte) error { return r.pointMember(s, &p, name) })
	p.ID, p.BatchSize, p.PrefillTokens, p.KVReadTokens = p.id.Int, p.batch.Int, p.prefill.Int, p.kv.Int
	return p, err
}

func (r *reader) pointMember(s *jsonstream.Scanner, p *point, name []byte) (err error) {
	var v jsonstream.Scalar
	switch string(name) {
	case "point_type":
		v, err = s.Scalar()
		p.typ, p.Type = v.Field(), r.texts.of(v)
	case "expected_cudagraph_mode":
		v, err = s.Scalar()
		p.ExpectedMode = r.texts.of(v)
	case "benchmark_id":
		p.id, err = s.Field()
	case "batch_size":
		p.batch, err = s.Field()
	case "total_prefill_tokens":
		p.prefill, err = s.Field()
	case "total_kv_read_tokens":
		p.kv, err = s.Field()
	case "expected_capture_size":
		v, err = s.Scalar()
		p.CaptureSize = index(v.Field())
	case "padding_tokens":
		v, err = s.Scalar()
		p.Padding = index(v.Field())
	case "sample_reasons":
		err = r.readReasons(s, p)
	default:
		_, err = s.Skip()
	}
	return err
}

// reasonLists keeps each different list of reasons once.
type reasonLists struct {
	known map[string][]string
	key   []byte
	list  []string
}

func (r *reader) readReasons(s *jsonstream.Scanner, p *point) (err error) {
	l := &r.reasons
	l.key, l.list = l.key[:0], l.list[:0]
	p.markers = markers{}
	p.reasons.Kind = s.Peek()
	p.reasons.Offset, _, err = s.Array(func(int) error {
		v, err := s.Scalar()
		p.markers.add(v)
		if text := r.texts.of(v); v.Kind == '"' && len(l.list) < maxReasons {
			l.list = append(l.list, text)
			l.key = append(append(l.key, text...), 0)
		}
		return err
	})
	p.Reasons = l.shared()
	return err
}

// shared returns the list that was gathered.
func (l *reasonLists) shared() []string {
	list, ok := l.known[string(l.key)]
	if !ok && len(l.known) < maxReasonLists {
		if l.known == nil {
			l.known = map[string][]string{}
		}
		list = slices.Clone(l.list)
		l.known[string(l.key)] = list
	}
	return list
}

func (m *markers) add(v jsonstream.Scalar) {
	switch {
	case v.Equals("kvwarm_real_kv"):
		m.realKV = true
	case v.Equals("kvwarm_fake_fallback"):
		m.fakeKV = true
	case v.Equals("prefill_real_seed"):
		m.realPrefix = true
	case v.Equals("prefill_fake_prefix"):
		m.fakePrefix = true
	}
}

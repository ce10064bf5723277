package protocol

import (
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// maxRequest bounds a request that is not written in the usual way, and so has to be held
// to be hashed. It has fewer values than a tree may have.
const maxRequest = 512 << 10

func (r *EvidenceReader) readPrompts() (err error) {
	s, p := r.s, &r.e.Prompts
	later := false
	p.Kind = s.Peek()
	p.Offset, _, err = s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "status":
			p.Status, err = r.text()
		case "sha256":
			var v jsonstream.Scalar
			v, err = s.Scalar()
			p.Hash.Field = v.Field()
			p.Hash.Text, _ = v.Text()
		case "requests":
			p.List.Kind = s.Peek()
			if later = !p.Status.Present(); later {
				var span jsonstream.Span
				span, err = s.Skip()
				p.List.Offset = span.Off
			} else {
				p.List.Offset, err = r.readRequests(s)
			}
		default:
			_, err = s.Skip()
		}
		return err
	})
	if err == nil && later {
		_, err = r.readRequests(r.scannerAt(p.List.Offset))
	}
	return err
}

// scannerAt returns a second scanner, of a part that was read before.
func (r *EvidenceReader) scannerAt(off int64) *jsonstream.Scanner {
	if r.later == nil {
		r.later = jsonstream.New(r.src, off, 0, jsonstream.Trusted, jsonstream.Limits{Window: 64 << 10})
	} else {
		r.later.Reset(r.src, off, 0, jsonstream.Trusted)
	}
	return r.later
}

func (r *EvidenceReader) readRequests(s *jsonstream.Scanner) (off int64, err error) {
	r.requests.begin()
	off, _, err = s.Array(func(i int) error { return r.readRequest(s, i) })
	r.requests.end()
	return off, err
}

// request is one prompt while it is read.
type request struct {
	at     int
	off    int64
	object bool
	slot   jsonstream.Field
	tokens jsonstream.Field
	digest jsonstream.Field
	hex    bool // digest is 64 lower-case hexadecimal digits
}

func (r *EvidenceReader) readRequest(s *jsonstream.Scanner, i int) (err error) {
	q := &r.requests
	q.members = 0
	x := request{at: i}
	if kind := s.Peek(); kind != '{' && kind != '[' {
		return r.readOdd(s, &x)
	}
	x.off, x.object, err = s.Object(func(name []byte) (err error) {
		var v jsonstream.Scalar
		q.members++
		switch string(name) {
		case "slot":
			v, err = s.Scalar()
			x.slot, q.slot = v.Field(), append(q.slot[:0], v.Raw...)
		case "num_tokens":
			v, err = s.Scalar()
			x.tokens, q.tokens = v.Field(), append(q.tokens[:0], v.Raw...)
		case "sha256":
			v, err = s.Scalar()
			x.digest, q.digest = v.Field(), append(q.digest[:0], v.Raw...)
			x.hex = isDigest(v)
		default:
			_, err = s.Skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	p := &r.e.Prompts
	p.Requests++
	if x.tokens.NonNegative() && p.Tokens+x.tokens.Int >= 0 {
		p.Tokens += x.tokens.Int
	}
	if !r.judges() {
		return nil
	}
	r.judgeRequest(&x)
	return r.hashRequest(&x, jsonstream.Span{Off: x.off, Len: s.Offset() - x.off})
}

// judges tells whether requests are judged.
func (r *EvidenceReader) judges() bool {
	return r.at != nil && r.e.Prompts.Status.Text == "recorded"
}

// readOdd reads a request that is a scalar, which is a fault that a file can have millions
// of.
func (r *EvidenceReader) readOdd(s *jsonstream.Scanner, x *request) error {
	v, err := s.Scalar()
	if err != nil {
		return err
	}
	x.off = v.Offset
	if r.e.Prompts.Requests++; !r.judges() {
		return nil
	}
	r.judgeRequest(x)
	q := &r.requests
	if len(v.Raw) > maxRequest {
		return r.hashRequest(x, jsonstream.Span{Off: x.off, Len: int64(len(v.Raw))})
	}
	q.separate(x)
	q.scalar = jsonvalue.Value{Kind: jsonvalue.Kind(v.Kind), Raw: v.Raw}
	q.text = pyjson.AppendCanonical(q.text, &q.scalar)
	return nil
}

// isDigest tells whether a value is a SHA-256 as Python's hexdigest writes it.
func isDigest(v jsonstream.Scalar) bool {
	const length = 64
	if v.Kind != '"' || len(v.Raw) != length+len(`""`) {
		return false
	}
	for _, c := range v.Raw[1 : length+1] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// hashRequest hashes the canonical text of a request. One that is written in the usual
// way is put together from its literals; any other is read again as a tree.
func (r *EvidenceReader) hashRequest(x *request, span jsonstream.Span) error {
	q := &r.requests
	q.separate(x)
	if x.object && q.members == 3 && x.hex && plain(x.slot, q.slot) && plain(x.tokens, q.tokens) {
		q.text = append(append(q.text, `{"num_tokens":`...), q.tokens...)
		q.text = append(append(q.text, `,"sha256":`...), q.digest...)
		q.text = append(append(append(q.text, `,"slot":`...), q.slot...), '}')
		return nil
	}
	if x.object && q.members == 0 {
		q.text = append(q.text, "{}"...)
		return nil
	}
	if span.Len > maxRequest {
		q.unhashed = true
		r.broken("/prompts/requests/"+itoa(x.at), x.off, "the request is too large to be hashed", "at most 512 KiB")
		return nil
	}
	tree, err := jsonstream.ReadTree(q.src, span)
	if err == nil {
		q.text = pyjson.AppendCanonical(q.text, tree)
	}
	return err
}

// plain tells whether a literal is its own canonical text.
func plain(f jsonstream.Field, raw []byte) bool { return f.Integer && string(raw) != "-0" }

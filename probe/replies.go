package probe

import (
	"bytes"
	"errors"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// MaxReplies bounds the text of all replies together, in bytes (input.limit).
const MaxReplies = 64 << 20

// maxReplyDepth bounds the nesting of replies (json.depth). A sidecar holds them five
// levels deeper, and must itself stay readable.
const maxReplyDepth = jsonstream.DefaultDepth - 5

// maxReplyCount bounds the number of replies (input.limit): what is kept of each takes
// memory, however short it is, and two for each of the most ranks that a run can have are
// beyond any fleet.
const maxReplyCount = 1 << 17

// ReadReplies reads the text of replies, at most one byte more than is allowed, so that
// too long a text is noticed and not held.
func ReadReplies(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, MaxReplies+1))
}

// Issue texts of one reply.
const (
	issueNonJSON  = "non-JSON response: ValueError"
	issueNoObject = "response is not an object"
	issueIdentity = "duplicate (dp_rank, worker_rank)"
	issueTopology = "worker ranks disagree with TP/PCP/PP topology"
	issueSlot     = "duplicate (dp_rank, tp_rank, pcp_rank, pp_rank)"
	issueRequired = "missing or invalid "
	issueInvalid  = "invalid "
)

// requiredRanks are the fields that a reply must have, and otherFields those that can be
// invalid, in the order in which they are checked.
func requiredRanks() []string { return []string{"dp_rank", "worker_rank", "tp_rank"} }

func otherFields() []string {
	return []string{"pp_rank", "pcp_rank", fieldBackends, fieldPrefill, fieldMode, fieldSizes}
}

// replies are what the workers said.
type replies struct {
	list   []reply
	names  table // of layers, backends, modes, and lists of sizes
	issues bool  // some reply has one of its own
}

// reply is one worker's answer and what it says of itself.
type reply struct {
	text    []byte // as it came
	offset  int64  // in the file that it came from
	pointer string // there
	kind    jsontext.Kind
	nonJSON bool // it contains NaN or Infinity
	opaque  bool // recorded as a representation that cannot be read again
	issues  []string

	dp, worker, tp, pp, pcp rank
	layers                  []layer
	prefill, mode, sizes    int // entries of names; none when null or absent
	captureErrors           []byte
}

// layer is a layer's backend, both as entries of the table of names.
type layer struct{ name, backend int }

// none stands for null in place of an entry.
const none = -1

// rank is an integer of at least 0, of any size, as a reply spells it.
type rank struct {
	literal []byte // nil when the reply has null or nothing
	valid   bool   // an integer of at least 0
	small   bool   // it fits 63 bits, and value is it
	value   int64
}

// table gives equal texts the same number.
type table struct {
	texts []string
	at    map[string]int
}

func (t *table) entry(text string) int {
	if i, ok := t.at[text]; ok {
		return i
	}
	if t.at == nil {
		t.at = map[string]int{}
	}
	text = strings.Clone(text)
	t.at[text] = len(t.texts)
	t.texts = append(t.texts, text)
	return len(t.texts) - 1
}

// parseReplies reads the result of an RPC: an array of replies, an object that holds
// nothing but such an array as results, or any other value, which is one reply. An error
// is a fault of the text.
func parseReplies(text []byte) (*replies, error) {
	if len(text) > MaxReplies {
		return nil, &jsonstream.Fault{Rule: finding.InputLimit, Message: "replies of more than 64 MiB", Offset: MaxReplies}
	}
	masked, at := mask(text)
	if err := checkReplies(masked); err != nil {
		return nil, err
	}
	spans, list, err := replySpans(masked)
	if err != nil {
		return nil, err
	}
	p := newReplyParser()
	for i, span := range spans {
		part := text[span.Off:span.End()]
		r := reply{text: part, offset: span.Off}
		if list != "" {
			r.pointer = list + strconv.Itoa(i)
		}
		from, _ := slices.BinarySearch(at, span.Off)
		r.nonJSON = from < len(at) && at[from] < span.End()
		if err := p.add(r, masked[span.Off:span.End()]); err != nil {
			return nil, err
		}
	}
	return p.finish(), nil
}

// checkReplies returns what is wrong with a text. A NaN that was not masked stands where
// no value can stand, so it is as wrong as any other word.
func checkReplies(masked []byte) error {
	_, err := jsonstream.Check(bytes.NewReader(masked), jsonstream.Limits{Depth: maxReplyDepth})
	var fault *jsonstream.Fault
	if errors.As(err, &fault) && fault.Rule == finding.JSONNumber {
		fault.Rule, fault.Message = finding.JSONSyntax, "no value can stand here"
	}
	return err
}

// mask returns the text with the non-numbers that Python writes replaced by numbers of
// the same length, and where they stood. Like those, the numbers are no integers, so that
// every other check comes out the same. A word that touches another token is no such value
// and stays, as the syntax error that it is.
func mask(text []byte) (masked []byte, at []int64) {
	masked = text
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString || c != 'N' && c != 'I' && c != '-':
		default:
			word := nonNumber(text[i:])
			if word == "" || !delimits(text, i-1) || !delimits(text, i+len(word)) {
				continue
			}
			if at == nil {
				masked = slices.Clone(text)
			}
			at = append(at, int64(i))
			copy(masked[i:], masks(word))
			i += len(word) - 1
		}
	}
	return masked, at
}

func nonNumber(text []byte) string {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(text, []byte(word)) {
			return word
		}
	}
	return ""
}

// masks returns the number that stands in for a word: it has its length.
func masks(word string) string { return "0.0000000"[:len(word)] }

// delimits tells whether what stands at an index ends a token.
func delimits(text []byte, i int) bool {
	return i < 0 || i >= len(text) || strings.IndexByte(" \t\r\n[]{},:", text[i]) >= 0
}

// replySpans returns where the replies stand, and with what their pointers begin when
// they are in a list.
func replySpans(text []byte) (spans []jsonstream.Span, list string, err error) {
	src := bytes.NewReader(text)
	s := jsonstream.New(src, 0, 0, jsonstream.Trusted, jsonstream.Limits{})
	switch s.Peek() {
	case '[':
		spans, err = elements(s)
		return spans, "/", err
	case '{':
		results, ok, err := soleResults(s)
		if err != nil {
			return nil, "", err
		}
		if ok {
			s.Reset(src, results.Off, 1, jsonstream.Trusted)
			spans, err = elements(s)
			return spans, "/results/", err
		}
		s.Reset(src, 0, 0, jsonstream.Trusted)
	}
	whole, err := s.Skip()
	return []jsonstream.Span{whole}, "", err
}

// soleResults returns the place of the array results, if an object has nothing else.
func soleResults(s *jsonstream.Scanner) (results jsonstream.Span, ok bool, err error) {
	keys := 0
	_, _, err = s.Object(func(name []byte) error {
		keys++
		ok = string(name) == "results" && s.Peek() == '['
		results, err = s.Skip()
		return err
	})
	return results, ok && keys == 1, err
}

func elements(s *jsonstream.Scanner) (spans []jsonstream.Span, err error) {
	_, _, err = s.Array(func(i int) error {
		span, err := s.Skip()
		if err == nil && i >= maxReplyCount {
			return s.LimitExceeded("more than %d replies", maxReplyCount)
		}
		spans = append(spans, span)
		return err
	})
	return spans, err
}

// replyParser checks replies one after the other.
type replyParser struct {
	out   *replies
	s     *jsonstream.Scanner
	sizes []byte
}

func newReplyParser() *replyParser {
	return &replyParser{out: &replies{}, s: jsonstream.New(nil, 0, 0, jsonstream.Trusted, jsonstream.Limits{Window: 16 << 10})}
}

// maxRepresentation bounds the JSON text of a reply that goes into a sidecar as one
// string, once it is escaped.
const maxRepresentation = jsonstream.DefaultLiteral

// add checks a reply by itself. Masked is its text as JSON.
func (p *replyParser) add(r reply, masked []byte) error {
	r.prefill, r.mode, r.sizes = none, none, none
	if r.opaque {
		p.out.list = append(p.out.list, r)
		return nil
	}
	if r.nonJSON {
		if n := len(pyjson.AppendString(nil, string(r.text))); n > maxRepresentation {
			return &jsonstream.Fault{Rule: finding.InputLimit, Offset: r.offset, Pointer: r.pointer, Message: "a reply with NaN or Infinity of more than 16 MiB"}
		}
		r.issues = append(r.issues, issueNonJSON)
	}
	if err := p.read(&r, masked); err != nil {
		return err
	}
	p.out.list = append(p.out.list, r)
	return nil
}

func (p *replyParser) read(r *reply, masked []byte) error {
	p.s.Reset(bytes.NewReader(masked), 0, 0, jsonstream.Trusted)
	if r.kind = p.s.Peek(); r.kind != '{' {
		r.issues = append(r.issues, issueNoObject)
		return nil
	}
	wrong := map[string]bool{"attention_backends": true, "cudagraph_capture_sizes_resolved": true} // until seen
	_, _, err := p.s.Object(func(name []byte) error {
		key := string(name)
		ok, err := p.field(r, key, masked)
		wrong[key] = !ok
		return err
	})
	for i, rank := range []*rank{&r.dp, &r.worker, &r.tp} {
		if !rank.valid {
			r.issues = append(r.issues, issueRequired+requiredRanks()[i])
		}
	}
	for _, key := range otherFields() {
		if wrong[key] {
			r.issues = append(r.issues, issueInvalid+key)
		}
	}
	return err
}

// field reads a member of a reply and tells whether it is what it should be.
func (p *replyParser) field(r *reply, key string, masked []byte) (ok bool, err error) {
	switch key {
	case "dp_rank":
		return p.rank(&r.dp)
	case "worker_rank":
		return p.rank(&r.worker)
	case "tp_rank":
		return p.rank(&r.tp)
	case "pp_rank":
		return p.rank(&r.pp)
	case "pcp_rank":
		return p.rank(&r.pcp)
	case "attention_backends":
		return p.layers(r)
	case "mla_prefill_backend":
		return p.name(&r.prefill)
	case "cudagraph_mode_resolved":
		return p.name(&r.mode)
	case "cudagraph_capture_sizes_resolved":
		return p.captureSizes(r)
	}
	span, err := p.s.Skip()
	if err == nil && key == "capture_errors" {
		r.captureErrors = masked[span.Off:span.End()]
	}
	return true, err
}

// rank reads an integer of at least 0, or null.
func (p *replyParser) rank(to *rank) (ok bool, err error) {
	v, err := p.s.Scalar()
	if err != nil || v.Kind == 'n' {
		return true, err
	}
	value := jsonvalue.Value{Kind: jsonvalue.Kind(v.Kind), Raw: v.Raw}
	if !value.IsInt() || v.Raw[0] == '-' && string(v.Raw) != "-0" {
		return false, nil
	}
	*to = rank{literal: slices.Clone(v.Raw), valid: true}
	to.value, to.small = value.Int64()
	return true, nil
}

// name reads a string, or null.
func (p *replyParser) name(to *int) (ok bool, err error) {
	v, err := p.s.Scalar()
	if err != nil || v.Kind == 'n' {
		return true, err
	}
	text, ok := v.Text()
	if ok {
		*to = p.out.names.entry(text)
	}
	return ok, nil
}

// layers reads an object of strings that are not empty.
func (p *replyParser) layers(r *reply) (ok bool, err error) {
	sound := true
	_, isObject, err := p.s.Object(func(name []byte) error {
		key := string(name)
		v, err := p.s.Scalar()
		if err != nil {
			return err
		}
		backend, isText := v.Text()
		if sound = sound && isText && backend != ""; sound {
			r.layers = append(r.layers, layer{p.out.names.entry(key), p.out.names.entry(backend)})
		}
		return nil
	})
	if !sound {
		r.layers = nil
	}
	return isObject && sound, err
}

// captureSizes reads a list of integers of at least 1. Lists that are equal have the same
// entry.
func (p *replyParser) captureSizes(r *reply) (ok bool, err error) {
	sound := true
	p.sizes = p.sizes[:0]
	_, isList, err := p.s.Array(func(int) error {
		v, err := p.s.Scalar()
		if err != nil {
			return err
		}
		value := jsonvalue.Value{Kind: jsonvalue.Kind(v.Kind), Raw: v.Raw}
		sound = sound && value.IsInt() && v.Raw[0] != '-' && v.Raw[0] != '0'
		if sound {
			p.sizes = append(append(p.sizes, v.Raw...), ',')
		}
		return nil
	})
	if isList && sound && err == nil {
		r.sizes = p.out.names.entry("[" + strings.TrimSuffix(string(p.sizes), ",") + "]")
	}
	return isList && sound, err
}

// finish adds what is wrong between replies: several without other issues that share DP
// and worker rank.
func (p *replyParser) finish() *replies {
	same := map[string][]int{}
	for i := range p.out.list {
		if r := &p.out.list[i]; len(r.issues) == 0 {
			key := r.dp.key() + " " + r.worker.key()
			same[key] = append(same[key], i)
		}
	}
	for _, list := range same {
		for _, i := range list {
			if len(list) > 1 {
				p.out.list[i].issues = append(p.out.list[i].issues, issueIdentity)
			}
		}
	}
	p.out.issues = slices.ContainsFunc(p.out.list, func(r reply) bool { return len(r.issues) > 0 })
	return p.out
}

// valid tells whether some reply has no issue of its own.
func (r *replies) valid() bool {
	return slices.ContainsFunc(r.list, func(r reply) bool { return len(r.issues) == 0 })
}

// key is a spelling that equal ranks share; "" for null.
func (r rank) key() string {
	if string(r.literal) == "-0" {
		return "0"
	}
	return string(r.literal)
}

// is tells whether the rank is n; null is no number.
func (r rank) is(n int64) bool { return r.valid && r.small && r.value == n }

// mod returns the remainder of the rank by n.
func (r rank) mod(n int64) int64 {
	if r.small {
		return r.value % n
	}
	rest := new(big.Int)
	// Digit by digit: a rank may have millions of them.
	for chunk := r.literal; len(chunk) > 0; {
		k := min(18, len(chunk))
		rest.Mul(rest, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(k)), nil))
		digits, _ := new(big.Int).SetString(string(chunk[:k]), 10)
		rest.Add(rest, digits).Mod(rest, big.NewInt(n))
		chunk = chunk[k:]
	}
	return rest.Int64()
}

// typeName is how Python calls the type of a reply's value.
func (r *reply) typeName() string {
	switch r.kind {
	case '{':
		return "dict"
	case '[':
		return "list"
	}
	return "float"
}

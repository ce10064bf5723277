package engine

import (
	"fmt"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// pointer is where an artifact has its engine block.
const pointer = "/engine"

// excerptBytes bounds the text of a value in a finding.
const excerptBytes = 160

// Checker compares the engine blocks of a run's ranks and makes the merged block. Add
// every rank in rank order, then call Finish.
type Checker struct {
	findings  *finding.Collector
	base      *jsonvalue.Value // the block that the merged one starts from; nil when there is none
	clean     *cleanRank       // the first rank that is not degraded
	degraded  []degradedRank
	anyObject bool
	reasons   map[string][]byte // one copy of each distinct reason
}

type cleanRank struct {
	name     string // for people
	identity *jsonvalue.Value
}

type degradedRank struct {
	rank    int
	file    string
	pointer string
	offset  int64
	why     string // for people
	actual  string
	reason  []byte // its entry in capture_errors: a quoted literal
}

// NewChecker returns a checker that reports to findings.
func NewChecker(findings *finding.Collector) *Checker {
	return &Checker{findings: findings, reasons: map[string][]byte{}}
}

// Add takes the engine block of one rank: block is nil when the artifact has no engine
// key, and parentOffset is the offset of the document that lacks it. The first rank added
// is the reference. Every difference of startup identity to the first clean rank is
// reported at once (engine.mismatch). The block is not kept; what is needed of it is
// copied.
func (c *Checker) Add(rank int, file string, parentOffset int64, block *jsonvalue.Value) {
	isObject := block != nil && block.Kind == jsonvalue.Object
	isReference := c.clean == nil && len(c.degraded) == 0
	c.anyObject = c.anyObject || isObject
	if isObject && isReference {
		c.base = block.Clone()
	}
	switch {
	case Degraded(block):
		c.addDegraded(rank, file, parentOffset, block)
	case c.clean == nil:
		c.setClean(finding.RankName(rank, file), block, isReference)
	default:
		c.compare(rank, file, Identity(block))
	}
}

// setClean takes the first clean block, which replaces a degraded reference's.
func (c *Checker) setClean(name string, block *jsonvalue.Value, isReference bool) {
	if !isReference {
		c.base = block.Clone()
	}
	c.clean = &cleanRank{name: name, identity: Identity(c.base)}
}

func (c *Checker) compare(rank int, file string, identity *jsonvalue.Value) {
	jsonvalue.Diff(c.clean.identity, identity, pointer, func(d jsonvalue.Difference) bool {
		c.findings.Add(c.mismatch(rank, file, d))
		return true
	})
}

func (c *Checker) mismatch(rank int, file string, d jsonvalue.Difference) finding.Finding {
	at := d.B
	if at == nil {
		at = d.Parent
	}
	name := finding.RankName(rank, file)
	return finding.Finding{
		Rule:     finding.EngineMismatch,
		File:     file,
		Pointer:  d.Pointer,
		Offset:   at.Offset,
		Rank:     rank,
		Message:  c.describe(name, d),
		Expected: fmt.Sprintf("%s (%s)", d.A.Excerpt(excerptBytes), c.clean.name),
		Actual:   fmt.Sprintf("%s (%s)", d.B.Excerpt(excerptBytes), name),
	}
}

func (c *Checker) describe(name string, d jsonvalue.Difference) string {
	item := "key"
	if d.Parent != nil && d.Parent.Kind == jsonvalue.Array {
		item = "element"
	}
	switch {
	case d.A == nil:
		return fmt.Sprintf("%s has an added %s, which %s does not have", name, item, c.clean.name)
	case d.B == nil:
		return fmt.Sprintf("%s is missing a %s, which %s has", name, item, c.clean.name)
	}
	return fmt.Sprintf("%s started differently from %s", name, c.clean.name)
}

func (c *Checker) addDegraded(rank int, file string, parentOffset int64, block *jsonvalue.Value) {
	d := degradedRank{rank: rank, file: file, pointer: pointer, offset: parentOffset, actual: block.Excerpt(excerptBytes)}
	captureError := block.Get(keyCaptureError)
	switch {
	case block == nil:
		d.why = "it has no engine block"
	case captureError == nil:
		d.why, d.offset = "its engine is not an object", block.Offset
	default:
		d.why, d.offset = "the capture of its engine block failed", captureError.Offset
		d.pointer += "/" + keyCaptureError
		d.actual = captureError.Excerpt(excerptBytes)
	}
	d.reason = c.reason(captureError)
	c.degraded = append(c.degraded, d)
}

// reason returns the entry of a degraded rank in capture_errors. Equal reasons share
// their text: when thousands of ranks fail, they fail alike.
func (c *Checker) reason(captureError *jsonvalue.Value) []byte {
	literal := captureErrorText(captureError)
	shared, ok := c.reasons[string(literal)]
	if !ok {
		shared = append([]byte(nil), literal...)
		c.reasons[string(literal)] = shared
	}
	return shared
}

// captureErrorText returns a capture error as a quoted literal: a string as it is, other
// values as the text by which Python names them or as compact JSON.
func captureErrorText(v *jsonvalue.Value) []byte {
	if v == nil {
		return pyjson.AppendString(nil, "missing engine block")
	}
	switch v.Kind {
	case jsonvalue.String:
		return v.Raw
	case jsonvalue.Null:
		return pyjson.AppendString(nil, "None")
	case jsonvalue.True:
		return pyjson.AppendString(nil, "True")
	case jsonvalue.False:
		return pyjson.AppendString(nil, "False")
	}
	return pyjson.AppendString(nil, string(v.AppendCompact(nil)))
}

// Finish reports the degraded ranks (engine.unverified), unless no rank has an engine
// object: then the run is an older one, and nothing is missing.
func (c *Checker) Finish() {
	if !c.anyObject {
		return
	}
	for _, d := range c.degraded {
		c.findings.Add(finding.Finding{
			Rule:     finding.EngineUnverified,
			File:     d.file,
			Pointer:  d.pointer,
			Offset:   d.offset,
			Rank:     d.rank,
			Message:  fmt.Sprintf("%s is left out of the engine comparison: %s", finding.RankName(d.rank, d.file), d.why),
			Expected: "an engine object without " + keyCaptureError,
			Actual:   d.actual,
		})
	}
}

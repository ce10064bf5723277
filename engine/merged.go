package engine

import (
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Merged is the engine block of the merged artifact.
type Merged struct {
	block *jsonvalue.Value
}

// Append appends the block as json.dump(indent=2) lays it out at a nesting level (1 for
// the value of a top-level key). Literals of the artifact keep their text.
func (m Merged) Append(dst []byte, level int) []byte {
	return m.block.AppendIndent(dst, level)
}

// Merged returns the merged artifact's engine block. ok is false when no rank has an
// engine object; the reference's engine key, if there is one, then stays as it is.
//
// The block is the reference's, or the first clean rank's when the reference is degraded.
// It describes every rank, so parallel.data_parallel_rank is null. With degraded ranks it
// ends in capture_errors; when all are degraded and the reference has no object, there is
// nothing else in it.
func (c *Checker) Merged() (m Merged, ok bool) {
	if !c.anyObject {
		return Merged{}, false
	}
	block := jsonvalue.Value{Kind: jsonvalue.Object}
	if c.base != nil {
		block.Members = slices.Clone(c.base.Members)
	}
	if parallel := block.Get(keyParallel); parallel != nil && parallel.Kind == jsonvalue.Object {
		parallel.Members = slices.Clone(parallel.Members)
		parallel.Set(keyRank, jsonvalue.Value{Kind: jsonvalue.Null, Raw: []byte("null")})
	}
	if len(c.degraded) > 0 {
		block.Set(keyCaptureErrors, c.captureErrors())
	}
	return Merged{&block}, true
}

func (c *Checker) captureErrors() jsonvalue.Value {
	v := jsonvalue.Value{Kind: jsonvalue.Object}
	for _, d := range c.degraded {
		reason := jsonvalue.Value{Kind: jsonvalue.String, Raw: d.reason}
		v.Members = append(v.Members, jsonvalue.Member{Name: strconv.Itoa(d.rank), RawName: []byte(strconv.Quote(strconv.Itoa(d.rank))), Value: reason})
	}
	return v
}

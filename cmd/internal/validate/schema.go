package validate

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/fpm-project/fpm/cmd/internal/files"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/schemas"
	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/segment"
)

// schemaOf returns the name of the schema of a kind of document, empty for none.
func schemaOf(kind detect.Kind) string {
	switch kind {
	case detect.Rank:
		return "rank-artifact"
	case detect.Merged:
		return "merged-artifact"
	case detect.Sidecar:
		return "worker-probe"
	case detect.Trace:
		return rowSchema
	}
	return ""
}

// checkSchemas holds every document, and every row of a trace, against its JSON Schema, where that is asked for. What
// another rule says about a value is said again: the schema was asked for by name.
func (v *validation) checkSchemas() {
	if !v.opt.Schema {
		return
	}
	compiled := map[string]*schemas.Stream{}
	for _, c := range v.candidates {
		name := schemaOf(c.Kind)
		if name == "" || v.ctx.Err() != nil {
			continue
		}
		if compiled[name] == nil {
			s, err := schemas.CompileStream(name)
			if err != nil {
				panic("validate: " + err.Error()) // the embedded schemas are tested
			}
			compiled[name] = s
		}
		check := v.checkSchema
		if c.Kind == detect.Trace {
			check = v.checkRows
		}
		if err := check(c, name, compiled[name]); err != nil && v.ctx.Err() == nil {
			v.failures = append(v.failures, exitcode.From(err))
		}
	}
}

// maxViolations bounds the ways in which one file is found to break its schema: to find
// the millions that a broken list can hold takes a minute, and tells nothing more.
const maxViolations = 10_000

// errEnough ends the reading of a file with more violations than that.
var errEnough = errors.New("enough violations")

// untilEnough reads while there is no reason to stop.
type untilEnough struct {
	of     io.ReaderAt
	enough *bool
}

func (r untilEnough) ReadAt(p []byte, off int64) (int, error) {
	if *r.enough {
		return 0, errEnough
	}
	return r.of.ReadAt(p, off)
}

// checkSchema applies schema.violation to a file. Where the text ends to be sound the check
// ends, too: other rules speak of the text. It also ends soon behind maxViolations, which is
// a violation of the whole document.
func (v *validation) checkSchema(c candidate, name string, schema *schemas.Stream) error {
	in, err := input.Open(c.path, input.Options{})
	if err != nil {
		return err
	}
	hint := "see fpm schema " + name + " for what the field is; a producer that changed it needs another version of the schema"
	n, enough := 0, false
	err = schema.Check(untilEnough{files.WithContext(v.ctx, in), &enough}, func(l schemas.Located) {
		v.rejected[c.path] = true
		if enough = n == maxViolations; enough {
			return
		}
		n++
		v.out.Add(finding.Finding{
			Rule: finding.SchemaViolation, File: c.path, Rank: c.DPRank, Pointer: l.Pointer, Offset: l.Offset,
			Message: "the value breaks the schema " + name + ": " + l.Message, Expected: l.Expected, Excerpt: true, Hint: hint,
		})
	})
	if enough {
		scope := finding.Scope{Out: v.out, File: c.path, Rank: c.DPRank}
		scope.Says(finding.SchemaViolation, "", 0, "the document breaks the schema "+name+" at more than "+strconv.Itoa(maxViolations)+" places; those behind them are neither named nor counted", "", "")
	}
	if isDamage(err) || errors.Is(err, errEnough) {
		err = nil
	}
	return errors.Join(err, in.Close())
}

// rowSchema is the name of the schema of a row of a trace.
const rowSchema = "trace-row"

// checkRows applies schema.violation to the rows of a file. Received metrics have no
// schema. What cannot be read, or is no JSON, other rules speak of.
func (v *validation) checkRows(c candidate, name string, schema *schemas.Stream) error {
	r := segment.NewReader(rowSources(c), segment.ReaderOptions{})
	defer r.Close()
	var parser trace.Parser
	for v.ctx.Err() == nil {
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil || rec.Hole != nil || rec.Cut:
			continue // checkTraces has said so
		}
		var row trace.Row
		if err := parser.Parse(rec.Line, &row); row.Layout == trace.Received || err != nil && trace.Blank(rec.Line) {
			continue
		}
		err = schema.Check(bytes.NewReader(rec.Line), func(l schemas.Located) {
			v.rejected[c.path] = true
			v.out.Add(finding.Finding{
				Rule: finding.SchemaViolation, File: c.path, Rank: finding.NoRank, Pointer: l.Pointer,
				Line: int(rec.Number), Column: int(l.Offset) + 1, Offset: rec.Offset + l.Offset,
				Message: "the value breaks the schema " + name + ": " + l.Message,
			})
		})
		if err != nil && !isDamage(err) {
			return err
		}
	}
	return nil
}

// rowSources returns a file as one of a trace; none when it is not there any more, which
// is said elsewhere.
func rowSources(c candidate) []*segment.Source {
	sources, err := segment.Find([]string{c.path})
	if err != nil {
		return nil
	}
	return sources
}

// isDamage tells whether an error is one of what a file holds, and none of reading it.
func isDamage(err error) bool {
	var syntax *schemas.SyntaxError
	var truncated *input.TruncatedError
	var corrupt *input.CorruptError
	var limit *input.LimitError
	return errors.As(err, &syntax) || errors.As(err, &truncated) || errors.As(err, &corrupt) || errors.As(err, &limit)
}

package probe

import (
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Schema is the schema of a sidecar, and SchemaVersion its version.
const (
	Schema        = "dynamo.fpm.benchmark_worker_probe"
	SchemaVersion = 1
)

// attentionKeys are the members of a result's attention.
func attentionKeys() []string {
	return []string{"backend_resolved", "mla_prefill_backend_resolved", "resolution"}
}

// sidecar is a file that was read as one.
type sidecar struct {
	text       *text
	runID      *jsonvalue.Value
	result     []field // members of the merged result
	resultAt   string  // JSON Pointer of the object that holds them
	resultSpan jsonstream.Span
	worker     []field // members of its worker_probe
	responses  jsonstream.Span
	places     map[string]jsonstream.Span // of the source ranks' results, where there is no merged artifact
	older      bool                       // the result stands in an engine object, as older builds had it
	fault      *structureFault
}

// structureFault says why a document is no sidecar (probe.sidecar).
type structureFault struct {
	pointer  string
	offset   int64
	message  string
	expected string
}

// readSidecar finds the parts of a sidecar. What is wrong with its structure is in the
// fault; the error is that of reading.
func readSidecar(t *text) (*sidecar, error) {
	s := &sidecar{text: t}
	if !t.object {
		s.fault = &structureFault{"", t.root, "the document is not an object", "a worker-probe sidecar"}
		return s, nil
	}
	var err error
	if s.runID, err = t.tree(get(t.fields, "run_id")); err != nil {
		return nil, textError(t.path, t.file, err)
	}
	if err := s.findResult(); err != nil {
		return nil, textError(t.path, t.file, err)
	}
	if s.fault == nil && !s.older {
		return s, s.checkSchema()
	}
	return s, nil
}

func (s *sidecar) checkSchema() error {
	for _, want := range []struct{ key, literal string }{{"schema", `"` + Schema + `"`}, {"schema_version", "1"}} {
		span := get(s.text.fields, want.key)
		got, err := s.text.tree(span)
		if err != nil {
			return textError(s.text.path, s.text.file, err)
		}
		expected, err := jsonvalue.Parse([]byte(want.literal), 0)
		if err != nil {
			return err
		}
		if !jsonvalue.Equal(got, expected) || want.key == "schema_version" && !got.IsInt() {
			s.fault = s.wrong("/"+want.key, span, s.text.root, "the "+want.key+" is not that of a sidecar", want.literal)
			return nil
		}
	}
	return nil
}

// wrong is the fault of a member: its place, or that of its parent when it is absent.
func (s *sidecar) wrong(pointer string, span jsonstream.Span, parent int64, message, expected string) *structureFault {
	if span.Len == 0 {
		return &structureFault{pointer, parent, message, expected}
	}
	return &structureFault{pointer, span.Off, message, expected}
}

// findResult finds the merged result: under merged, or in an engine object, where older
// builds put it.
func (s *sidecar) findResult() error {
	for _, path := range [][]string{{"merged"}, {"merged", "engine"}, {"engine"}} {
		found, err := s.tryResult(path)
		if err != nil || found {
			s.older = found && len(path) > 0 && path[len(path)-1] == "engine"
			return err
		}
	}
	span := get(s.text.fields, "merged")
	if fields, ok, err := s.text.fieldsAt(span); err != nil {
		return err
	} else if !ok || span.Len == 0 {
		s.fault = s.wrong("/merged", span, s.text.root, "the sidecar has no merged result", "an object")
	} else {
		s.fault = s.wrong("/merged/worker_probe", get(fields, "worker_probe"), span.Off, "the merged result has no worker probe with a list of responses", "an object with responses")
	}
	return nil
}

// tryResult takes the result at a path if there is one with a list of responses.
func (s *sidecar) tryResult(path []string) (found bool, err error) {
	fields, pointer := s.text.fields, ""
	var span jsonstream.Span
	for _, name := range path {
		if span = get(fields, name); span.Len == 0 {
			return false, nil
		}
		pointer += "/" + name
		if fields, found, err = s.text.fieldsAt(span); err != nil || !found {
			return false, err
		}
	}
	return s.take(fields, pointer, span)
}

// take makes an object the result if it has a worker probe with a list of responses.
func (s *sidecar) take(fields []field, pointer string, span jsonstream.Span) (found bool, err error) {
	probe := get(fields, "worker_probe")
	if probe.Len == 0 {
		return false, nil
	}
	worker, ok, err := s.text.fieldsAt(probe)
	if err != nil || !ok {
		return false, err
	}
	responses := get(worker, "responses")
	if responses.Len == 0 {
		return false, nil
	}
	if first, err := s.text.bytes(jsonstream.Span{Off: responses.Off, Len: 1}); err != nil || first[0] != '[' {
		return false, err
	}
	s.result, s.resultAt, s.resultSpan, s.worker, s.responses = fields, pointer, span, worker, responses
	return true, nil
}

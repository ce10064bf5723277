package finding

// Scope adds findings about one file.
type Scope struct {
	Out         *Collector
	File        string
	Rank        int
	BenchmarkID int64 // 0 outside a point
	// As, where set, is the rule that findings are reported as. A requirement of one rule
	// can be a part of another, of a document that was made from the first one's.
	As ID
}

// Of returns the scope narrowed to a point.
func (s Scope) Of(benchmarkID int64) Scope {
	s.BenchmarkID = benchmarkID
	return s
}

// Broken reports a value that breaks a rule. What stands there is read from the file
// when the finding is printed.
func (s Scope) Broken(rule ID, pointer string, off int64, message, expected string) {
	s.add(Finding{Rule: rule, Pointer: pointer, Offset: off, Message: message, Expected: expected, Excerpt: true})
}

// Absent reports a value that should exist; parent is the offset of the value that
// should hold it.
func (s Scope) Absent(rule ID, pointer string, parent int64, message, expected string) {
	s.add(Finding{Rule: rule, Pointer: pointer, Offset: parent, Message: message, Expected: expected, Actual: "absent"})
}

// Either reports a value that breaks a rule, or its absence when it does not exist.
func (s Scope) Either(rule ID, pointer string, exists bool, off, parent int64, message, expected string) {
	if exists {
		s.Broken(rule, pointer, off, message, expected)
	} else {
		s.Absent(rule, pointer, parent, message, expected)
	}
}

// EitherLate is [Scope.Either] for what an input can hold millions of times: pointer and
// expected are asked for only if the finding is kept. Tail is the end of the pointer, at
// least what leads from the parent to the value: see [Collector.AddLate].
func (s Scope) EitherLate(rule ID, tail string, exists bool, off, parent int64, message string, texts func() (pointer, expected string)) {
	f := Finding{Rule: rule, Offset: off, Message: message, Excerpt: true}
	if !exists {
		f.Offset, f.Actual, f.Excerpt = parent, "absent", false
	}
	s.fill(&f)
	s.Out.AddLate(f, tail, texts)
}

// Exact returns the exact offset of something that stands behind a known one, for an error
// about it. Where that error would only be counted, the known offset is as good as the exact
// one, and is not asked for.
func (s Scope) Exact(known int64, exact func() int64) int64 {
	if s.Out.wants(place{s.Rank, known}) {
		return exact()
	}
	return known
}

// Says reports something about a place without quoting what stands there.
func (s Scope) Says(rule ID, pointer string, off int64, message, expected, actual string) {
	s.add(Finding{Rule: rule, Pointer: pointer, Offset: off, Message: message, Expected: expected, Actual: actual})
}

func (s Scope) add(f Finding) {
	s.fill(&f)
	s.Out.Add(f)
}

func (s Scope) fill(f *Finding) {
	f.File, f.Rank, f.BenchmarkID = s.File, s.Rank, s.BenchmarkID
	if s.As != "" {
		f.Rule = s.As
	}
}

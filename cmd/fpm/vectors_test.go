package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/cmd/internal/synthesis"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/schemas"
	"github.com/fpm-project/fpm/testdata/vectors"
)

const vectorsDir = "../../testdata/vectors"

// vectorSeed makes runs whose first point is a decode of one request: none are smaller.
const vectorSeed = 33

// vectorRun is the smallest run that can break a rule.
func vectorRun(b synthesis.Break) simulate.Options {
	return simulate.Options{
		Dir: ".", Ranks: max(1, b.MinRanks), Points: max(1, b.MinPoints), Raw: 1,
		Seed: vectorSeed, Legacy: !b.Evidence,
	}
}

// shapeName names a run, or a recording, that keeps every rule.
func shapeName(opt simulate.Options, kind synthesis.Kind) string {
	if kind == synthesis.Recording {
		return fmt.Sprintf("recording-%d", opt.Ranks)
	}
	name := "rank"
	if opt.Ranks > 1 {
		name = "ranks"
	}
	if opt.Points > 1 {
		name += "-points"
	}
	if opt.Legacy {
		name += "-legacy"
	}
	return name
}

// TestVectors compares the vectors with what is made now. With -update it writes them anew.
func TestVectors(t *testing.T) {
	root, err := filepath.Abs(vectorsDir)
	if err != nil {
		t.Fatal(err)
	}
	g := &vectorMaker{root: root, made: map[string][]byte{}, schemas: compileStreams(t)}
	for _, rule := range finding.Rules() {
		g.add(t, rule)
	}
	index, err := json.MarshalIndent(g.index, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	g.made["index.json"] = append(index, '\n')
	if *update {
		g.write(t)
	}
	there := g.there(t)
	for _, name := range slices.Sorted(maps.Keys(g.made)) {
		if !bytes.Equal(there[name], g.made[name]) {
			t.Errorf("testdata/vectors/%s is not what is made now: run scripts/genvectors", name)
		}
		delete(there, name)
	}
	for name := range there {
		t.Errorf("testdata/vectors/%s is of no use: run scripts/genvectors", name)
	}
}

// vectorMaker makes the vectors.
type vectorMaker struct {
	root    string
	made    map[string][]byte // by path
	index   []vectors.Vector
	schemas streams
}

// add makes the vector of a rule.
func (g *vectorMaker) add(t *testing.T, rule finding.Rule) {
	t.Helper()
	v := vectors.Vector{
		Rule: string(rule.ID), Level: string(rule.Level), Severity: string(rule.Severity),
		Command: checking(rule), Entails: []string{},
	}
	b, ok := synthesis.Find(rule.ID)
	if !ok {
		g.addManual(t, v)
		return
	}
	v.How = b.How
	for _, id := range b.Entails {
		v.Entails = append(v.Entails, string(id))
	}
	opt := vectorRun(b)
	sound := about(rule.ID, g.run(t, opt, b.Kind))
	shape := "sound/" + shapeName(opt, b.Kind)
	for name, text := range sound {
		kept := path.Join(shape, name)
		g.made[kept] = text
		v.Pass = append(v.Pass, vectors.File{Name: name, Path: kept})
	}
	opt.Break = rule.ID
	for name, text := range about(rule.ID, g.run(t, opt, b.Kind)) {
		file := path.Join("broken", string(rule.ID), name)
		if kept, ok := sound[name]; ok && bytes.Equal(text, kept) {
			file = path.Join(shape, name)
		} else {
			g.made[file] = text
			v.Schema = v.Schema || len(g.schemas.faults(t, name, text)) > 0
		}
		v.Fail = append(v.Fail, vectors.File{Name: name, Path: file})
	}
	g.finish(v)
}

func (g *vectorMaker) finish(v vectors.Vector) {
	for _, set := range [][]vectors.File{v.Pass, v.Fail} {
		slices.SortFunc(set, func(a, b vectors.File) int { return strings.Compare(a.Name, b.Name) })
	}
	g.index = append(g.index, v)
}

// addManual takes a vector that was made by hand, if there is one.
func (g *vectorMaker) addManual(t *testing.T, v vectors.Vector) {
	t.Helper()
	dir := path.Join("manual", v.Rule)
	v.Pass, v.Fail = g.manual(t, dir, "pass"), g.manual(t, dir, "fail")
	if len(v.Pass) == 0 || len(v.Fail) == 0 {
		return // TestEveryRuleHasAVector says so
	}
	v.Entails = append(v.Entails, strings.Fields(g.note(t, dir, "entails"))...)
	v.How = strings.TrimSpace(g.note(t, dir, "how"))
	for _, f := range v.Fail {
		text, err := os.ReadFile(filepath.Join(g.root, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		v.Schema = v.Schema || len(g.schemas.faults(t, f.Name, text)) > 0
	}
	g.finish(v)
}

// note returns what a file beside a vector that was made by hand says, if it is there.
func (g *vectorMaker) note(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.root, dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

func (g *vectorMaker) manual(t *testing.T, dir, which string) (set []vectors.File) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(g.root, dir, which))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		set = append(set, vectors.File{Name: e.Name(), Path: path.Join(dir, which, e.Name())})
	}
	return set
}

// run makes a run in a directory of its own and returns its files by name.
func (g *vectorMaker) run(t *testing.T, opt simulate.Options, kind synthesis.Kind) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	result, err := synthesis.Run(t.Context(), opt, kind)
	if err != nil {
		t.Fatalf("%s: %v", opt.Break, err)
	}
	files := map[string][]byte{}
	for _, name := range result.Files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.ToSlash(name)] = compactLong(t, text)
	}
	t.Chdir(g.root)
	return files
}

// compactLong takes the layout out of a long document: that of one nested 513 deep takes
// half a megabyte.
func compactLong(t *testing.T, text []byte) []byte {
	t.Helper()
	if len(text) < 100_000 {
		return text
	}
	var short bytes.Buffer
	if err := json.Compact(&short, text); err != nil {
		t.Fatal(err)
	}
	return short.Bytes()
}

// about keeps the files that a rule is about: of those about a merged artifact, or the
// sidecar beside it, the rank files say nothing, unless they are compared.
func about(rule finding.ID, files map[string][]byte) map[string][]byte {
	if len(files) > 0 && rule != finding.MergedDiffers && isAny(rule, "merged.", "probe.") {
		maps.DeleteFunc(files, func(name string, _ []byte) bool { return !strings.Contains(name, "_merged") })
	}
	return files
}

func isAny(rule finding.ID, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(rule), p) })
}

// streams are the schemas of files that hold evidence.
type streams map[detect.Kind]*schemas.Stream

func compileStreams(t *testing.T) streams {
	t.Helper()
	all := streams{}
	for kind, name := range map[detect.Kind]string{detect.Rank: "rank-artifact", detect.Merged: "merged-artifact", detect.Sidecar: "worker-probe", detect.Trace: "trace-row"} {
		s, err := schemas.CompileStream(name)
		if err != nil {
			t.Fatal(err)
		}
		all[kind] = s
	}
	return all
}

// faults returns where a file breaks the schema of its kind; none for a file without a
// schema, or without sound text.
func (all streams) faults(t *testing.T, name string, text []byte) (faults []string) {
	t.Helper()
	f, err := detect.Look(bytes.NewReader(text), name)
	if err != nil {
		t.Fatal(err)
	}
	if f.Kind == detect.Trace {
		for line := range bytes.Lines(inflated(t, text)) {
			faults = append(faults, all.check(t, f.Kind, line)...)
		}
		return faults
	}
	return all.check(t, f.Kind, text)
}

// inflated returns the text of a segment, as far as it can be read.
func inflated(t *testing.T, packed []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return text
}

// check returns where a document breaks the schema of a kind.
func (all streams) check(t *testing.T, kind detect.Kind, text []byte) (faults []string) {
	t.Helper()
	schema := all[kind]
	if schema == nil {
		return nil
	}
	var syntax *schemas.SyntaxError
	switch err := schema.Check(bytes.NewReader(text), func(l schemas.Located) { faults = append(faults, l.Pointer) }); {
	case errors.As(err, &syntax):
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return faults
}

// there returns the files that are there, apart from what is written by hand.
func (g *vectorMaker) there(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(g.root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(g.root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if first, _, _ := strings.Cut(rel, "/"); first == "manual" || rel == "README.md" || rel == "vectors.go" {
			return nil
		}
		files[rel], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (g *vectorMaker) write(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"sound", "broken"} {
		if err := os.RemoveAll(filepath.Join(g.root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range g.made {
		target := filepath.Join(g.root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o777), os.WriteFile(target, text, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
}

// Vectors that are made by hand get into the index as they are.
func TestManualVectors(t *testing.T) {
	g := &vectorMaker{root: t.TempDir(), schemas: compileStreams(t)}
	for name, text := range map[string]string{
		"pass/b.json": "{}", "pass/a.json": "{}", "fail/a.json": `{"run_id": 7, "grid_digest": "g", "iteration_groups": []}`,
		"how": "an id is a number\n", "entails": "rank.schema\n",
	} {
		target := filepath.Join(g.root, "manual", "trace.x", filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o777), os.WriteFile(target, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []finding.ID{"trace.x", "trace.none"} {
		g.add(t, finding.Rule{ID: id, Level: finding.Trace, Severity: finding.Error})
	}
	want := []vectors.Vector{{
		Rule: "trace.x", Level: "trace", Severity: "error", How: "an id is a number", Command: []string{"validate"}, Entails: []string{"rank.schema"}, Schema: true,
		Pass: []vectors.File{{Name: "a.json", Path: "manual/trace.x/pass/a.json"}, {Name: "b.json", Path: "manual/trace.x/pass/b.json"}},
		Fail: []vectors.File{{Name: "a.json", Path: "manual/trace.x/fail/a.json"}},
	}}
	if diff := cmp.Diff(want, g.index); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryRuleHasAVector(t *testing.T) {
	index := map[string]vectors.Vector{}
	for _, v := range vectors.Index() {
		index[v.Rule] = v
	}
	for _, rule := range finding.Rules() {
		v, ok := index[string(rule.ID)]
		if slices.Contains(synthesis.OfHosts(), rule.ID) {
			if ok {
				t.Errorf("%s is about hosts, and has a vector", rule.ID)
			}
			continue
		}
		if !ok || len(v.Pass) == 0 || len(v.Fail) == 0 {
			t.Errorf("%s has no vector: let a simulated run break it, or add files to testdata/vectors/manual, and run scripts/genvectors", rule.ID)
			continue
		}
		if v.Level != string(rule.Level) || v.Severity != string(rule.Severity) || v.How == "" || slices.Equal(v.Pass, v.Fail) {
			t.Errorf("%+v", v)
		}
	}
	if want := len(finding.Rules()) - len(synthesis.OfHosts()); len(index) != want {
		t.Errorf("%d vectors of %d rules about files", len(index), want)
	}
}

// TestVectorsAreSmall: a package that others import is no burden.
func TestVectorsAreSmall(t *testing.T) {
	total := 0
	err := fs.WalkDir(vectors.Files(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		total += int(info.Size())
		return err
	})
	if err != nil || total > 1_500_000 {
		t.Errorf("%d bytes, %v", total, err)
	}
}

// TestVectorVerdicts checks every set of files. One that passes gives no finding. One that
// fails gives the rule and those that it entails, and no others.
func TestVectorVerdicts(t *testing.T) {
	passed := map[string]bool{} // sets are shared
	for _, v := range vectors.Index() {
		t.Run(v.Rule, func(t *testing.T) {
			if key := fmt.Sprint(v.Command, v.Pass); !passed[key] {
				passed[key] = true
				if got := checkSet(t, v.Command, v.Pass); got.status != exitcode.OK || len(got.rules) > 0 {
					t.Errorf("the passing set: %+v", got)
				}
			}
			want := append(slices.Clone(v.Entails), v.Rule)
			slices.Sort(want)
			got := checkSet(t, v.Command, v.Fail)
			if diff := cmp.Diff(want, got.rules); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", got.text, diff)
			}
			if rejects := v.Severity == string(finding.Error); rejects != (got.status == exitcode.Rejected) || !rejects && got.status != exitcode.OK {
				t.Errorf("exit status %d: %s", got.status, got.text)
			}
		})
	}
}

func checkSet(t *testing.T, command []string, set []vectors.File) outcome {
	t.Helper()
	dir := t.TempDir()
	if err := vectors.Copy(dir, set); err != nil {
		t.Fatal(err)
	}
	return checkRun(t, command, dir)
}

// inSchemas are the rules that the vectors break in a way that the JSON Schemas express: a
// type, a value of a closed set, a bound, a key that must be there. The others are about
// how values fit together, or about the text.
var inSchemas = strings.Fields(`
	input.limit
	rank.coverage rank.counts rank.schema rank.dp run.id run.grid
	group.incomplete group.fpm-count group.counter
	result.fpm-count result.counter
	protocol.invalid protocol.undeclared protocol.contract
	sample.count sample.reduction
	warmup.ledger warmup.record
	merged.schema merged.dp merged.identity merged.status merged.coverage merged.groups
	schema.violation
	probe.sidecar
	trace.row
`)

// TestSchemasAgreeWithTheRules holds the schemas against the rules. A document that keeps
// every rule keeps its schema; the schema rejects none that is accepted; and where it
// expresses what a vector breaks, it rejects that.
func TestSchemasAgreeWithTheRules(t *testing.T) {
	all := compileStreams(t)
	var got []string
	for _, v := range vectors.Index() {
		for _, f := range v.Pass {
			if faults := all.faults(t, f.Name, readVector(t, f)); len(faults) > 0 {
				t.Errorf("%s: the passing %s breaks its schema: %q", v.Rule, f.Name, faults)
			}
		}
		var faults []string
		for _, f := range v.Fail {
			faults = append(faults, all.faults(t, f.Name, readVector(t, f))...)
		}
		if v.Schema != (len(faults) > 0) {
			t.Errorf("%s: the index says that the schema rejects it: %t", v.Rule, v.Schema)
		}
		if len(faults) == 0 {
			continue
		}
		got = append(got, v.Rule)
		if v.Severity == string(finding.Warning) {
			t.Errorf("%s is a warning, and the schema rejects the document", v.Rule)
		}
		if found := checkSet(t, v.Command, v.Fail); !samePlaces(found.pointers, faults) {
			t.Errorf("%s: the rules speak of %q, the schema of %q", v.Rule, found.pointers, faults)
		}
	}
	if diff := cmp.Diff(inSchemas, got); diff != "" {
		t.Errorf("rejected by the schema (-want +got):\n%s", diff)
	}
}

// samePlaces tells whether the schema's faults are each at a place that a finding is at, or
// around or inside it: where a key is missing, one speaks of the key and the other of the
// object. Metrics stand in the results and in the groups, and are judged in the groups.
func samePlaces(pointers, faults []string) bool {
	around := func(a, b string) bool { return a == b || strings.HasPrefix(b, a+"/") }
	for _, fault := range faults {
		_, inMetric, ok := strings.Cut(fault, "/fpms/")
		again := func(f string) bool { return f != fault && strings.HasSuffix(f, "/fpms/"+inMetric) }
		if ok && strings.HasPrefix(fault, "/results/") && slices.ContainsFunc(faults, again) {
			continue
		}
		if !slices.ContainsFunc(pointers, func(p string) bool { return around(p, fault) || around(fault, p) }) {
			return false
		}
	}
	return true
}

func readVector(t *testing.T, f vectors.File) []byte {
	t.Helper()
	text, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

package main

import (
	"encoding/json"
	"encoding/xml"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
)

// A pipeline is the shell commands of a snippet, and the files that they are to leave.
type pipeline struct {
	name    string
	steps   []step
	reports []string
}

// step is one shell command with its environment.
type step struct {
	command string
	env     map[string]string
}

// TestCIPage runs what docs/ci.md shows: against a sound run every pipeline succeeds, and
// against a broken one it fails with the exit status of a rejected artifact, its reports
// written all the same, and without artifacts with that of what is missing.
func TestCIPage(t *testing.T) {
	for _, program := range []string{"bash", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the snippets need %s", program)
		}
	}
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkplace(t)
	var all []pipeline
	for _, block := range regexp.MustCompile("(?s)```(yaml|groovy|sh)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		switch block[1] {
		case "yaml":
			all = append(all, w.yaml(t, block[2]))
		case "groovy":
			all = append(all, groovy(block[2]))
		default:
			all = append(all, pipeline{name: "shell", steps: []step{{command: block[2]}}})
		}
	}
	names := map[string]int{}
	for _, p := range all {
		names[p.name]++
		w.check(t, p)
	}
	if want := map[string]int{"GitHub action": 1, "GitHub": 1, "GitLab": 1, "Jenkins": 1, "pre-commit": 1, "shell": 1}; !maps.Equal(names, want) {
		t.Errorf("the page shows %v, want %v", names, want)
	}
}

// workplace is a machine of a pipeline: fpm is on its path.
type workplace struct {
	root string // of the repository
	temp string // of the runner
	path string
}

func newWorkplace(t *testing.T) *workplace {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	w := &workplace{root: root, temp: t.TempDir(), path: os.Getenv("PATH")}
	// The action's own way to build it puts it on the path of all later steps.
	added := filepath.Join(w.temp, "path")
	for _, s := range w.action(t, map[string]any{"paths": "."})[:1] {
		s.env["GITHUB_PATH"] = added
		if out, code := w.run(t, w.temp, s); code != 0 {
			t.Fatalf("exit status %d: %s", code, out)
		}
	}
	line, err := os.ReadFile(added)
	if err != nil {
		t.Fatal(err)
	}
	w.path = strings.TrimSpace(string(line)) + string(os.PathListSeparator) + w.path
	return w
}

// run runs a step as runners do, and returns what it printed and its exit status.
func (w *workplace) run(t *testing.T, dir string, s step) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", s.command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+w.path, "RUNNER_TEMP="+w.temp)
	for key, value := range s.env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// check runs a pipeline against a sound run and against a broken one.
func (w *workplace) check(t *testing.T, p pipeline) {
	t.Helper()
	if len(p.steps) == 0 {
		t.Errorf("%s runs nothing", p.name)
	}
	for rule, want := range map[finding.ID]int{"": 0, finding.StrictConfig: 1, finding.TimingExceeds: 1} {
		dir := t.TempDir()
		if _, err := simulate.Run(t.Context(), simulate.Options{Dir: filepath.Join(dir, "results"), Ranks: 2, Points: 2, Raw: 1, Break: rule}); err != nil {
			t.Fatal(err)
		}
		code := 0
		var printed string
		for _, s := range p.steps {
			if code == 0 {
				printed, code = w.run(t, dir, s)
			}
		}
		if code != want {
			t.Errorf("%s: exit status %d with a run that breaks %q, want %d:\n%s", p.name, code, rule, want, printed)
		}
		for _, name := range p.reports {
			checkReport(t, filepath.Join(dir, name), string(rule))
		}
	}
	if p.name == "pre-commit" { // which runs nothing then
		return
	}
	empty, missing := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(empty, "results"), 0o777); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]int{empty: 2, missing: 3} {
		if out, code := w.run(t, dir, p.steps[0]); code != want {
			t.Errorf("%s: exit status %d without artifacts, want %d:\n%s", p.name, code, want, out)
		}
	}
}

// checkReport reads a report that a pipeline left: well-formed, and naming the broken rule.
func checkReport(t *testing.T, path, rule string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return
	}
	if filepath.Ext(path) == ".xml" {
		err = xml.Unmarshal(text, &struct{}{})
	} else {
		var v any
		err = json.Unmarshal(text, &v)
	}
	if err != nil || !strings.Contains(string(text), rule) {
		t.Errorf("%s, of a run that breaks %q: %v\n%s", filepath.Base(path), rule, err, text)
	}
}

func load(t *testing.T, text string, v any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

// workflowStep is a step of a GitHub workflow or of a composite action.
type workflowStep struct {
	Uses, Run, Shell string
	With             map[string]any
	Env              map[string]string
}

// yaml takes a snippet for what its keys say.
func (w *workplace) yaml(t *testing.T, text string) pipeline {
	t.Helper()
	var doc map[string]yaml.Node
	load(t, text, &doc)
	switch {
	case doc["jobs"].Kind != 0:
		return w.workflow(t, text)
	case doc["repos"].Kind != 0:
		return w.preCommit(t, text)
	}
	var jobs map[string]struct {
		Script    []string
		Artifacts struct {
			When    string
			Reports map[string]string
		}
	}
	load(t, text, &jobs)
	p := pipeline{name: "GitLab"}
	for _, job := range jobs {
		// The lines of a script are one shell's.
		p.steps = append(p.steps, step{command: strings.Join(job.Script, "\n")})
		p.reports = slices.Sorted(maps.Values(job.Artifacts.Reports))
		if job.Artifacts.When != "always" {
			t.Errorf("the reports of findings are not kept: when: %q", job.Artifacts.When)
		}
	}
	return p
}

// workflow is a GitHub workflow. Of the actions of others only the inputs matter.
func (w *workplace) workflow(t *testing.T, text string) pipeline {
	t.Helper()
	var doc struct {
		Jobs map[string]struct{ Steps []workflowStep }
	}
	load(t, text, &doc)
	p := pipeline{name: "GitHub"}
	for _, job := range doc.Jobs {
		for _, s := range job.Steps {
			switch {
			case strings.HasPrefix(s.Uses, "fpm-project/fpm@"):
				p.name = "GitHub action"
				p.steps = append(p.steps, w.action(t, s.With)[1:]...)
			case s.Run != "":
				p.steps = append(p.steps, step{command: s.Run})
			case s.With["sarif_file"] != nil:
				p.reports = append(p.reports, s.With["sarif_file"].(string))
			case s.Uses != "actions/checkout@v4":
				t.Errorf("the step %+v is not understood", s)
			}
		}
	}
	return p
}

// action returns the shell steps of the repository's composite action with inputs.
func (w *workplace) action(t *testing.T, with map[string]any) (steps []step) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Inputs map[string]struct {
			Required bool
			Default  string
		}
		Runs struct {
			Using string
			Steps []workflowStep
		}
	}
	load(t, string(text), &doc)
	values := map[string]string{"github.action_path": w.root}
	for name, input := range doc.Inputs {
		values["inputs."+name] = input.Default
		if input.Required && with[name] == nil {
			t.Errorf("the action needs the input %s", name)
		}
	}
	for name, value := range with {
		if _, ok := doc.Inputs[name]; !ok {
			t.Errorf("the action has no input %s", name)
		}
		text, err := yaml.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		values["inputs."+name] = strings.TrimSpace(string(text))
	}
	for _, s := range doc.Runs.Steps {
		if s.Run == "" {
			continue
		}
		if s.Shell != "bash" || strings.Contains(s.Run, "${{") {
			t.Errorf("a step of the action must name bash, and take inputs from its environment:\n%s", s.Run)
		}
		env := map[string]string{}
		for key, value := range s.Env {
			env[key] = expand(t, value, values)
		}
		steps = append(steps, step{s.Run, env})
	}
	if doc.Runs.Using != "composite" || len(steps) != 2 {
		t.Fatalf("the action is not what this test runs: %s, %d steps", doc.Runs.Using, len(steps))
	}
	return steps
}

// expand replaces the expressions of a workflow.
func expand(t *testing.T, text string, values map[string]string) string {
	t.Helper()
	return regexp.MustCompile(`\$\{\{ (\S+) \}\}`).ReplaceAllStringFunc(text, func(e string) string {
		value, ok := values[strings.Fields(e)[1]]
		if !ok {
			t.Errorf("%s is not known", e)
		}
		return value
	})
}

// preCommit is a hook with the files that its pattern takes.
func (w *workplace) preCommit(t *testing.T, text string) pipeline {
	t.Helper()
	var config struct {
		Repos []struct {
			Repo, Rev string
			Hooks     []struct {
				ID   string
				Args []string
			}
		}
	}
	load(t, text, &config)
	hooksFile, err := os.ReadFile(filepath.Join(w.root, ".pre-commit-hooks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var hooks []struct{ ID, Entry, Language, Files string }
	load(t, string(hooksFile), &hooks)
	used := config.Repos[0].Hooks[0]
	if len(hooks) != 1 || hooks[0].ID != used.ID || hooks[0].Language != "golang" {
		t.Fatalf("the hook %s is not defined: %+v", used.ID, hooks)
	}
	files := regexp.MustCompile(hooks[0].Files)
	command := hooks[0].Entry + " " + strings.Join(used.Args, " ")
	for _, name := range []string{"results/benchmark_results.json", "results/benchmark_results_dp1.json"} {
		if !files.MatchString(name) {
			t.Errorf("the hook does not take %s", name)
		}
		command += " " + name
	}
	for _, name := range []string{"package.json", "my_benchmark_results.json", "benchmark_results.json.tmp"} {
		if files.MatchString(name) {
			t.Errorf("the hook takes %s", name)
		}
	}
	return pipeline{name: "pre-commit", steps: []step{{command: command}}}
}

// groovy is a Jenkins pipeline.
func groovy(text string) pipeline {
	p := pipeline{name: "Jenkins"}
	for _, m := range regexp.MustCompile(`(?m)^ *(sh|junit) '(.*)'$`).FindAllStringSubmatch(text, -1) {
		if m[1] == "sh" {
			p.steps = append(p.steps, step{command: m[2]})
		} else {
			p.reports = append(p.reports, m[2])
		}
	}
	return p
}

// TestActionTakesInputsApart: several paths, one of them strange, and a report beside the
// annotations.
func TestActionTakesInputsApart(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the action needs bash")
	}
	w := newWorkplace(t)
	dir := t.TempDir()
	for name, rule := range map[string]finding.ID{"one": "", "--a b $(touch pwned)": finding.SchemaViolation} {
		if _, err := simulate.Run(t.Context(), simulate.Options{Dir: filepath.Join(dir, name), Ranks: 1, Points: 1, Raw: 1, Seed: uint64(len(name)), Break: rule}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		schema bool
		want   int
	}{{false, 0}, {true, 1}} {
		steps := w.action(t, map[string]any{"paths": "one", "schema": c.schema, "sarif": "out.sarif"})
		check := steps[1]
		check.env["PATHS"] = "one\n--a b $(touch pwned)\n\n"
		out, code := w.run(t, dir, check)
		if code != c.want || c.schema != strings.Contains(out, "schema.violation") {
			t.Errorf("schema %t: exit status %d, %s", c.schema, code, out)
		}
		rule := ""
		if c.schema {
			rule = "schema.violation"
		}
		checkReport(t, filepath.Join(dir, "out.sarif"), rule)
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("an input was run")
	}
}

// TestActionAnnotatesInAnyCase: whatever becomes of the SARIF file, annotations say what is
// wrong, and the exit status is the worse of both.
func TestActionAnnotatesInAnyCase(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the action needs bash")
	}
	w := newWorkplace(t)
	dir := t.TempDir()
	for name, rule := range map[string]finding.ID{"sound": "", "broken": finding.TimingExceeds} {
		if _, err := simulate.Run(t.Context(), simulate.Options{Dir: filepath.Join(dir, name), Ranks: 1, Points: 1, Raw: 1, Break: rule}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths, sarif, says string
		want               int
	}{
		{"sound", "out.sarif", "::notice ", 0},
		{"broken", "out.sarif", "title=timing.exceeds", 1},
		{"empty", "out.sarif", "::error file=empty,title=fpm validate::the directory is empty", 2},
		{"nowhere", "out.sarif", "::error file=nowhere,title=fpm validate::no such file", 3},
		{"sound", "no/out.sarif", "::notice ", 3},
		{"broken", "no/out.sarif", "title=timing.exceeds", 3},
	} {
		check := w.action(t, map[string]any{"paths": c.paths, "sarif": c.sarif})[1]
		if out, code := w.run(t, dir, check); code != c.want || !strings.Contains(out, c.says) {
			t.Errorf("%s into %s: exit status %d, want %d and %q:\n%s", c.paths, c.sarif, code, c.want, c.says, out)
		}
	}
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/exitcode"
)

const readme = "../../README.md"

// TestREADME runs the sessions that the README shows and compares what is printed, and
// its table of exit statuses with the program's. With -update it writes both anew.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, string(text), "<!-- exit-status -->\n", "<!-- /exit-status -->\n", func(string) string { return exitStatusTable() })
	want = between(t, want, "```console\n", "```\n", func(session string) string { return replay(t, session) })
	if *update {
		if err := os.WriteFile(readme, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("README.md is not what the program says: run scripts/gendocs (-program +README):\n%s", diff)
	}
}

// between replaces the text between every two marks.
func between(t *testing.T, text, open, end string, replace func(string) string) string {
	t.Helper()
	parts := strings.Split(text, open)
	if len(parts) == 1 {
		t.Fatalf("%s has no %q", readme, open)
	}
	for i, part := range parts[1:] {
		inside, rest, ok := strings.Cut(part, end)
		if !ok {
			t.Fatalf("%s does not end %q", readme, open)
		}
		parts[i+1] = replace(inside) + end + rest
	}
	return strings.Join(parts, open)
}

// replay runs the lines of a session that begin with "$ " in one shell, and returns
// them with what each printed, standard error included.
func replay(t *testing.T, session string) string {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("the sessions are those of a POSIX shell")
	}
	var script strings.Builder
	for line := range strings.Lines(session) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			// printf and the assignment keep $? as the command before left it
			fmt.Fprintf(&script, "status=$?; printf '%%s\\n' %s; (exit $status)\n%s", shellQuote(strings.TrimSpace(line)), command)
		}
	}
	cmd := exec.Command("sh", "-c", script.String())
	cmd.Dir = t.TempDir()
	shipped, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(shipped, filepath.Join(cmd.Dir, "testdata")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String()
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func exitStatusTable() string {
	var b strings.Builder
	b.WriteString("| status | meaning |\n|---|---|\n")
	for _, row := range exitcode.Table() {
		fmt.Fprintf(&b, "| %d | %s |\n", row.Code, row.Meaning)
	}
	return b.String()
}

func TestReplay(t *testing.T) {
	const want = "$ echo a; false\na\n$ echo $?\n1\n$ echo 'it''s' >&2\nits\n"
	if diff := cmp.Diff(want, replay(t, "$ echo a; false\nstale\n$ echo $?\n$ echo 'it''s' >&2\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The tour of a recording runs as it stands, in an empty directory.
func TestREADMETour(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- trace-tour -->\n```sh\n")
	tour, _, found := strings.Cut(rest, "```\n")
	if !found || !strings.Contains(tour, "fpm trace record") {
		t.Fatal("the README has no tour of a recording")
	}
	cmd := exec.Command("sh", "-e", "-c", tour+"wait\n")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program(t))+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	for _, want := range []string{"recorded 4 ranks of 2 producers", "manifest: run.manifest.json (complete)", "rows of 4 streams in 2 files", `{"timestamp":`} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not in what the tour prints:\n%s%s", want, &stdout, &stderr)
		}
	}
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/inspect"
)

// TestDocs compares docs with what the tree of commands and the tables say. The
// generator lives in a test, so that the program does not carry it: scripts/gendocs runs
// the test with -update.
func TestDocs(t *testing.T) {
	const dir = "../../docs"
	want := documentation(t)
	if *update {
		writeDocs(t, dir, want)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%v: run scripts/gendocs", err)
			continue
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("docs/%s is not what the program says: run scripts/gendocs (-program +docs):\n%s", name, diff)
		}
	}
	for _, name := range generated(t, dir) {
		if _, ok := want[name]; !ok {
			t.Errorf("docs/%s belongs to no command: remove it", name)
		}
	}
}

// The page that the note not-concluded names has it at length.
func TestEvidencePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	for _, statement := range inspect.NotConcluded() {
		if !strings.Contains(page, statement) {
			t.Errorf("docs/evidence.md does not say: %s", statement)
		}
	}
}

func writeDocs(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for _, name := range generated(t, dir) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// generated returns the files in the directories that hold nothing else.
func generated(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, sub := range []string{"cli", "man"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Type() == fs.ModeDir {
				t.Fatalf("%s/%s is a directory", sub, e.Name())
			}
			names = append(names, sub+"/"+e.Name())
		}
	}
	return names
}

// documentation returns the text of every generated file.
func documentation(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{
		"rules.md":       rulesPage(),
		"exit-status.md": exitStatusPage(),
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "_")
		files["cli/"+name+".md"] = commandPage(t, cmd)
		files["man/"+strings.ReplaceAll(name, "_", "-")+".1"] = manPage(t, cmd)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(newRoot(newApp(io.Discard, io.Discard, noEnv)))
	return files
}

func commandPage(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	cmd.DisableAutoGenTag = true
	var b bytes.Buffer
	if err := doc.GenMarkdown(cmd, &b); err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(b.String(), "\n") + "\n\n### Exit status\n\nSee [exit status](../exit-status.md).\n"
}

func manPage(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	cmd.DisableAutoGenTag = true
	date := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) // not today's: the same tree gives the same page
	var b bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Date: &date, Source: "fpm", Manual: "fpm manual"}
	if err := doc.GenMan(cmd, header, &b); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n.SH EXIT STATUS\n")
	for _, row := range exitcode.Table() {
		fmt.Fprintf(&b, ".TP\n\\fB%d\\fP\n%s\n", row.Code, strings.ReplaceAll(row.Meaning, "-", "\\-"))
	}
	return b.String()
}

func exitStatusPage() string {
	byWeight := slices.SortedFunc(slices.Values(exitcode.Table()), func(a, b exitcode.Row) int {
		if a.Code == b.Code || exitcode.Worse(a.Code, b.Code) == b.Code {
			return 1
		}
		return -1
	})
	var order []string
	for _, row := range byWeight {
		order = append(order, fmt.Sprint(row.Code))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Exit status

The same for every command. Where several apply, the first of %s
is it, and the findings are printed all the same. A warning never changes it.

`, strings.Join(order, ", "))
	return b.String() + exitStatusTable()
}

func rulesPage() string {
	var b strings.Builder
	b.WriteString(`# Rules

What a check can find broken. An id is what findings carry, in every format; it
never changes its meaning. A broken rule rejects its input; a warning never does.
` + "`fpm rules`" + ` prints this list, ` + "`fpm rules ID`" + ` one entry of it.

| id | severity | level |
|---|---|---|
`)
	for _, r := range finding.Rules() {
		anchor := strings.ReplaceAll(string(r.ID), ".", "") // how Markdown viewers name headings
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", r.ID, anchor, r.Severity, r.Level)
	}
	for _, r := range finding.Rules() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n*When it is broken:* %s.\n\n*Example of a fault:* ``%s``\n", r.ID, r.Purpose, r.Hint, r.Example)
	}
	return b.String()
}

package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The layers, the upper ones first. A package imports only from layers below its own;
// those of internal, and those of trace, may also import each other. A package that is named stands where it is
// named, whatever folder it is in: inspect is no part of the public API, and reads the
// evidence by the packages that own its rules; files and tracestats serve several commands.
var layers = [][]string{
	{"cmd/fpm", "scripts"},
	{"cmd"},
	{"cmd/internal/files", "cmd/internal/tracestats"},
	{"merge", "probe", "trace", "internal/inspect"},
	{"protocol", "warmup", "engine"},
	{"schemas"},
	{"internal"},
}

// pkg is what go list tells of a package.
type pkg struct {
	ImportPath, Dir  string
	Imports, GoFiles []string
	Module           *struct{ Path string }
}

// core tells whether a package is one that prints nothing and runs nothing.
func (p pkg) core() bool {
	return room(p.path()) != "cmd" && room(p.path()) != "scripts" && !p.forTests()
}

// forTests tells whether a package serves tests: it may run programs and read the
// environment as they do, and no other package may import it.
func (p pkg) forTests() bool { return slices.Contains(p.Imports, "testing") }

// path returns the import path below the module's.
func (p pkg) path() string { return below(p.Module.Path, p.ImportPath) }

// below returns an import path without the module's, "" when it is of another module.
func below(module, path string) string {
	rest, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return rest
}

// room returns the first part of a path below the module.
func room(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

func layer(path string) int {
	of := func(name string) int {
		return slices.IndexFunc(layers, func(rooms []string) bool { return slices.Contains(rooms, name) })
	}
	if named := of(path); named >= 0 {
		return named
	}
	return of(room(path))
}

// packages returns the packages of the module.
func packages(t *testing.T) (list []pkg) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,GoFiles,Module", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

func TestPackagesImportDownward(t *testing.T) {
	seen := 0
	for _, p := range packages(t) {
		from := layer(p.path())
		if from < 0 {
			t.Errorf("%s belongs to no layer", p.ImportPath)
			continue
		}
		for _, path := range p.Imports {
			to := below(p.Module.Path, path)
			if to == "" {
				continue
			}
			seen++
			peers := room(to) == room(p.path()) && layer(to) == from && (room(to) == "internal" || room(to) == "trace")
			if layer(to) <= from && !peers {
				t.Errorf("%s imports %s, which is not below it", p.path(), to)
			}
		}
	}
	if seen == 0 {
		t.Error("no imports were looked at")
	}
}

func TestOnlyTestsImportWhatServesThem(t *testing.T) {
	all, serving := packages(t), map[string]bool{}
	for _, p := range all {
		serving[p.ImportPath] = p.forTests()
	}
	if !serving["github.com/fpm-project/fpm/internal/porttest"] {
		t.Error("porttest is not seen to serve tests")
	}
	for _, p := range all {
		for _, path := range p.Imports {
			if serving[path] && !p.forTests() {
				t.Errorf("%s imports %s, which serves tests", p.path(), path)
			}
		}
	}
}

// What only the command may use: the core takes readers and writers and returns values.
var edgeOnly = []string{"os/exec", "os/signal", "log", "log/slog", "flag", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"}

func TestCoreHasNoEdges(t *testing.T) {
	for _, p := range packages(t) {
		if !p.core() {
			continue
		}
		for _, path := range p.Imports {
			if slices.Contains(edgeOnly, path) {
				t.Errorf("%s imports %s", p.path(), path)
			}
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range edges(file) {
				t.Errorf("%s/%s uses %s", p.path(), name, use)
			}
		}
	}
}

// edges returns what a file uses of the process around it: its standard streams, its
// exit, its environment, and init functions.
func edges(file *ast.File) (uses []string) {
	forbidden := map[string][]string{
		"fmt": {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
		"os":  {"Stdin", "Stdout", "Stderr", "Args", "Exit", "Getenv", "LookupEnv", "Environ"},
	}
	var inFromEnv bool
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				uses = append(uses, "init")
			}
			inFromEnv = strings.HasSuffix(n.Name.Name, "FromEnv") // a package's one edge
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && !inFromEnv && slices.Contains(forbidden[x.Name], n.Sel.Name) {
				uses = append(uses, x.Name+"."+n.Sel.Name)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
				uses = append(uses, f.Name)
			}
		}
		return true
	})
	return uses
}

// The test above can fail: it sees each of these.
func TestEdges(t *testing.T) {
	const source = `package p
import ("fmt"; "os")
func init() {}
func A() { fmt.Println(os.Args); println(); os.Exit(1) }
func BaseFromEnv() string { return os.Getenv("X") }
func B() string { return fmt.Sprint(os.Getenv("X")) }
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(edges(file), " ")
	if want := "init fmt.Println os.Args println os.Exit os.Getenv"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

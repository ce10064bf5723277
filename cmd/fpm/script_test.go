package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// -update writes what is compared with files anew: the expected output in the scripts,
// and the documentation.
var update = flag.Bool("update", false, "write expected files anew; read them before they are kept")

// TestMain makes this test program be fpm when it is called by that name, which is how
// the scripts and tests run it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fpm": func() { os.Exit(process()) }})
}

// TestScripts runs testdata/script/*.txtar: sessions with the program, file by file.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status, "appears": appears},
		Setup: func(env *testscript.Env) error {
			env.Setenv("NO_COLOR", "")
			env.Setenv("TERM", "xterm")
			return nil
		},
	})
}

// status runs a program that must end with the given exit status:
//
//	status 2 fpm rules --nonsense
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE PROGRAM [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want := args[0]; fmt.Sprint(got) != want {
		ts.Fatalf("exit status %d, want %s", got, want)
	}
}

// appears waits for a file, such as the socket of a program in the background:
//
//	appears $WORK/s.0
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears FILE")
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-look.C {
		if _, err := os.Lstat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("%s does not appear", args[0])
}

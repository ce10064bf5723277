package main

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewBuild(t *testing.T) {
	for _, c := range []struct {
		name    string
		info    debug.BuildInfo
		want    build
		summary string
	}{
		{
			"release", debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}},
			build{version: "v1.2.3", goVers: "go1.26.0"}, "fpm v1.2.3\ncommit unknown\ngo1.26.0 ",
		},
		{
			"work tree", debug.BuildInfo{GoVersion: "go1.26.0", Settings: []debug.BuildSetting{
				{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
			}},
			build{version: "(devel)", commit: "abc", time: "2026-01-02T03:04:05Z", modified: true, goVers: "go1.26.0"},
			"fpm (devel)\ncommit abc of 2026-01-02T03:04:05Z, modified\ngo1.26.0 ",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := newBuild(&c.info)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(build{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r := got.report(); !strings.HasPrefix(r.Summary, c.summary) {
				t.Errorf("summary %q", r.Summary)
			}
		})
	}
}

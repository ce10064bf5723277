package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/report"
)

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of fpm and of what it was built with",
		Example: `  fpm version
  fpm version --format json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.noFindings(cmd); err != nil {
				return err
			}
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{GoVersion: runtime.Version()}
			}
			return a.finish(newBuild(info).report())
		},
	}
}

// build is what a binary knows about its making.
type build struct {
	version  string // of the module; "(devel)" when it was built from a work tree
	commit   string // "" when the builder did not record one
	time     string // of the commit, RFC 3339
	modified bool   // the work tree differed from the commit
	goVers   string
}

func newBuild(info *debug.BuildInfo) build {
	b := build{version: info.Main.Version, goVers: info.GoVersion}
	if b.version == "" {
		b.version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.time":
			b.time = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		}
	}
	return b
}

func (b build) report() *report.Report {
	r := &report.Report{Command: "version", Status: report.OK, Details: report.Object{{Key: "version", Value: b.version}}}
	commit := "unknown"
	if b.commit != "" {
		r.Details = append(r.Details,
			report.Detail{Key: "commit", Value: b.commit},
			report.Detail{Key: "commit_time", Value: b.time},
			report.Detail{Key: "modified", Value: b.modified},
		)
		commit = b.commit + " of " + b.time
	}
	if b.modified {
		commit += ", modified"
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	r.Details = append(r.Details,
		report.Detail{Key: "go", Value: b.goVers},
		report.Detail{Key: "platform", Value: platform},
	)
	r.Summary = fmt.Sprintf("fpm %s\ncommit %s\n%s %s", b.version, commit, b.goVers, platform)
	return r
}

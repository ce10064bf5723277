package validate

import (
	"path/filepath"
	"strings"

	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/probe"
)

// Sidecar is what became of a worker-probe sidecar.
type Sidecar struct {
	Path    string
	Merged  string // the merged artifact that it was held against; empty when there was none
	Summary *probe.Summary
	Notes   []string
}

// checkSidecars computes sidecars again from the responses that they record. The merged
// artifact of one is that among the inputs whose sidecar has its name; a path that the
// sidecar itself tells is not followed.
func (v *validation) checkSidecars() {
	sidecars := v.of(detect.Sidecar)
	if v.opt.Require != probe.Nothing && len(sidecars) == 0 {
		v.failf(exitcode.Usage, "", "make the sidecar with fpm probe-report, or name it", "--require asks for what a sidecar establishes, and there is none")
	}
	for _, c := range sidecars {
		out := finding.NewCollector(v.opt.MaxFindings)
		opt := probe.CheckOptions{Merged: v.mergedBeside(c.path), Require: v.opt.Require, MaxFindings: v.opt.MaxFindings, Into: out, Progress: v.opt.Progress}
		result, err := probe.CheckSidecar(v.ctx, c.path, opt)
		if err != nil {
			return
		}
		v.failures = append(v.failures, result.Failures...)
		v.checked[c.path], v.rejected[c.path] = true, out.Errors() > 0
		v.out.Merge(out)
		v.result.Sidecars = append(v.result.Sidecars, Sidecar{c.path, opt.Merged, result.Summary, result.Notes})
	}
}

// mergedBeside returns the merged artifact whose sidecar stands at a path.
func (v *validation) mergedBeside(sidecar string) string {
	for _, c := range v.of(detect.Merged) {
		for _, suffix := range []string{"", ".gz", ".zst"} {
			if filepath.Clean(probe.SidecarPath(strings.TrimSuffix(c.path, suffix))) == filepath.Clean(strings.TrimSuffix(sidecar, suffix)) {
				return c.path
			}
		}
	}
	return ""
}

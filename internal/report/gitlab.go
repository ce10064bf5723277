package report

import (
	"io"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
)

// gitlabIssue is an entry of a Code Quality report of GitLab.
type gitlabIssue struct {
	Description string         `json:"description"`
	CheckName   string         `json:"check_name"`
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"` // info, minor, major, critical or blocker
	Location    gitlabLocation `json:"location"`
}

type gitlabLocation struct {
	Path  string      `json:"path"`
	Lines gitlabLines `json:"lines"`
}

type gitlabLines struct {
	Begin int `json:"begin"`
}

// newGitlabIssue returns an issue; the lines of its description may be empty. The format
// wants a description, a path and a line everywhere: what belongs to no file stands at
// the root, what has no line at the first one.
func newGitlabIssue(check, severity, fingerprint, file string, line int, description ...string) gitlabIssue {
	issue := gitlabIssue{
		Description: strings.Join(present(description), "; "), CheckName: check, Fingerprint: fingerprint,
		Severity: severity, Location: gitlabLocation{valid(relative(file)), gitlabLines{max(line, 1)}},
	}
	if issue.Description == "" {
		issue.Description = check
	}
	if issue.Location.Path == "" {
		issue.Location.Path = "."
	}
	return issue
}

// printGitLab writes one array of issues, empty when there is nothing to say. The format
// has no place for anything else, so that what could not be done is an issue, too, and so
// is the number of findings when not all of them are there.
func printGitLab(w io.Writer, r *Report) error {
	issues := []gitlabIssue{} // never null
	prints := fingerprints{}
	for _, f := range r.shown() {
		severity := "major"
		if f.Severity == finding.Warning {
			severity = "minor"
		}
		issues = append(issues, newGitlabIssue(string(f.Rule), severity, prints.of(f), f.File, f.Line, findingLines(f)...))
	}
	for _, f := range r.Fatal {
		check := "fpm." + codeName(f.Code)
		fingerprint := prints.name(check, relative(f.File))
		issues = append(issues, newGitlabIssue(check, "blocker", fingerprint, f.File, 0, Escape(f.Message), labelled("hint", f.Hint)))
	}
	if r.cut() > 0 {
		const check = "fpm.max-findings"
		issues = append(issues, newGitlabIssue(check, "info", prints.name(check), "", 0, r.outcome()))
	}
	if r.unexplained() {
		check := "fpm." + string(r.Status)
		issues = append(issues, newGitlabIssue(check, "major", prints.name(check), "", 0, r.outcome()))
	}
	return writeJSON(w, issues, "  ")
}

package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
)

const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

// The objects of SARIF that a report is made of, under the names of the standard.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		ColumnKind  string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"` // never null, which would be: not looked
		Properties  Object            `json:"properties"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID            string       `json:"id"`
		Short         sarifMessage `json:"shortDescription"`
		Full          sarifMessage `json:"fullDescription"`
		Help          sarifMessage `json:"help"`
		Configuration sarifConfig  `json:"defaultConfiguration"`
		Properties    Object       `json:"properties"`
	}
	sarifConfig struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		ExitCode      exitcode.Code       `json:"exitCode"`
		ExitName      string              `json:"exitCodeDescription"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level      string          `json:"level"`
		Message    sarifMessage    `json:"message"`
		Locations  []sarifLocation `json:"locations,omitempty"`
		Properties Object          `json:"properties,omitempty"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifMessage      `json:"message"`
		Locations    []sarifLocation   `json:"locations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Properties   *sarifValues      `json:"properties,omitempty"`
	}
	// sarifValues are what a finding says and SARIF has no place for.
	sarifValues struct {
		Rank        *int   `json:"rank,omitempty"` // 0 is a rank
		BenchmarkID int64  `json:"benchmark_id,omitempty"`
		Expected    string `json:"expected,omitempty"`
		Actual      string `json:"actual,omitempty"`
		Hint        string `json:"hint,omitempty"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		Pointer string `json:"fullyQualifiedName"` // of JSON, that is the JSON Pointer
	}
)

// printSARIF writes one log with one run. Like the JSON formats it holds everything,
// whatever [Report.Quiet] says: its reader selects by level.
//
// Columns count bytes, as everywhere, for which SARIF has no unit. Code points are the
// nearest one it has: the same on a line in ASCII, and that is how JSON writers that
// escape everything else leave them.
func printSARIF(w io.Writer, r *Report) error {
	return writeJSON(w, sarifLog{
		Schema: sarifSchema, Version: sarifVersion,
		Runs: []sarifRun{{
			Tool:        sarifTool{sarifDriver{Name: "fpm", Version: valid(r.Version), Rules: sarifRules()}},
			Invocations: []sarifInvocation{r.sarifInvocation()},
			ColumnKind:  "unicodeCodePoints",
			Results:     r.sarifResults(),
			Properties: Object{
				{"command", valid(r.Command)}, {"status", r.Status},
				{"total", r.Total}, {"errors", r.Errors}, {"warnings", r.Warnings}, {"printed", len(r.Findings)},
			},
		}},
	}, "  ")
}

// sarifRules returns the whole rule table: a run was made with all of them.
func sarifRules() []sarifRule {
	rules := []sarifRule{}
	for _, r := range finding.Rules() {
		example := "\n\nExample of a fault: " + r.Example
		rules = append(rules, sarifRule{
			ID:            string(r.ID),
			Short:         sarifText(r.Purpose),
			Full:          sarifText(r.Purpose + example),
			Help:          sarifText("When it is broken: " + r.Hint + "." + example),
			Configuration: sarifConfig{string(r.Severity)},
			Properties:    Object{{"level", r.Level}},
		})
	}
	return rules
}

// sarifText returns a message that is only text. In a message, [text](target) is a link;
// a text from a file must not be one.
func sarifText(text string) sarifMessage {
	return sarifMessage{strings.ReplaceAll(text, "](", `\](`)}
}

func (r *Report) sarifInvocation() sarifInvocation {
	code := r.Code()
	v := sarifInvocation{Successful: r.Status != Failed && len(r.Fatal) == 0, ExitCode: code, ExitName: codeName(code)}
	for _, f := range r.Fatal {
		n := sarifNotification{
			Level:      "error",
			Message:    sarifText(lines([]string{Escape(f.Message), labelled("hint", f.Hint)})),
			Properties: Object{{"exit_status", f.Code}},
		}
		if f.File != "" {
			n.Locations = []sarifLocation{{Physical: &sarifPhysical{Artifact: sarifArtifact{uri(f.File)}}}}
		}
		v.Notifications = append(v.Notifications, n)
	}
	if closing := r.closing(); closing != "" {
		v.Notifications = append(v.Notifications, sarifNotification{Level: "note", Message: sarifText(closing)})
	}
	return v
}

func (r *Report) sarifResults() []sarifResult {
	index := map[finding.ID]int{}
	for i, rule := range finding.Rules() {
		index[rule.ID] = i
	}
	prints := fingerprints{}
	results := []sarifResult{}
	for _, f := range r.Findings {
		results = append(results, sarifResult{
			RuleID: string(f.Rule), RuleIndex: index[f.Rule], Level: string(f.Severity),
			Message:      sarifText(lines(findingLines(f))),
			Locations:    sarifLocations(f),
			Fingerprints: map[string]string{"finding/v1": prints.of(f)},
			Properties:   newSarifValues(f),
		})
	}
	return results
}

// lines joins lines, leaving out the empty ones.
func lines(all []string) string { return strings.Join(present(all), "\n") }

func newSarifValues(f finding.Finding) *sarifValues {
	v := sarifValues{BenchmarkID: f.BenchmarkID, Expected: valid(f.Expected), Actual: valid(f.Actual), Hint: valid(f.Hint)}
	if f.Rank != finding.NoRank {
		v.Rank = &f.Rank
	}
	if v == (sarifValues{}) {
		return nil
	}
	return &v
}

// sarifLocations returns where a finding is: one location, or none.
func sarifLocations(f finding.Finding) []sarifLocation {
	var at sarifLocation
	if f.File != "" {
		at.Physical = &sarifPhysical{Artifact: sarifArtifact{uri(f.File)}}
		if f.Line > 0 {
			at.Physical.Region = &sarifRegion{StartLine: f.Line, StartColumn: f.Column}
		}
	}
	if f.Pointer != "" {
		at.Logical = []sarifLogical{{valid(f.Pointer)}}
	}
	if at.Physical == nil && at.Logical == nil {
		return nil
	}
	return []sarifLocation{at}
}

// uri returns a path as a URI: a relative reference, or a file URI for an absolute one.
// Bytes that are not UTF-8 are percent-encoded as they are, so that the path can be had
// back.
func uri(path string) string {
	if filepath.IsAbs(path) {
		return "file:///" + percentEncode(strings.TrimLeft(filepath.ToSlash(path), "/"))
	}
	if path = relative(path); path == "" {
		return "."
	}
	return percentEncode(path)
}

// percentEncode encodes everything but what is nowhere special and the slash.
func percentEncode(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

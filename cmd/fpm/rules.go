package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/report"
)

func newRules(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rules [ID]",
		Short: "List the rules, or explain one",
		Long: `List every rule that a check can find broken, or explain one: what it requires,
what to do when it is broken, and a smallest fault that breaks it.

A rule's id is what findings carry; it never changes its meaning. A warning never
changes the exit status.`,
		Example: `  fpm rules
  fpm rules group.wall-time
  fpm rules --format json`,
		Args: atMost(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ruleIDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.noFindings(cmd); err != nil {
				return err
			}
			if len(args) == 0 {
				return a.finish(listRules(finding.Rules()))
			}
			rule, ok := finding.Lookup(finding.ID(args[0]))
			if !ok {
				return mistypedRule(fmt.Sprintf("no rule %q", args[0]), args[0])
			}
			return a.finish(explainRule(rule))
		},
	}
}

// noFindings refuses a format that is made for findings when a command has none.
func (a *app) noFindings(cmd *cobra.Command) error {
	if a.opts.format.ForFindings() {
		return &exitcode.Error{
			Code:    exitcode.Usage,
			Message: fmt.Sprintf("--format %s is for findings, and %s has none", a.opts.format, commandName(cmd)),
			Hint:    "use text, json or jsonl",
		}
	}
	return nil
}

func ruleIDs() (ids []string) {
	for _, r := range finding.Rules() {
		ids = append(ids, string(r.ID))
	}
	return ids
}

// listRules returns the report of all rules, one a line.
func listRules(rules []finding.Rule) *report.Report {
	width := 0
	for _, r := range rules {
		width = max(width, len(r.ID))
	}
	var lines []string
	items := report.Items{Key: "rules"}
	for _, r := range rules {
		lines = append(lines, fmt.Sprintf("%-*s  %-7s  %-6s  %s", width, r.ID, r.Severity, r.Level, r.Purpose))
		items.Values = append(items.Values, ruleObject(r))
	}
	return &report.Report{Command: "rules", Status: report.OK, Summary: strings.Join(lines, "\n"), Items: items}
}

func ruleObject(r finding.Rule) report.Object {
	return report.Object{
		{Key: "id", Value: r.ID},
		{Key: "severity", Value: r.Severity},
		{Key: "level", Value: r.Level},
		{Key: "purpose", Value: r.Purpose},
		{Key: "hint", Value: r.Hint},
	}
}

// explainRule returns the report of one rule.
func explainRule(r finding.Rule) *report.Report {
	const indent = "\n  "
	text := []string{fmt.Sprintf("%s (%s, %s)", r.ID, r.Severity, r.Level)}
	for _, part := range []struct{ title, text string }{
		{"Requirement", r.Purpose}, {"When it is broken", r.Hint},
	} {
		text = append(text, "", part.title+":"+indent+strings.Join(wrap(part.text, 78), indent))
	}
	text = append(text, "", "Example of a fault:"+indent+r.Example)
	object := append(ruleObject(r), report.Detail{Key: "example", Value: r.Example})
	return &report.Report{
		Command: "rules", Status: report.OK, Summary: strings.Join(text, "\n"),
		Items: report.Items{Key: "rules", Values: []any{object}},
	}
}

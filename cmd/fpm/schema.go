package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/schemas"
)

func newSchema(a *app) *cobra.Command {
	var bundle bool
	cmd := &cobra.Command{
		Use:   "schema [NAME]",
		Short: "List the JSON Schemas, or print one",
		Long: `List the JSON Schemas (draft 2020-12) of the documents that fpm reads and writes, or
print the text of one on standard output, with a description of every field and its
unit.

A schema describes the shape of one document; whether its parts fit together, and the
files of a run each other, is for the rules: see 'fpm rules'. Schemas refer to each
other by $id. With --bundle those that are referred to are in the same text, for a
validator that has no other.`,
		Example: `  fpm schema
  fpm schema trace-row
  fpm schema --bundle merged-artifact > merged-artifact.schema.json`,
		Args: atMost(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if len(args) == 0 {
				names = schemas.Names()
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.noFindings(cmd); err != nil {
				return err
			}
			if len(args) == 0 {
				if bundle {
					return fmt.Errorf("--bundle needs the name of a schema")
				}
				return a.finish(listSchemas())
			}
			return a.printSchema(cmd, args[0], bundle)
		},
	}
	cmd.Flags().BoolVar(&bundle, "bundle", false, "include the schemas that it refers to")
	return cmd
}

// printSchema writes the text of a schema, whatever the format: it is data.
func (a *app) printSchema(cmd *cobra.Command, name string, bundle bool) error {
	get := schemas.Get
	if bundle {
		get = schemas.Bundle
	}
	text, ok := get(name)
	if !ok {
		return mistyped(cmd, fmt.Sprintf("no schema %q", name), name, schemas.Names())
	}
	_, _ = a.stdout.Write(text) // the stream has the error
	return a.finishAside(&report.Report{Command: "schema", Status: report.OK})
}

// listSchemas returns the report of all schemas, one a line.
func listSchemas() *report.Report {
	width := 0
	for _, name := range schemas.Names() {
		width = max(width, len(name))
	}
	var lines []string
	items := report.Items{Key: "schemas"}
	for _, name := range schemas.Names() {
		info, _ := schemas.About(name)
		lines = append(lines, fmt.Sprintf("%-*s  %s", width, name, info.Title))
		items.Values = append(items.Values, report.Object{
			{Key: "name", Value: name}, {Key: "id", Value: info.ID}, {Key: "title", Value: info.Title},
		})
	}
	return &report.Report{Command: "schema", Status: report.OK, Summary: strings.Join(lines, "\n"), Items: items}
}

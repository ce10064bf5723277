package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/trace"
)

const traceTopologiesHelp = `List which backends and kinds of workers can be traced, and how: over a TCP socket for
each rank, over a Unix domain socket for each rank, by Dynamo's own writer in the
worker's process, or not at all.`

func newTraceTopologies(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "topologies",
		Short: "List which workers can be traced, and how",
		Long:  traceTopologiesHelp,
		Example: `  fpm trace topologies
  fpm trace topologies --format json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.noFindings(cmd); err != nil {
				return err
			}
			return a.finish(topologiesReport(trace.Topologies()))
		},
	}
}

func topologiesReport(list []trace.Topology) *report.Report {
	rows := [][]string{{"BACKEND", "WORKER", "TRACING"}}
	items := report.Items{Key: "topologies"}
	for _, t := range list {
		workers := strings.Join(t.Workers, ", ")
		if t.Also != "" {
			workers += " (" + t.Also + ")"
		}
		rows = append(rows, []string{t.Backend, workers, t.Tracing})
		items.Values = append(items.Values, report.Object{
			{Key: "backend", Value: t.Backend}, {Key: "workers", Value: t.Workers}, {Key: "also", Value: t.Also},
			{Key: "support", Value: t.Support}, {Key: "tracing", Value: t.Tracing},
		})
	}
	return &report.Report{Command: "trace topologies", Status: report.OK, Summary: alignColumns(rows), Items: items}
}

// alignColumns lays rows out in columns, two spaces apart.
func alignColumns(rows [][]string) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		var b strings.Builder
		for j, cell := range row {
			fmt.Fprintf(&b, "%-*s  ", width[j], cell)
		}
		lines[i] = strings.TrimRight(b.String(), " ")
	}
	return strings.Join(lines, "\n")
}

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/trace"
)

const tracePortsHelp = `Check that the ports which publishers bind lie outside of this host's ephemeral port
range. An outbound connection can take a port of that range first; the publisher's bind
then fails, now and then.

The block is base to base + dp_size, the base alone for one rank: a publisher for each
rank and, behind them, the port that rank 0 binds during a self-benchmark. Run it where
the engines run: in a container the range is that of the pod. Where the range cannot be
read the command says so and does not judge.`

func newTracePorts(a *app) *cobra.Command {
	var dpSize int
	var ranks string
	cmd := &cobra.Command{
		Use:   "ports",
		Short: "Check publishers' ports against the ephemeral port range",
		Long:  tracePortsHelp,
		Example: `  fpm trace ports --dp-size 8
  DYN_FORWARDPASS_METRIC_PORT=40000 fpm trace ports --ranks 0-7`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if isSet(cmd, "ranks") {
				set, err := artifact.ParseRanks(ranks)
				if err != nil {
					return usage("--ranks: " + err.Error())
				}
				dpSize = set[len(set)-1] + 1
			}
			return a.tracePorts(cmd, dpSize)
		},
	}
	addBasePort(cmd)
	cmd.Flags().IntVar(&dpSize, "dp-size", 1, "data-parallel ranks of the fleet")
	cmd.Flags().StringVar(&ranks, "ranks", "", "the same by its ranks, such as `0-7`")
	cmd.MarkFlagsMutuallyExclusive("dp-size", "ranks")
	return cmd
}

func (a *app) tracePorts(cmd *cobra.Command, dpSize int) error {
	if dpSize < 1 {
		return usage("--dp-size: a fleet has 1 rank or more")
	}
	policy, err := a.policy(cmd, trace.EnvBasePort)
	if err != nil {
		return err
	}
	block, err := trace.BlockPorts(policy.BasePort, dpSize)
	if err != nil {
		return usage(fmt.Sprintf("%d ranks from port %d on: %v", dpSize, policy.BasePort, err))
	}
	ephemeral, err := trace.EphemeralPorts()
	return a.finish(portsReport(block, ephemeral, err))
}

// freeBase says which base ports have room for a block.
func freeBase(block, ephemeral trace.Ports) string {
	highest := trace.HighestBase(block, ephemeral)
	if highest == 0 {
		return "none: the range begins too low"
	}
	return fmt.Sprintf("%d or lower", highest)
}

// portsReport judges the ports of publishers. Unknown is why the ephemeral range is not
// known, nil when it is.
func portsReport(block, ephemeral trace.Ports, unknown error) *report.Report {
	out := finding.NewCollector(0)
	summary, known := "", any(nil)
	if unknown != nil {
		summary = fmt.Sprintf("FPM ports %s: unknown whether they overlap the ephemeral port range: %v", block, unknown)
	} else {
		summary = fmt.Sprintf("FPM ports %s are outside of this host's ephemeral port range %s", block, ephemeral)
		known = ephemeral.String()
		if warning := trace.EphemeralOverlap(block, ephemeral); warning != "" {
			out.Add(finding.Finding{Rule: finding.TracePorts, Rank: finding.NoRank, Offset: -1, Message: warning, Expected: freeBase(block, ephemeral), Actual: fmt.Sprint(block.First)})
		}
	}
	r := report.New("trace ports", out.Findings(), out.Errors(), out.Warnings())
	r.Summary = summary
	r.Details = report.Object{{Key: "ports", Value: block.String()}, {Key: "ephemeral", Value: known}}
	return r
}

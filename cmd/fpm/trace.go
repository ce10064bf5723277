package main

import "github.com/spf13/cobra"

const traceHelp = `Record the forward passes of inference workers while they serve, and read what was
recorded.

Engines publish a message for every forward pass on a ZMQ socket per data-parallel rank.
The recorder subscribes to them and writes rotating segments of gzip-compressed JSON
lines; the readers take the segments of any writer of that format.`

func newTrace(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Record the forward passes of a fleet, and read the recordings",
		Long:  traceHelp,
	}
	// One line a command.
	cmd.AddCommand(newTraceRecord(a))
	cmd.AddCommand(newTraceCat(a))
	cmd.AddCommand(newTraceStats(a))
	cmd.AddCommand(newTraceVerify(a))
	cmd.AddCommand(newTraceCapacity(a))
	cmd.AddCommand(newTraceTop(a))
	cmd.AddCommand(newTracePorts(a))
	cmd.AddCommand(newTraceTopologies(a))
	return cmd
}

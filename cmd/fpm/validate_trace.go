package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fpm-project/fpm/cmd/internal/validate"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/trace"
)

// addExpected adds the flags that say what a trace must hold.
func addExpected(flags *pflag.FlagSet, producers *string, ranks *rankSet) {
	flags.StringVar(producers, "expect-producers", "", "so many producers, or these `NUMBER|ID,ID...`, must have rows")
	flags.Var(ranks, "expect-ranks", "each of these `RANKS`, such as 0-7, must have rows of some producer")
}

// expected returns what those flags ask for.
func expected(cmd *cobra.Command, producers string, ranks rankSet) (validate.Expected, error) {
	var opt trace.VerifyOptions
	err := expectProducers(&opt, cmd, producers)
	return validate.Expected{Producers: opt.Producers, ProducerCount: opt.ProducerCount, Ranks: ranks.set}, err
}

// producersAndRanks returns whose rows a trace has: producers in order, and the ranks of
// any of them, those aside that no machine could have.
func producersAndRanks(stats *trace.Stats) (producers []string, ranks artifact.RankSet) {
	for _, s := range stats.Streams {
		if !slices.Contains(producers, s.ID.Producer) {
			producers = append(producers, s.ID.Producer)
		}
		if s.ID.Rank <= artifact.MaxRank && !ranks.Contains(int(s.ID.Rank)) {
			ranks = append(ranks, int(s.ID.Rank))
		}
	}
	slices.Sort(ranks)
	return producers, ranks
}

// notFull counts the streams whose gaps nobody can judge.
func notFull(stats *trace.Stats) (n int) {
	for _, s := range stats.Streams {
		if !s.Complete() {
			n++
		}
	}
	return n
}

// validatedTrace says what the verdict on the files of traces is, and what it rests on.
// Lines are escaped by the caller.
func validatedTrace(t validate.Trace) []string {
	producers, ranks := producersAndRanks(t.Stats)
	whose := words.Count(len(producers), "producer", "producers")
	if len(ranks) > 0 {
		whose += fmt.Sprintf(", %s %s", words.Plural(len(ranks), "rank", "ranks"), ranks)
	}
	verdict := validate.Accepted
	if t.Rejected {
		verdict = validate.Rejected
	}
	lines := []string{fmt.Sprintf("trace, %s: %s of %s (%s): %s",
		words.Count(len(t.Files), "file", "files"), words.Count(t.Stats.Rows, "row", "rows"), words.Count(len(t.Stats.Streams), "stream", "streams"), whose, verdict)}
	return append(lines, indented(append(traceLimits(t.Stats), accounts(t.Stats)...))...)
}

// traceLimits says what could not be judged, or only in part.
func traceLimits(stats *trace.Stats) (lines []string) {
	if n := notFull(stats); n > 0 {
		lines = append(lines, fmt.Sprintf("gaps are only meaningful for full captures: %d of %s %s none, and the gaps there are not judged",
			n, words.Count(len(stats.Streams), "stream", "streams"), words.Plural(n, "is", "are")))
	}
	if stats.Others > 0 {
		lines = append(lines, fmt.Sprintf("%s of further streams, whose counters are not judged: only %d are told apart", words.Count(stats.Others, "row is", "rows are"), trace.MaxStreams))
	}
	if stats.BadRows > 0 {
		lines = append(lines, fmt.Sprintf("%s no valid %s and left out", words.Count(stats.BadRows, "line is", "lines are"), words.Plural(stats.BadRows, "row", "rows")))
	}
	if stats.Holes > 0 {
		lines = append(lines, fmt.Sprintf("%s could not be read", words.Count(stats.Holes, "part of a file", "parts of files")))
	}
	return lines
}

func traceObjects(result *validate.Result) []any {
	list := make([]any, 0, len(result.Traces))
	for _, t := range result.Traces {
		producers, ranks := producersAndRanks(t.Stats)
		all := t.Stats.Total()
		list = append(list, report.Object{
			{Key: "files", Value: t.Files}, {Key: "rows", Value: t.Stats.Rows}, {Key: "invalid_rows", Value: t.Stats.BadRows},
			{Key: "streams", Value: len(t.Stats.Streams)}, {Key: "producers", Value: append([]string{}, producers...)}, {Key: "ranks", Value: append([]int{}, ranks...)},
			{Key: "full_rows", Value: all.Full}, {Key: "sampled_rows", Value: all.Sampled}, {Key: "streams_without_gap_check", Value: notFull(t.Stats)},
			{Key: "rows_of_other_streams", Value: t.Stats.Others}, {Key: "missing", Value: all.Missing}, {Key: "restarts", Value: all.Restarts},
			{Key: "torn", Value: t.Stats.Holes}, {Key: "not_judged", Value: append([]string{}, traceLimits(t.Stats)...)}, {Key: "recorder", Value: recorders(t.Stats)},
		})
	}
	return list
}

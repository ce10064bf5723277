// Package trace reads recordings of the forward passes of inference workers, and holds
// what configures a recording.
//
// An engine publishes a forward-pass metric (FPM) for every pass of every data-parallel
// rank: how long it took (wall_time), what was scheduled and what was queued, and a
// counter that numbers the messages of that rank. A recorder (package record) writes a row
// for each, one JSON object a line, into segments (package segment), a series of files for
// each producer:
//
//	segments ──▶ segment.Reader ──▶ Parser ──┬──▶ Summarise   a Stream for each rank
//	              lines and holes   Rows     ├──▶ Verify      findings: is it whole?
//	                                         ├──▶ Measure     rows, bytes, compression
//	                                         └──▶ Cat         the chosen lines, unchanged
//
// A capture is full, with every message, or sampled, with the newest one of a rank at each
// interval. Only of a full one can be said what is missing: a counter that jumps is a gap.
// A counter that goes back is none: the publisher was restarted. And a metric of zeros is a
// heartbeat, with which an idle publisher says once a second that it is there.
//
// Nothing that a file can hold ends the reading of the others, and memory is bounded
// whatever they hold. Rows that break the rules are counted and left out; what is wrong
// with them is a [RowError].
//
// A recording is configured by a [Policy], by flags or from the environment
// ([PolicyFromEnv]), and [Ports] says which ports its publishers need.
package trace

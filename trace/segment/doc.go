// Package segment writes and reads the files of a trace.
//
// A trace is a series of segments for each producer. A segment is a file of rows, one JSON
// object a line, as a chain of gzip members:
//
//	/tmp/dynamo-fpm.worker-7.000003.jsonl.gz
//	└─── prefix ──┘ └ producer └ index
//
//	┌ member ┐┌ member ──────┐┌ member ┐
//	│ rows   ││ rows         ││ rows   │    each is complete: zcat, Python and Go read on
//	└────────┘└──────────────┘└────────┘    from one to the next
//
// A [Writer] gathers rows and makes one complete member of them at each flush. When a
// flush fails half-way, the file is cut back to its last whole member and the rows wait
// for the next one, so that a full disk tears no hole into what was written before. A
// segment that is full is followed by one with the next index; the oldest go.
//
// A [Reader] goes through files in the order of their indices and hands out their lines,
// whoever wrote them: many members or one, cut off or damaged. What cannot be read is an
// item of the stream, a [Hole], and reading goes on at the next member. A [Follower] does
// the same with files that grow.
package segment

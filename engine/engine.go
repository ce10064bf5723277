// Package engine checks engine provenance: what each rank's engine-core process believed
// at start-up, as its rank artifact records it in the engine object.
//
// The ranks of one run must have started alike. What is compared is the startup
// [Identity] of an engine block: the block without the places that describe one rank
// (parallel.data_parallel_rank) or that are filled in after start-up (what a worker probe
// resolved). Everything else counts, keys that nobody knows included.
//
// A rank is [Degraded] when it has no engine object, or one whose capture failed part-way
// (it has capture_error). Degraded ranks are named by a warning (engine.unverified), left
// out of the comparison (engine.mismatch), and listed in the merged block:
//
//	rank 0   {"attention": …, "parallel": …}        clean: the first clean rank is compared with
//	rank 1   {"attention": …, "parallel": …}        clean: every differing path is a finding
//	rank 2   {"model": …, "capture_error": "OOM"}   degraded
//	rank 3   (no engine)                            degraded
//	merged   rank 0's block, "capture_errors": {"2": "OOM", "3": "missing engine block"}
//
// A [Checker] takes the blocks of a run one rank after another and keeps at most two of
// them, however many ranks there are.
package engine

import (
	"slices"

	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Keys of an engine block that have a meaning here.
const (
	keyCaptureError  = "capture_error"
	keyCaptureErrors = "capture_errors"
	keyParallel      = "parallel"
	keyRank          = "data_parallel_rank"
)

// notIdentity lists what is no part of the startup identity: under "" keys of the block
// itself, else keys of the sub-block of that name.
func notIdentity(block string) []string {
	switch block {
	case "":
		return []string{"resolved", "resolved_scope", "resolution", "worker_probe"}
	case "attention":
		return []string{"backend_resolved", "mla_prefill_backend_resolved", "resolution"}
	case keyParallel:
		return []string{keyRank}
	}
	return nil
}

// Degraded tells whether a rank with this engine block (nil when its artifact has none)
// is degraded: the block is not an object, or its capture failed part-way.
func Degraded(block *jsonvalue.Value) bool {
	return block == nil || block.Kind != jsonvalue.Object || block.Get(keyCaptureError) != nil
}

// Identity returns the startup identity of an engine block: a copy of the object without
// the keys that describe one rank or that come after start-up. It shares the values that
// it keeps, offsets included, with the block.
func Identity(block *jsonvalue.Value) *jsonvalue.Value {
	identity := without(*block, notIdentity(""))
	for i := range identity.Members {
		m := &identity.Members[i]
		if drop := notIdentity(m.Name); len(drop) > 0 && m.Value.Kind == jsonvalue.Object {
			m.Value = without(m.Value, drop)
		}
	}
	return &identity
}

func without(object jsonvalue.Value, drop []string) jsonvalue.Value {
	members := make([]jsonvalue.Member, 0, len(object.Members))
	for _, m := range object.Members {
		if !slices.Contains(drop, m.Name) {
			members = append(members, m)
		}
	}
	object.Members = members
	return object
}

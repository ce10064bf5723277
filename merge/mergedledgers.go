package merge

import (
	"strconv"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
	"github.com/fpm-project/fpm/protocol"
	"github.com/fpm-project/fpm/warmup"
)

// ledgersKey is where a merged artifact has the ledgers of its ranks.
const ledgersKey = "rank_warmup_evidence"

// notLoaded stands for the ledger of a rank whose file was not merged.
func notLoaded() pyjson.Object {
	return pyjson.Object{{Key: "status", Value: "unavailable"}, {Key: "records", Value: pyjson.Array{}}, {Key: "reason", Value: "rank_artifact_not_loaded"}}
}

// judgeLedgers applies merged.ledger and, to each ledger that was merged, the rules of
// ledgers.
func (c *mergedCheck) judgeLedgers(size int) error {
	c.as(finding.MergedLedger)
	ledgers, own := c.places[ledgersKey], c.places["warmup_evidence"]
	if own.exists && c.contract.Execution != protocol.Unclear {
		c.scope.Broken(finding.MergedLedger, "/warmup_evidence", own.Off, "the ledger of one rank is left in the merged artifact", "absent")
	}
	switch {
	case c.contract.Execution == protocol.Unclear:
		return nil
	case c.contract.Execution == protocol.Undeclared:
		if ledgers.exists {
			c.scope.Broken(finding.MergedLedger, "/"+ledgersKey, ledgers.Off, "there are warmup ledgers, but no execution contract declares them", "absent")
		}
		return nil
	case !ledgers.exists || ledgers.kind != jsonvalue.Object:
		c.scope.Either(finding.MergedLedger, "/"+ledgersKey, ledgers.exists, ledgers.Off, c.f.root, "the ledgers of the ranks are not an object", "an object with a ledger for each global rank")
		return nil
	}
	refs := newReferences(c.groups, c.f.src, c.plain(), size)
	refs.where = func(rank int) (file, pointer string) { return "", "/" + ledgersKey + "/" + strconv.Itoa(rank) }
	for _, rank := range c.source {
		refs.take(rank, nil)
	}
	if err := c.readLedgers(ledgers, size, refs); err != nil {
		return err
	}
	if c.groups != nil && c.source != nil {
		refs.check(c.r.ctx)
	}
	return nil
}

// plain is the scope of findings under the ids of their own rules.
func (c *mergedCheck) plain() finding.Scope {
	s := c.scope
	s.As = ""
	return s
}

// readLedgers reads each ledger, and names those that are missing or one too many.
func (c *mergedCheck) readLedgers(ledgers place, size int, refs *references) error {
	there := make([]bool, size)
	c.inner.Reset(c.f.src, ledgers.Off, 1, jsonstream.Trusted)
	_, _, err := c.inner.Object(func(name []byte) error {
		label := string(name)
		rank, err := strconv.Atoi(label)
		global := err == nil && rank >= 0 && strconv.Itoa(rank) == label && (size == 0 || rank < size)
		pointer := string(jsonvalue.AppendToken([]byte("/"+ledgersKey), label))
		if !global {
			span, err := c.inner.Skip()
			c.scope.Broken(finding.MergedLedger, pointer, span.Off, "this is no global rank", "absent")
			return err
		}
		if rank < len(there) {
			there[rank] = true
		}
		if c.source != nil && !c.isSource(label) {
			return c.judgeNotLoaded(pointer)
		}
		ledger, err := warmup.ReadAt(c.inner, c.plain(), pointer)
		refs.take(rank, ledger)
		return err
	})
	for rank, found := range there {
		if !found {
			c.scope.Absent(finding.MergedLedger, "/"+ledgersKey+"/"+strconv.Itoa(rank), ledgers.Off, "a global rank has no ledger", "an object")
		}
	}
	return err
}

// judgeNotLoaded holds the ledger that comes next against the one that stands for a rank
// whose file was not merged.
func (c *mergedCheck) judgeNotLoaded(pointer string) error {
	v, err := c.inner.Tree(maxBlock)
	if err != nil {
		return err
	}
	want, err := jsonvalue.Parse(pyjson.Append(nil, notLoaded(), 0), 0)
	if err != nil {
		return err
	}
	jsonvalue.Diff(want, v, pointer, func(d jsonvalue.Difference) bool {
		c.differing(c.scope, d, "the rank's file was not merged, but its ledger is not the placeholder for that")
		return true
	})
	return nil
}

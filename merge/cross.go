package merge

import (
	"context"
	"io"
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/protocol"
	"github.com/fpm-project/fpm/warmup"
)

// compareSizes applies the part of rank.dp that concerns several files.
func (r *run) compareSizes() {
	taken := map[int64]*rankFile{}
	for _, f := range r.files {
		if !f.parsed {
			continue
		}
		scope := r.scope(f, r.out)
		if ref := r.ref.dpSize; f.dpSize.Integer && ref.Integer && f.dpSize.Int != ref.Int {
			scope.Broken(finding.RankDP, "/dp/size", f.dpSize.Offset, "the data-parallel size differs from the reference, rank "+strconv.Itoa(r.ref.rank)+" ("+r.ref.path+")",
				strconv.FormatInt(ref.Int, 10))
		}
		if !f.dpRank.NonNegative() {
			continue
		}
		if first := taken[f.dpRank.Int]; first != nil {
			scope.Broken(finding.RankDP, "/dp/rank", f.dpRank.Offset, "this DP rank is also that of "+first.path, "a rank of its own")
		} else {
			taken[f.dpRank.Int] = f
		}
	}
}

// checkMissing fails the merge when ranks have no file that should have one.
func (r *run) checkMissing() {
	size := r.size()
	if size == 0 {
		return
	}
	have, unknown := map[int]bool{}, 0
	for _, f := range r.files {
		have[f.rank] = true
		if f.rank == finding.NoRank {
			unknown++
		}
	}
	var missing, beyond artifact.RankSet
	want := r.opt.Ranks
	if want == nil && !r.opt.Subset {
		for rank := range size {
			want = append(want, rank)
		}
	}
	for _, rank := range want {
		switch {
		case rank >= size:
			beyond = append(beyond, rank)
		case !have[rank] && !r.reported[rank]:
			missing = append(missing, rank)
		}
	}
	if len(beyond) > 0 {
		r.missing = slices.DeleteFunc(r.missing, func(rank int) bool { return rank >= size })
		r.failf(exitcode.Usage, "", "name ranks from 0 to "+strconv.Itoa(size-1), "--ranks names rank %s of a run of %d", beyond, size)
	}
	if len(missing) > unknown { // a file whose rank cannot be told may be one of them, and is rejected anyway
		r.failf(exitcode.Failed, "", "add the files, or name the ranks of this node with --ranks",
			"the run has %d ranks, and no file was given for rank %s", size, missing)
	}
}

// checkDeclarations applies protocol.undeclared and protocol.contract-undeclared: without
// a declaration there is no evidence. In a mixture of files with and without one nothing
// tells which is right; that is protocol.mismatch alone.
func (r *run) checkDeclarations() {
	for _, f := range r.files {
		if f.protocolMixed {
			return
		}
	}
	if r.groups != nil {
		r.groups.checkDeclared(r.contract, r.scope(r.ref, r.out))
	}
	for _, f := range r.files {
		if f.parsed && f.strayLedger {
			r.scope(f, r.out).Says(finding.ProtocolContractUndeclared, "/warmup_evidence", f.warmup.Off,
				"the file has a warmup ledger, but there is no execution contract", "no "+protocol.WarmupField, "a ledger")
		}
	}
}

// checkDeclared reports evidence in the groups that nothing declares.
func (g *groupIndex) checkDeclared(contract protocol.Contract, scope finding.Scope) {
	if contract.Measurement == protocol.Undeclared && g.measured.n > 0 {
		scope.Says(finding.ProtocolUndeclared, g.measured.pointer, g.measured.off,
			"FPMs carry measurement evidence, but there is no measurement protocol", "no benchmark_measurement", words.Count(g.measured.n, "FPM", "FPMs"))
	}
	if contract.Execution == protocol.Undeclared && g.sampled.n > 0 {
		scope.Says(finding.ProtocolContractUndeclared, g.sampled.pointer, g.sampled.off,
			"raw FPMs carry samples, but there is no execution contract", "no "+protocol.SampleField, words.Count(g.sampled.n, "FPM", "FPMs")+" with samples")
	}
}

// references holds every measurement against the ledger of its rank: warmup.reference and
// warmup.overlap.
type references struct {
	groups *groupIndex
	src    io.ReaderAt // of the groups
	scope  finding.Scope
	// By rank: the ledger, nil when it is unsound, and whether the rank's file was given.
	ledgers []*warmup.Ledger
	given   []bool
	where   func(rank int) (file, pointer string) // of the rank's ledger; the file is empty where it is the groups' own
}

func newReferences(g *groupIndex, src io.ReaderAt, scope finding.Scope, size int) *references {
	return &references{groups: g, src: src, scope: scope, ledgers: make([]*warmup.Ledger, size), given: make([]bool, size)}
}

// take takes the ledger of a rank whose file was given.
func (x *references) take(rank int, ledger *warmup.Ledger) {
	if rank < 0 || rank >= len(x.given) {
		return
	}
	x.given[rank] = true
	if ledger != nil && ledger.Sound {
		x.ledgers[rank] = ledger
	}
}

// checkReferences applies warmup.reference and warmup.overlap.
func (r *run) checkReferences() {
	if r.groups == nil || r.contract.Execution != protocol.Declared {
		return
	}
	x := newReferences(r.groups, r.ref.src, r.scope(r.ref, r.out), r.size())
	path := map[int]string{}
	for _, f := range r.files {
		path[f.rank] = f.path
		if !f.parsed {
			x.take(f.rank, nil)
		} else {
			x.take(f.rank, f.ledger)
		}
	}
	x.where = func(rank int) (file, pointer string) { return path[rank], "/" + protocol.WarmupField }
	x.check(r.ctx)
}

func (x *references) check(ctx context.Context) {
	g := x.groups
	for group := range g.len() {
		if ctx.Err() != nil {
			return
		}
		first := g.start(group)
		for cell := first; cell < min(g.start(group+1), first+len(x.given)); cell++ {
			rank := cell - first
			switch {
			case g.fpms.at(cell).Len == 0:
			case x.ledgers[rank] != nil:
				x.checkOne(group, rank, cell)
			case !x.given[rank]:
				x.report(finding.WarmupReference, group, rank, cell, g.reference(cell).Remote())
			}
		}
	}
}

func (x *references) checkOne(group, rank, cell int) {
	ref, ledger := x.groups.reference(cell), x.ledgers[rank]
	file, pointer := x.where(rank)
	if breach := ledger.Reference(ref); breach != (warmup.Breach{}) {
		breach.Message += " (the ledger of rank " + strconv.Itoa(rank) + " is " + in(file) + pointer + ")"
		x.report(finding.WarmupReference, group, rank, cell, breach)
		return
	}
	o := ledger.Overlap(ref)
	x.report(finding.WarmupOverlap, group, rank, cell, o.Breach(in(file)+pointer+"/records/"+strconv.Itoa(o.Record)))
}

// in names the file before a pointer; the pointer alone is that of the file at hand.
func in(file string) string {
	if file == "" {
		return "at "
	}
	return "of " + file + " at "
}

func (x *references) report(rule finding.ID, group, rank, cell int, breach warmup.Breach) {
	if breach == (warmup.Breach{}) {
		return
	}
	at, ok := jsonstream.Find(x.src, x.groups.fpms.at(cell).Off, "0", "benchmark_measurement", "preparation", "warmup_records_before")
	scope := x.scope.Of(int64(x.groups.ids.At(group)))
	pointer := "/iteration_groups/" + strconv.Itoa(group) + "/rank_results/" + strconv.Itoa(rank) + "/fpms/0/benchmark_measurement/preparation/warmup_records_before"
	if breach.Actual != "" {
		scope.Says(rule, pointer, at, breach.Message, breach.Expected, breach.Actual)
		return
	}
	scope.Either(rule, pointer, ok, at, at, breach.Message, breach.Expected)
}

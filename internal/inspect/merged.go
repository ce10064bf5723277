package inspect

import (
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// Merged is what a merged artifact says. What it shares with a rank artifact is in Facts:
// there Results holds the flattened results of every rank, coverage is that of one rank
// again, and the blocks are those of the reference rank, which a merge keeps.
type Merged struct {
	*Facts
	GlobalRanks, SourceRanks []int    // dp.ranks and dp.source_ranks
	RankFiles                []string // as they were named when the run was merged
	Output                   string   // merged_output_path
	Elapsed                  []RankSeconds
	Ledgers                  []Ledger   // rank_warmup_evidence, by rank
	own                      [][]Result // results by rank, in the order of GlobalRanks; nil until asked for
}

// RankSeconds is a time of one rank.
type RankSeconds struct {
	Rank    int     `json:"rank"`
	Seconds float64 `json:"seconds"`
}

// Ledger is the warmup ledger of one rank in a merged artifact.
type Ledger struct {
	Rank           int
	Status, Reason string
	Total          int
	Records        []WarmupRecord // at most 10,000 in all ledgers together
}

// ExplainMerged explains what a merged artifact says, as [Explain] does for rank artifacts.
func ExplainMerged(m *Merged) Explanations {
	x := &explainer{facts: []*Facts{m.Facts}, merged: m}
	return x.explain()
}

func (m *Merged) globalSize() int { return len(m.GlobalRanks) }

func (m *Merged) sources() map[int]bool {
	have := map[int]bool{}
	for _, rank := range m.SourceRanks {
		have[rank] = true
	}
	return have
}

const maxPath = 4096 // bytes of a path that is kept

// ReadMerged reads a merged artifact whose text was checked before. A part that is missing
// or mistyped is left out. Errors are those of reading.
func ReadMerged(src io.ReaderAt, opt Options) (*Merged, error) {
	m := &Merged{}
	if err := m.readParts(src); err != nil {
		return nil, err
	}
	var err error
	if m.Facts, err = Read(src, opt); err != nil {
		return nil, err
	}
	m.adapt()
	return m, nil
}

// adapt makes of the facts, which were read like those of a rank artifact, those of the
// run: of the reference rank where only one can be meant.
func (m *Merged) adapt() {
	f := m.Facts
	f.Size, f.Rank = m.globalSize(), finding.NoRank
	if n := int64(f.Size); n > 0 {
		for _, count := range []*int64{&f.Expected, &f.Completed, &f.SkippedCount} {
			if *count > 0 && *count%n == 0 {
				*count /= n
			}
		}
	}
	for _, l := range m.Ledgers {
		if len(m.SourceRanks) > 0 && l.Rank == m.SourceRanks[0] {
			f.Warmup, f.WarmupTotal, f.WarmupStatus = l.Records, l.Total, l.Status
		}
	}
}

func (m *Merged) readParts(src io.ReaderAt) error {
	s := jsonstream.New(src, 0, 0, jsonstream.Trusted, jsonstream.Limits{})
	_, _, err := s.Object(func(name []byte) error {
		switch string(name) {
		case "dp":
			return m.readDP(s)
		case "rank_files":
			return m.readRankFiles(s)
		case "merged_output_path":
			v, err := s.Scalar()
			text, _ := v.Text()
			m.Output = clip(text, maxPath)
			return err
		case "timing":
			return m.readTiming(s)
		case "rank_warmup_evidence":
			return m.readLedgers(src, s)
		}
		_, err := s.Skip()
		return err
	})
	slices.SortFunc(m.Ledgers, func(a, b Ledger) int { return cmp.Compare(a.Rank, b.Rank) })
	slices.SortFunc(m.Elapsed, func(a, b RankSeconds) int { return cmp.Compare(a.Rank, b.Rank) })
	return err
}

func (m *Merged) readDP(s *jsonstream.Scanner) error {
	_, _, err := s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "ranks":
			m.GlobalRanks, err = readRanks(s)
		case "source_ranks":
			m.SourceRanks, err = readRanks(s)
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

// readRanks reads a list of ranks; what is none in it is left out.
func readRanks(s *jsonstream.Scanner) (ranks []int, err error) {
	_, _, err = s.Array(func(int) error {
		f, err := s.Field()
		if f.NonNegative() && f.Int <= artifact.MaxRank && len(ranks) <= artifact.MaxRank {
			ranks = append(ranks, int(f.Int))
		}
		return err
	})
	slices.Sort(ranks)
	return slices.Compact(ranks), err
}

func (m *Merged) readRankFiles(s *jsonstream.Scanner) error {
	_, _, err := s.Array(func(int) error {
		v, err := s.Scalar()
		if text, ok := v.Text(); ok && len(m.RankFiles) <= artifact.MaxRank {
			m.RankFiles = append(m.RankFiles, clip(text, maxPath))
		}
		return err
	})
	return err
}

func (m *Merged) readTiming(s *jsonstream.Scanner) error {
	_, _, err := s.Object(func(name []byte) error {
		if string(name) != "rank_benchmark_elapsed_seconds" {
			_, err := s.Skip()
			return err
		}
		_, _, err := s.Object(func(name []byte) error {
			rank, ok := rankName(name)
			v, err := s.Float()
			if ok && v.Finite && len(m.Elapsed) <= artifact.MaxRank {
				m.Elapsed = append(m.Elapsed, RankSeconds{rank, v.Value})
			}
			return err
		})
		return err
	})
	return err
}

// rankName reads the rank that a key stands for.
func rankName(name []byte) (rank int, ok bool) {
	rank, err := strconv.Atoi(string(name))
	return rank, err == nil && rank >= 0 && rank <= artifact.MaxRank && strconv.Itoa(rank) == string(name)
}

func (m *Merged) readLedgers(src io.ReaderAt, s *jsonstream.Scanner) error {
	r := &reader{src: src, f: newFacts(""), texts: texts{known: map[string]string{}}}
	r.s = jsonstream.New(src, 0, 2, jsonstream.Trusted, jsonstream.Limits{Window: 64 << 10})
	kept, seen := 0, map[int]bool{}
	_, _, err := s.Object(func(name []byte) error {
		rank, ok := rankName(name)
		span, err := s.Skip()
		if err != nil || !ok || seen[rank] {
			return err
		}
		seen[rank] = true
		l, err := r.readLedgerAt(span)
		l.Rank = rank
		l.Records = slices.Clone(l.Records[:min(len(l.Records), maxRecords-kept)]) // the rest is freed
		kept += len(l.Records)
		m.Ledgers = append(m.Ledgers, l)
		return err
	})
	return err
}

// readLedgerAt reads a ledger as it stands in a rank artifact, and the reason that a merge
// gives for one that it does not have.
func (r *reader) readLedgerAt(span jsonstream.Span) (l Ledger, err error) {
	r.s.Reset(r.src, span.Off, 2, jsonstream.Trusted)
	if err := r.readLedger(); err != nil {
		return l, err
	}
	l.Status, l.Total, l.Records = r.f.WarmupStatus, r.f.WarmupTotal, r.f.Warmup
	r.s.Reset(r.src, span.Off, 2, jsonstream.Trusted)
	_, _, err = r.s.Object(func(name []byte) error {
		wanted := string(name) == "reason"
		v, err := r.s.Scalar()
		if wanted {
			l.Reason = r.texts.of(v)
		}
		return err
	})
	return l, err
}

// RankFacts returns what a merged artifact has of one rank: its ledger, and its own results
// with their forward indices. The flattened results name no rank in a way that is kept, but
// of each point they stand in the order of the ranks. It is not for several goroutines.
func (m *Merged) RankFacts(l Ledger) *Facts {
	f := newFacts(m.File)
	f.Rank, f.Warmup, f.WarmupTotal, f.WarmupStatus = l.Rank, l.Records, l.Total, l.Status
	if m.own == nil {
		m.own = m.split()
	}
	if at, ok := slices.BinarySearch(m.GlobalRanks, l.Rank); ok {
		f.Results = m.own[at]
	}
	return f
}

// split returns the results of each rank: going through all of them for every rank would
// take the square of the time.
func (m *Merged) split() [][]Result {
	own := make([][]Result, len(m.GlobalRanks))
	for i, start := 0, 0; i < len(m.Results); i++ {
		if m.Results[i].ID != m.Results[start].ID {
			start = i
		}
		if at := i - start; at < len(own) {
			own[at] = append(own[at], m.Results[i])
		}
	}
	return own
}

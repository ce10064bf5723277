package merge

import (
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/warmup"
)

// maxBlock bounds the blocks of an artifact that are compared as a whole: engine,
// measurement_protocol, coverage, a point and the like (input.limit).
const maxBlock = 16 << 20

// rankFile is one rank's artifact, and what is kept of it after it was read.
type rankFile struct {
	path     string
	index    int
	rank     int // of the name, else of the content; finding.NoRank when neither tells
	nameRank int // rank that the name stands for; finding.NoRank when it tells none
	in       *input.File
	src      *source

	parsed  bool // the text is sound and holds an object
	err     error
	root    int64 // offset of the document's object
	dpRank  jsonstream.Field
	dpSize  jsonstream.Field
	size    int // dp.size where it is sound, else 0
	runID   string
	elapsed float64

	misnamed      bool // dp.rank contradicts the name, so that nothing tells whose results it holds
	protocolMixed bool // it has a protocol and the reference has none, or the reverse
	strayLedger   bool // it has a warmup ledger, and no contract declares one

	timing  place
	engine  place
	warmup  place
	groups  jsonstream.Span // of iteration_groups
	ledger  *warmup.Ledger
	regimes codes // by group: of texts; 0 none
	texts   regimeTable
	members []member // of the reference only: its keys in their order
}

// place is where a key's value stands; absent when it does not exist.
type place struct {
	exists bool
	kind   jsonvalue.Kind
	jsonstream.Span
}

func (p place) tree(f *rankFile) (*jsonvalue.Value, error) {
	if !p.exists {
		return nil, nil
	}
	if p.Len > maxBlock {
		return nil, &jsonstream.Fault{Rule: finding.InputLimit, Offset: p.Off, Message: "a block of more than 16 MiB that has to be compared as a whole"}
	}
	return jsonstream.ReadTree(f.src, p.Span)
}

// member is one top-level key of the reference.
type member struct {
	raw  []byte // its literal
	name string
	span jsonstream.Span
}

func (r *run) scope(f *rankFile, out *finding.Collector) finding.Scope {
	return finding.Scope{Out: out, File: f.path, Rank: f.rank}
}

package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/trace/segment"
)

// maxManifest bounds the manifest that is read, in bytes.
const maxManifest = 64 << 20

// Account is what a recorder's manifest says of a recording.
type Account struct {
	Path     string `json:"-"`
	Schema   string `json:"schema"`
	State    string `json:"state"`
	Complete bool   `json:"complete"`

	StartedUnixMS int64 `json:"started_unix_ms"` // wall clock
	Previous      *struct {
		State         string `json:"state"`
		StartedUnixMS int64  `json:"started_unix_ms"`
		UpdatedUnixMS int64  `json:"updated_unix_ms"`
	} `json:"previous"` // of the recording before, when there was one

	MaxSegments int               `json:"max_segments"`
	Producers   []accountProducer `json:"producers"`
}

type accountProducer struct {
	ID    string   `json:"producer_id"`
	Files []string `json:"files"`

	Streams []struct {
		Rank     int64             `json:"dp_rank"`
		WorkerID string            `json:"worker_id"`
		Rejected map[string]uint64 `json:"rejected"`
	} `json:"streams"`
}

// Refused returns how many messages the recording refused while a rank was the one at its
// endpoint. They have numbers that no row has.
func (a *Account) Refused(id StreamID) (n uint64) {
	for _, p := range a.Producers {
		for _, s := range p.Streams {
			if p.ID == id.Producer && s.WorkerID == id.Worker && s.Rank == id.Rank {
				for _, count := range s.Rejected {
					n += count
				}
			}
		}
	}
	return n
}

// manifestSchema is the schema that a manifest names.
const manifestSchema = "fpm.trace.manifest"

// readAccount returns the manifest at a path, nil when there is none. One that cannot be
// read says nothing.
func readAccount(path string) (*Account, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	account := &Account{Path: path}
	err = json.NewDecoder(io.LimitReader(f, maxManifest)).Decode(account)
	if err == nil && account.Schema != manifestSchema {
		err = errors.New("it is not the manifest of a trace")
	}
	if err != nil {
		return nil, &exitcode.Error{Code: exitcode.Failed, File: path, Message: "the manifest cannot be read: " + err.Error(), Err: err}
	}
	return account, nil
}

// failureOf returns the path that an error of reading is about.
func failureOf(err error) string { return exitcode.From(err).File }

// accounts reads the manifests beside the segments and those that were given, before the
// rows: what the segments of a running recorder are held against must not be younger than
// they are.
func (v *verifier) accounts(sources []*segment.Source, given []string) {
	paths, prefixes := map[string]bool{}, map[string]bool{}
	for _, path := range given {
		paths[filepath.Clean(path)] = true
	}
	for _, s := range sources {
		if s.Segment() && !prefixes[s.Name.Prefix] {
			prefixes[s.Name.Prefix] = true
			for _, path := range v.look(s.Name.Prefix).Manifests {
				paths[filepath.Clean(path)] = true
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		account, err := readAccount(path)
		switch {
		case err != nil:
			v.stats.Failures = append(v.stats.Failures, err)
		case account != nil:
			v.stats.Accounts = append(v.stats.Accounts, account)
			v.starts = append(v.starts, account.StartedUnixMS)
			if account.Previous != nil {
				v.starts = append(v.starts, account.Previous.StartedUnixMS)
			}
		}
	}
}

// look returns what lies there of a prefix now. What cannot be listed explains nothing.
func (v *verifier) look(prefix string) segment.Shelf {
	shelf, err := segment.Look(prefix)
	if err != nil {
		v.stats.Failures = append(v.stats.Failures, err)
	}
	return shelf
}

// shelves are what lies there of the prefixes after the rows have been read.
type shelves struct {
	look  func(prefix string) segment.Shelf
	known map[string]segment.Shelf // by cleaned prefix
	limit map[string]int           // segments of a producer that are kept, the lowest of all recorders; 0 where none says
}

// shelves returns them, none listed so far.
func (v *verifier) shelves() *shelves {
	s := &shelves{v.look, map[string]segment.Shelf{}, map[string]int{}}
	for _, account := range v.stats.Accounts {
		prefix, ok := segment.ManifestPrefix(account.Path)
		if limit := s.limit[prefix]; ok && account.MaxSegments > 0 && (limit == 0 || account.MaxSegments < limit) {
			s.limit[prefix] = account.MaxSegments
		}
	}
	return s
}

// indices returns those of a segment's series, regular files only, in order.
func (s *shelves) indices(n segment.Name) []uint64 {
	n.Prefix = filepath.Clean(n.Prefix)
	shelf, ok := s.known[n.Prefix]
	if !ok {
		shelf = s.look(n.Prefix)
		s.known[n.Prefix] = shelf
	}
	return shelf.Indices[n.Series()]
}

// lowest returns the lowest index of a segment's series that is there, 0 when none is. What
// retention deletes lies below it, for it deletes the oldest first.
func (s *shelves) lowest(n segment.Name) uint64 {
	if indices := s.indices(n); len(indices) > 0 {
		return indices[0]
	}
	return 0
}

// displaced tells whether retention has deleted a segment: so many newer ones are there as
// are kept, and no older one.
func (s *shelves) displaced(n segment.Name) bool {
	indices := s.indices(n)
	limit := s.limit[filepath.Clean(n.Prefix)]
	return limit > 0 && len(indices) >= limit && n.Index < indices[0]
}

// manifests looks for segments that a recorder's manifest names and that are not there.
func (v *verifier) manifests(there *shelves) {
	for _, account := range v.stats.Accounts {
		for _, p := range account.Producers {
			v.account(account, p, there)
		}
	}
}

// account looks for one producer's segments. A manifest is up to ten seconds old, and older
// when its recorder was killed or deleted what another had written: what retention has
// deleted since is not missing.
func (v *verifier) account(account *Account, p accountProducer, there *shelves) {
	for _, file := range p.Files {
		name, ok := segment.Parse(filepath.Join(filepath.Dir(account.Path), filepath.Base(file)))
		if !ok {
			continue
		}
		if _, err := os.Lstat(name.Path()); !errors.Is(err, fs.ErrNotExist) || there.displaced(name) {
			continue
		}
		v.out.Add(finding.Finding{
			Rule: finding.TraceSegment, File: account.Path, Offset: -1, Rank: finding.NoRank,
			Message: fmt.Sprintf("the manifest names %s of producer %s, which is not there", filepath.Base(file), p.ID),
		})
	}
}

// vanished forgets the failures to open segments that retention has deleted since they were
// found, and returns their paths. When all are gone nothing has been verified, which is a
// failure.
func (v *verifier) vanished(there *shelves) map[string]bool {
	gone := map[string]bool{}
	if v.stats.Rows == 0 {
		return gone
	}
	v.stats.Failures = slices.DeleteFunc(v.stats.Failures, func(err error) bool {
		path := failureOf(err)
		name, ok := segment.Parse(path)
		if ok && errors.Is(err, fs.ErrNotExist) && name.Index < there.lowest(name) {
			gone[path] = true
		}
		return gone[path]
	})
	return gone
}

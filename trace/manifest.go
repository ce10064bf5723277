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

// readAccount returns the manifest of a prefix, nil when there is none. One that cannot
// be read says nothing.
func readAccount(prefix string) (*Account, error) {
	path := prefix + ".manifest.json"
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

// accounts reads the manifests beside the segments, before their rows.
func (v *verifier) accounts(sources []*segment.Source) {
	prefixes := map[string]bool{}
	for _, s := range sources {
		if s.Segment() {
			prefixes[s.Name.Prefix] = true
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		account, err := readAccount(prefix)
		switch {
		case err != nil:
			v.failure(err)
		case account != nil:
			v.stats.Accounts = append(v.stats.Accounts, account)
			v.starts = append(v.starts, account.StartedUnixMS)
			if account.Previous != nil {
				v.starts = append(v.starts, account.Previous.StartedUnixMS)
			}
		}
	}
}

// manifests looks for segments that a recorder's manifest names and that are not there.
func (v *verifier) manifests() {
	for _, account := range v.stats.Accounts {
		for _, p := range account.Producers {
			v.account(account, filepath.Dir(account.Path), p)
		}
	}
}

// account looks for one producer's segments. A manifest is up to ten seconds old: what
// retention has deleted since is not missing.
func (v *verifier) account(account *Account, dir string, p accountProducer) {
	for i, file := range p.Files {
		name, ok := segment.Parse(filepath.Join(dir, filepath.Base(file)))
		if !ok {
			continue
		}
		if _, err := os.Lstat(name.Path()); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if account.MaxSegments > 0 && newerThan(name, p.Files[i+1:], dir) >= account.MaxSegments {
			continue
		}
		v.out.Add(finding.Finding{
			Rule: finding.TraceSegment, File: account.Path, Offset: -1, Rank: finding.NoRank,
			Message: fmt.Sprintf("the manifest names %s of producer %s, which is not there", filepath.Base(file), p.ID),
		})
	}
}

// newerThan counts the segments of a series that are there and newer than one. The next
// indices are looked for, too: they may have been written since.
func newerThan(name segment.Name, listed []string, dir string) (n int) {
	last := name
	for _, file := range listed {
		if other, ok := segment.Parse(filepath.Join(dir, filepath.Base(file))); ok && other.Series() == name.Series() {
			last.Index = max(last.Index, other.Index)
			if _, err := os.Lstat(other.Path()); err == nil {
				n++
			}
		}
	}
	for {
		last.Index++
		if _, err := os.Lstat(last.Path()); err != nil {
			return n
		}
		n++
	}
}

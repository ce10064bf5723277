package segment

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// keepListing is how long a listing is good for. What others create meanwhile is not
	// known, but is not overwritten either: creation is exclusive.
	keepListing = 10 * time.Second

	// maxListing is how many segments a listing holds. In a larger directory each writer
	// looks for its own.
	maxListing = 1 << 17
)

// Directory knows the segments of a prefix. Writers that share one list a directory of
// thousands of files once, and not each of them twice. It is safe for concurrent use.
type Directory struct {
	fs     FS
	prefix string
	keep   time.Duration
	most   int
	now    func() time.Time

	mu     sync.Mutex
	listed time.Time           // zero when there is no listing
	series map[string][]uint64 // indices by producer, in order; nil when there are too many
}

// NewDirectory returns what is known of a prefix, which is nothing so far. A nil file
// system is the operating system's.
func NewDirectory(files FS, prefix string) *Directory {
	if files == nil {
		files = system{}
	}
	return &Directory{fs: files, prefix: Prefix(prefix), keep: keepListing, most: maxListing, now: time.Now}
}

// occupied returns the indices that are taken in a series by anything, in order. A fresh
// answer is not from a listing that was made before.
func (d *Directory) occupied(producer string, fresh bool) (indices []uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.now(); fresh || d.listed.IsZero() || now.Sub(d.listed) >= d.keep {
		d.series, d.listed = map[string][]uint64{}, time.Time{}
		if err := d.list(); err != nil {
			return nil, err
		}
		d.listed = now
	}
	if d.series != nil {
		return slices.Clone(d.series[producer]), nil
	}
	err = d.each(d.base()+producer+".", func(n Name) {
		if n.Producer == producer {
			indices = append(indices, n.Index)
		}
	})
	slices.Sort(indices)
	return indices, err
}

func (d *Directory) base() string { return filepath.Base(d.prefix) + "." }

// list fills the listing.
func (d *Directory) list() error {
	count := 0
	err := d.each(d.base(), func(n Name) {
		if count++; count > d.most {
			d.series = nil
			return
		}
		d.series[n.Producer] = append(d.series[n.Producer], n.Index)
	})
	for _, indices := range d.series {
		slices.Sort(indices)
	}
	return err
}

// each calls do for the segments of the prefix whose names begin so. They are told apart
// at a glance, nearly all: a thousand producers look through each other's.
func (d *Directory) each(begin string, do func(Name)) error {
	dir, base := filepath.Split(d.prefix)
	return d.fs.List(orHere(dir), func(e fs.DirEntry) {
		if !strings.HasPrefix(e.Name(), begin) {
			return
		}
		if n, ok := Parse(e.Name()); ok && n.Prefix == base {
			do(n)
		}
	})
}

// created notes a segment that is there now.
func (d *Directory) created(producer string, index uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.series == nil {
		return
	}
	indices := d.series[producer]
	if at, found := slices.BinarySearch(indices, index); !found {
		d.series[producer] = slices.Insert(indices, at, index)
	}
}

// unlink deletes a segment; one that is gone already is no error.
func (d *Directory) unlink(n Name) error {
	err := d.fs.Unlink(n.Path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, found := slices.BinarySearch(d.series[n.Producer], n.Index); found {
		d.series[n.Producer] = slices.Delete(d.series[n.Producer], at, at+1)
	}
	return nil
}

// create creates the segment behind the highest index that is occupied, and above least,
// when there is such a thing. It tells how many are occupied.
func (d *Directory) create(name *Name, least uint64, atLeast bool) (f File, occupied int, err error) {
	for try := 0; ; try++ {
		if try < 2 { // another writer was faster, and may be far ahead
			indices, err := d.occupied(name.Producer, try > 0)
			if err != nil {
				return nil, 0, err
			}
			occupied = len(indices)
			if atLeast { // never an index again, even when somebody deletes the segments
				indices = append(indices, least)
			}
			name.Index = 0
			if len(indices) > 0 {
				if err := name.after(slices.Max(indices)); err != nil {
					return nil, 0, err
				}
			}
		} else if err := name.after(name.Index); err != nil {
			return nil, 0, err
		}
		f, err := d.fs.Create(name.Path())
		if errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return nil, 0, err
		}
		d.created(name.Producer, name.Index)
		return f, occupied, nil
	}
}

// after sets the index that follows another.
func (n *Name) after(index uint64) error {
	if index == math.MaxUint64 {
		return errNoIndex(n)
	}
	n.Index = index + 1
	return nil
}

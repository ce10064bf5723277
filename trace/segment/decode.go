package segment

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

const (
	chunkSize = 256 << 10
	// maxHeld bounds the chunks of a member that are held back until its checksum is known
	// to be right: 4 MiB. The members of recorders are about 1 MiB at most. A larger one is
	// handed out before its end, all but the last 4 MiB.
	maxHeld = 16
	// probeSize is how much text a gzip header must be followed by to count as one in the
	// middle of damage.
	probeSize = 4 << 10
	// maxSpent and perByte bound the bytes that are read again to get over the damage of a
	// file. An input made for it could else have it read a million times.
	maxSpent = 64 << 20
	perByte  = 8
)

// Fault tells why a part of a file cannot be read.
type Fault string

// The faults.
const (
	Cut      Fault = "cut off"  // a member without its end; what there is of it is right
	Damaged  Fault = "damaged"  // a member that cannot be inflated, or whose checksum is wrong
	NotGzip  Fault = "not gzip" // bytes that begin no member
	LongLine Fault = "long"     // a line of more than [MaxLine] bytes
	Deleted  Fault = "deleted"  // segments that a [Follower] had not read to their end when they were deleted
)

// Hole is a part of a file that cannot be read.
type Hole struct {
	Fault  Fault
	Offset int64 // where it begins in the file as it is on disk: a member's first byte
	End    int64 // where reading goes on; the file's size when nothing follows
	Last   bool  // nothing follows
	// Rows counts the whole lines of the member that were used. Of a member that is cut off
	// they are all lines before the cut. Of a damaged one nobody can tell which are right:
	// none is used, but what had been handed out of a member larger than 4 MiB. Damage that
	// inflates to the end without a contradiction cannot be told from a cut.
	Rows int64
	// Segments counts the segments that were deleted, from the record's source on. With an
	// Offset above 0 it is one that had been read up to there.
	Segments uint64
}

// chunk is a piece of text, or what else there is to say about a file.
type chunk struct {
	text   []byte
	begins bool  // nothing of its member has been handed out so far
	hole   *Hole // instead of text
	cut    bool  // the text of a member that is cut off
	live   bool  // the text of a last member that may still grow
}

// sink takes what a decoder finds. It takes over the chunk.
type sink interface {
	// buffer returns a chunk without text, of chunkSize bytes of capacity.
	buffer() *chunk
	// take returns an error when nobody wants more.
	take(*chunk) error
}

// decoder reads the text of one file.
type decoder struct {
	file  io.ReaderAt
	size  int64
	out   sink
	live  bool // the file may grow: a last member that cannot be read yet is no hole
	read  func(int64)
	spent int64

	section *io.SectionReader
	in      *bufio.Reader
	zip     *gzip.Reader
	probe   *gzip.Reader
	begin   *bufio.Reader // of probe
	base    int64
	told    int64 // bytes told to read

	held      []*chunk
	begun     bool  // a chunk of the member has been handed out
	handedOut int64 // bytes of the member's text that are no longer held
}

func newDecoder() *decoder {
	return &decoder{in: bufio.NewReaderSize(nil, 64<<10), begin: bufio.NewReaderSize(nil, 4<<10)}
}

// run reads a file from an offset, where a member begins, and returns the offset of the
// first member that was not read to its end: the size of the file, unless it is live.
func (d *decoder) run(file io.ReaderAt, size, offset int64, out sink) (int64, error) {
	d.file, d.size, d.out, d.spent = file, size, out, 0
	d.seek(offset)
	for {
		start := d.offset()
		d.tell()
		if start >= size {
			return size, nil
		}
		err := d.member()
		if err == nil {
			continue
		}
		if !isDamage(err) {
			d.drop()
			return start, err
		}
		next, err := d.recover(start, err)
		if err != nil || next < 0 {
			return start, err
		}
		d.seek(next)
	}
}

// isDamage tells a fault of the content from one of reading it.
func isDamage(err error) bool {
	var corrupt flate.CorruptInputError
	var internal flate.InternalError // it has this, too, for some corrupt input
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.As(err, &corrupt) || errors.As(err, &internal)
}

func (d *decoder) seek(offset int64) {
	d.base = offset
	d.section = io.NewSectionReader(d.file, offset, d.size-offset)
	d.in.Reset(d.section)
	d.told = offset
}

// offset returns where in the file the next byte comes from.
func (d *decoder) offset() int64 {
	at, err := d.section.Seek(0, io.SeekCurrent)
	if err != nil {
		panic(err) // a section knows where it is
	}
	return d.base + at - int64(d.in.Buffered())
}

// tell tells how far it has come.
func (d *decoder) tell() {
	if at := d.offset(); d.read != nil && at > d.told {
		d.read(at - d.told)
		d.told = at
	}
}

// open begins a member with one of the decoder's readers.
func open(z **gzip.Reader, in *bufio.Reader) error {
	var err error
	if *z == nil {
		*z, err = gzip.NewReader(in)
	} else {
		err = (*z).Reset(in)
	}
	if err == nil {
		(*z).Multistream(false)
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// member reads one member and hands its text out, or leaves what it has read of it held.
func (d *decoder) member() error {
	d.begun, d.handedOut = false, 0
	if err := open(&d.zip, d.in); err != nil {
		return err
	}
	for {
		c, err := d.room()
		if err != nil {
			return err
		}
		n, err := d.zip.Read(c.text[len(c.text):cap(c.text)])
		c.text = c.text[:len(c.text)+n]
		if errors.Is(err, io.EOF) {
			return d.release(0)
		} else if err != nil {
			return err
		}
	}
}

// room returns the chunk to read into.
func (d *decoder) room() (*chunk, error) {
	if n := len(d.held); n > 0 && len(d.held[n-1].text) < cap(d.held[n-1].text) {
		return d.held[n-1], nil
	}
	if len(d.held) == maxHeld {
		d.tell()
		if err := d.release(maxHeld - 1); err != nil {
			return nil, err
		}
	}
	c := d.out.buffer()
	d.held = append(d.held, c)
	return c, nil
}

// release hands out the held chunks but the last keep.
func (d *decoder) release(keep int) (err error) {
	n := max(0, len(d.held)-keep)
	for _, c := range d.held[:n] {
		c.begins, d.begun = !d.begun, true
		d.handedOut += int64(len(c.text))
		if err == nil {
			err = d.out.take(c)
		}
	}
	d.held = d.held[:copy(d.held, d.held[n:])]
	return err
}

// drop gives up the held text.
func (d *decoder) drop() { d.held = d.held[:0] }

// recover deals with a member that begins at start and cannot be read to its end: it hands
// out what is right of it, tells of the hole, and returns where to go on. It returns -1
// for a live file whose last member is not there yet.
func (d *decoder) recover(start int64, cause error) (next int64, err error) {
	next, err = d.nextMember(start + 1)
	if err != nil {
		return start, err
	}
	hole := &Hole{Fault: Cut, Offset: start, End: next, Last: next == d.size}
	switch sound, err := d.sound(start, next, cause); {
	case err != nil:
		return start, err
	case sound < 0:
		hole.Fault = Damaged
		d.drop()
	default:
		d.cutHeld(sound)
	}
	if ok, err := d.magicAt(start); err != nil {
		return start, err
	} else if !ok {
		hole.Fault = NotGzip
	}
	if d.live && hole.Last {
		return -1, d.unfinished()
	}
	for _, c := range d.held {
		c.cut = true
	}
	if err := d.release(0); err != nil {
		return start, err
	}
	return next, d.out.take(&chunk{hole: hole, begins: !d.begun})
}

// magic is what every member begins with: the two bytes of gzip, and deflate for its method.
const magic = "\x1f\x8b\x08"

// magicAt tells whether a member may begin at an offset, or what there is of one.
func (d *decoder) magicAt(at int64) (bool, error) {
	var head [len(magic)]byte
	n, err := d.file.ReadAt(head[:], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return string(head[:n]) == magic[:n], nil
}

// unfinished hands out what there is of a live file's last member.
func (d *decoder) unfinished() error {
	for _, c := range d.held {
		c.live = true
	}
	return d.release(0)
}

// sound returns how much of the held text is right: that which comes from the bytes before
// the next member. Behind a cut the inflater has read on into other members, and what
// it made of them can look like rows. It returns -1 when the member is not cut off but damaged.
func (d *decoder) sound(start, next int64, cause error) (int64, error) {
	end, err := d.withoutZeros(start, next)
	if err != nil {
		return 0, err
	}
	// The last byte of a member is a zero unless it is huge, so the zeros that are left out
	// here can be its own.
	if whole, err := d.wrongSum(start, next, end); err != nil || whole {
		return -1, err
	}
	if end == d.size && errors.Is(cause, io.ErrUnexpectedEOF) {
		return d.heldBytes(), nil
	}
	d.begin.Reset(io.NewSectionReader(d.file, start, end-start))
	d.spent += end - start
	err = open(&d.probe, d.begin)
	var n int64
	if err == nil {
		// Not by WriteTo, which keeps back what stands before an unexpected end.
		n, err = io.Copy(io.Discard, struct{ io.Reader }{d.probe})
	}
	switch {
	case err == nil: // whole up to next: then it is what came next that was at fault
		return d.heldBytes(), nil
	case !isDamage(err):
		return 0, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return max(0, n-d.handedOut), nil
	default:
		return -1, nil
	}
}

// trailer is what a member ends with: its checksum and the length of its text.
const trailer = 8

// wrongSum tells whether a member is there to its end and its checksum does not hold, rather
// than cut off: its trailer begins among the bytes that are not only the zeros of a tail
// that was never written.
func (d *decoder) wrongSum(start, next, end int64) (bool, error) {
	section := io.NewSectionReader(d.file, start, next-start)
	d.begin.Reset(section)
	d.spent += next - start
	err := open(&d.probe, d.begin)
	if err == nil {
		_, err = io.Copy(io.Discard, struct{ io.Reader }{d.probe})
	}
	if !errors.Is(err, gzip.ErrChecksum) {
		if err != nil && !isDamage(err) {
			return false, err
		}
		return false, nil
	}
	at, err := section.Seek(0, io.SeekCurrent)
	return start+at-int64(d.begin.Buffered())-trailer < end, err
}

// withoutZeros returns the end of a range of the file without the zeros at its end: what a
// file system leaves of a tail that was never written.
func (d *decoder) withoutZeros(start, end int64) (int64, error) {
	var buf [4096]byte
	for end > start {
		n := min(int64(len(buf)), end-start)
		if _, err := d.file.ReadAt(buf[:n], end-n); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		rest := bytes.TrimRight(buf[:n], "\x00")
		end -= n - int64(len(rest))
		if len(rest) > 0 {
			break
		}
	}
	return end, nil
}

func (d *decoder) heldBytes() (n int64) {
	for _, c := range d.held {
		n += int64(len(c.text))
	}
	return n
}

// cutHeld keeps the first n bytes of the held text.
func (d *decoder) cutHeld(n int64) {
	for i, c := range d.held {
		if n < int64(len(c.text)) {
			c.text = c.text[:n]
		}
		if n -= int64(len(c.text)); n == 0 {
			d.held = d.held[:i+1]
			return
		}
	}
}

// nextMember returns the offset of the first member from an offset on, or the size.
func (d *decoder) nextMember(from int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for from < d.size {
		n, err := d.file.ReadAt(buf[:min(int64(len(buf)), d.size-from)], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		d.spent += int64(n)
		if n < len(magic) || d.spent > maxSpent+perByte*d.size {
			break
		}
		at := bytes.Index(buf[:n], []byte(magic))
		if at < 0 {
			from += int64(n - len(magic) + 1)
			continue
		}
		from += int64(at)
		if ok, err := d.beginsMember(from); ok || err != nil {
			return from, err
		}
		from++
	}
	return d.size, nil
}

// beginsMember tells whether what begins at an offset can be inflated.
func (d *decoder) beginsMember(at int64) (bool, error) {
	d.begin.Reset(io.NewSectionReader(d.file, at, d.size-at))
	d.spent += probeSize
	if err := open(&d.probe, d.begin); err != nil {
		return false, notDamage(err)
	}
	n, err := io.CopyN(io.Discard, d.probe, probeSize)
	if err == nil || errors.Is(err, io.EOF) || n > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
		return true, nil
	}
	return false, notDamage(err)
}

func notDamage(err error) error {
	if isDamage(err) {
		return nil
	}
	return err
}

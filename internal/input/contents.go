package input

import (
	"errors"
	"io"
	"sync"
)

// chunkSize is how much text is decompressed at a time, and so how far decompression
// runs ahead of what was asked for.
const chunkSize = 64 << 10

// contents is the text of a compressed file, as far as it has been decompressed.
type contents struct {
	file     *File
	format   *format
	ownSpool bool // the spool is closed together with the file

	mu     sync.RWMutex
	text   region
	end    error    // what follows the text; nil while that is not known
	reader *decoder // nil before the start, while suspended and at the end
	closed bool
}

func newContents(f *File, format *format, spool *Spool) *contents {
	c := &contents{file: f, format: format}
	if spool == nil {
		spool, c.ownSpool = NewSpool(""), true
	}
	c.text.spool = spool
	return c
}

func (c *contents) readAt(p []byte, off int64) (int, error) {
	need := readEnd(off, len(p))
	for {
		if n, enough, err := c.readText(p, off, need); enough {
			return n, err
		}
		c.grow(need)
	}
}

// readText answers a read from the text that is there. It reports false when
// decompression must go on first, up to need.
func (c *contents) readText(p []byte, off, need int64) (n int, enough bool, err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return 0, true, c.file.errClosed()
	}
	if need > c.text.size && c.end == nil {
		return 0, false, nil
	}
	if off < c.text.size {
		n = int(min(int64(len(p)), c.text.size-off))
		if err := c.text.readAt(p[:n], off); err != nil {
			return 0, true, err
		}
	}
	if n < len(p) {
		err = c.end
	}
	return n, true, err
}

// grow decompresses until need bytes of text are there or their end is known.
func (c *contents) grow(need int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.text.size < need && c.end == nil && !c.closed {
		c.end = c.step()
		if c.end != nil {
			c.stop()
		}
	}
}

// step decompresses one chunk. An error is what follows the text.
func (c *contents) step() error {
	if c.reader == nil {
		reader, err := c.start()
		if err != nil {
			return err
		}
		c.reader = reader
	}
	chunk, err := c.reader.next()
	room := c.file.maxText - c.text.size
	if int64(len(chunk)) > room {
		chunk, err = chunk[:room], c.file.tooMuchText()
	}
	if err := c.text.append(chunk); err != nil {
		return err
	}
	return c.describe(err)
}

// start begins decompression, and after a suspension repeats it up to the text that is
// already there: that costs time in a rare case, where keeping a decoder for each of
// many files would cost memory in a common one.
func (c *contents) start() (*decoder, error) {
	reader, err := openDecoder(c.file, c.format)
	if err != nil {
		return nil, c.describe(err)
	}
	if err := reader.skip(c.text.size); err != nil {
		_ = reader.text.Close()
		return nil, c.describe(err)
	}
	return reader, nil
}

// describe names the file in what the decompression ran into.
func (c *contents) describe(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	path, format, size := c.file.path, c.format.name, c.text.size
	if damage, ok := errors.AsType[damage](err); ok {
		return &CorruptError{Path: path, Format: format, Text: size, Reason: string(damage)}
	}
	switch err {
	case io.ErrUnexpectedEOF:
		return &TruncatedError{Path: path, Format: format, Text: size}
	case errWindow:
		return &LimitError{Path: path, What: "zstd window", Limit: maxWindow}
	}
	return err
}

// stop ends decompression and gives back the descriptor, which is not needed for text
// that is in the spool. An error of that close says nothing about what was read.
func (c *contents) stop() {
	c.drop()
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	_ = c.file.release()
}

func (c *contents) drop() {
	if c.reader != nil {
		_ = c.reader.text.Close() // frees memory; whatever it says, the text stands
		c.reader = nil
	}
}

func (c *contents) suspend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
}

func (c *contents) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
	c.closed = true
	c.text.reset()
	if c.ownSpool {
		return c.text.spool.Close()
	}
	return nil
}

package serve

import (
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// coding is how a body is compressed, by the name of the content coding.
type coding string

const (
	identity    coding = "identity"
	gzipCoding  coding = "gzip"
	zstdCoding  coding = "zstd"
	zstdWindow         = 128 << 10 // bytes; what an answer costs in memory depends on it
	implicitQ          = 0.0001    // of an identity that the client does not name: the last choice
	maxElements        = 64        // of a header's list that are looked at
)

// preferred lists the codings, the one first that wins among equals.
func preferred() []coding { return []coding{zstdCoding, gzipCoding, identity} }

// negotiate returns the coding that the client likes best, given its Accept-Encoding
// headers. One that can take nothing of what there is gets the document as it is: that is
// of more use than a 406.
func negotiate(header []string) coding {
	weights := weightsOf(header)
	best, most := identity, 0.0
	for _, c := range preferred() {
		q, named := weights[string(c)]
		if !named {
			q, named = weights["*"]
		}
		if !named && c == identity {
			q = implicitQ
		}
		if q > most {
			best, most = c, q
		}
	}
	return best
}

// weightsOf returns the weight of each coding in a list such as "gzip;q=0.5, zstd".
// Elements that make no sense are passed over.
func weightsOf(header []string) map[string]float64 {
	weights := map[string]float64{}
	elements := strings.SplitN(strings.Join(header, ","), ",", maxElements+1)
	for _, element := range elements[:min(len(elements), maxElements)] {
		name, parameters, _ := strings.Cut(element, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "x-gzip" {
			name = "gzip" // RFC 9110, 8.4.1.3
		}
		if q, ok := weight(parameters); ok && name != "" {
			weights[name] = q
		}
	}
	return weights
}

// weight returns the q parameter, 1 when there is none.
func weight(parameters string) (q float64, ok bool) {
	parameters = strings.TrimSpace(parameters)
	if parameters == "" {
		return 1, true
	}
	name, value, _ := strings.Cut(parameters, "=")
	if strings.ToLower(strings.TrimSpace(name)) != "q" {
		return 0, false
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return q, err == nil && q >= 0 && q <= 1
}

// matches tells whether an entity tag is among those of If-None-Match headers, which are
// compared weakly.
func matches(header []string, tag string) bool {
	for _, list := range header {
		for list != "" {
			list = strings.TrimLeft(list, " \t,")
			if list == "*" {
				return true
			}
			opaque, rest, ok := cutTag(list)
			if !ok {
				break // nothing behind it can be told apart
			}
			if opaque == tag {
				return true
			}
			list = rest
		}
	}
	return false
}

// cutTag cuts an entity tag from the beginning of a list. The tag has its quotes, but not
// the mark of a weak one.
func cutTag(list string) (tag, rest string, ok bool) {
	list = strings.TrimPrefix(list, "W/")
	if !strings.HasPrefix(list, `"`) {
		return "", "", false
	}
	end := strings.IndexByte(list[1:], '"')
	if end < 0 {
		return "", "", false
	}
	return list[:end+2], list[end+2:], true
}

// encoder is what gzip and zstd have in common.
type encoder interface {
	io.WriteCloser
	Reset(io.Writer)
}

// coders keep what an answer needs for the next one.
type coders struct {
	buffers sync.Pool
	pools   map[coding]*sync.Pool
	turns   turns
}

func newCoders() *coders {
	return &coders{
		buffers: sync.Pool{New: func() any { b := make([]byte, chunkSize); return &b }},
		pools: map[coding]*sync.Pool{
			gzipCoding: {New: func() any { return newGzip() }},
			zstdCoding: {New: func() any { return newZstd() }},
		},
		turns: newTurns(),
	}
}

func newGzip() encoder {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is right
	}
	return z
}

func newZstd() encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(zstdWindow),
		zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are right
	}
	return z
}

func (c *coders) buffer() *[]byte     { return c.buffers.Get().(*[]byte) }
func (c *coders) keep(buffer *[]byte) { c.buffers.Put(buffer) }

// encoder returns a writer that compresses to w. It has to be given back with done, also
// when the body was not finished.
func (c *coders) encoder(k coding, w io.Writer) (body io.WriteCloser, done func()) {
	pool, ok := c.pools[k]
	if !ok {
		return plain{w}, func() {}
	}
	z := pool.Get().(encoder)
	z.Reset(giving{w, c.turns})
	return taking{z, c.turns}, func() {
		z.Reset(nil) // it must not keep the answer alive
		pool.Put(z)
	}
}

// plain is the encoder that does nothing.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }

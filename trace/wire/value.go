package wire

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/fpm-project/fpm/internal/pyjson"
)

// kind is what a MessagePack value is, as JSON sees it.
type kind uint8

const (
	kindNil kind = iota
	kindBool
	kindUint   // an integer from 0 on, in u
	kindInt    // a negative integer
	kindFloat  // in f
	kindString // in s
	kindArray
	kindMap
)

// kindNames are for messages.
var kindNames = [...]string{"nil", "a boolean", "an integer", "a negative integer", "a float", "a string", "an array", "a map"}

// value is the value read last. Of arrays and maps only the kind is kept.
type value struct {
	kind kind
	u    uint64
	f    float64
	s    []byte
}

// number returns the value of a number that is not negative.
func (v *value) number() float64 {
	if v.kind == kindUint {
		return float64(v.u)
	}
	return v.f
}

// keeps tells whether the value keeps a rule. Floats are finite: others are refused while
// they are read.
func (v *value) keeps(r rule) bool {
	switch r {
	case isVersion:
		return v.kind == kindUint && v.u == 1
	case isString:
		return v.kind == kindString
	case isIndex:
		return v.kind == kindUint && v.u <= math.MaxInt64
	case isCount:
		return v.kind == kindUint
	case isMeasure:
		return v.kind == kindUint || v.kind == kindFloat && v.f >= 0
	default:
		return v.kind == kindMap
	}
}

// Errors of payloads that msgp's readers do not find.
var (
	errDepth     = reject(MessagePack, "maps and arrays are nested deeper than %d levels", MaxDepth)
	errUTF8      = reject(MessagePack, "a string is not UTF-8, which JSON cannot hold")
	errNotFinite = reject(MessagePack, "a float is NaN or infinite, which JSON cannot hold")
	errExtension = reject(MessagePack, "a binary, timestamp or extension value, which JSON cannot hold")
	errKey       = reject(MessagePack, "a key of a map is not a string")
	errShort     = reject(MessagePack, "the payload ends within a value")
)

// scalar reads a value that is no map and no array into v and appends it as JSON.
func (v *value) scalar(r *recent, dst, b []byte, t msgp.Type) (out, rest []byte, err error) {
	switch t {
	case msgp.IntType, msgp.UintType:
		return v.integer(dst, b)
	case msgp.Float64Type, msgp.Float32Type:
		return v.float(r, dst, b)
	case msgp.StrType:
		v.kind = kindString
		if v.s, rest, err = msgp.ReadStringZC(b); err != nil {
			return dst, b, err
		}
		out, err = appendString(dst, v.s)
		return out, rest, err
	case msgp.BoolType:
		var on bool
		v.kind = kindBool
		if on, rest, err = msgp.ReadBoolBytes(b); err != nil {
			return dst, b, err
		}
		return strconv.AppendBool(dst, on), rest, nil
	case msgp.NilType:
		v.kind = kindNil
		rest, err = msgp.ReadNilBytes(b)
		return append(dst, "null"...), rest, err
	case msgp.InvalidType:
		return dst, b, reject(MessagePack, "the byte 0x%02x begins no value", b[0])
	default:
		return dst, b, errExtension
	}
}

// integer reads an integer with all its 64 bits. MessagePack has signed and unsigned
// forms; encoders may use either for a number from 0 on.
func (v *value) integer(dst, b []byte) (out, rest []byte, err error) {
	if b[0] == leadUint64 {
		v.kind = kindUint
		if v.u, rest, err = msgp.ReadUint64Bytes(b); err != nil {
			return dst, b, err
		}
		return strconv.AppendUint(dst, v.u, 10), rest, nil
	}
	i, rest, err := msgp.ReadInt64Bytes(b)
	if err != nil {
		return dst, b, err
	}
	v.kind, v.u = kindUint, uint64(i)
	if i < 0 {
		v.kind = kindInt
	}
	return strconv.AppendInt(dst, i, 10), rest, nil
}

// leadUint64 is the first byte of a 64-bit unsigned integer, the only integer that int64
// may not hold.
const leadUint64 = 0xcf

func (v *value) float(r *recent, dst, b []byte) (out, rest []byte, err error) {
	v.kind = kindFloat
	if v.f, rest, err = msgp.ReadFloat64Bytes(b); err != nil {
		return dst, b, err
	}
	if v.f-v.f != 0 {
		return dst, b, errNotFinite
	}
	return r.appendFloat(dst, v.f), rest, nil
}

// appendFloat appends a finite float as pyjson does, with a short way for the most common
// value: idle fields.
func (r *recent) appendFloat(dst []byte, f float64) []byte {
	u := math.Float64bits(f)
	if u == 0 {
		return append(dst, "0.0"...)
	}
	const odd = 0x9e3779b97f4a7c15
	known := &r[u*odd>>(64-recentBits)]
	if known.bits != u {
		known.bits = u
		known.size = uint8(len(pyjson.AppendFloat(known.text[:0], f)))
	}
	return append(dst, known.text[:known.size]...)
}

// recentBits is the logarithm of the number of floats whose text is remembered.
const recentBits = 5

// recent is floats that were printed lately, by a hash of them. Printing one costs as much
// as five comparisons with what was printed, and the variances of a queue stay the same
// until something enters or leaves it.
type recent [1 << recentBits]struct {
	bits uint64 // 0 when there is none
	size uint8
	text [31]byte // the longest have 25 characters
}

// appendString appends s as a JSON string. Only what JSON demands is escaped: HTML's
// characters and those beyond ASCII stay, as in the rows that other writers leave.
func appendString(dst, s []byte) ([]byte, error) {
	dst = append(dst, '"')
	from := 0
	for i := plainPrefix(s); i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && size == 1 {
				return dst, errUTF8
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = appendEscape(append(dst, s[from:i]...), c)
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"'), nil
}

// plainPrefix returns how many bytes of s, in eights, are ASCII that JSON leaves as it is.
// Eight bytes are looked at as one number: in each byte the highest bit becomes set when
// the byte is below a space, a quote, a backslash or beyond ASCII.
func plainPrefix(s []byte) (n int) {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; len(s)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(s[n:])
		quote, slash := x^ones*'"', x^ones*'\\'
		if (x|(x-ones*' ')|(quote-ones)|(slash-ones))&high != 0 {
			break
		}
	}
	return n
}

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

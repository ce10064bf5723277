package wire

import (
	"strconv"
	"unicode/utf8"
)

// Schema is the name of the rows' layout, the value of event.schema.
const Schema = "dynamo.fpm.trace.v1"

// Mode is how a capture chooses its rows.
type Mode string

// The capture modes.
const (
	Sampled Mode = "sampled" // the newest changed payload of each rank at each interval
	Full    Mode = "full"    // every payload
)

// Row is a line of a trace.
type Row struct {
	TimestampMS    int64 // milliseconds since the writer started, monotonic
	Namespace      string
	Component      string
	ProducerID     string
	Mode           Mode
	ObservedUnixMS int64  // wall clock at arrival, milliseconds since 1970
	FPM            []byte // the payload as JSON, from [FPM.JSON]
}

// AppendRow appends the row as one line of JSON, newline included. Text that is not UTF-8
// has U+FFFD in place of the bytes that are not.
func AppendRow(dst []byte, r Row) []byte {
	dst = append(dst, `{"timestamp":`...)
	dst = strconv.AppendInt(dst, r.TimestampMS, 10)
	dst = append(dst, `,"event":{"schema":"`+Schema+`","source":{"namespace":`...)
	dst = appendText(dst, r.Namespace)
	dst = append(dst, `,"component":`...)
	dst = appendText(dst, r.Component)
	dst = append(dst, `,"producer_id":`...)
	dst = appendText(dst, r.ProducerID)
	dst = append(dst, `},"capture_mode":`...)
	dst = appendText(dst, string(r.Mode))
	dst = append(dst, `,"observed_at_unix_ms":`...)
	dst = strconv.AppendInt(dst, r.ObservedUnixMS, 10)
	dst = append(dst, `,"fpm":`...)
	dst = append(dst, r.FPM...)
	return append(dst, "}}\n"...)
}

// appendText appends a string of ours as JSON.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			dst = appendEscape(append(dst, s[from:i]...), c)
			i++
			from = i
			continue
		} else if c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = utf8.AppendRune(append(dst, s[from:i]...), r)
			from = i + 1
		}
		i += size
	}
	return append(append(dst, s[from:]...), '"')
}

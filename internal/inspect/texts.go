package inspect

import (
	"strings"
	"unicode/utf8"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

const (
	maxText  = 512     // bytes of one text that is kept
	maxTexts = 1 << 20 // bytes of all different texts of a file
	cut      = "…"
)

// texts keeps each different text once.
type texts struct {
	known map[string]string // by the text
	bytes int
}

// of returns the text of a string, "" of anything else.
func (t *texts) of(v jsonstream.Scalar) string {
	if v.Kind != '"' {
		return ""
	}
	text, _ := v.Text()
	return t.keep(text)
}

// keep returns a text, cut to what is kept of it.
func (t *texts) keep(text string) string {
	text = cutText(text)
	if known, ok := t.known[text]; ok {
		return known
	}
	if t.bytes+len(text) > maxTexts {
		return cut
	}
	t.bytes += len(text)
	text = strings.Clone(text)
	t.known[text] = text
	return text
}

func cutText(text string) string {
	if len(text) <= maxText {
		return text
	}
	n := maxText
	for n > maxText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + cut
}

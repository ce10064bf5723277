package rpc

import (
	"cmp"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	redacted = "[redacted]"
	withheld = "[redacted: what the server said repeats a secret in another form]"

	// minSecret is the length in bytes from which a header's value is taken for a secret
	// whatever the header's name, and a secret is cut out of the middle of a word. Shorter
	// ones would cut holes into ordinary text.
	minSecret = 4
)

// secrets are texts that no message may contain.
type secrets []string

func (s *secrets) add(text string) {
	if text == "" || slices.Contains(*s, text) {
		return
	}
	*s = append(*s, text)
	// One that is a part of another must not break it up.
	slices.SortStableFunc(*s, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// addHeader adds a header's value, and its words: in "Bearer x" it is the second that is
// secret, in "name=x" what stands behind the sign. Of a header that is made for secrets
// all are, however short.
func (s *secrets) addHeader(name, value string) {
	least := minSecret
	if isSecretName(name) {
		least = 1
	}
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t;,", r) })
	if len(words) > 1 && isScheme(words[0]) {
		words = words[1:]
	}
	for _, word := range words {
		if _, rest, ok := strings.Cut(word, "="); ok && strings.Trim(rest, `="`) != "" {
			word = rest
		}
		for _, text := range []string{word, strings.Trim(word, `"`)} {
			if len(text) >= least {
				s.add(text)
			}
		}
	}
	if len(value) >= least {
		s.add(value)
	}
}

// isSecretName tells whether a header is made for secrets, by its name.
func isSecretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "cookie", "key", "token", "secret", "passw", "credential", "session", "signature"},
		func(part string) bool { return strings.Contains(name, part) })
}

func isScheme(word string) bool {
	return slices.Contains([]string{"bearer", "basic", "digest", "negotiate", "token", "apikey"}, strings.ToLower(word))
}

// redact cuts the secrets out of a text that came from elsewhere, also one that the text
// breaks off in. A text that holds one in an escaped form is dropped as a whole: what it
// would have to be cut out of is no longer the text that came.
func (s secrets) redact(text string) string {
	text = s.cutOut(text)
	for _, form := range decodedForms(text) {
		if s.cutOut(form) != form {
			return withheld
		}
	}
	return text
}

// cutOut replaces the secrets as they stand.
func (s secrets) cutOut(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		if n := s.at(text, i); n > 0 {
			out.WriteString(redacted)
			i += n
			continue
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

// at returns the length of the secret that begins at an offset, or of the beginning of
// one that the text ends with; 0 when there is none.
func (s secrets) at(text string, i int) int {
	rest := text[i:]
	for _, secret := range s {
		switch {
		case strings.HasPrefix(rest, secret):
			if len(secret) >= minSecret || isWord(text, i, i+len(secret)) {
				return len(secret)
			}
		case len(rest) >= minSecret && strings.HasPrefix(secret, rest):
			return len(rest)
		}
	}
	return 0
}

// isWord tells whether no letter or digit adjoins a part of a text.
func isWord(text string, start, end int) bool {
	return (start == 0 || !isAlphanumeric(text[start-1])) && (end == len(text) || !isAlphanumeric(text[end]))
}

func isAlphanumeric(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b >= utf8.RuneSelf
}

// decodedForms returns what a text is without the escapes of JSON and of Python, of URLs
// and of HTML, alone and one within the other, as far as they nest in practice.
func decodedForms(text string) []string {
	const most = 3
	var forms []string
	for range most {
		before := text
		for _, decode := range []func(string) string{unescape, unpercent, html.UnescapeString} {
			if next := decode(text); next != text {
				forms, text = append(forms, next), next
			}
		}
		if text == before {
			break
		}
	}
	return forms
}

// unescape resolves escapes with a backslash; those that are none lose it.
func unescape(text string) string {
	return decodeEach(text, '\\', func(rest string) (string, int) {
		if len(rest) < 2 {
			return "", 0
		}
		switch rest[1] {
		case 'u':
			return codePoint(rest, 6)
		case 'x':
			return codePoint(rest, 4)
		}
		return rest[1:2], 2
	})
}

// codePoint decodes an escape of so many bytes, of which two come before the digits.
func codePoint(rest string, length int) (string, int) {
	if len(rest) < length {
		return "", 0
	}
	n, err := strconv.ParseUint(rest[2:length], 16, 32)
	if err != nil {
		return "", 0
	}
	return string(rune(n)), length
}

func unpercent(text string) string {
	return decodeEach(text, '%', func(rest string) (string, int) {
		if len(rest) < 3 {
			return "", 0
		}
		n, err := strconv.ParseUint(rest[1:3], 16, 8)
		if err != nil {
			return "", 0
		}
		return string([]byte{byte(n)}), 3
	})
}

// decodeEach replaces what begins with a mark by what decode makes of it; it returns the
// length of the escape, 0 when there is none.
func decodeEach(text string, mark byte, decode func(rest string) (string, int)) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(text, mark)
		if i < 0 {
			return out.String() + text
		}
		out.WriteString(text[:i])
		plain, n := decode(text[i:])
		if n == 0 {
			plain, n = text[i:i+1], 1
		}
		out.WriteString(plain)
		text = text[i+n:]
	}
}

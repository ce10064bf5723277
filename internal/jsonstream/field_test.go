package jsonstream

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestField(t *testing.T) {
	zeros := strings.Repeat("0", 20000)
	for text, want := range map[string]Field{
		"0":                      {Integer: true, Whole: true},
		"-0":                     {Integer: true, Whole: true},
		"7":                      {Int: 7, Integer: true, Whole: true},
		"-12":                    {Int: -12, Integer: true, Whole: true},
		"999999999999999999":     {Int: 999999999999999999, Integer: true, Whole: true},
		"-99999999999999999":     {Int: -99999999999999999, Integer: true, Whole: true},
		"9223372036854775807":    {Int: math.MaxInt64, Integer: true, Whole: true},
		"-9223372036854775808":   {Int: math.MinInt64, Integer: true, Whole: true},
		"9223372036854775808":    {},
		"-9223372036854775809":   {},
		"1" + zeros:              {},
		"1.0":                    {Int: 1, Whole: true},
		"10e-1":                  {Int: 1, Whole: true},
		"-0.0":                   {Whole: true},
		"0e999999999999":         {Whole: true},
		"-1.2e1":                 {Int: -12, Whole: true},
		"9007199254740992.0":     {Int: 1 << 53, Whole: true},
		"9007199254740993.0":     {}, // not told from its neighbours by a float64
		"1" + zeros + "e-20000":  {Int: 1, Whole: true},
		"0." + zeros + "1e20001": {Int: 1, Whole: true},
		"1.5":                    {},
		"0.99999999999999999999": {}, // the nearest float64 is 1
		"1.00000000000000000001": {},
		"1e400":                  {},
		"1e-400":                 {},
	} {
		want.Kind, want.Offset = '0', 1
		s := New(strings.NewReader(" "+text), 0, 0, Strict, Limits{})
		got, err := s.Field()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%.30s: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"null", "true", "false", `"1"`, "[1]", `{"a":1}`} {
		got, err := scan(text).Field()
		if want := (Field{Kind: got.Kind}); got != want || !got.Present() || got.Null() != (text == "null") || err != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if got, err := scan("[").Field(); err == nil || got.Present() {
		t.Errorf("of a truncated text: %+v, %v", got, err)
	}
}

func TestFieldQuestions(t *testing.T) {
	type answers struct{ Present, Null, Is7, IsInteger7, NonNegative bool }
	for text, want := range map[string]answers{
		"":      {Null: true},
		"null":  {Present: true, Null: true},
		"7":     {true, false, true, true, true},
		"7.0":   {true, false, true, false, false},
		"-7":    {Present: true},
		"0":     {Present: true, NonNegative: true},
		"-0":    {Present: true, NonNegative: true},
		"true":  {Present: true},
		`"7"`:   {Present: true},
		"7e400": {Present: true},
	} {
		var f Field
		if text != "" {
			f, _ = scan(text).Field()
		}
		got := answers{f.Present(), f.Null(), f.Is(7), f.IsInteger(7), f.NonNegative()}
		if got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestFloat(t *testing.T) {
	for text, want := range map[string]Float{
		"0.062":  {Kind: '0', Value: 0.062, Finite: true},
		"-0":     {Kind: '0', Value: math.Copysign(0, -1), Finite: true},
		"1e308":  {Kind: '0', Value: 1e308, Finite: true},
		"1e-999": {Kind: '0', Finite: true},
		"12":     {Kind: '0', Value: 12, Finite: true},
		"null":   {Kind: 'n'},
		`"1.0"`:  {Kind: '"'},
		"[1.0]":  {Kind: '['},
	} {
		got, err := scan(text).Float()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
		if got.Null() != (text == "null") {
			t.Errorf("%s: Null = %t", text, got.Null())
		}
	}
	for _, text := range []string{"1e309", "-1" + strings.Repeat("0", 400)} {
		if got, err := scan(text).Float(); got.Kind != '0' || got.Finite || err != nil {
			t.Errorf("%.20s: %+v, %v", text, got, err)
		}
	}
	if got, err := scan("[1").Float(); err == nil || !got.Null() {
		t.Errorf("of a truncated text: %+v, %v", got, err)
	}
}

func TestText(t *testing.T) {
	for literal, want := range map[string]string{
		`""`:                        "",
		`"complete"`:                "complete",
		`"é日本"`:                     "é日本",
		`"\u0063omplete"`:           "complete",
		`"a\"\\\/\b\f\n\r\t\u00e9"`: "a\"\\/\b\f\n\r\té",
		`"\ud83d\ude00"`:            "\U0001F600",
		`"\ud800x"`:                 "\xed\xa0\x80x",
	} {
		v, err := New(strings.NewReader(literal), 0, 0, Lenient, Limits{}).Scalar()
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := v.Text(); got != want || !ok {
			t.Errorf("%s: Text = %q, %t, want %q", literal, got, ok, want)
		}
		if !v.Equals(want) || v.Equals(want+"x") || v.Equals("\x00") {
			t.Errorf("%s: Equals is wrong", literal)
		}
	}
	for _, text := range []string{"null", "12", "[]", `{"a":1}`, "true"} {
		v, err := scan(text).Scalar()
		if got, ok := v.Text(); got != "" || ok || v.Equals("") || v.Equals(text) || err != nil {
			t.Errorf("%s: Text = %q, %t, %v", text, got, ok, err)
		}
	}
	if got, ok := (Scalar{}).Text(); got != "" || ok || (Scalar{}).Equals("") {
		t.Errorf("an absent value: Text = %q, %t", got, ok)
	}
}

package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
)

// printGitHub writes a workflow command a line. Everything else that is said goes into a
// notice: a plain line could hold a text that the runner takes for a command.
func printGitHub(w io.Writer, r *Report) {
	for _, f := range r.shown() {
		var place []string
		if f.File != "" {
			place = append(place, property("file", f.File))
		}
		if f.Line > 0 {
			place = append(place, property("line", strconv.Itoa(f.Line)), property("col", strconv.Itoa(f.Column)))
		}
		level := "error"
		if f.Severity == finding.Warning {
			level = "warning"
		}
		annotate(w, level, append(place, property("title", string(f.Rule))), findingLines(f)...)
	}
	title := property("title", strings.TrimSpace("fpm "+r.Command))
	for _, f := range r.Fatal {
		place := []string{title}
		if f.File != "" {
			place = []string{property("file", f.File), title}
		}
		annotate(w, "error", place, Escape(f.Message), labelled("hint", f.Hint))
	}
	if closing := r.closing(); closing != "" {
		annotate(w, "notice", []string{title}, strings.Split(closing, "\n")...)
	}
}

// findingLines returns a finding's message with its level, where that is not a merge's, and
// what belongs to it, the empty ones too.
func findingLines(f finding.Finding) []string {
	pointer := ""
	if f.Pointer != "" {
		pointer = "at " + Escape(f.Pointer)
	}
	message := Escape(f.Message)
	if level(f.Rule) != "" {
		message += " (strict)" // a merge may accept it
	}
	return []string{
		message, pointer,
		labelled("expected", f.Expected), labelled("actual", f.Actual), labelled("hint", f.Hint),
	}
}

func labelled(label, text string) string {
	if text == "" {
		return ""
	}
	return label + ": " + escapeCut(text, maxValue)
}

// annotate writes one workflow command; empty lines of the message are left out.
func annotate(w io.Writer, level string, properties []string, message ...string) {
	message = present(message)
	for i, line := range message {
		message[i] = escapeData.Replace(line)
	}
	fmt.Fprintf(w, "::%s %s::%s\n", level, strings.Join(properties, ","), strings.Join(message, "%0A"))
}

// present returns the lines that are not empty.
func present(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

func property(name, value string) string {
	return name + "=" + escapeProperty.Replace(Escape(value))
}

// What the workflow runner undoes: in a message, and in a property. Line ends are
// escaped before, by [Escape]; they are here for the runner's rules to stand whole.
var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

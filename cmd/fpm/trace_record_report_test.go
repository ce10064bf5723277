package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/trace/record"
)

// However many there are and whatever they call themselves, the report for people has few
// lines, and nothing in it that a terminal obeys.
func TestRecordReport(t *testing.T) {
	m := &record.Manifest{State: record.Stopped, RecordedMS: 61_000, Mode: "full"}
	m.Totals.Received, m.Totals.Written, m.Totals.QueueDrops, m.Totals.Missing, m.Totals.Gaps = 10, 7, 3, 2, 1
	for i := range 500 {
		m.Endpoints = append(m.Endpoints, record.EndpointState{Address: fmt.Sprint("tcp://h:", i), Failure: "connection refused"})
		m.Producers = append(m.Producers, record.Producer{
			ProducerID: "\x1b[31m" + strings.Repeat("x\n", 200), Streams: []record.Stream{{Rank: int64(i)}},
		})
	}
	text := recordText(m)
	if n := strings.Count(text, "\n"); n > maxStreamLines+25 {
		t.Errorf("%d lines", n)
	}
	if strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("a terminal would obey this: %q", text)
	}
	for _, want := range []string{
		"recorded 500 ranks of 500 producers for 1m1s, full mode: 7 rows", "and 436 more ranks", "tcp://h:0 delivered nothing: connection refused",
		"lost here: 3 payloads were overwritten", "2 messages are missing by their numbers, in 1 gap", "(not complete)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "nothing that was received is lost") {
		t.Error("it says that nothing is lost")
	}
}

// Of nothing there is nothing to say.
func TestRecordReportOfNothing(t *testing.T) {
	m := &record.Manifest{State: record.Stopped, Complete: true, Endpoints: []record.EndpointState{{Address: "tcp://h:1", Connected: true}, {Address: "tcp://h:2"}}}
	text := recordText(m)
	if strings.Contains(text, "nothing that was received is lost") || strings.Contains(text, "complete") ||
		!strings.Contains(text, "tcp://h:1 delivered nothing: it was connected, and nothing was published\ntcp://h:2 delivered nothing: the time was too short") {
		t.Error(text)
	}
}

func TestLiveText(t *testing.T) {
	m := &record.Manifest{RecordedMS: 12_345, Endpoints: []record.EndpointState{{Connected: true}, {}}}
	m.Totals.Received, m.Totals.Written, m.Totals.Pending, m.Totals.Crowded = 9, 5, 3, 1
	if got, want := liveText(m), "12s: 1/2 endpoints, 9 received, 5 written, 3 waiting, 0 missing, 0 refused, 1 lost"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

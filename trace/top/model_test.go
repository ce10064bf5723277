package top

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fpm-project/fpm/internal/goldentest"
)

// press returns the message of a key.
func press(name string) tea.KeyPressMsg {
	codes := map[string]rune{
		"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace,
	}
	switch {
	case codes[name] != 0:
		return tea.KeyPressMsg{Code: codes[name]}
	case strings.HasPrefix(name, "ctrl+"):
		return tea.KeyPressMsg{Code: rune(name[5]), Mod: tea.ModCtrl}
	case name == "space":
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	default:
		return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
	}
}

// after returns a model that was told messages: strings are keys.
func after(t *testing.T, m Model, messages ...any) Model {
	t.Helper()
	for _, msg := range messages {
		if key, ok := msg.(string); ok {
			msg = press(key)
		}
		next, _ := m.Update(msg)
		m = next.(Model)
	}
	return m
}

// shown returns a model that shows a snapshot on a terminal of a size.
func shown(t *testing.T, snap Snapshot, width, height int) Model {
	t.Helper()
	m := NewModel(func() Snapshot { return snap }, View{})
	return after(t, m, tea.WindowSizeMsg{Width: width, Height: height}, m.Init()())
}

func TestScreens(t *testing.T) {
	snap := fleet()
	var b strings.Builder
	for _, c := range []struct {
		name          string
		width, height int
		keys          []any
	}{
		{"at first", 110, 14, nil},
		{"the second column, reversed", 110, 10, []any{"s", "r"}},
		{"back around the end", 110, 10, []any{"S"}},
		{"another metric", 110, 10, []any{"m"}},
		{"help", 80, 24, []any{"?"}},
		{"help is left", 80, 10, []any{"?", "?"}},
		{"a filter is typed", 110, 10, []any{"/", "x", "backspace", "r", "a", "n", "k", "space", "1"}},
		{"the filter is taken", 110, 10, []any{"/", "r", "a", "n", "k", "space", "1", "enter"}},
		{"a filter that leaves nothing", 110, 10, []any{"/", "n", "o", "enter"}},
		{"the filter is dropped", 110, 10, []any{"/", "n", "o", "enter", "esc"}},
		{"paused", 110, 10, []any{"p"}},
		{"very small", 20, 4, nil},
		{"one line", 30, 1, nil},
	} {
		m := after(t, shown(t, snap, c.width, c.height), c.keys...)
		fmt.Fprintf(&b, "== %s (%d×%d)\n", c.name, c.width, c.height)
		for _, line := range strings.Split(m.View().Content, "\n") {
			fmt.Fprintf(&b, "|%s\n", line)
		}
	}
	goldentest.Check(t, "screens.txt", b.String())
}

func TestBeforeAnythingIsKnown(t *testing.T) {
	m := NewModel(func() Snapshot { return Snapshot{} }, View{})
	if text := m.View().Content; !strings.Contains(text, "nothing has been received so far") {
		t.Errorf("%s", text)
	}
	if v := m.View(); !v.AltScreen {
		t.Error("the screen of the shell is written over")
	}
}

// TestThousandProducers scrolls through more lines than there is room for.
func TestThousandProducers(t *testing.T) {
	b := NewBoard()
	for i := range int64(1000) {
		b.Add(busy(fmt.Sprintf("worker-%04d", i), 0, i, 0))
	}
	m := shown(t, b.Snapshot(start.Add(time.Second)), 120, 30)
	has := func(m Model, want ...string) {
		t.Helper()
		text := m.View().Content
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
		if n := strings.Count(text, "\n") + 1; n != 30 {
			t.Errorf("%d lines on a screen of 30", n)
		}
	}
	has(m, "worker-0000", "worker-0026", "1-27 of 1000")
	has(after(t, m, "down"), "worker-0001", "worker-0027", "2-28 of 1000")
	has(after(t, m, "pgdown", "pgdown"), "worker-0054", "55-81 of 1000")
	has(after(t, m, "end"), "worker-0999", "974-1000 of 1000")
	has(after(t, m, "end", "down", "G"), "worker-0999", "974-1000 of 1000")
	has(after(t, m, "end", "home"), "worker-0000", "1-27 of 1000")
	has(after(t, m, "up", "pgup"), "1-27 of 1000")
	has(after(t, m, "end", "/", "9", "9", "enter"), "worker-0099", "worker-0999", "hides 981") // fewer lines than were scrolled past
	small := after(t, m, "end", tea.WindowSizeMsg{Width: 60, Height: 10})
	if text := small.View().Content; !strings.Contains(text, "of 1000") || strings.Count(text, "\n") != 9 {
		t.Errorf("after a resize:\n%s", text)
	}
}

// TestManyEndpointsAreDown leaves room for the table.
func TestManyEndpointsAreDown(t *testing.T) {
	var addresses []string
	for i := range 100 {
		addresses = append(addresses, fmt.Sprintf("tcp://h:%d", i+1))
	}
	m := shown(t, NewBoard(addresses...).Snapshot(start), 80, 24)
	text := m.View().Content
	if !strings.Contains(text, "93 more endpoints deliver nothing") || !strings.Contains(text, "WORKER") || strings.Count(text, "\n") != 23 {
		t.Errorf("%s", text)
	}
}

func TestPause(t *testing.T) {
	first := fleet()
	m := after(t, shown(t, first, 110, 14), "p")
	later := Snapshot{At: first.At.Add(time.Minute)}
	m = after(t, m, snapshotMsg(later))
	if !m.snap.At.Equal(first.At) {
		t.Error("the picture moves while it is paused")
	}
	if m = after(t, m, "space", snapshotMsg(later)); !m.snap.At.Equal(later.At) {
		t.Error("the picture stands still when it is not paused any more")
	}
}

// TestTicksGoOn checks that every snapshot is followed by the next, paused or not, and
// that no key makes a second series of them.
func TestTicksGoOn(t *testing.T) {
	m := shown(t, fleet(), 80, 24)
	for _, key := range []string{"p", "s", "?", "/", "enter", "down"} {
		next, cmd := m.Update(press(key))
		if cmd != nil {
			t.Errorf("key %s has a command", key)
		}
		if _, cmd = next.Update(snapshotMsg{}); cmd == nil {
			t.Errorf("after key %s nothing follows a snapshot", key)
		}
	}
}

func TestQuit(t *testing.T) {
	m := shown(t, fleet(), 80, 24)
	for _, key := range []string{"q", "ctrl+c"} {
		_, cmd := m.Update(press(key))
		if cmd == nil || reflect.TypeOf(cmd()) != reflect.TypeOf(tea.QuitMsg{}) {
			t.Errorf("%s does not end it", key)
		}
	}
	typing := after(t, m, "/")
	if _, cmd := typing.Update(press("q")); cmd != nil {
		t.Error("q ends it while a filter is typed")
	}
	if m := after(t, typing, "q", "ctrl+c"); m.input || m.view.Filter != "" {
		t.Error("ctrl+c does not leave the filter as it was")
	}
}

func TestFilterIsBounded(t *testing.T) {
	m := after(t, shown(t, fleet(), 80, 24), "/")
	for range 300 {
		m = after(t, m, "é")
	}
	if len(m.typing) > 100 || m.typing == "" {
		t.Errorf("%d bytes", len(m.typing))
	}
	if m = after(t, m, "backspace"); strings.Contains(m.typing, "\ufffd") || len(m.typing) != 98 {
		t.Errorf("half a character is gone: %q", m.typing)
	}
	if m = after(t, m, "ctrl+u"); m.typing != "" {
		t.Errorf("%q is left", m.typing)
	}
}

// TestEverySize draws screens of any size in any state: never more lines or columns than
// there are.
func TestEverySize(t *testing.T) {
	snap := fleet()
	for _, keys := range [][]any{nil, {"?"}, {"/", "w"}, {"p", "s", "r", "m", "end"}} {
		for width := 1; width < 140; width += 9 {
			for _, height := range []int{1, 2, 3, 4, 5, 9, 24} {
				m := after(t, shown(t, snap, width, height), keys...)
				lines := strings.Split(m.View().Content, "\n")
				if len(lines) != height {
					t.Fatalf("%v, %d×%d: %d lines", keys, width, height, len(lines))
				}
				for _, line := range lines {
					if ansi.StringWidth(line) > width {
						t.Fatalf("%v, %d×%d: %q", keys, width, height, line)
					}
				}
			}
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("sSrm?/abc", uint8(80), uint8(24))
	f.Add("/\x00é", uint8(1), uint8(1))
	snap := fleet()
	f.Fuzz(func(t *testing.T, keys string, width, height uint8) {
		m := NewModel(func() Snapshot { return snap }, View{})
		m = after(t, m, snapshotMsg(snap), tea.WindowSizeMsg{Width: int(width), Height: int(height)})
		names := []string{"up", "down", "left", "right", "pgup", "pgdown", "home", "end", "enter", "esc", "backspace", "ctrl+u"}
		for _, r := range keys {
			name := string(r)
			if int(r) < len(names) {
				name = names[r]
			}
			m = after(t, m, name)
			if lines := strings.Count(m.View().Content, "\n") + 1; lines != max(1, int(height)) {
				t.Fatalf("%d lines of %d", lines, height)
			}
		}
	})
}

package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/words"
)

// Refresh is how often a [Model] looks at its board.
const Refresh = time.Second

// Model is the program for a terminal. Its Update and its View are functions of what it
// was told; only the commands that Update returns look at a clock and at the board.
type Model struct {
	source func() Snapshot
	view   View

	snap   Snapshot // what is shown
	paused bool

	height int
	offset int // lines that are scrolled past

	typing string // the filter that is being typed
	input  bool   // it is being typed
	help   bool
}

// NewModel returns the program that shows the snapshots of a source.
func NewModel(source func() Snapshot, view View) Model {
	view.Width, view.Sort = max(view.Width, 80), orFirst(view.Sort, Columns())
	view.Metric = orFirst(view.Metric, Metrics())
	return Model{source: source, view: view, height: 24}
}

func orFirst[T ~string](value T, list []T) T {
	if value == "" {
		return list[0]
	}
	return value
}

// snapshotMsg is the board at the latest tick.
type snapshotMsg Snapshot

// Init looks at the board for the first time.
func (m Model) Init() tea.Cmd {
	return func() tea.Msg { return snapshotMsg(m.source()) }
}

// tick looks at the board the next time.
func (m Model) tick() tea.Cmd {
	return tea.Tick(Refresh, func(time.Time) tea.Msg { return snapshotMsg(m.source()) })
}

// Update takes a snapshot, a key, or the size of the terminal.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	switch msg := msg.(type) {
	case snapshotMsg:
		if !m.paused {
			m.snap = Snapshot(msg)
		}
		next = m.tick()
	case tea.WindowSizeMsg:
		m.view.Width, m.height = max(1, msg.Width), max(1, msg.Height)
	case tea.KeyPressMsg:
		if m.input {
			m = m.edit(msg)
		} else if m, next = m.key(msg.String()); next != nil {
			return m, next
		}
	}
	m.offset = max(0, min(m.offset, len(m.view.Select(m.snap.Lines))-m.room()))
	return m, next
}

// edit takes a key while the filter is being typed.
func (m Model) edit(msg tea.KeyPressMsg) Model {
	switch msg.String() {
	case "enter":
		m.view.Filter, m.input = m.typing, false
	case "esc", "ctrl+c":
		m.input = false
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.typing)
		m.typing = m.typing[:len(m.typing)-n]
	case "ctrl+u":
		m.typing = ""
	default:
		if m.typing += msg.Text; len(m.typing) > 100 {
			m.typing = m.typing[:len(m.typing)-len(msg.Text)]
		}
	}
	return m
}

// key takes a key of the table.
func (m Model) key(name string) (Model, tea.Cmd) {
	switch name {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "?", "h":
		m.help = !m.help
	case "esc":
		m.help, m.view.Filter = false, ""
	case "/":
		m.input, m.typing, m.help = true, m.view.Filter, false
	case "p", "space", " ":
		m.paused = !m.paused
	case "s", "right":
		m.view.Sort = following(Columns(), m.view.Sort, 1)
	case "S", "shift+s", "left":
		m.view.Sort = following(Columns(), m.view.Sort, -1)
	case "r":
		m.view.Down = !m.view.Down
	case "m":
		m.view.Metric = following(Metrics(), m.view.Metric, 1)
	default:
		m.offset += m.scroll(name)
	}
	return m, nil
}

// scroll returns by how many lines a key scrolls.
func (m Model) scroll(name string) int {
	const all = MaxLines
	return map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1,
		"pgup": -m.room(), "pgdown": m.room(), "home": -all, "g": -all, "end": all, "G": all, "shift+g": all,
	}[name]
}

// following returns the value that is so many places behind another, around the end.
func following[T comparable](list []T, value T, by int) T {
	return list[(slices.Index(list, value)+by+len(list))%len(list)]
}

// room returns how many lines of the table there is room for, at least one: below the
// headline and the titles, above the troubles and the status.
func (m Model) room() int { return max(1, m.height-3-len(m.troubles())) }

// troubles returns the lines about endpoints, a third of the screen at most.
func (m Model) troubles() []string {
	all := m.view.Troubles(&m.snap)
	most := max(1, m.height/3)
	if len(all) <= most {
		return all
	}
	left := len(all) - (most - 1)
	return append(all[:most-1:most-1], m.view.paint(yellow, m.view.cut(words.Count(left, "more endpoint delivers nothing", "more endpoints deliver nothing"))))
}

// View draws the screen.
func (m Model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "fpm trace top"
	return v
}

// screen returns the lines of the screen, as many as it has.
func (m Model) screen() []string {
	lines := []string{m.headline()}
	if m.help {
		lines = append(lines, helpText()...)
	} else {
		lines = append(lines, m.table()...)
	}
	bottom := append(m.troubles(), m.status())
	fill := m.height - len(bottom)
	if len(lines) > fill {
		lines = lines[:max(0, fill)]
	}
	for len(lines) < fill {
		lines = append(lines, "")
	}
	lines = append(lines, bottom...)
	lines = lines[max(0, len(lines)-m.height):]
	for i, line := range lines {
		lines[i] = m.view.cut(line)
	}
	return lines
}

func (m Model) headline() string {
	title := m.view.paint(bold, "fpm trace top")
	if m.snap.At.IsZero() {
		return title
	}
	return title + "  " + m.snap.At.Format("15:04:05") + "  " + m.view.Headline(&m.snap)
}

// table returns the lines that are scrolled to.
func (m Model) table() []string {
	kept := m.view.Select(m.snap.Lines)
	if len(kept) == 0 {
		return append(m.view.Table(nil), m.view.paint(faint, m.nothing()))
	}
	from := min(m.offset, len(kept)-1)
	return m.view.Table(kept[from:min(len(kept), from+m.room())])
}

func (m Model) nothing() string {
	if len(m.snap.Lines) > 0 {
		return fmt.Sprintf("none of %s matches %q", words.Count(len(m.snap.Lines), "rank", "ranks"), report.Escape(m.view.Filter))
	}
	return cmp.Or(m.view.Empty, "nothing has been received so far")
}

// status says what the lines above are, what was left out, and which keys there are.
func (m Model) status() string {
	if m.input {
		return "filter: " + report.Escape(m.typing) + "▏  " + m.view.paint(faint, "enter: take it, esc: leave it")
	}
	var parts []string
	if m.paused {
		parts = append(parts, m.view.paint(yellow, "paused"))
	}
	kept := m.view.Select(m.snap.Lines)
	if shown := min(m.room(), len(kept)-m.offset); len(kept) > shown && shown > 0 {
		parts = append(parts, fmt.Sprintf("%d-%d of %d", m.offset+1, m.offset+shown, len(kept)))
	}
	if m.view.Filter != "" {
		parts = append(parts, fmt.Sprintf("filter %q hides %d", report.Escape(m.view.Filter), len(m.snap.Lines)-len(kept)))
	}
	order := "sorted by " + string(m.view.Sort)
	if m.view.Down {
		order += ", down"
	}
	text := strings.Join(append(parts, order), ", ")
	keys := "s sort  r reverse  m metric  / filter  p pause  ? help  q quit"
	if gap := m.view.Width - ansi.StringWidth(text) - len(keys); gap >= 2 {
		return text + strings.Repeat(" ", gap) + m.view.paint(faint, keys)
	}
	return text + "  " + m.view.paint(faint, "? help  q quit")
}

// helpText explains the columns and the keys.
func helpText() []string {
	return strings.Split(`
  Figures are those of the last 10 seconds.

  RATE/s     forward passes a second; heartbeats are none
  WALL       median wall time of a pass
  PREF/s     prefill tokens scheduled a second
  DEC/pass   decode requests in a pass, KV: their tokens
  QUEUE      requests that waited at the last message
  GAPS       messages missing by their counters, refused ones too; "-" if sampled
  STARTS     times that the counters began again
  SILENT     since the last message: publishers send once a second even when idle

  s S      sort by the next, the previous column  arrows pgup pgdown home end
  r        reverse the order    /  filter by worker, "rank 3" or endpoint
  m        another metric of the last minute      esc  no filter
  p space  pause        ?  this text              q  quit`, "\n")
}

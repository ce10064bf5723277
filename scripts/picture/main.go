// Picture runs a program in a terminal of its own and draws what is on the screen after a
// while as an SVG.
//
//	picture -o FILE [-columns N] [-rows N] [-after DURATION] [-keys TEXT] [-quit TEXT] COMMAND [ARG...]
//
// The terminal is a pseudo-terminal whose other end is an emulator: what the program
// writes is what a user's terminal would get, and its questions are answered. It is a
// module of its own, so that fpm does not depend on a terminal emulator.
package main

import (
	"errors"
	"flag"
	"fmt"
	"html"
	"image/color"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// options are those of the command line.
type options struct {
	output        string
	columns, rows int
	after         time.Duration
	keys, quit    string
	title         string
	command       []string
}

func main() {
	var opt options
	flag.StringVar(&opt.output, "o", "", "write the picture to this file")
	flag.StringVar(&opt.title, "title", "", "title of the picture; the command if empty")
	flag.IntVar(&opt.columns, "columns", 100, "columns of the terminal")
	flag.IntVar(&opt.rows, "rows", 24, "rows of the terminal")
	flag.DurationVar(&opt.after, "after", 5*time.Second, "look at the screen after so long")
	flag.StringVar(&opt.keys, "keys", "", "press these keys half-way")
	flag.StringVar(&opt.quit, "quit", "q", "press these keys at the end")
	flag.Parse()
	opt.command = flag.Args()
	if opt.output == "" || len(opt.command) == 0 {
		fmt.Fprintln(os.Stderr, "picture: -o FILE and a command are needed")
		os.Exit(2)
	}
	if err := run(opt); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(opt options) error {
	cmd := exec.Command(opt.command[0], opt.command[1:]...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "NO_COLOR=")
	cmd.Stderr = os.Stderr
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(opt.columns), Rows: uint16(opt.rows)})
	if err != nil {
		return err
	}
	defer tty.Close()
	screen := vt.NewSafeEmulator(opt.columns, opt.rows)
	go io.Copy(tty, screen) // the emulator's answers; ends with the process
	ended := make(chan error, 1)
	go func() {
		io.Copy(screen, tty) // ends with an error when the program does
		ended <- cmd.Wait()
	}()
	for _, step := range []struct {
		wait time.Duration
		keys string
	}{{opt.after / 2, opt.keys}, {opt.after - opt.after/2, ""}} {
		select {
		case err := <-ended:
			return errors.Join(errors.New("the program ended before the picture was taken"), err)
		case <-time.After(step.wait):
		}
		if _, err := io.WriteString(tty, step.keys); err != nil {
			return err
		}
	}
	svg := draw(screen, opt)
	if _, err := io.WriteString(tty, opt.quit); err != nil {
		return err
	}
	select {
	case err := <-ended:
		if err != nil {
			return err
		}
	case <-time.After(10 * time.Second):
		return errors.Join(errors.New("the program does not end"), cmd.Process.Kill())
	}
	return os.WriteFile(opt.output, []byte(svg), 0o666)
}

// Sizes in the picture, in pixels.
const (
	cellWidth, cellHeight = 8.4, 18.0
	margin, bar           = 14.0, 34.0
	fontSize              = 14
)

const (
	background = "#1b1f27"
	foreground = "#d5dae3"
	dimmed     = "#8a93a3"
)

// span is a run of cells that look the same.
type span struct {
	column, width int
	text          string
	style         uv.Style
}

// draw returns the screen as an SVG: text, so that it can be searched and read aloud.
func draw(screen *vt.SafeEmulator, opt options) string {
	width := float64(opt.columns)*cellWidth + 2*margin
	height := float64(opt.rows)*cellHeight + margin + bar
	title := opt.title
	if title == "" {
		title = strings.Join(opt.command, " ")
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	for i, c := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%.0f" cy="17" r="5" fill="%s"/>`+"\n", margin+6+float64(i)*18, c)
	}
	fmt.Fprintf(&b, `<g font-family="'DejaVu Sans Mono','Cascadia Mono',Menlo,Consolas,monospace" font-size="%d" xml:space="preserve">`+"\n", fontSize)
	fmt.Fprintf(&b, `<text x="%.0f" y="22" text-anchor="middle" fill="%s">%s</text>`+"\n", width/2, dimmed, html.EscapeString(title))
	for y := range opt.rows {
		for _, s := range spans(screen, y, opt.columns) {
			drawSpan(&b, s, y)
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// spans takes a row of the screen apart. Blank ones without a background are left out.
func spans(screen *vt.SafeEmulator, y, columns int) (list []span) {
	for x := 0; x < columns; {
		cell := screen.CellAt(x, y)
		if cell == nil || cell.Width < 1 {
			x++
			continue
		}
		text := cell.Content
		if text == "" {
			text = " "
		}
		last := len(list) - 1
		if last >= 0 && list[last].style.Equal(&cell.Style) && list[last].column+list[last].width == x {
			list[last].text += text
			list[last].width += cell.Width
		} else {
			list = append(list, span{x, cell.Width, text, cell.Style})
		}
		x += cell.Width
	}
	visible := list[:0]
	for _, s := range list {
		if strings.TrimSpace(s.text) != "" || s.style.Bg != nil {
			visible = append(visible, s)
		}
	}
	return visible
}

func drawSpan(b *strings.Builder, s span, y int) {
	trimmed := strings.TrimLeft(s.text, " ")
	column := s.column + len(s.text) - len(trimmed)
	width := s.width - (column - s.column)
	text := strings.TrimRight(trimmed, " ")
	width -= len(trimmed) - len(text)
	left, top := margin+float64(column)*cellWidth, bar+float64(y)*cellHeight
	if s.style.Bg != nil {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" fill="%s"/>`+"\n", margin+float64(s.column)*cellWidth, top, float64(s.width)*cellWidth, cellHeight, hex(s.style.Bg, background))
	}
	look := fmt.Sprintf(`fill="%s"`, hex(s.style.Fg, foreground))
	if s.style.Attrs&uv.AttrFaint != 0 {
		look = fmt.Sprintf(`fill="%s"`, hex(s.style.Fg, dimmed))
	}
	if s.style.Attrs&uv.AttrBold != 0 {
		look += ` font-weight="bold"`
	}
	// The length is that of the cells, whatever font there is.
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" %s>%s</text>`+"\n",
		left, top+13, float64(width)*cellWidth, look, html.EscapeString(text))
}

// palette has what terminals show for the basic colours, which is brighter than what they
// are called.
func palette(basic string) string {
	switch basic {
	case "#800000", "#ff0000":
		return "#ff7b85"
	case "#808000":
		return "#e8c26c"
	case "#008080":
		return "#5fc1cf"
	default:
		return basic
	}
}

func hex(c color.Color, otherwise string) string {
	if c == nil {
		return otherwise
	}
	r, g, b, _ := c.RGBA()
	return palette(fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8))
}

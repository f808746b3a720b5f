package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
)

// terminal is a stream, and what is known of the device behind it.
type terminal struct {
	io.Writer           // takes any text: see inert.Writer
	device    io.Writer // takes what is to reach it as it is
	tty       bool
	width     int   // columns; 0 where there is no terminal
	color     bool  // only on a terminal, and not against NO_COLOR
	failed    error // why something could not be written: asked for at the end
}

// Write takes any text, and keeps the first error.
func (t *terminal) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	if t.failed == nil {
		t.failed = err
	}
	return n, err
}

func newTerminal(w io.Writer, env environment) *terminal {
	t := &terminal{Writer: &inert.Writer{To: w}, device: w}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return t
	}
	t.tty = true
	t.width = 80
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		t.width = width
	}
	t.color = env["NO_COLOR"] == "" && env["TERM"] != "dumb"
	t.Writer = &inert.Writer{To: w, Colors: t.color}
	return t
}

// The few colours that carry meaning.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

// paint returns s in a colour where t has colours.
func (t *terminal) paint(code, s string) string {
	if !t.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// sign returns the sign of a change in its colour: "+", "-" or "~".
func (t *terminal) sign(sign string) string {
	switch sign {
	case "+":
		return t.paint(green, sign)
	case "-":
		return t.paint(red, sign)
	default:
		return t.paint(yellow, sign)
	}
}

// talk is what goes to standard error: notes, warnings and, on a terminal
// only, one line of progress that is wiped when it is no longer true.
type talk struct {
	*terminal
	busy  bool
	pulls pulls
}

var _ project.Talk = (*talk)(nil)

func newTalk(t *terminal) *talk { return &talk{terminal: t} }

// Progress shows what is going on now.
func (t *talk) Progress(format string, args ...any) {
	if !t.tty {
		return
	}
	line := inert.Line(fmt.Sprintf(format, args...))
	if runes := []rune(line); len(runes) >= t.width {
		line = string(runes[:t.width-1])
	}
	fmt.Fprint(t.device, "\r\x1b[K"+line)
	t.busy = true
}

// Done wipes the line of progress.
func (t *talk) Done() {
	if t.busy {
		fmt.Fprint(t.device, "\r\x1b[K")
		t.busy, t.pulls.last = false, ""
	}
}

// Note prints a line, without the credentials that a URL in it may hold.
func (t *talk) Note(format string, args ...any) {
	t.Done()
	fmt.Fprintln(t, strings.TrimSuffix(diag.Redact(fmt.Sprintf(format, args...)), "\n"))
}

// Warn prints one warning a line, in the order given.
func (t *talk) Warn(ws []diag.Warning) {
	for _, w := range ws {
		label := t.paint(yellow, "warning:")
		if w.Pos.IsZero() {
			t.Note("%s %s", label, inert.Line(w.Msg))
			continue
		}
		t.Note("%s: %s %s", w.Pos, label, inert.Line(w.Msg))
	}
}

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

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
	quiet   bool      // --quiet: say, and nothing else
	verbose bool      // --verbose: Detail, and whatever is Progress, on lines of their own
	began   time.Time // the program
	heading string    // with quiet, what is said next is about this
	busy    bool
	known   int // warnings that were acknowledged
	pulls   pulls
}

var _ project.Talk = (*talk)(nil)

func newTalk(t *terminal) *talk { return &talk{terminal: t, began: time.Now()} }

// Progress shows what is going on now.
func (t *talk) Progress(format string, args ...any) {
	t.Detail(format, args...)
	if !t.tty || t.quiet || t.verbose {
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

// Detail prints, with --verbose, a line with the time that has passed.
func (t *talk) Detail(format string, args ...any) {
	if t.verbose {
		t.say("[%.3fs] %s", time.Since(t.began).Seconds(), inert.Line(fmt.Sprintf(format, args...)))
	}
}

// Note prints a line, unless --quiet says that nobody wants it.
func (t *talk) Note(format string, args ...any) {
	if !t.quiet {
		t.say(format, args...)
	}
}

// say prints a line in any case, without the credentials that a URL in it may hold:
// what went wrong, and what a person is asked.
func (t *talk) say(format string, args ...any) {
	t.Done()
	if t.heading != "" {
		fmt.Fprintln(t, t.heading)
		t.heading = ""
	}
	fmt.Fprintln(t, strings.TrimSuffix(diag.Redact(fmt.Sprintf(format, args...)), "\n"))
}

// ended is what is said at the end.
func (t *talk) ended() string {
	if t.known == 0 {
		return "finished"
	}
	return "finished; acknowledged and not shown: " + diag.Count(t.known, "warning")
}

// Warn prints one warning a line, in the order given, but for those that somebody
// acknowledged.
func (t *talk) Warn(ws []diag.Warning) {
	for _, w := range ws {
		if w.Acknowledged {
			t.known++
			continue
		}
		if !t.quiet {
			t.insist(w)
		}
	}
}

// insist prints a warning, acknowledged or not.
func (t *talk) insist(w diag.Warning) {
	label := t.paint(yellow, "warning:") + " "
	if w.Code == "other-kinds" {
		label = "" // it is all right
	}
	t.say("%s", warningViews([]diag.Warning{w})[0].line(label))
}

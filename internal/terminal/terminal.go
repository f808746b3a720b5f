// Package terminal prints tables, notes, warnings, progress and questions. It adapts them to the
// width and the colors of the terminal. If the output is not a terminal, it prints no progress and
// no colors. All output passes through internal/sanitize.
//
// Start from [Terminal], [Table], [Logger] and [Prompt].
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/quayside/quayside/internal/sanitize"
)

// Terminal is an output stream that may be connected to a terminal.
type Terminal struct {
	io.Writer           // writes text after escaping it; see sanitize.Writer
	Device    io.Writer // writes without escaping
	TTY       bool      // whether it is a terminal
	width     int       // number of columns; 0 if it is not a terminal
	Color     bool      // whether to print colors: on a terminal, unless NO_COLOR or TERM=dumb is set
	Brief     bool      // --quiet: print the number of files instead of their names
	Failed    error     // first write error
}

// Write writes text, and records the first error in t.Failed.
func (t *Terminal) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	if t.Failed == nil {
		t.Failed = err
	}
	return n, err
}

// New returns a Terminal for w. env may contain NO_COLOR and TERM.
func New(w io.Writer, env map[string]string) *Terminal {
	t := &Terminal{Writer: &sanitize.Writer{To: w}, Device: w}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return t
	}
	t.TTY = true
	t.width = 80
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		t.width = width
	}
	t.Color = env["NO_COLOR"] == "" && env["TERM"] != "dumb"
	t.Writer = &sanitize.Writer{To: w, Colors: t.Color}
	return t
}

// Colors and weights for [Terminal.Paint].
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Bold   = "1"
)

// Paint returns s with the terminal sequence of a color, if t prints colors.
func (t *Terminal) Paint(code, s string) string {
	if !t.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Sign returns the sign of a change, "+", "-" or "~", in its color.
func (t *Terminal) Sign(sign string) string {
	switch sign {
	case "+":
		return t.Paint(Green, sign)
	case "-":
		return t.Paint(Red, sign)
	default:
		return t.Paint(Yellow, sign)
	}
}

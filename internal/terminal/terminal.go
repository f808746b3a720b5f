// Package terminal prints tables, notes, warnings, progress and questions, according to the width
// and the colors of the output device.
//
// It is independent of operators and commands. If the output is not a terminal, it prints no
// progress and no color. All its output passes through internal/sanitize.
//
// Start from [Terminal], [Table], [Logger] and [Prompt].
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/quayside/quayside/internal/sanitize"
)

// Terminal is an output stream with the properties of its device.
type Terminal struct {
	io.Writer           // escapes any text: see sanitize.Writer
	Device    io.Writer // writes without escaping
	TTY       bool      // whether it is a terminal
	width     int       // columns; 0 if not a terminal
	Color     bool      // only on a terminal, and unless NO_COLOR or TERM=dumb
	Brief     bool      // --quiet: count files instead of listing them
	Failed    error     // first write error
}

// Write writes any text, and records the first error in Failed.
func (t *Terminal) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	if t.Failed == nil {
		t.Failed = err
	}
	return n, err
}

// New returns the terminal of w. It respects NO_COLOR and TERM in env.
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

// The colors and weights of [Terminal.Paint].
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Bold   = "1"
)

// Paint returns s in a color if t has colors.
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

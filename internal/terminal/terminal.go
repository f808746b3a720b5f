// Package terminal is the device that the program talks to: whether there is a
// person behind it, how wide it is and whether it has colours, and what depends on
// that, which is tables, notes, warnings, a line of progress, and questions.
//
// It knows nothing of operators or of commands, and decides nothing: where nobody
// sits at the other end, there is no progress, no heading and no colour. Whatever it
// prints passes internal/inert.
//
// Start from [Terminal], [Table], [Talk] and [Prompt].
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/quayside/quayside/internal/inert"
)

// Terminal is a stream, and what is known of the device behind it.
type Terminal struct {
	io.Writer           // takes any text: see inert.Writer
	Device    io.Writer // takes what is to reach it as it is
	TTY       bool      // whether it is a terminal
	width     int       // columns; 0 where there is no terminal
	Color     bool      // only on a terminal, and not against NO_COLOR
	Failed    error     // why something could not be written: asked for at the end
}

// Write takes any text, and keeps the first error.
func (t *Terminal) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	if t.Failed == nil {
		t.Failed = err
	}
	return n, err
}

// New looks at what w is. Of env it heeds NO_COLOR and TERM.
func New(w io.Writer, env map[string]string) *Terminal {
	t := &Terminal{Writer: &inert.Writer{To: w}, Device: w}
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
	t.Writer = &inert.Writer{To: w, Colors: t.Color}
	return t
}

// The few colours that carry meaning.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Bold   = "1"
)

// Paint returns s in a colour where t has colours.
func (t *Terminal) Paint(code, s string) string {
	if !t.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Sign returns the sign of a change in its colour: "+", "-" or "~".
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

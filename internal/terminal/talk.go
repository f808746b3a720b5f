package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
)

// Talk is what goes to standard error: notes, warnings and, on a terminal
// only, one line of progress that is wiped when it is no longer true.
type Talk struct {
	*Terminal
	Quiet   bool      // --quiet: Say, and nothing else
	Verbose bool      // --verbose: Detail, and whatever is Progress, on lines of their own
	began   time.Time // the program
	Heading string    // with Quiet, what is said next is about this
	busy    bool
	known   int // warnings that a waiver accepts
	pulls   pulls
}

// NewTalk returns the talk of a program that begins now.
func NewTalk(t *Terminal) *Talk { return &Talk{Terminal: t, began: time.Now()} }

// Progress shows what is going on now.
func (t *Talk) Progress(format string, args ...any) {
	t.Detail(format, args...)
	if !t.TTY || t.Quiet || t.Verbose {
		return
	}
	line := inert.Line(fmt.Sprintf(format, args...))
	if runes := []rune(line); len(runes) >= t.width {
		line = string(runes[:t.width-1])
	}
	fmt.Fprint(t.Device, "\r\x1b[K"+line)
	t.busy = true
}

// Done wipes the line of progress.
func (t *Talk) Done() {
	if t.busy {
		fmt.Fprint(t.Device, "\r\x1b[K")
		t.busy, t.pulls.last = false, ""
	}
}

// Detail prints, with --verbose, a line with the time that has passed.
func (t *Talk) Detail(format string, args ...any) {
	if t.Verbose {
		t.Say("[%.3fs] %s", time.Since(t.began).Seconds(), inert.Line(fmt.Sprintf(format, args...)))
	}
}

// Note prints a line, unless --quiet says that nobody wants it.
func (t *Talk) Note(format string, args ...any) {
	if !t.Quiet {
		t.Say(format, args...)
	}
}

// Say prints a line in any case, without the credentials that a URL in it may hold:
// what went wrong, and what a person is asked.
func (t *Talk) Say(format string, args ...any) {
	t.Done()
	if t.Heading != "" {
		fmt.Fprintln(t, t.Heading)
		t.Heading = ""
	}
	fmt.Fprintln(t, strings.TrimSuffix(diag.Redact(fmt.Sprintf(format, args...)), "\n"))
}

// Ended is what is said at the end.
func (t *Talk) Ended() string {
	if t.known == 0 {
		return "finished"
	}
	return "finished; waived and not shown: " + diag.Count(t.known, "warning")
}

// Warn prints one warning a line, in the order given, but for those that are waived.
func (t *Talk) Warn(ws []diag.Warning) {
	for _, w := range ws {
		if w.Waived {
			t.known++
			continue
		}
		if !t.Quiet {
			t.Insist(w)
		}
	}
}

// Insist prints a warning, waived or not.
func (t *Talk) Insist(w diag.Warning) {
	label := t.Paint(Yellow, "warning:") + " "
	if w.Code == "other-kinds" {
		label = "" // it is all right
	}
	t.Say("%s", w.Line(label))
}

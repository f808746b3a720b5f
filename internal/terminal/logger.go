package terminal

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

// Logger prints notes and warnings to standard error. On a terminal, it also shows one progress
// line, which it erases before other output.
type Logger struct {
	*Terminal
	Quiet   bool      // --quiet: print no notes, warnings or progress
	Verbose bool      // --verbose: print details, and each progress message as a line
	start   time.Time // start time of the program
	Heading string    // heading to print once, before the next line
	shown   bool      // whether a progress line is shown
	waived  int       // number of waived warnings
	warned  bool      // whether a warning was printed that a waiver can silence
	hinted  bool      // whether Hint was printed
	pulls   transfers
}

// NewLogger returns a logger. The elapsed time in details starts now.
func NewLogger(t *Terminal) *Logger { return &Logger{Terminal: t, start: time.Now()} }

// Progress shows a progress message.
func (t *Logger) Progress(format string, args ...any) {
	t.Detail(format, args...)
	if !t.TTY || t.Quiet || t.Verbose {
		return
	}
	line := sanitize.Line(fmt.Sprintf(format, args...))
	if runes := []rune(line); len(runes) >= t.width {
		line = string(runes[:t.width-1])
	}
	fmt.Fprint(t.Device, "\r\x1b[K"+line)
	t.shown = true
}

// Done erases the progress line.
func (t *Logger) Done() {
	if t.shown {
		fmt.Fprint(t.Device, "\r\x1b[K")
		t.shown, t.pulls.last = false, ""
	}
}

// Detail prints a line with the elapsed time if --verbose is set.
func (t *Logger) Detail(format string, args ...any) {
	if t.Verbose {
		t.Say("[%.3fs] %s", time.Since(t.start).Seconds(), sanitize.Line(fmt.Sprintf(format, args...)))
	}
}

// Note prints a line unless --quiet is set.
func (t *Logger) Note(format string, args ...any) {
	if !t.Quiet {
		t.Hint()
		t.Say(format, args...)
	}
}

// Say prints a line even with --quiet, such as an error or a question. It removes credentials from
// URLs.
func (t *Logger) Say(format string, args ...any) {
	t.Done()
	if t.Heading != "" {
		fmt.Fprintln(t, t.Heading)
		t.Heading = ""
	}
	fmt.Fprintln(t, strings.TrimSuffix(diag.Redact(fmt.Sprintf(format, args...)), "\n"))
}

// FinalMessage returns the last message of the program. It includes the number of waived warnings, if there are any.
func (t *Logger) FinalMessage() string {
	if t.waived == 0 {
		return "finished"
	}
	return "finished; waived and not shown: " + diag.Count(t.waived, "warning")
}

// Warn prints warnings in the given order, one per line. It omits waived warnings and, without --verbose, minor
// warnings.
func (t *Logger) Warn(ws []diag.Warning) {
	for _, w := range ws {
		switch {
		case w.Waived:
			t.waived++
		case !t.Quiet && (!w.Minor || t.Verbose):
			t.WarnAlways(w)
			t.warned = t.warned || w.Code != "other-kinds" && !strings.HasPrefix(w.Code, "waiver-")
		}
	}
}

// Hint prints how to silence warnings, if there were warnings and the hint was not printed before. Note calls
// Hint, too, so that the hint directly follows the warnings.
func (t *Logger) Hint() {
	if t.warned && !t.hinted {
		t.hinted = true
		t.Say("  hint: fix the cause of a warning, or silence it with a waiver for its [code]: docs/warnings.md")
	}
}

// WarnAlways prints a warning even if it is waived.
func (t *Logger) WarnAlways(w diag.Warning) {
	label := t.Paint(Yellow, "warning:") + " "
	if w.Code == "other-kinds" {
		label = "" // the warning is information only
	}
	t.Say("%s", w.Line(label))
}

// progress is the number of bytes of a blob that have arrived, and the size of the blob.
type progress struct{ done, total int64 }

// transfers tracks the transfer of images.
type transfers struct {
	mu   sync.Mutex // also guards the output of the terminal while images are fetched
	done map[string]map[string]progress
	last string
}

// Pull shows the progress of fetching an image. The blob with this digest has total bytes, and done bytes
// of it have arrived. Pull does not print the same line twice in succession.
func (t *Logger) Pull(image, digest string, done, total int64) {
	p := &t.pulls
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = map[string]map[string]progress{}
	}
	if p.done[image] == nil {
		p.done[image] = map[string]progress{}
	}
	p.done[image][digest] = progress{done, total}
	if t.Verbose && done < total {
		return // only completed blobs are printed as lines
	}
	if line := p.line(image); line != p.last {
		p.last = line
		t.Progress("%s", line)
	}
}

// line returns the progress line of an image. The numbers come first, because a narrow terminal
// truncates the line.
func (p *transfers) line(image string) string {
	var done, total int64
	layers := 0
	for _, b := range p.done[image] {
		done, total = done+b.done, total+b.total
		if b.done >= b.total {
			layers++
		}
	}
	return fmt.Sprintf("fetching %.1f of %.1f MB, %d of %s of %s", float64(done)/1e6, float64(total)/1e6, layers, diag.Count(len(p.done[image]), "layer"), image)
}

// NoteDuringPull prints a note while images are fetched.
func (t *Logger) NoteDuringPull(format string, args ...any) {
	t.pulls.mu.Lock()
	defer t.pulls.mu.Unlock()
	t.pulls.last = ""
	t.Note(format, args...)
}

package terminal

import (
	"fmt"
	"sync"

	"github.com/quayside/quayside/internal/diag"
)

// progress is the number of bytes of a blob that have arrived, and their total.
type progress struct{ done, total int64 }

// transfers tracks the transfer of images.
type transfers struct {
	mu   sync.Mutex // also guards the output of the terminal while images are fetched
	done map[string]map[string]progress
	last string
}

// Pull shows the progress of fetching an image: done of total bytes of a blob have arrived. It does
// not show the same text twice.
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

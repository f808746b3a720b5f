package terminal

import (
	"fmt"
	"sync"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/registry"
)

// pulls tells, on a terminal, how far the transfer of images is.
type pulls struct {
	mu   sync.Mutex // guards the terminal, too, while images are fetched
	done map[string]map[string]registry.Progress
	last string
}

// Pull takes in what became of one blob and shows the image that it is of. What
// reads the same as before is not written again.
func (t *Talk) Pull(now registry.Progress) {
	p := &t.pulls
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = map[string]map[string]registry.Progress{}
	}
	if p.done[now.Image] == nil {
		p.done[now.Image] = map[string]registry.Progress{}
	}
	p.done[now.Image][now.Digest] = now
	if t.Verbose && now.Done < now.Total {
		return // each blob once
	}
	if line := p.line(now.Image); line != p.last {
		p.last = line
		t.Progress("%s", line)
	}
}

// line is what is said of one image. The numbers come first, as a narrow
// terminal cuts off the end.
func (p *pulls) line(image string) string {
	var done, total int64
	layers := 0
	for _, b := range p.done[image] {
		done, total = done+b.Done, total+b.Total
		if b.Done >= b.Total {
			layers++
		}
	}
	return fmt.Sprintf("fetching %.1f of %.1f MB, %d of %s of %s", float64(done)/1e6, float64(total)/1e6, layers, diag.Count(len(p.done[image]), "layer"), image)
}

// NoteBetween prints a line while images are fetched.
func (t *Talk) NoteBetween(format string, args ...any) {
	t.pulls.mu.Lock()
	defer t.pulls.mu.Unlock()
	t.pulls.last = ""
	t.Note(format, args...)
}

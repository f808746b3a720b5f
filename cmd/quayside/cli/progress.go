package cli

import (
	"fmt"
	"sync"

	"github.com/quayside/quayside/registry"
)

// pulls tells, on a terminal, how far the transfer of images is.
type pulls struct {
	talk *talk
	mu   sync.Mutex // guards talk, too, while images are fetched
	done map[string]map[string]registry.Progress
	last string
}

func newPulls(t *talk) *pulls {
	return &pulls{talk: t, done: map[string]map[string]registry.Progress{}}
}

// show takes in what became of one blob and shows the image that it is of. What
// reads the same as before is not written again.
func (p *pulls) show(now registry.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done[now.Image] == nil {
		p.done[now.Image] = map[string]registry.Progress{}
	}
	p.done[now.Image][now.Digest] = now
	if line := p.line(now.Image); line != p.last {
		p.last = line
		p.talk.progress("%s", line)
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
	return fmt.Sprintf("fetching %.1f of %.1f MB, %d of %s of %s", float64(done)/1e6, float64(total)/1e6, layers, count(len(p.done[image]), "layer"), image)
}

// note prints a line.
func (p *pulls) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = ""
	p.talk.note(format, args...)
}

package engine

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/quayside/quayside/internal/helm/internal/wire"
)

// Limits of one chart.
const (
	maxCPU    = 4 * time.Second
	maxWall   = 20 * time.Second // limit for a process that waits, and so uses no CPU time
	maxMemory = 512 << 20        // bytes in use; the kernel's limit is higher
	tick      = 10 * time.Millisecond
)

// watch ends the process if the chart exceeds a limit. It also has the stack of the templates that
// are being executed.
type watch struct {
	mu    sync.Mutex
	out   io.Writer
	names []string // the templates that are executed, outermost first
	done  chan struct{}
	ended sync.WaitGroup
}

func startWatch(out io.Writer) *watch {
	w := &watch{out: out, done: make(chan struct{})}
	start, cpu := time.Now(), processCPU()
	w.ended.Go(func() {
		sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			select {
			case <-w.done:
				return
			case <-time.After(tick):
			}
			metrics.Read(sample)
			used := sample[0].Value.Uint64() - sample[1].Value.Uint64()
			switch {
			case used > maxMemory:
				w.fail(fmt.Sprintf("templating exceeds %d MiB of memory", maxMemory>>20))
			case processCPU()-cpu > maxCPU:
				w.fail(fmt.Sprintf("templating exceeds %v of CPU time", maxCPU))
			case time.Since(start) > maxWall:
				w.fail(fmt.Sprintf("templating exceeds %v", maxWall))
			}
		}
	})
	return w
}

// stop ends the watch. The process is then free to write the answer.
func (w *watch) stop() {
	close(w.done)
	w.ended.Wait()
}

// fail writes an error and ends the process.
func (w *watch) fail(msg string) {
	w.mu.Lock()
	name := ""
	if n := len(w.names); n > 0 {
		name = w.names[n-1]
	}
	if wire.WriteJSON(w.out, wire.Reply, &wire.Answer{Error: &wire.Error{Path: name, Msg: msg}, Last: true}) == nil {
		_ = wire.Write(w.out, wire.Objects)
	}
	os.Exit(0) //nolint:forbidigo // templates cannot be cancelled: the process ends while one runs
}

// enter records the beginning of a template, or of the work on another file. It writes the name of an
// outermost template at once, because a process that exceeds its memory limit can no longer report the name.
func (w *watch) enter(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = append(w.names, name)
	if len(w.names) == 1 && w.out != nil {
		_ = wire.Write(w.out, wire.Template, []byte(name))
	}
}

// leave records the end of the step that the last call of enter began.
func (w *watch) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = w.names[:max(0, len(w.names)-1)]
}

// reset forgets the templates of an execution that failed.
func (w *watch) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = nil
}

// current returns the innermost template.
func (w *watch) current() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.names) == 0 {
		return ""
	}
	return w.names[len(w.names)-1]
}

// limitRuntime sets the limits of Go's runtime.
func limitRuntime() {
	debug.SetMemoryLimit(maxMemory / 4 * 3)
	debug.SetMaxStack(128 << 20)
	runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
}

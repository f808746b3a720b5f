package runtest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
)

// Clock is a fake clock. Sleep advances both the clock and the time of the cluster.
type Clock struct {
	Cluster *Cluster

	mu  sync.Mutex
	now time.Time
}

var _ run.Clock = (*Clock)(nil)

// Now implements run.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(c.now.Sub(time.Time{}))
}

// Sleep implements run.Clock. It returns immediately.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
	c.Cluster.AdvanceTime(d)
	return ctx.Err()
}

// Files is an in-memory directory.
type Files struct {
	Before func(name string) error // called before each write; an error prevents it

	mu    sync.Mutex
	files map[string][]byte
}

var _ run.Files = (*Files)(nil)

// Clone returns a copy of the files.
func (f *Files) Clone() *Files {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &Files{files: maps.Clone(f.files)}
}

// Read implements run.Files.
func (f *Files) Read(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.files[name]), nil
}

// Write implements run.Files.
func (f *Files) Write(name string, data []byte) error {
	return f.put(name, func([]byte) []byte { return slices.Clone(data) })
}

// Append implements run.Files.
func (f *Files) Append(name string, data []byte) error {
	return f.put(name, func(old []byte) []byte { return append(old, data...) })
}

func (f *Files) put(name string, change func([]byte) []byte) error {
	if f.Before != nil {
		if err := f.Before(name); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil {
		f.files = map[string][]byte{}
	}
	f.files[name] = change(f.files[name])
	return nil
}

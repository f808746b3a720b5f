//go:build unix

package filetree_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/filetree"
)

// TestIrregularFiles reads FIFOs and sockets by every method, also through links. Each read must fail at once.
func TestIrregularFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(at("fifo"), 0o644); err != nil {
		t.Skip(err)
	}
	for _, link := range [][2]string{{"fifo", "link"}, {"link", "chain"}} {
		if err := os.Symlink(link[0], at(link[1])); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"fifo", "link", "chain"}
	if l, err := net.Listen("unix", at("socket")); err == nil {
		defer l.Close()
		names = append(names, "socket")
	}
	files := filetree.OpenRootDir(dir).FS()
	for _, name := range names {
		for how, read := range map[string]func() error{
			"Open":     func() error { _, err := files.Open(name); return err },
			"ReadFile": func() error { _, err := fs.ReadFile(files, name); return err },
			"named":    func() error { _, err := filetree.ReadFile(at(name)); return err },
		} {
			done := make(chan error, 1)
			go func() { done <- read() }()
			select {
			case err := <-done:
				if err == nil {
					t.Errorf("%s %s: no error", how, name)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s %s: still waiting", how, name)
			}
		}
	}
}

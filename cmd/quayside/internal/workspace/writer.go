package workspace

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/store"
)

// writerWait is the maximum time to wait for another command that writes to the same work tree.
const writerWait = 10 * time.Second

// LockWorkTree locks the Git work tree for writing or, if there is none, the workspace. Both release and the
// end of the process unlock it. If another command holds the lock for too long, the error names that command.
// The lock is a file in Git's directory or, if that is not writable, in the store. If neither is writable,
// nothing is locked.
func (p *Opened) LockWorkTree(command string) (release func(), err error) {
	open, err := p.writerFile()
	if err != nil {
		return func() {}, nil //nolint:nilerr // as documented above
	}
	f, err := open()
	if err != nil {
		return func() {}, nil //nolint:nilerr // as documented above
	}
	holder, _ := io.ReadAll(io.LimitReader(f, 1<<10))
	name := strings.TrimSpace(string(holder))
	if release, err = store.LockFile(f, 0); err != nil {
		p.Log.Progress("waiting for another command that writes in %s: %s", p.Location(), name)
		defer p.Log.Done()
		if f, err = open(); err != nil {
			return nil, err
		}
		if release, err = store.LockFile(f, writerWait); err != nil {
			return nil, fmt.Errorf("another command is writing in %s: %s: try again after it has ended", p.Location(), name)
		}
	}
	host, _ := os.Hostname()
	if err := f.Truncate(0); err == nil { // the content is only for messages
		_, _ = f.WriteAt(fmt.Appendf(nil, "%s (process %d on %s)\n", command, os.Getpid(), host), 0)
	}
	return release, nil
}

// writerFile returns a function that opens the file to lock.
func (p *Opened) writerFile() (open func() (*os.File, error), err error) {
	top := p.Top()
	if state, err := gitrepo.StateDir(top); err == nil {
		open = func() (*os.File, error) {
			return os.OpenFile(filepath.Join(state, "quayside-writer"), os.O_RDWR|os.O_CREATE, 0o666)
		}
		if f, err := open(); err == nil {
			return open, f.Close()
		}
	}
	cache, err := p.store()
	if err != nil {
		return nil, err
	}
	return func() (*os.File, error) { return cache.OpenLock(top) }, nil
}

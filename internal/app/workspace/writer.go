package workspace

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/base/gitrepo"
	"github.com/quayside/quayside/internal/base/store"
)

// writerWait is the maximum wait for another command that writes in the same work tree.
const writerWait = 10 * time.Second

// LockWriter makes a command the only one that writes in the work tree around the workspace,
// or in the workspace if there is none, until release is called or the process dies. It
// returns an error that names the other command if that takes too long. The lock is a file in
// Git's directory of the work tree, or else in the store; where neither can be written, there
// is no lock.
func (p *Project) LockWriter(command string) (release func(), err error) {
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
			return nil, fmt.Errorf("another command writes in %s: %s: run this again when it has ended", p.Location(), name)
		}
	}
	host, _ := os.Hostname()
	if err := f.Truncate(0); err == nil { // the content is for messages only
		_, _ = f.WriteAt(fmt.Appendf(nil, "%s (process %d on %s)\n", command, os.Getpid(), host), 0)
	}
	return release, nil
}

// writerFile returns a function that opens the file to lock.
func (p *Project) writerFile() (open func() (*os.File, error), err error) {
	top := p.Top()
	if state, err := gitrepo.StateDir(top); err == nil {
		open = func() (*os.File, error) {
			return os.OpenFile(filepath.Join(state, "quayside-writer"), os.O_RDWR|os.O_CREATE, 0o666)
		}
		if f, err := open(); err == nil {
			return open, f.Close()
		}
	}
	kept, err := p.store()
	if err != nil {
		return nil, err
	}
	return func() (*os.File, error) { return kept.OpenLock(top) }, nil
}

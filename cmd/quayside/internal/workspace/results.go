package workspace

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/quayside/quayside/internal/memo"
)

// resultKind is a kind of files in the store. A file has the results of the kustomizations of one
// repository.
const resultKind = "repository-results"

// newResults returns results that earlier commands computed in the repository of a workspace. It
// returns nil if the workspace is not on disk, or if the store is in the repository, because a
// read-only command must not change files there.
func (e Env) newResults(root Root) *memo.Results {
	if !root.OnDisk() || e.Getenv == nil {
		return nil
	}
	top, err := filepath.Abs(root.disk.Top())
	if err != nil {
		return nil
	}
	s, err := e.store()
	if err != nil {
		return nil
	}
	if in, err := filepath.Rel(top, s.Dir()); err != nil || filepath.IsLocal(in) {
		return nil
	}
	read := func() ([]byte, error) {
		f, size, err := s.OpenFile(resultKind, top)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if size > memo.MaxSize {
			return nil, fmt.Errorf("%d bytes exceed the limit of %d", size, memo.MaxSize)
		}
		data := make([]byte, size)
		_, err = io.ReadFull(f, data)
		return data, err
	}
	write := func(data []byte) error {
		return s.PutFile(resultKind, top, func(f *os.File) error {
			_, err := f.Write(data)
			return err
		})
	}
	return memo.New(e.Version+programState(), read, write)
}

// programState returns the size and time of the program file, which distinguish builds with the same version.
func programState() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
}

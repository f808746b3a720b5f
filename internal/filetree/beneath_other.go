//go:build !linux

package filetree

import (
	"errors"
	"io/fs"
	"os"
)

// beneath does nothing, because no portable way is faster than os.Root.
type beneath struct{}

func newBeneath(*os.Root) *beneath { return nil }

func (*beneath) readFile(string, int64) ([]byte, error)   { return nil, errors.ErrUnsupported }
func (*beneath) stat(string, uint64) (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

func (*beneath) readDir(string, string, bool) ([]fs.DirEntry, error) {
	return nil, errors.ErrUnsupported
}

const noFollow = 0

// Package stamp tells whether the files of a directory are the ones that were
// there before, without reading them: by name, size, times and inode.
//
// Start from [Of].
package stamp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"time"
)

// Stamp stands for the state of a directory.
type Stamp struct {
	sum    string    // of what is known of every file
	newest time.Time // the latest change
	coarse bool      // the file system keeps whole seconds
	taken  time.Time // before the first file was looked at
	links  bool      // there are symbolic links, whose targets can change unseen
}

// How long a change may go unnoticed: the clock that file times are taken from
// moves in steps, by the kernel's tick or by whole seconds.
const (
	tick   = 20 * time.Millisecond
	second = 2 * time.Second
)

// Of returns the stamp of every file and directory below fsys.
func Of(fsys fs.FS) (Stamp, error) {
	s := Stamp{taken: time.Now()}
	sum := sha256.New()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inode, changed := identity(info)
		fmt.Fprintf(sum, "%q %v %d %d %d %d\n", name, info.Mode(), info.Size(), info.ModTime().UnixNano(), inode, changed.UnixNano())
		s.note(info.ModTime())
		s.note(changed)
		s.links = s.links || info.Mode()&fs.ModeSymlink != 0
		return nil
	})
	s.sum = hex.EncodeToString(sum.Sum(nil))
	return s, err
}

func (s *Stamp) note(t time.Time) {
	if t.After(s.newest) {
		s.newest, s.coarse = t, t.Nanosecond() == 0
	}
}

// Text returns the stamp as text: equal texts mean equal files, if the first
// was settled.
func (s Stamp) Text() string { return s.sum }

// Settled reports whether any change to the files after the stamp was taken is
// certain to change it: the last one was long enough before.
func (s Stamp) Settled() bool {
	step := tick
	if s.coarse {
		step = second
	}
	return !s.links && s.taken.Sub(s.newest) > step
}

// Package stamp tells whether the files of a directory are the ones that were
// there before, without reading them: by name, size, times and inode.
//
// Start from [Of] and [Again].
package stamp

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"slices"
	"strconv"
	"time"
)

// Stamp stands for the state of a directory.
type Stamp struct {
	sum    string    // of what is known of every file
	names  []string  // of the files and directories, in the order of a walk
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
	s := &summer{stamp: Stamp{taken: time.Now()}}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		s.add(name, info)
		return nil
	})
	return s.done(), err
}

// Again returns what Of returns where the files and directories are still the
// ones with these names, of Stamp.Names, and a different stamp where they are
// not: the directories' own times tell what came and went. It costs less, for
// no directory is read.
func Again(fsys fs.FS, names []string) (Stamp, error) {
	s := &summer{stamp: Stamp{taken: time.Now()}}
	for _, name := range names {
		info, err := fs.Lstat(fsys, name)
		if err != nil {
			return Stamp{}, err
		}
		s.add(name, info)
	}
	return s.done(), nil
}

// summer collects what a stamp is made of.
type summer struct {
	stamp Stamp
	text  []byte
}

func (s *summer) add(name string, info fs.FileInfo) {
	inode, changed := identity(info)
	s.text = strconv.AppendQuote(s.text, name)
	for _, n := range []int64{int64(info.Mode()), info.Size(), info.ModTime().UnixNano(), int64(inode), changed.UnixNano()} {
		s.text = strconv.AppendInt(append(s.text, ' '), n, 10)
	}
	s.text = append(s.text, '\n')
	s.stamp.names = append(s.stamp.names, name)
	s.stamp.note(info.ModTime())
	s.stamp.note(changed)
	s.stamp.links = s.stamp.links || info.Mode()&fs.ModeSymlink != 0
}

func (s *summer) done() Stamp {
	sum := sha256.Sum256(s.text)
	s.stamp.sum = hex.EncodeToString(sum[:])
	return s.stamp
}

func (s *Stamp) note(t time.Time) {
	if t.After(s.newest) {
		s.newest, s.coarse = t, t.Nanosecond() == 0
	}
}

// Text returns the stamp as text: equal texts mean equal files, if the first
// was settled.
func (s Stamp) Text() string { return s.sum }

// Names returns the names of the files and directories that the stamp covers.
func (s Stamp) Names() []string { return slices.Clone(s.names) }

// Settled reports whether any change to the files after the stamp was taken is
// certain to change it: the last one was long enough before.
func (s Stamp) Settled() bool {
	step := tick
	if s.coarse {
		step = second
	}
	return !s.links && s.taken.Sub(s.newest) > step
}

package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"strconv"
	"time"

	"github.com/quayside/quayside/catalog/fbc"
)

// stamp detects changes of files without reading them, by their names, sizes,
// times and inodes.
type stamp struct {
	text   []byte    // what is known of every file
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

// stampOf returns the stamp of a file, or of every file and directory below fsys
// but Git's where file is empty, taken at the given time.
func stampOf(fsys fs.FS, file string, taken time.Time) (stamp, error) {
	s := stamp{taken: taken}
	if file != "" {
		info, err := fs.Lstat(fsys, file)
		if err != nil {
			return stamp{}, err
		}
		s.add(file, info)
		return s, nil
	}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && fbc.IsGit(name) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		s.add(name, info)
		return nil
	})
	return s, err
}

func (s *stamp) add(name string, info fs.FileInfo) {
	inode, changed := identity(info)
	s.text = strconv.AppendQuote(s.text, name)
	for _, n := range []int64{int64(info.Mode()), info.Size(), info.ModTime().UnixNano(), int64(inode), changed.UnixNano()} {
		s.text = strconv.AppendInt(append(s.text, ' '), n, 10)
	}
	s.text = append(s.text, '\n')
	s.note(info.ModTime())
	s.note(changed)
	s.links = s.links || info.Mode()&fs.ModeSymlink != 0
}

func (s *stamp) note(t time.Time) {
	if t.After(s.newest) {
		s.newest, s.coarse = t, t.Nanosecond() == 0
	}
}

// sum returns the stamp as text: equal ones mean equal files, if the first was
// settled.
func (s *stamp) sum() string {
	sum := sha256.Sum256(s.text)
	return hex.EncodeToString(sum[:])
}

// settled reports whether any change to the files after the stamp was taken is
// certain to change it: the last one was long enough before, and is known.
func (s *stamp) settled() bool {
	step := tick
	if s.coarse {
		step = second
	}
	return !s.links && !s.newest.IsZero() && s.taken.Sub(s.newest) > step
}

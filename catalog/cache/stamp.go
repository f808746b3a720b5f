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
	text   []byte    // attributes of every file
	newest time.Time // time of the latest change
	coarse bool      // the file system stores whole seconds
	taken  time.Time // time before reading the attributes of the first file
	links  bool      // there are symbolic links, whose targets can change unnoticed
}

// A change within this time of another one may have the same timestamp: the clock of file times
// advances by ticks of the kernel, or by whole seconds.
const (
	tick   = 20 * time.Millisecond
	second = 2 * time.Second
)

// stampOf returns the stamp of a file, or if file is empty, of all files and directories below
// fsys, except Git's own. taken is the current time.
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

// sum returns the stamp as text. If the older of two stamps is settled, equal texts mean equal
// files.
func (s *stamp) sum() string {
	sum := sha256.Sum256(s.text)
	return hex.EncodeToString(sum[:])
}

// isSettled reports whether every later change of the files changes the stamp. This requires
// that the time of the last change is known, and long enough before the time of the stamp.
func (s *stamp) isSettled() bool {
	step := tick
	if s.coarse {
		step = second
	}
	return !s.links && !s.newest.IsZero() && s.taken.Sub(s.newest) > step
}

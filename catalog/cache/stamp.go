package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"strconv"
	"time"

	"github.com/quayside/quayside/catalog/fbc"
)

// stamp summarizes the metadata of files: names, sizes, times and inodes. Comparing two stamps
// detects changed files without reading them.
type stamp struct {
	text   []byte    // attributes of every file
	newest time.Time // latest modification or inode change time of all files
	coarse bool      // newest has no fraction: the file system may store whole seconds
	taken  time.Time // time just before the first file was inspected
	links  bool      // there are symbolic links, whose targets can change unnoticed
}

// Resolution of file times. Two changes within this time may leave the same timestamp, because the
// kernel advances the clock for file times in ticks, and some file systems store only whole
// seconds.
const (
	tick   = 20 * time.Millisecond
	second = 2 * time.Second
)

// stampOf returns the stamp of one file. If file is empty, it returns the stamp of all files and
// directories below fsys, except those of Git. taken is the current time.
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

// sum returns a checksum of the stamp. If two stamps have equal checksums and the older stamp
// is settled, the files have not changed.
func (s *stamp) sum() string {
	sum := sha256.Sum256(s.text)
	return hex.EncodeToString(sum[:])
}

// isSettled reports whether every later change of the files will change the stamp. This is true if the last
// change was long enough before the stamp was taken. The result is false if there are symbolic links, or if no
// file has a time.
func (s *stamp) isSettled() bool {
	step := tick
	if s.coarse {
		step = second
	}
	return !s.links && !s.newest.IsZero() && s.taken.Sub(s.newest) > step
}

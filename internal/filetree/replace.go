package filetree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// replace puts tmp in dir's place in two steps, for systems that cannot
// exchange two directories in one. recoverTree finishes what a crash between
// them leaves.
func replace(tmp, dir string) error {
	old := sibling(dir) + "old"
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if renameErr := os.Rename(tmp, dir); renameErr != nil {
		if err == nil {
			return errors.Join(renameErr, os.Rename(old, dir))
		}
		return renameErr
	}
	if err == nil {
		_ = os.RemoveAll(old) // the next run clears what is left
	}
	return nil
}

// Names of the sibling that holds a whole tree, before and after the files that
// it no longer has are removed.
const (
	commitSuffix = "commit"
	movingSuffix = "moving"
)

// immovable reports whether a directory cannot be renamed at all: it is a
// mount point, or lies in the lower layer of an overlay.
func immovable(err error) bool {
	return errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EBUSY)
}

// inPlace makes dir, which cannot be renamed, hold the tree at tmp, file by
// file. What a crash leaves is finished by the next Write.
func inPlace(tmp, dir string) error {
	if err := os.Rename(tmp, sibling(dir)+commitSuffix); err != nil {
		return err
	}
	if err := syncTree(filepath.Dir(dir)); err != nil {
		return err
	}
	return finish(dir)
}

// finish makes dir the committed tree beside it: it removes the files that the
// tree no longer has, then moves its own, the indices last, so that it can be
// begun again at any point. Without a committed tree it does nothing.
func finish(dir string) error {
	commit, moving := sibling(dir)+commitSuffix, sibling(dir)+movingSuffix
	if _, err := os.Lstat(filepath.Join(commit, Index)); err == nil {
		if err := removeStale(commit, dir); err != nil {
			return err
		}
		if err := os.Rename(commit, moving); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	own, err := ownOf(moving)
	if err != nil {
		return err
	}
	for _, name := range own.paths() {
		if err := move(filepath.Join(moving, filepath.FromSlash(name)), filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("writing %s: %w", filepath.Join(dir, filepath.FromSlash(name)), err)
		}
	}
	return os.RemoveAll(moving)
}

// ownOf returns the entries of the indices of a directory, which may be absent.
func ownOf(dir string) (index, error) {
	p := &plan{dir: dir, disk: map[string]fs.FileMode{}}
	if err := p.scan(); err != nil {
		return nil, err
	}
	return p.own()
}

// removeStale removes the files that dir's indices list and those of commit do
// not, but for what is the user's since it was edited, and the directories that they
// leave empty.
func removeStale(commit, dir string) error {
	want, err := ownOf(commit)
	if err != nil {
		return err
	}
	have, err := ownOf(dir)
	if err != nil {
		return err
	}
	for _, name := range have.paths() {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if _, wanted := want[name]; wanted {
			continue
		}
		if e := have[name]; e.users {
			if got, err := os.ReadFile(file); err == nil && e.edited(got) {
				continue
			}
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
		for up := filepath.Dir(file); strings.HasPrefix(up, dir+string(filepath.Separator)); up = filepath.Dir(up) {
			if os.Remove(up) != nil {
				break // not empty
			}
		}
	}
	return nil
}

var move = moveFile //nolint:gochecknoglobals // tests replace it

// moveFile moves a file, to another file system if it must. A file that is no
// longer there has been moved before.
func moveFile(from, to string) error {
	fi, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err = os.Rename(from, to); !errors.Is(err, syscall.EXDEV) {
		return err
	}
	tmp := to + ".quayside-new"
	_ = os.Remove(tmp) // left by a crash
	if err := copyFile(from, tmp, fi.Mode().Perm()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, to)
}

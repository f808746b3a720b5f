package filetree

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// commitSuffix names the sibling that holds a tree that is being moved in.
const commitSuffix = "commit"

// immovable reports whether a directory cannot be renamed at all: it is a
// mount point, or lies in the lower layer of an overlay.
func immovable(err error) bool {
	return errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EBUSY)
}

// inPlace makes dir, which cannot be renamed, hold the tree at tmp, file by
// file. What a crash leaves is finished by the next Write.
func inPlace(tmp, dir string) error {
	commit := sibling(dir) + commitSuffix
	if err := os.Rename(tmp, commit); err != nil {
		return err
	}
	if err := syncTree(filepath.Dir(dir)); err != nil {
		return err
	}
	return finish(commit, dir)
}

// finish moves what is left of a committed tree into dir: first the files go
// that it no longer has, then its own come, and the index last, so that it can
// be begun again at any point. Without a committed tree it does nothing.
func finish(commit, dir string) error {
	data, err := os.ReadFile(filepath.Join(commit, Index))
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(commit) // the index has arrived, or there is nothing
	}
	if err != nil {
		return err
	}
	want, err := parseIndex(data)
	if err != nil {
		return err
	}
	if err := removeStale(dir, want); err != nil {
		return err
	}
	for _, name := range append(slices.Sorted(maps.Keys(want)), Index) {
		if err := moveFile(filepath.Join(commit, filepath.FromSlash(name)), filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("writing %s: %w", filepath.Join(dir, filepath.FromSlash(name)), err)
		}
	}
	return os.RemoveAll(commit)
}

// removeStale removes the files that dir's index lists and want has not, but
// for starters that the user changed, and the directories that they leave
// empty.
func removeStale(dir string, want index) error {
	data, err := os.ReadFile(filepath.Join(dir, Index))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	have, err := parseIndex(data)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if _, wanted := want[name]; wanted {
			continue
		}
		if digest := have[name]; digest != "" {
			if got, err := os.ReadFile(file); err == nil && sum(got) != digest {
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

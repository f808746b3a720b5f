package filetree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// builder fills a new tree.
type builder struct {
	from, to string
	disk     map[string]fs.FileMode
}

func (b builder) write(name string, data []byte) error {
	to := filepath.Join(b.to, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// carry takes a file over from the old tree.
func (b builder) carry(name string) error {
	from, to := filepath.Join(b.from, filepath.FromSlash(name)), filepath.Join(b.to, filepath.FromSlash(name))
	mode := b.disk[name]
	if mode.IsDir() {
		return os.MkdirAll(to, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if mode.Type() == fs.ModeSymlink {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return copyFile(from, to, mode.Perm())
}

func copyFile(from, to string, perm fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}

// modes gives directories that were there the permissions that they had.
func (b builder) modes() error {
	root := fs.FileMode(0o755)
	if fi, err := os.Stat(b.from); err == nil {
		root = fi.Mode().Perm()
	}
	for name, mode := range b.disk {
		to := filepath.Join(b.to, filepath.FromSlash(name))
		if fi, err := os.Lstat(to); mode.IsDir() && err == nil && fi.IsDir() && fi.Mode().Perm() != mode.Perm() {
			if err := os.Chmod(to, mode.Perm()); err != nil {
				return err
			}
		}
	}
	return os.Chmod(b.to, root)
}

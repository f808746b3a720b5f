package filetree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// builder fills a new tree. What takes the place of something has its mode,
// owner and group; what is new those that it would have got in the old tree.
type builder struct {
	from, to string
	disk     map[string]fs.FileMode
	stays    bool // a directory's owner or group cannot be had for the new one
}

// begin makes the top of the tree.
func (b *builder) begin() error {
	info, err := os.Stat(b.from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, b.likeDir(b.to, info))
}

// likeDir gives a new directory the owner and group of the old one, and for as
// long as it is filled the bit that hands its group on.
func (b *builder) likeDir(name string, old fs.FileInfo) error {
	if keepOwner(name, old) != nil {
		b.stays = true
	}
	return os.Chmod(name, 0o700|old.Mode()&fs.ModeSetgid)
}

// mkdir makes a directory of the new tree and those that it lies in.
func (b *builder) mkdir(name string) error {
	to := filepath.Join(b.to, filepath.FromSlash(name))
	if name == "." {
		return nil
	}
	if err := b.mkdir(path.Dir(name)); err != nil {
		return err
	}
	err := os.Mkdir(to, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil || !b.disk[name].IsDir() {
		return err
	}
	old, err := os.Lstat(filepath.Join(b.from, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	return b.likeDir(to, old)
}

func (b *builder) write(name string, data []byte) error {
	to := filepath.Join(b.to, filepath.FromSlash(name))
	if err := b.mkdir(path.Dir(name)); err != nil {
		return err
	}
	old, there := b.disk[name]
	if err := os.WriteFile(to, data, 0o644); err != nil || !there || !old.IsRegular() {
		return err
	}
	return like(to, filepath.Join(b.from, filepath.FromSlash(name)))
}

// like gives a new file the mode of the old one, and its owner and group where
// that is allowed.
func like(name, old string) error {
	info, err := os.Stat(old)
	if err != nil {
		return err
	}
	_ = keepOwner(name, info) // whoever may not give it away has a file of his own
	return os.Chmod(name, info.Mode().Perm())
}

// carry takes a file over from the old tree.
func (b *builder) carry(name string) error {
	from, to := filepath.Join(b.from, filepath.FromSlash(name)), filepath.Join(b.to, filepath.FromSlash(name))
	mode := b.disk[name]
	if mode.IsDir() {
		return b.mkdir(name)
	}
	if err := b.mkdir(path.Dir(name)); err != nil {
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
	if err := copyFile(from, to, mode.Perm()); err != nil {
		return err
	}
	return like(to, from)
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
func (b *builder) modes() error {
	const kept = fs.ModePerm | fs.ModeSetgid | fs.ModeSticky
	for name, mode := range b.disk {
		to := filepath.Join(b.to, filepath.FromSlash(name))
		if fi, err := os.Lstat(to); mode.IsDir() && err == nil && fi.IsDir() && fi.Mode()&kept != mode&kept {
			if err := os.Chmod(to, mode&kept); err != nil {
				return err
			}
		}
	}
	old, err := os.Stat(b.from)
	if err == nil {
		return os.Chmod(b.to, old.Mode()&kept)
	}
	made, err := os.Stat(b.to)
	if err != nil {
		return err
	}
	return os.Chmod(b.to, 0o755|made.Mode()&fs.ModeSetgid) // the bit comes from the directory around it
}

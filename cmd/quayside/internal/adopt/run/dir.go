package run

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/quayside/quayside/internal/filetree"
)

// JournalDir returns the directory of a journal on disk. The first write creates the directory. Only its owner
// can read the directory, because a journal is confidential.
func JournalDir(name string) Files { return dir{filetree.OpenUserDir(name)} }

type dir struct{ filetree.Dir }

// Read implements Files.
func (d dir) Read(name string) ([]byte, error) {
	data, err := fs.ReadFile(d.FS(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Write implements Files.
func (d dir) Write(name string, data []byte) error {
	root, err := d.Open(0o700)
	if err != nil {
		return err
	}
	if err := errors.Join(root.MkdirAll(path.Dir(name), 0o700), root.Close()); err != nil {
		return err
	}
	_, err = d.WriteFile(name, data)
	return err
}

// Append implements Files.
func (d dir) Append(name string, data []byte) error {
	root, err := d.Open(0o700)
	if err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err := errors.Join(err, root.Close()); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quayside/quayside/internal/base/filetree"
)

// Dir returns the directory of a journal on disk. It is created by the first write. Only its
// owner can read it, because its content is confidential.
func Dir(name string) Files { return dir(name) }

type dir string

func (d dir) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

// Read implements Files.
func (d dir) Read(name string) ([]byte, error) {
	data, err := os.ReadFile(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Write implements Files.
func (d dir) Write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o700); err != nil {
		return err
	}
	_, err := filetree.WriteFile(d.path(name), data)
	return err
}

// Append implements Files.
func (d dir) Append(name string, data []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(d.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

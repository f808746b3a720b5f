package source

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
)

// fileDigest returns the sha256 digest of a file.
func fileDigest(fsys fs.FS, name string) (catalog.Digest, error) {
	sum, err := fileSum(fsys, name, make([]byte, bufferSize))
	return catalog.Digest(fmt.Sprintf("sha256:%x", sum)), err
}

// treeDigest returns a digest of the names and contents of all files, except files of Git.
func treeDigest(fsys fs.FS) (catalog.Digest, error) {
	var all []byte
	buf := make([]byte, bufferSize)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && fbc.IsGit(name) {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() || fbc.IsGit(name) {
			return err
		}
		sum, err := fileSum(fsys, name, buf)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		all = fmt.Appendf(all, "%x %q\n", sum, name)
		return nil
	})
	return catalog.DigestOf(all), err
}

const bufferSize = 256 << 10

func fileSum(fsys fs.FS, name string, buf []byte) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, buf) // os.File would allocate a smaller buffer
	return sum.Sum(nil), err
}

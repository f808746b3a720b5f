//go:build !unix

package filetree

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: there is no portable owner of a file.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

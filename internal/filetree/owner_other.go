//go:build !unix

package filetree

import (
	"io/fs"
	"os"
)

// keepOwner does nothing, because there is no portable way to get the owner of a file.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

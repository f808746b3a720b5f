//go:build !unix

package filetree

import (
	"io/fs"
	"os"
)

// noWait is the flag to open a FIFO without waiting for a writer.
const noWait = 0

// keepOwner does nothing, because there is no portable way to get the owner of a file.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

package cache

import (
	"io/fs"
	"syscall"
	"time"
)

// identity returns the file's inode and when the inode last changed, which no
// program can set back.
func identity(info fs.FileInfo) (uint64, time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino, time.Unix(st.Ctim.Unix())
	}
	return 0, time.Time{}
}

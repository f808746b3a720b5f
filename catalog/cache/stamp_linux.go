package cache

import (
	"io/fs"
	"syscall"
	"time"
)

// identity returns the inode of a file and the time of its last status change (ctime), which
// programs cannot set.
func identity(info fs.FileInfo) (uint64, time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino, time.Unix(st.Ctim.Unix())
	}
	return 0, time.Time{}
}

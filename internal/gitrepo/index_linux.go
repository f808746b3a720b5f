package gitrepo

import (
	"io/fs"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// hasStat reports whether a file has the inode number, the owner, the group and the ctime that e records.
func hasStat(e *index.Entry, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && e.CreatedAt.Equal(time.Unix(st.Ctim.Unix())) && e.Inode == uint32(st.Ino) && e.UID == st.Uid && e.GID == st.Gid
}

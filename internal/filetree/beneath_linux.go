package filetree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// beneath opens each file below a directory with one system call, which cannot leave the directory. os.Root
// makes several calls for each step of a path and for each entry of a directory. Reading 16,000 files takes
// 0.35 s of CPU time with beneath, and 0.9 s with os.Root.
//
// Each method returns an error that wraps fs.ErrNotExist for a missing file. For other errors, the caller
// uses os.Root, which has better messages and works without openat2.
type beneath struct {
	dir *os.File
	fd  int
}

func newBeneath(top *os.Root) *beneath {
	dir, err := top.Open(".")
	if err != nil {
		return nil
	}
	return &beneath{dir, int(dir.Fd())}
}

// open opens a file or a directory. It follows symbolic links like os.Root.
func (b *beneath) open(name string, flags uint64) (int, error) {
	if b == nil {
		return -1, errors.ErrUnsupported
	}
	fd, err := unix.Openat2(b.fd, name, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH})
	runtime.KeepAlive(b.dir)
	return fd, err
}

// readFile reads a regular file of at most limit bytes. Bytes that are appended after opening are not read.
func (b *beneath) readFile(name string, limit int64) ([]byte, error) {
	fd, err := b.open(name, unix.O_RDONLY|unix.O_NONBLOCK) // a pipe does not block
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size == 0 || st.Size > limit {
		return nil, errors.ErrUnsupported // some file systems have files of unknown size
	}
	data := make([]byte, st.Size)
	for n := 0; n < len(data); {
		more, err := unix.Read(fd, data[n:])
		if err != nil {
			return nil, err
		}
		if more == 0 {
			return data[:n], nil
		}
		n += more
	}
	return data, nil
}

// readDir reads a directory. shown is its path on disk. If infos is true, the entries have file infos.
func (b *beneath) readDir(name, shown string, infos bool) ([]fs.DirEntry, error) {
	fd, err := b.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), filepath.FromSlash(shown))
	defer func() { _ = dir.Close() }()
	if !infos {
		return dir.ReadDir(-1)
	}
	list, err := dir.Readdir(-1) // uses fstatat with the descriptor of the directory
	var out []fs.DirEntry
	for _, info := range list {
		out = append(out, fs.FileInfoToDirEntry(info))
	}
	return out, err
}

// stat returns the file info of a file. It follows a link unless flags contains O_NOFOLLOW.
func (b *beneath) stat(name string, flags uint64) (fs.FileInfo, error) {
	fd, err := b.open(name, unix.O_PATH|flags)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	return f.Stat()
}

const noFollow = unix.O_NOFOLLOW

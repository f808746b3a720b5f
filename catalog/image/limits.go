package image

import "cmp"

// Limits bounds what a stranger's image can make the reader do. Zero fields
// have the defaults.
type Limits struct {
	Scanned int64 // uncompressed bytes of all layers; default 4 GiB
	Ratio   int64 // uncompressed bytes of a layer for each compressed one, from 256 MiB on; default 200
	Kept    int64 // bytes of the files that are wanted; default 2 GiB
	File    int64 // bytes of one such file; default 1 GiB
	Entries int   // entries of all layers; default 1,000,000
	Files   int   // entries that are wanted; default 200,000
	Path    int   // bytes of a path; default 4,096
	Depth   int   // directories on a path; default 64
	Memory  int64 // bytes kept in memory, more goes to a temporary file; default 8 MiB
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Scanned: cmp.Or(l.Scanned, 4<<30),
		Ratio:   cmp.Or(l.Ratio, 200),
		Kept:    cmp.Or(l.Kept, 2<<30),
		File:    cmp.Or(l.File, 1<<30),
		Entries: cmp.Or(l.Entries, 1_000_000),
		Files:   cmp.Or(l.Files, 200_000),
		Path:    cmp.Or(l.Path, 4096),
		Depth:   cmp.Or(l.Depth, 64),
		Memory:  cmp.Or(l.Memory, 8<<20),
	}
}

// ratioFloor is how large a layer may become whatever its compressed size.
const ratioFloor = 256 << 20

// layerCap returns how many uncompressed bytes of a layer are read: left of
// the image's share, and no more than its compressed size can honestly mean.
func (l Limits) layerCap(left, compressed int64) int64 {
	if compressed < 0 {
		return left
	}
	return min(left, max(ratioFloor, compressed*l.Ratio))
}

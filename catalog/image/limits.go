package image

import "cmp"

// Limits are the limits for an untrusted image. Zero fields have the defaults.
type Limits struct {
	Scanned int64 // uncompressed bytes of all layers; default 4 GiB
	Ratio   int64 // ratio of uncompressed to compressed bytes of a layer, checked from 256 MiB on; default 200
	Kept    int64 // bytes of all wanted files; default 2 GiB
	File    int64 // bytes of one wanted file; default 1 GiB
	Entries int   // entries of all layers; default 1,000,000
	Files   int   // wanted entries; default 200,000
	Path    int   // bytes of a path; default 4,096
	Depth   int   // nesting depth of directories; default 64
	Memory  int64 // bytes in memory; larger content goes to a temporary file; default 8 MiB
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

// ratioFloor is the number of uncompressed bytes of a layer up to which its compression ratio is
// not checked.
const ratioFloor = 256 << 20

// layerCap returns the maximum number of uncompressed bytes of a layer: the remaining bytes of
// the image, or less because of the maximum compression ratio.
func (l Limits) layerCap(left, compressed int64) int64 {
	if compressed < 0 {
		return left
	}
	return min(left, max(ratioFloor, compressed*l.Ratio))
}

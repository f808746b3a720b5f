package image

import "cmp"

// Limits bounds the resources for reading an untrusted image. "Wanted" files are those below the
// directories that the caller reads. A zero field means the default.
type Limits struct {
	Scanned int64 // uncompressed bytes of all layers; default 4 GiB
	Ratio   int64 // ratio of uncompressed to compressed bytes of a layer, checked from 256 MiB on; default 200
	Kept    int64 // bytes of all wanted files together; default 2 GiB
	File    int64 // bytes of one wanted file; default 1 GiB
	Entries int   // tar entries of all layers; default 1,000,000
	Files   int   // wanted files and directories; default 200,000
	Path    int   // bytes of a path; default 4,096
	Depth   int   // nesting depth of directories; default 64
	Memory  int64 // bytes kept in memory; larger content is written to a temporary file; default 8 MiB
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

// ratioFloor is the uncompressed size in bytes up to which the compression ratio of a layer is not
// limited.
const ratioFloor = 256 << 20

// layerCap returns the maximum uncompressed size of a layer in bytes. left is the number of bytes that the
// image limit still allows. compressed is the compressed size of the layer, or negative if the size is
// unknown. The uncompressed size may be at most l.Ratio times the compressed size.
func (l Limits) layerCap(left, compressed int64) int64 {
	if compressed < 0 {
		return left
	}
	return min(left, max(ratioFloor, compressed*l.Ratio))
}

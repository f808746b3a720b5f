package bundle

import (
	"io/fs"
	"path"
	"slices"
)

// format is one directory layout for bundles.
type format struct {
	marker    string // file that identifies a directory of this format
	load      func(fsys fs.FS) (*Bundle, error)
	manifests func(fsys fs.FS) ([]Manifest, error)               // returns the manifests, which are stored and hashed
	files     func(ms []Manifest, pkg string) (fs.FS, error)     // returns a directory with the given manifests: the inverse of manifests
	image     func(fsys fs.FS) (fs.FS, map[string]string, error) // returns the files and the labels of a bundle image
}

// bundleFormats returns all formats. A directory without any marker file is treated as the first format, and
// the error lists the missing files. All bundle images need the labels of registry+v1.
func bundleFormats() []format {
	return []format{
		registryV1(),
	}
}

// formatOf returns the first format whose marker file exists, or else the first format. The argument has is a
// function that reports whether a file exists.
func formatOf(has func(name string) bool) format {
	all := bundleFormats()
	if i := slices.IndexFunc(all, func(f format) bool { return has(f.marker) }); i >= 0 {
		return all[i]
	}
	return all[0]
}

func formatIn(fsys fs.FS) format {
	return formatOf(func(name string) bool { return isRegular(fsys, name) })
}

func isRegular(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.Mode().IsRegular()
}

// IsDir reports whether dir is a bundle directory of any format.
func IsDir(fsys fs.FS, dir string) bool {
	return slices.ContainsFunc(bundleFormats(), func(f format) bool { return isRegular(fsys, path.Join(dir, f.marker)) })
}

// Load reads the bundle at the root of fsys. The error is a diag.List of all faults, each with its
// file and field.
func Load(fsys fs.FS) (*Bundle, error) {
	if dir, ok := fsys.(releaseDir); ok {
		return dir.release.load()
	}
	return formatIn(fsys).load(fsys)
}

// Manifests returns the manifests of the bundle at the root of fsys, sorted by path.
// [DigestList] returns their digests.
func Manifests(fsys fs.FS) ([]Manifest, error) { return formatIn(fsys).manifests(fsys) }

// FSFromManifests returns a bundle directory of package pkg with these manifests. The directory has the format
// whose marker file is among the manifests, or else registry+v1. Named manifests keep their paths.
func FSFromManifests(ms []Manifest, pkg string) (fs.FS, error) {
	if len(ms) > 0 && ms[0].Named {
		return namedFiles(ms)
	}
	return formatOf(func(name string) bool {
		return slices.ContainsFunc(ms, func(m Manifest) bool { return m.Path == name })
	}).files(ms, pkg)
}

// Image returns the files and the labels that the image of the bundle contains. The bundle is at the root of fsys.
func Image(fsys fs.FS) (fs.FS, map[string]string, error) { return formatIn(fsys).image(fsys) }

package bundledir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

const (
	maxBundles = 20_000
	maxVisited = 2_000_000 // maximum number of files and directories to visit
)

// Ref identifies a bundle by package and name.
type Ref struct {
	Package string // "etcd"
	Bundle  string // "etcdoperator.v0.9.4"
}

// LoadFS loads all bundles in fsys as a catalog. The content is sorted. It has a warning for each
// channel whose bundles had to be linked in version order. The caller sets ID, Source and Digest.
// The error is a diag.List of all faults. Symbolic links are not followed.
func LoadFS(fsys fs.FS) (catalog.Content, error) {
	var warnings []diag.Warning
	byPackage := map[string][]*member{}
	members, faults := loadAll(fsys)
	for _, m := range members {
		warnings = append(warnings, m.warnings...)
		byPackage[m.pkg] = append(byPackage[m.pkg], m)
	}
	if err := faults.Err(); err != nil {
		return catalog.Content{}, err
	}
	var c catalog.Content
	for name, members := range byPackage {
		p, more := assemblePackage(name, members)
		c.Packages = append(c.Packages, p)
		warnings = append(warnings, more...)
	}
	slices.SortFunc(c.Packages, func(a, b catalog.PackageData) int { return strings.Compare(a.Name, b.Name) })
	c.Warnings = diag.SortWarnings(warnings)
	return c, nil
}

// Dirs returns the directory of each bundle in fsys. The error is a diag.List of unreadable bundles
// and of duplicate bundles.
func Dirs(fsys fs.FS) (map[Ref]string, error) {
	members, faults := loadAll(fsys)
	found := make(map[Ref]string, len(members))
	for _, m := range members {
		ref := Ref{m.pkg, m.data.Name}
		if first, ok := found[ref]; ok {
			faults.Addf(m.data.Pos, "duplicate bundle %q in package %q: first in %s", ref.Bundle, ref.Package, first)
			continue
		}
		found[ref] = m.dir
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return found, nil
}

// loadAll loads all bundles in fsys, sorted by directory.
func loadAll(fsys fs.FS) (members []*member, faults diag.List) {
	dirs, err := bundleDirs(fsys)
	faults.Add(diag.Pos{}, err)
	for _, dir := range dirs {
		m, err := loadMember(fsys, dir)
		if err != nil {
			faults.Add(diag.Pos{File: dir}, err)
			continue
		}
		members = append(members, m)
	}
	return members, faults
}

// FindAt returns the directory of the bundle that contains a file. It does not compare the bundle with pkg and
// name, so the path must come from a valid index of fsys. If no bundle contains the file, it calls [Find].
func FindAt(fsys fs.FS, pkg, name, file string) (fs.FS, error) {
	for dir := path.Dir(file); fs.ValidPath(dir); dir = path.Dir(dir) {
		if bundle.IsDir(fsys, dir) {
			return fs.Sub(fsys, dir)
		}
		if dir == "." {
			break
		}
	}
	return Find(fsys, pkg, name)
}

// Find returns the directory of one bundle. It first searches directories whose path contains the
// package name, and stops at the first match. If there is no match, the error wraps fs.ErrNotExist.
func Find(fsys fs.FS, pkg, name string) (fs.FS, error) {
	dirs, err := bundleDirs(fsys)
	if err != nil {
		return nil, err
	}
	rank := func(dir string) int {
		if slices.Contains(strings.Split(dir, "/"), pkg) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	var faults diag.List
	for _, dir := range dirs {
		m, err := loadMember(fsys, dir)
		if err != nil {
			faults.Add(diag.Pos{File: dir}, err)
			continue
		}
		if m.pkg == pkg && m.data.Name == name {
			return fs.Sub(fsys, dir)
		}
	}
	missing := fmt.Errorf("bundle %q of package %q: %w", name, pkg, fs.ErrNotExist)
	return nil, errors.Join(missing, faults.Err())
}

// bundleDirs returns the bundle directories of fsys, sorted.
func bundleDirs(fsys fs.FS) ([]string, error) {
	var dirs []string
	visited := 0
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if visited++; visited > maxVisited || len(dirs) > maxBundles {
			return errors.New("too many files for a directory of bundles")
		}
		if e.Type()&fs.ModeSymlink != 0 {
			if info, err := fs.Stat(fsys, name); err == nil && info.IsDir() {
				return fmt.Errorf("%s: symbolic links to directories are not followed: copy the bundle", name)
			}
		}
		if !e.IsDir() {
			return nil
		}
		if fbc.IsGit(name) {
			return fs.SkipDir
		}
		if !bundle.IsDir(fsys, name) {
			return nil // continue: subdirectories may be bundles
		}
		if err := sanitize.CheckName(name); err != nil {
			return fmt.Errorf("directory %w", err)
		}
		dirs = append(dirs, name)
		return fs.SkipDir
	})
	if err != nil {
		return nil, fmt.Errorf("searching for bundles: %w", err)
	}
	slices.Sort(dirs)
	return dirs, nil
}

// member is a bundle with the data that the catalog needs from it.
type member struct {
	dir            string
	pkg            string
	channels       []string
	defaultChannel string
	description    string
	version        catalog.Version
	entry          catalog.EntryData
	data           catalog.BundleData
	warnings       []diag.Warning
}

func loadMember(fsys fs.FS, dir string) (*member, error) {
	sub, err := fs.Sub(fsys, dir)
	if err != nil {
		return nil, err
	}
	b, err := bundle.Load(sub)
	if err != nil {
		return nil, diag.PrefixPositions(dir, err)
	}
	csv := b.CSV
	pos := diag.Pos{File: path.Join(dir, csv.File)}
	m := &member{
		dir: dir, pkg: b.Package, channels: b.Channels, defaultChannel: b.DefaultChannel, description: csv.Description,
		entry: catalog.EntryData{
			Name: csv.Name, Replaces: csv.Replaces, Skips: csv.Skips, SkipRange: csv.Annotations["olm.skipRange"], Pos: pos,
		},
		data: catalog.BundleData{
			Name: csv.Name, Embedded: true, RelatedImages: relatedImages(csv), Metadata: csvMetadata(csv), Pos: pos,
		},
	}
	for _, w := range b.Warnings {
		w.Pos.File = path.Join(dir, w.Pos.File)
		m.warnings = append(m.warnings, w)
	}
	var faults diag.List
	if csv.Version == "" {
		faults.Addf(pos, "spec.version is missing")
	} else if m.version, err = catalog.ParseVersion(csv.Version); err != nil {
		faults.Addf(pos, "spec.version: %w", err)
	}
	props, err := bundleProperties(b, pos)
	faults.Add(pos, err)
	m.data.Properties = props
	return m, faults.Err()
}

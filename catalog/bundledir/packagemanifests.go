package bundledir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
)

const (
	maxPackageFile   = 1 << 20
	maxManifestBytes = 256 << 20 // maximum size of all manifests of one version
)

// packageManifest is the content of a *.package.yaml file.
type packageManifest struct {
	Name           string `json:"packageName"`
	DefaultChannel string `json:"defaultChannel"`
	Channels       []struct {
		Name       string `json:"name"`
		CurrentCSV string `json:"currentCSV"`
	} `json:"channels"`

	pos diag.Pos
	at  map[string]diag.Pos
}

// Packages converts package manifests, the format before bundles, to bundle directories. In this format, a file
// *.package.yaml names the head of each channel. Each subdirectory next to this file contains the manifests of
// one version. The result contains v/x.yaml as v/manifests/x.yaml, byte for byte, and generated metadata.
//
// A version belongs to a channel if the head of the channel replaces it, directly or transitively,
// or if a version of the channel skips it. Versions without a channel are omitted. The error is a
// diag.List of all faults, with file names in fsys.
func Packages(fsys fs.FS) (fs.FS, error) {
	c := &conversion{fsys: fsys, out: filetree.New()}
	packages := c.readPackages()
	for _, p := range packages {
		c.convert(p)
	}
	if len(packages) == 0 && len(c.faults) == 0 {
		c.faults.Addf(diag.Pos{}, "not a directory of package manifests: no file *.package.yaml")
	}
	if err := c.faults.Err(); err != nil {
		return nil, err
	}
	return c.out.FS(), nil
}

// Original returns the name that a file in the result of Packages has in the input of Packages.
func Original(name string) string {
	dir, file := path.Split(name)
	if parent, ok := strings.CutSuffix(dir, "/manifests/"); ok {
		return path.Join(parent, file)
	}
	return name
}

// conversion is the state of one call of Packages.
type conversion struct {
	fsys   fs.FS
	out    *filetree.Tree
	bytes  int
	faults diag.List
}

// readPackages decodes all *.package.yaml files.
func (c *conversion) readPackages() []packageManifest {
	var out []packageManifest
	visited := 0
	err := fs.WalkDir(c.fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if visited++; visited > maxVisited {
			return errors.New("too many files for package manifests")
		}
		if e.IsDir() && strings.HasPrefix(e.Name(), ".") && name != "." {
			return fs.SkipDir
		}
		if err := sanitize.CheckName(name); err != nil {
			return fmt.Errorf("file name %w", err)
		}
		if e.Type().IsRegular() && isPackageFile(e.Name()) {
			if p, ok := c.readPackageFile(name); ok {
				out = append(out, p)
			}
		}
		return nil
	})
	c.faults.Add(diag.Pos{}, err)
	return out
}

func isPackageFile(name string) bool {
	stem, ok := strings.CutSuffix(strings.TrimSuffix(name, path.Ext(name)), ".package")
	return ok && stem != "" && yamlnode.HasExtension(name)
}

func (c *conversion) readPackageFile(name string) (packageManifest, bool) {
	p := packageManifest{pos: diag.Pos{File: name}}
	before := len(c.faults)
	data, err := fs.ReadFile(c.fsys, name)
	if err == nil && len(data) > maxPackageFile {
		err = fmt.Errorf("larger than %d MiB", maxPackageFile>>20)
	}
	if err != nil {
		c.faults.Add(p.pos, err)
		return p, false
	}
	docs, err := yamlnode.Documents(name, data, yamlnode.Limits{})
	c.faults.Add(p.pos, err)
	for _, doc := range docs {
		c.faults.Add(p.pos, yamlnode.Decode(name, doc, &p))
		p.at = yamlnode.Positions(name, doc)
		break // a second document would be another package, and opm only reads the first
	}
	if len(c.faults) == before && p.Name == "" {
		c.faults.Addf(p.pos, "packageName is missing")
	}
	return p, len(c.faults) == before
}

// version is one version of a package: a directory of manifests.
type version struct {
	dir       string
	bundle    *bundle.Bundle
	manifests []bundle.Manifest
	channels  []string
}

// convert adds the bundles of one package to the result.
func (c *conversion) convert(p packageManifest) {
	versions := c.readVersions(p)
	for i, ch := range p.Channels {
		at := fmt.Sprintf("channels[%d]", i)
		switch {
		case ch.Name == "":
			c.faults.Addf(p.position(at), "%s.name is missing", at)
		case versions[ch.CurrentCSV] == nil:
			c.faults.Addf(p.position(at+".currentCSV"), "%s.currentCSV: no ClusterServiceVersion %q below %s%s", at, ch.CurrentCSV, path.Dir(p.pos.File), diag.DidYouMean(ch.CurrentCSV, slices.Sorted(maps.Keys(versions))))
		default:
			addToChannel(versions, ch.CurrentCSV, ch.Name)
		}
	}
	for _, v := range versions {
		c.writeBundle(p, v)
	}
}

func (p packageManifest) position(field string) diag.Pos {
	if pos, ok := p.at[field]; ok {
		return pos
	}
	return p.pos
}

// addToChannel adds channel to all versions that belong to it. The keys of versions are CSV names; name is the
// CSV of the channel head.
func addToChannel(versions map[string]*version, name, channel string) {
	walked := map[*version]bool{}
	for v := versions[name]; v != nil && !walked[v]; v = versions[v.bundle.CSV.Replaces] {
		walked[v] = true
		v.addChannel(channel)
		for _, skipped := range v.bundle.CSV.Skips {
			if s := versions[skipped]; s != nil {
				s.addChannel(channel)
			}
		}
	}
}

func (v *version) addChannel(channel string) {
	if !slices.Contains(v.channels, channel) {
		v.channels = append(v.channels, channel)
	}
}

// readVersions reads the manifest directories below the directory of a package file. The keys of the result are
// the names of the CSVs.
func (c *conversion) readVersions(p packageManifest) map[string]*version {
	out := map[string]*version{}
	root := path.Dir(p.pos.File)
	err := fs.WalkDir(c.fsys, root, func(dir string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if strings.HasPrefix(e.Name(), ".") && dir != "." {
			return fs.SkipDir
		}
		v, err := c.readVersion(dir, p.Name)
		if err != nil {
			c.faults.Add(diag.Pos{File: dir}, diag.PrefixPositions(dir, err))
		}
		if v == nil {
			return nil
		}
		name := v.bundle.CSV.Name
		if first := out[name]; first != nil {
			c.faults.Addf(diag.Pos{File: dir}, "duplicate ClusterServiceVersion %q in package %q: first in %s", name, p.Name, first.dir)
			return nil
		}
		out[name] = v
		return nil
	})
	c.faults.Add(diag.Pos{File: root}, err)
	return out
}

// readVersion reads the manifests in one directory. It returns nil if they contain no CSV.
func (c *conversion) readVersion(dir, pkg string) (*version, error) {
	entries, err := fs.ReadDir(c.fsys, dir)
	if err != nil {
		return nil, err
	}
	v := &version{dir: dir}
	found := false
	for _, e := range entries {
		name := e.Name()
		if !e.Type().IsRegular() || strings.HasPrefix(name, ".") || isPackageFile(name) || !yamlnode.HasExtension(name) {
			continue
		}
		data, err := fs.ReadFile(c.fsys, path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if c.bytes += len(data); c.bytes > maxManifestBytes {
			return nil, fmt.Errorf("more than %d MiB of manifests", maxManifestBytes>>20)
		}
		found = found || bytes.Contains(data, []byte("ClusterServiceVersion"))
		v.manifests = append(v.manifests, bundle.Manifest{Path: name, Data: data})
	}
	if !found {
		return nil, nil
	}
	files, err := bundle.FSFromManifests(v.manifests, pkg)
	if err != nil {
		return nil, err
	}
	if v.bundle, err = bundle.Load(files); err != nil {
		return nil, diag.MapPositions(err, func(p diag.Pos) diag.Pos { // report positions in the input of Packages
			p.File = strings.TrimPrefix(p.File, "manifests/")
			return p
		})
	}
	return v, nil
}

// writeBundle adds one version to the result as a bundle.
func (c *conversion) writeBundle(p packageManifest, v *version) {
	if len(v.channels) == 0 {
		return // the version belongs to no channel
	}
	slices.Sort(v.channels)
	metadata, err := json.Marshal(map[string]any{"annotations": map[string]string{
		"operators.operatorframework.io.bundle.package.v1":         p.Name,
		"operators.operatorframework.io.bundle.channels.v1":        strings.Join(v.channels, ","),
		"operators.operatorframework.io.bundle.channel.default.v1": p.DefaultChannel,
		"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
	}})
	c.faults.Add(p.pos, err)
	c.faults.Add(p.pos, c.out.Add(path.Join(v.dir, "metadata/annotations.yaml"), metadata))
	for _, m := range v.manifests {
		c.faults.Add(diag.Pos{File: v.dir}, c.out.Add(path.Join(v.dir, "manifests", m.Path), m.Data))
	}
}

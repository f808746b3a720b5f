package charts

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/helm"
)

// MaxArchive is the maximum size in bytes of an archive of a chart.
const MaxArchive = 32 << 20

// File is the name of the file with the metadata of a chart.
const File = "Chart.yaml"

const (
	archiveExt = ".tgz"
	maxCharts  = 5_000
)

// ReadDir reads a directory of charts: archives (.tgz) and directories with a Chart.yaml, at any depth.
// Directories with a leading dot and the subcharts of charts are skipped. A chart that cannot be read is a
// warning of the content, unless no chart can be read. The error is a diag.List of all faults.
func ReadDir(fsys fs.FS) (*Index, error) {
	x := &Index{}
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != "." && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case e.IsDir() && !isChart(fsys, name), !e.IsDir() && !strings.HasSuffix(name, archiveExt):
			return nil
		case len(x.charts)+len(x.unreadable) >= maxCharts:
			return fmt.Errorf("more than %d charts", maxCharts)
		}
		if c, err := readChart(fsys, name); err != nil {
			x.unreadable.Add(diag.Pos{File: name}, diag.PrefixPositions(name, err))
		} else {
			x.charts = append(x.charts, c)
		}
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && len(x.charts) == 0 {
		err = x.unreadable.Err()
	}
	return x, err
}

// ReadOne reads a directory with the content of one version: a chart, or a release whose path ends with
// PACKAGE/VERSION and that has YAML files or a kustomization. It returns false for another directory.
func ReadOne(fsys fs.FS, at string) (*Index, bool) {
	if isChart(fsys, ".") {
		c, err := readChart(fsys, ".")
		return &Index{charts: []Chart{c}}, err == nil
	}
	pkg, version := path.Base(path.Dir(at)), path.Base(at)
	_, err := semver.NewVersion(version)
	if err != nil || pkg == "." || pkg == "/" || pkg == ".." {
		return nil, false
	}
	entries, err := fs.ReadDir(fsys, ".")
	isRelease := err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		ext := path.Ext(e.Name())
		return e.Type().IsRegular() && (ext == ".yaml" || ext == ".yml")
	})
	return &Index{charts: []Chart{{Name: pkg, Version: version, Format: Manifests, Pos: diag.Pos{File: "."}}}}, isRelease
}

func isChart(fsys fs.FS, dir string) bool {
	info, err := fs.Stat(fsys, path.Join(dir, File))
	return err == nil && info.Mode().IsRegular()
}

// readChart reads the metadata of the chart at name, an archive or a directory.
func readChart(fsys fs.FS, name string) (Chart, error) {
	files, err := openChart(fsys, name)
	if err != nil {
		return Chart{}, err
	}
	m, err := helm.ReadMetadata(files)
	c := Chart{
		Name: m.Name, Version: m.Version, KubeVersion: m.KubeVersion, Description: m.Description,
		Type: m.Type, Deprecated: m.Deprecated, Keywords: m.Keywords, Pos: diag.Pos{File: name},
	}
	for _, by := range m.Maintainers {
		c.Maintainers = append(c.Maintainers, maintainer{by.Name})
	}
	return c, err
}

// Open returns the files of the chart at name, an archive or a directory.
func Open(fsys fs.FS, name string) (fs.FS, error) {
	files, err := openChart(fsys, name)
	if err != nil {
		return nil, diag.PrefixPositions(name, err)
	}
	return filesOf(files)
}

func openChart(fsys fs.FS, name string) (map[string][]byte, error) {
	if isChart(fsys, name) {
		dir, err := fs.Sub(fsys, name)
		if err != nil {
			return nil, err
		}
		return helm.ReadDirectory(dir)
	}
	info, err := fs.Stat(fsys, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("not a regular file")
	case info.Size() > MaxArchive:
		return nil, fmt.Errorf("%d bytes exceed the limit of %d", info.Size(), MaxArchive)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return helm.ReadArchive(f)
}

// Archive returns the files in the archive of a chart.
func Archive(data []byte) (fs.FS, error) {
	files, err := helm.ReadArchive(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return filesOf(files)
}

func filesOf(files map[string][]byte) (fs.FS, error) {
	t := filetree.New()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := t.Add(name, files[name]); err != nil {
			return nil, err
		}
	}
	return t.FS(), nil
}

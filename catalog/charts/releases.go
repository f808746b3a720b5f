package charts

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/quayside/quayside/internal/diag"
)

// Manifests is the format of releases: YAML files, or a kustomization.
const Manifests = "manifests"

// ReadReleases reads a directory of releases: PACKAGE/VERSION/, each with YAML files or a kustomization.
// Names with a leading dot are skipped.
func ReadReleases(fsys fs.FS) (*Index, error) {
	x := &Index{}
	packages, err := directories(fsys, ".")
	for _, pkg := range packages {
		versions, err := directories(fsys, pkg)
		if err != nil {
			return nil, err
		}
		for _, v := range versions {
			x.charts = append(x.charts, Chart{Name: pkg, Version: v, Format: Manifests, Pos: diag.Pos{File: path.Join(pkg, v)}})
		}
		if len(x.charts) > maxCharts {
			return nil, fmt.Errorf("more than %d releases", maxCharts)
		}
	}
	return x, err
}

// directories returns the names of the directories in dir, sorted.
func directories(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// ListReleases returns an index of a package with these versions.
func ListReleases(pkg string, versions []string) *Index {
	x := &Index{}
	for _, v := range versions {
		x.charts = append(x.charts, Chart{Name: pkg, Version: v, Format: Manifests})
	}
	return x
}

// ListTags returns an index of a package whose versions are tags. A tag is a version if it matches pattern, in
// which * stands for a semantic version. The keys of tags are tag names, the values are commits.
func ListTags(pkg, pattern string, tags map[string]string) *Index {
	x := &Index{}
	before, after, _ := strings.Cut(pattern, "*")
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		rest, ok := strings.CutPrefix(tag, before)
		version, ok2 := strings.CutSuffix(rest, after)
		if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); ok && ok2 && err == nil {
			x.charts = append(x.charts, Chart{Name: pkg, Version: version, Format: Manifests, Commit: tags[tag], Tag: tag})
		}
	}
	return x
}

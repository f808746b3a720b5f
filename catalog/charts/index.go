package charts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Index is the index of a chart repository (helm.sh/docs/topics/chart_repository).
type Index struct {
	charts     []Chart   // in file order
	unreadable diag.List // errors of charts in a directory
}

// MaxIndex is the maximum size in bytes of an index.
const MaxIndex = 64 << 20

// ReadIndex reads an index.yaml. It omits entries without a name or version.
func ReadIndex(file string, data []byte) (*Index, error) {
	r := yamlnode.Reader{}
	docs, err := r.Read(file, 1, data, yamlnode.Limits{Bytes: MaxIndex, Depth: 50, Nodes: 20_000_000}, indexFilter())
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, diag.Errorf(diag.Pos{File: file}, "expected one YAML document, the index of a chart repository, got %d", len(docs))
	}
	entries, err := readEntries(docs[0].JSON)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{File: file}, "not the index of a chart repository: %w", err)
	}
	n := 0
	for _, versions := range entries {
		n += len(versions)
	}
	x := &Index{charts: make([]Chart, 0, n)}
	for name, versions := range entries {
		for _, c := range versions {
			c.Name, c.Pos = name, diag.Pos{File: file} // Helm finds a chart by the key
			x.charts = append(x.charts, c)
		}
	}
	slices.SortStableFunc(x.charts, func(a, b Chart) int { return strings.Compare(a.Name, b.Name) })
	return x, nil
}

// ReadTags returns the index of a chart in a registry. repository is "registry/path/chart". A tag is a
// version, with "_" instead of "+". Tags that are not versions, such as the tags of signatures, are omitted.
func ReadTags(repository string, tags []string) *Index {
	x := &Index{}
	for _, tag := range tags {
		version := strings.ReplaceAll(tag, "_", "+")
		if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err == nil {
			x.charts = append(x.charts, Chart{Name: path.Base(repository), Version: version, Image: repository + ":" + tag})
		}
	}
	return x
}

// readEntries returns the versions in an index.yaml, by the name of the chart.
func readEntries(data []byte) (map[string][]Chart, error) {
	var doc struct {
		Entries map[string][]Chart `json:"entries"`
	}
	if err := json.Unmarshal(data, &doc); err == nil {
		if doc.Entries == nil {
			return nil, errors.New("entries is missing")
		}
		return doc.Entries, nil
	}
	var raw struct { // an entry has a field of a wrong type
		Entries map[string][]json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	out := map[string][]Chart{}
	for name, versions := range raw.Entries {
		for i, v := range versions {
			c, err := readEntry(v)
			if err != nil {
				return nil, fmt.Errorf("entries.%s[%d]: %w", name, i, err)
			}
			out[name] = append(out[name], c)
		}
	}
	return out, nil
}

// readEntry reads the entry of a chart version. It ignores fields of a wrong type. A digest of a wrong type is
// kept as an invalid digest, so that the archive is rejected later.
func readEntry(raw []byte) (Chart, error) {
	var c Chart
	if err := json.Unmarshal(raw, &c); err == nil {
		return c, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return c, fmt.Errorf("expected an object: %w", err)
	}
	c = Chart{}
	for name, value := range fields {
		one, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err == nil {
			err = json.Unmarshal(one, &c)
		}
		if err != nil && name == "digest" {
			c.Digest = string(value)
		}
	}
	return c, nil
}

// indexFilter selects the fields of an index that are used. The others, such as annotations with a
// changelog, are most of a large index.
func indexFilter() *yamlnode.Filter {
	fields := func(of *yamlnode.Filter, names ...string) *yamlnode.Filter {
		return &yamlnode.Filter{Field: func(name []byte) (*yamlnode.Filter, bool) {
			return of, slices.ContainsFunc(names, func(n string) bool { return string(name) == n })
		}}
	}
	entry := fields(nil, "name", "version", "kubeVersion", "description", "type", "deprecated", "keywords", "maintainers", "urls", "digest")
	versions := &yamlnode.Filter{Field: func([]byte) (*yamlnode.Filter, bool) { return &yamlnode.Filter{Items: entry}, true }}
	return fields(versions, "entries")
}

// Content returns the catalog of the index.
func (x *Index) Content() catalog.Content {
	out := newContent(x.charts)
	for _, f := range x.unreadable {
		out.Warnings = append(out.Warnings, diag.Warning{Pos: f.Pos, Code: "chart-skipped", Msg: "the chart cannot be read: " + diag.FaultOf(f).Message})
	}
	out.Warnings = diag.SortWarnings(out.Warnings)
	return out
}

// Chart returns the chart version of a bundle. Of repeated versions it returns the first. If there is none, the
// error wraps fs.ErrNotExist, or has the errors of the charts that cannot be read.
func (x *Index) Chart(pkg, bundle string) (Chart, error) {
	i := slices.IndexFunc(x.charts, func(c Chart) bool { return c.Name == pkg && BundleName(c.Name, c.Version) == bundle })
	switch {
	case i < 0 && len(x.unreadable) > 0:
		return Chart{}, fmt.Errorf("%s is not among the readable charts: %w", bundle, x.unreadable.Err())
	case i < 0:
		return Chart{}, fmt.Errorf("%s: %w", bundle, fs.ErrNotExist)
	}
	return x.charts[i], nil
}

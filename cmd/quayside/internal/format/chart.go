package format

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/lockfile"
)

// defaultMinor is the minor version of Kubernetes that templates see if the workspace sets none. It is
// fixed, so that a new version of quayside renders the same.
const defaultMinor = 34

// expandChart templates a chart as 'helm install' on a cluster with the APIs of the pin.
func expandChart(ctx context.Context, files fs.FS, in Input) (*Expanded, error) {
	content, err := helm.ReadDirectory(files)
	if err != nil {
		return nil, err
	}
	meta, err := helm.ReadMetadata(content)
	if err != nil {
		return nil, err
	}
	t := cmp.Or(in.Pin.Template, &lockfile.Template{Release: in.Pin.Package})
	opt := helm.Options{ReleaseName: t.Release, Namespace: in.Pin.Namespace}
	opt.KubeVersion, opt.APIVersions = cluster(*t)
	if len(t.Values) > 0 {
		if err := json.Unmarshal(t.Values, &opt.Values); err != nil {
			return nil, fmt.Errorf("values: %w", err)
		}
	}
	charts, err := in.Charts()
	if err != nil {
		return nil, err
	}
	out, err := charts.Template(ctx, content, opt)
	if err != nil {
		return nil, err
	}
	r := bundle.Release{
		Package: in.Pin.Package, Name: in.Pin.Bundle, Version: in.Pin.Version, File: "Chart.yaml",
		DisplayName: meta.Name, Description: meta.Description, Keywords: meta.Keywords,
	}
	if len(meta.Maintainers) > 0 {
		r.Provider = meta.Maintainers[0].Name
	}
	for _, url := range slices.Concat([]string{meta.Home}, meta.Sources) {
		if url != "" {
			r.Links = append(r.Links, bundle.Link{Name: "", URL: url})
		}
	}
	for _, o := range out.Resources {
		object := bundle.ReleaseObject{File: o.Source, Object: o.Object}
		if len(o.Hooks) > 0 {
			object.Hook = &bundle.Hook{Events: o.Hooks, Weight: o.HookWeight, Delete: o.HookDelete}
		}
		r.Objects = append(r.Objects, object)
	}
	e := &Expanded{Release: r}
	for _, name := range out.Lookups {
		e.Notes = append(e.Notes, fmt.Sprintf("%s calls lookup, which finds nothing without a cluster", name))
	}
	e.Notes = append(e.Notes, out.Warnings...)
	slices.Sort(e.Notes)
	return e, nil
}

// groupsInChart returns the APIs whose group is in a file of the chart. Templates may compute the
// version, but name the group.
func groupsInChart(files fs.FS, apis []string) ([]string, error) {
	content, err := helm.ReadDirectory(files)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(apis), func(api string) bool {
		group, _, _ := strings.Cut(api, "/")
		for name, data := range content {
			if strings.HasSuffix(name, ".tgz") || bytes.Contains(data, []byte(group)) { // a packed subchart may ask for anything
				return false
			}
		}
		return true
	}), nil
}

// cluster returns the version and the APIs of Kubernetes that templates see.
func cluster(t lockfile.Template) (version string, apis []string) {
	version = strings.TrimPrefix(t.KubernetesVersion, "v")
	minor := defaultMinor
	if parts := strings.SplitN(version, ".", 3); len(parts) >= 2 {
		if n, err := strconv.Atoi(strings.TrimRight(parts[1], "+")); err == nil {
			minor = n
		}
	}
	switch strings.Count(version, ".") {
	case 0:
		version = fmt.Sprintf("1.%d.0", minor)
	case 1:
		version += ".0"
	}
	return version, append(admit.ServedAPIs(minor), t.APIVersions...)
}

package format

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog/charts"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/lockfile"
)

// defaultKubernetes is the version of Kubernetes that templates see if the workspace sets none. It never
// changes, so that a new version of quayside renders the same objects.
const defaultKubernetes = "1.34"

// chartInImage returns the files of a chart in a registry.
func chartInImage(ctx context.Context, im *image.Image) (fs.FS, error) {
	archive, err := im.Archive(ctx, charts.MaxArchive)
	if err != nil {
		return nil, err
	}
	return charts.Archive(archive)
}

// expandChart executes the templates of a chart as 'helm install' does on a cluster with the APIs in the pin.
func expandChart(ctx context.Context, files fs.FS, in Input) (bundle.Release, error) {
	r := bundle.Release{Package: in.Pin.Package, Name: in.Pin.Bundle, Version: in.Pin.Version, File: "Chart.yaml"}
	content, meta, err := readChart(files)
	if err != nil {
		return r, err
	}
	r.DisplayName, r.Description, r.Keywords = meta.Name, meta.Description, meta.Keywords
	if len(meta.Maintainers) > 0 {
		r.Provider = meta.Maintainers[0].Name
	}
	for _, url := range slices.Concat([]string{meta.Home}, meta.Sources) {
		if url != "" {
			r.Links = append(r.Links, bundle.Link{URL: url})
		}
	}
	t := cmp.Or(in.Pin.Template, &lockfile.Template{Release: in.Pin.Package})
	opt := helm.Options{ReleaseName: t.Release, Namespace: in.Pin.Namespace}
	if opt.KubeVersion, opt.APIVersions, err = Kubernetes(*t); err != nil {
		return r, err
	}
	if len(t.Values) > 0 {
		if err := json.Unmarshal(t.Values, &opt.Values); err != nil {
			return r, fmt.Errorf("values: %w", err)
		}
	}
	processes, err := in.Charts()
	if err != nil {
		return r, err
	}
	out, err := processes.Template(ctx, content, opt)
	if err != nil {
		return r, err
	}
	for _, o := range out.Resources {
		object := bundle.ReleaseObject{File: o.Source, Object: o.Object, Kept: o.Kept || isKept(o.Object)}
		if len(o.Hooks) > 0 {
			object.Hook = &bundle.Hook{Events: o.Hooks, Weight: o.HookWeight, Delete: o.HookDelete}
		}
		r.Objects = append(r.Objects, object)
	}
	r.Warnings = chartWarnings(out)
	if v, err := semver.NewVersion(meta.Version); err != nil || meta.Name != in.Pin.Package || v.String() != in.Pin.Version {
		msg := fmt.Sprintf("the content is chart %s %s, but the catalog lists it as %s %s", meta.Name, meta.Version, in.Pin.Package, in.Pin.Version)
		r.Warnings = diag.SortWarnings(append(r.Warnings, diag.Warning{Pos: diag.Pos{File: "Chart.yaml"}, Code: "chart-identity", Msg: msg}))
	}
	return r, nil
}

// isKept reports whether Helm keeps an object that the chart no longer has (see pkg/action/resource_policy.go).
func isKept(o map[string]any) bool {
	return strings.EqualFold(strings.TrimSpace(k8s.Text(o, "metadata", "annotations", "helm.sh/resource-policy")), "keep")
}

// chartWarnings returns sorted warnings: about calls of lookup, about dropped hooks, and with messages of Helm.
func chartWarnings(out *helm.Rendered) []diag.Warning {
	var ws []diag.Warning
	warnFor := func(file, code, format string, args ...any) {
		ws = append(ws, diag.Warning{Pos: diag.Pos{File: file}, Code: code, Minor: code == "chart-message", Msg: fmt.Sprintf(format, args...)})
	}
	for _, file := range out.Lookups {
		warnFor(file, "chart-lookup", "the template calls lookup, which finds nothing without a cluster: it renders as for a new installation")
	}
	for _, object := range out.Skipped {
		warnFor("Chart.yaml", "hook-dropped", "%s is not rendered: Helm has no such hook", object)
	}
	for _, text := range out.Warnings {
		warnFor("Chart.yaml", "chart-message", "message of Helm: %s", text)
	}
	return diag.SortWarnings(ws)
}

// readChart returns the files of a chart by their paths, and its Chart.yaml.
func readChart(files fs.FS) (content map[string][]byte, meta helm.Metadata, err error) {
	if content, err = helm.ReadDirectory(files); err == nil {
		meta, err = helm.ReadMetadata(content)
	}
	return content, meta, err
}

func metadataOfChart(files fs.FS) (Metadata, error) {
	_, meta, err := readChart(files)
	if err != nil {
		return Metadata{}, err
	}
	v, err := semver.NewVersion(meta.Version)
	if err != nil {
		return Metadata{}, fmt.Errorf("version %q of the chart: %w", meta.Version, err)
	}
	return Metadata{Bundle: charts.BundleName(meta.Name, meta.Version), Version: v.String(), Kubernetes: meta.KubeVersion}, nil
}

// askedInChart returns those APIs whose group occurs in a file of the chart, or none if no file uses
// .Capabilities.APIVersions. It compares only groups, because a template may compute the version of an API.
func askedInChart(files fs.FS, apis []string) ([]string, error) {
	content, err := helm.ReadDirectory(files)
	if err != nil {
		return nil, err
	}
	has := func(text string) bool {
		for name, data := range content {
			if strings.HasSuffix(name, ".tgz") || bytes.Contains(data, []byte(text)) { // a packed subchart may ask for anything
				return true
			}
		}
		return false
	}
	asks := has("APIVersions")
	return slices.DeleteFunc(slices.Clone(apis), func(api string) bool {
		group, _, _ := strings.Cut(api, "/")
		return !asks || !has(group)
	}), nil
}

// Kubernetes returns the version and the APIs of Kubernetes that templates see.
func Kubernetes(t lockfile.Template) (version string, apis []string, err error) {
	v, err := semver.NewVersion(cmp.Or(t.KubernetesVersion, defaultKubernetes))
	if err != nil {
		return "", nil, fmt.Errorf("version of Kubernetes %q: %w", t.KubernetesVersion, err)
	}
	return v.String(), append(admit.ServedAPIs(int(v.Minor())), t.APIVersions...), nil //nolint:gosec // a minor version is a small number
}

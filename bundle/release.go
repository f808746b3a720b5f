package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
)

// releaseFile is the only file of a bundle of the format of [Release].
const releaseFile = "release.json"

// Release is a bundle that consists of finished objects, such as a chart with its values or the
// manifests of a release. Such a bundle has no install strategy, so nothing is generated from it.
type Release struct {
	Package     string          `json:"package"`
	Name        string          `json:"name"` // of the bundle: "cert-manager-v1.15.0"
	Version     string          `json:"version"`
	File        string          `json:"file"` // file with the metadata of the package, for messages: "Chart.yaml"
	DisplayName string          `json:"displayName,omitempty"`
	Description string          `json:"description,omitempty"`
	Provider    string          `json:"provider,omitempty"`
	Keywords    []string        `json:"keywords,omitempty"`
	Links       []Link          `json:"links,omitempty"`
	Objects     []ReleaseObject `json:"objects"`
}

// ReleaseObject is an object of a Release.
type ReleaseObject struct {
	File   string         `json:"file"`           // file or template that has the object
	Hook   *Hook          `json:"hook,omitempty"` // nil: an ordinary object
	Object map[string]any `json:"object"`
}

// Hook says when an installer creates an object that is not kept like the others. The names are
// those of Helm (helm.sh/docs/topics/charts_hooks).
type Hook struct {
	Events []string `json:"events"`           // "pre-install", "post-upgrade"; never empty
	Weight int      `json:"weight"`           // lower weights are created first
	Delete []string `json:"delete,omitempty"` // "before-hook-creation", "hook-succeeded"; nil: before-hook-creation
}

// FS returns a bundle directory with the content of r, which [Load] reads.
func (r Release) FS() (fs.FS, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	t := filetree.New()
	if err := t.Add(releaseFile, data); err != nil {
		return nil, err
	}
	return t.FS(), nil
}

// releases returns the format of Release.
func releases() format {
	return format{marker: releaseFile, load: loadRelease, manifests: allManifests, files: allFiles, image: imageV1}
}

func loadRelease(fsys fs.FS) (*Bundle, error) {
	data, err := readFile(fsys, releaseFile)
	if err != nil {
		return nil, err
	}
	var r Release
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	if err := in.Decode(&r); err != nil {
		return nil, diag.Errorf(diag.Pos{File: releaseFile}, "%w", err)
	}
	b := &Bundle{Package: r.Package, Complete: true, CSV: &CSV{
		File: r.File, Name: r.Name, Annotations: map[string]string{}, Version: r.Version, DisplayName: r.DisplayName,
		Description: r.Description, Provider: r.Provider, Keywords: r.Keywords, Links: r.Links,
		Modes: []catalog.InstallMode{catalog.AllNamespaces}, ModesListed: []string{string(catalog.AllNamespaces)}, Strategy: "deployment",
	}}
	var errs diag.List
	count := map[string]int{}
	for _, o := range r.Objects {
		at := fieldPosition{o.File, count[o.File] + 1, ""}
		fields, _ := numbers(o.Object).(map[string]any)
		if where, ok := findMergeKey(fields); ok {
			fieldPosition{o.File, count[o.File] + 1, where}.faultf(&errs, "key %q is a YAML merge key, which is not supported in manifests", "<<")
			continue
		}
		for _, item := range flatten(at, fields, &errs) {
			m := ManifestObject{File: o.File, Document: count[o.File], Hook: o.Hook, Object: item}
			count[o.File]++
			if m.Kind() == "" || m.APIVersion() == "" {
				errs.Addf(m.Pos(), "document %d: apiVersion or kind is missing", m.Document+1)
				continue
			}
			b.Objects = append(b.Objects, m)
			b.own(m)
		}
	}
	return b, errs.Err()
}

// own adds the versions of a CRD to the owned APIs of the bundle.
func (b *Bundle) own(o ManifestObject) {
	if !k8s.IsCRD(o.Object) {
		return
	}
	for _, v := range k8s.Items(o.Object, "spec", "versions") {
		b.CSV.OwnedCRDs = append(b.CSV.OwnedCRDs, API{
			Name: o.Name(), Version: k8s.Text(v, "name"), Kind: k8s.Text(o.Object, "spec", "names", "kind"), Field: o.File,
		})
	}
}

// Provides returns the APIs of the CRDs that the CSV owns, sorted.
func (b *Bundle) Provides() []catalog.GVK {
	var out []catalog.GVK
	for _, crd := range b.CSV.OwnedCRDs {
		if group, ok := catalog.GroupOf(crd.Name); ok {
			out = append(out, catalog.GVK{Group: group, Version: crd.Version, Kind: crd.Kind})
		}
	}
	slices.SortFunc(out, catalog.GVK.Compare)
	return slices.Compact(out)
}

// numbers returns v with numbers of the types that decoded manifests have. It changes v.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			v[k] = numbers(item)
		}
	case []any:
		for i, item := range v {
			v[i] = numbers(item)
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return f
		}
	}
	return v
}

// loadUnexpanded reports that the content becomes a bundle only with the settings of a pin.
func loadUnexpanded(fs.FS) (*Bundle, error) {
	return nil, errors.New("a chart becomes a bundle only with its values")
}

// allManifests returns all files of fsys, sorted by path.
func allManifests(fsys fs.FS) ([]Manifest, error) {
	var out []Manifest
	total := 0
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := readFile(fsys, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, Manifest{Path: name, Data: data, Named: true})
		if total += len(data); total > maxBundleBytes || len(out) > maxFiles {
			return fmt.Errorf("more than %d files or %d MiB", maxFiles, maxBundleBytes>>20)
		}
		return nil
	})
	return out, err
}

// allFiles returns a directory with the manifests at their own paths.
func allFiles(ms []Manifest, _ string) (fs.FS, error) {
	t := filetree.New()
	for _, m := range ms {
		if err := t.Add(m.Path, m.Data); err != nil {
			return nil, err
		}
	}
	return t.FS(), nil
}

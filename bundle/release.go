package bundle

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
)

// Release is a bundle that consists of finished objects, such as a chart with its values or the manifests of a
// release. Such a bundle has no install strategy from which rendering would generate objects.
type Release struct {
	Package     string
	Name        string // of the bundle: "cert-manager-v1.15.0"
	Version     string
	File        string // file with the metadata of the package, for messages: "Chart.yaml"
	DisplayName string
	Description string
	Provider    string
	Keywords    []string
	Links       []Link
	Objects     []ReleaseObject
	Warnings    []diag.Warning // warnings about the content, sorted
}

// ReleaseObject is an object of a Release.
type ReleaseObject struct {
	File   string // file or template that contains the object
	Hook   *Hook  // nil: an ordinary object
	Kept   bool   // the object outlives the operator
	Object map[string]any
}

// Hook describes an object that an installer creates and deletes at certain times. The installer keeps all
// other objects. The names are those of Helm (helm.sh/docs/topics/charts_hooks).
type Hook struct {
	Events []string // "pre-install", "post-upgrade"; never empty
	Weight int      // lower weights are created first
	Delete []string // "before-hook-creation", "hook-succeeded"; nil: before-hook-creation
}

// releaseDir is a directory that [Load] reads as a Release. Only [Release.In] creates such directories.
type releaseDir struct {
	fs.FS
	release Release
}

// In returns a directory that [Load] reads as r. files contains the original content, such as the chart.
func (r Release) In(files fs.FS) fs.FS { return releaseDir{files, r} }

func (r Release) load() (*Bundle, error) {
	b := &Bundle{Package: r.Package, Complete: true, Warnings: r.Warnings, CSV: &CSV{
		File: r.File, Name: r.Name, Annotations: map[string]string{}, Version: r.Version, DisplayName: r.DisplayName,
		Description: r.Description, Provider: r.Provider, Keywords: r.Keywords, Links: r.Links,
		Modes: []catalog.InstallMode{catalog.AllNamespaces}, ModesListed: []string{string(catalog.AllNamespaces)}, Strategy: "deployment",
	}}
	var errs diag.List
	count := map[string]int{}
	for _, o := range r.Objects {
		for _, item := range flatten(fieldPosition{o.File, count[o.File] + 1, ""}, o.Object, &errs) {
			m := ManifestObject{File: o.File, Document: count[o.File], Hook: o.Hook, Kept: o.Kept, Object: item}
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

// NamedManifests returns all files of fsys as named manifests, sorted by path. Use it for formats in which
// paths have a meaning, such as charts.
func NamedManifests(fsys fs.FS) ([]Manifest, error) {
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

// namedFiles returns a directory with the manifests at their own paths.
func namedFiles(ms []Manifest) (fs.FS, error) {
	t := filetree.New()
	for _, m := range ms {
		if err := t.Add(m.Path, m.Data); err != nil {
			return nil, err
		}
	}
	return t.FS(), nil
}

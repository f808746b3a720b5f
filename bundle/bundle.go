// Package bundle loads and validates operator bundles.
//
// A bundle is a directory with one version of an operator. The only supported format is registry+v1, with the
// directories manifests/ and metadata/. To add a format, add a file to this package and an entry to
// bundleFormats.
//
// Decoding keeps every field of every object. It splits Lists and files with several documents, and decodes
// numbers and YAML 1.1 booleans as the API server does. Loading does not validate (see [Validate]).
//
// The API is not stable yet: exported names may change in any release.
//
// Start from [Load], [Bundle] and [CSV].
package bundle

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Bundle is the content of one bundle. Its maps are shared and must not be modified.
type Bundle struct {
	Package        string           // "etcd", from metadata/annotations.yaml
	Channels       []string         // in file order
	DefaultChannel string           // empty if the metadata has none
	Properties     []Property       // content of metadata/properties.yaml
	Dependencies   []Property       // content of metadata/dependencies.yaml
	Complete       bool             // whether Objects are the whole operator, so that nothing is generated from the CSV, and namespaces are kept
	CSV            *CSV             // never nil; for a Release, only the description and the APIs
	Objects        []ManifestObject // all objects except the CSV, ordered by file name, then document
	Warnings       []diag.Warning   // warnings from loading: ignored files and misspelt API groups

	fieldWarnings []diag.Warning // warnings about unknown fields of the CSV, for Validate
}

// Property is an item of the properties or dependencies in the metadata of a bundle.
type Property struct {
	catalog.Property
	Pos   diag.Pos // of the item
	Field string   // "dependencies[0]"
}

// ManifestObject is one Kubernetes object of a bundle. Its values have the types string, bool,
// int64, float64, json.Number (integers that overflow int64), nil, []any and map[string]any.
type ManifestObject struct {
	k8s.Object
	File     string // "manifests/etcd.crd.yaml"
	Document int    // index of the object in the file, from 0; the items of a List count as objects
	Hook     *Hook  // nil: an ordinary object
	Kept     bool   // the object outlives the operator
}

// Pos returns the position of the object: its file, without a line.
func (o ManifestObject) Pos() diag.Pos { return diag.Pos{File: o.File} }

// String returns "Kind name".
func (o ManifestObject) String() string { return o.Kind() + " " + o.Name() }

const (
	maxFileBytes   = 64 << 20  // size limit of one file
	maxBundleBytes = 256 << 20 // size limit of all manifests together
	maxFiles       = 10_000
)

// registryV1 returns the format registry+v1 of OLM: manifests/ and metadata/.
func registryV1() format {
	return format{marker: "metadata/annotations.yaml", load: loadV1, manifests: manifestsV1, files: filesV1, image: imageV1}
}

func loadV1(fsys fs.FS) (*Bundle, error) {
	var errs diag.List
	b := &Bundle{}
	meta, err := readMetadata(fsys)
	if err != nil {
		errs.Add(diag.Pos{}, err)
		return nil, errs.Err()
	}
	b.Package, b.Channels, b.DefaultChannel = meta.pkg, meta.channels, meta.defaultChannel
	b.Properties, b.Dependencies = meta.properties, meta.dependencies
	objects, warnings, err := readManifests(fsys, meta.manifests)
	errs.Add(diag.Pos{}, err)
	b.Warnings = warnings
	b.splitCSV(objects, meta.manifests, &errs)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return b, nil
}

// splitCSV separates the CSV from the other objects. If no ClusterServiceVersion has OLM's API group, splitCSV
// accepts one with a misspelt group, and adds a warning.
func (b *Bundle) splitCSV(objects []ManifestObject, dir string, errs *diag.List) {
	proper := slices.ContainsFunc(objects, func(o ManifestObject) bool { return isCSV(o) && inOLMGroup(o) })
	for _, o := range objects {
		switch {
		case o.Kind() == "":
			errs.Addf(o.Pos(), "document %d: kind is missing", o.Document+1)
		case !isCSV(o) || proper && !inOLMGroup(o):
			b.Objects = append(b.Objects, o)
		case b.CSV != nil:
			errs.Addf(o.Pos(), "second ClusterServiceVersion %q (the first is %q, in %s)", o.Name(), b.CSV.Name, b.CSV.File)
		default:
			csv, dropped, err := readCSV(o)
			errs.Add(o.Pos(), err)
			b.CSV, b.fieldWarnings = csv, dropped
			if is := o.APIVersion(); is != "" && is != csvVersion {
				b.Warnings = append(b.Warnings, diag.Warning{Pos: o.Pos(), Code: "csv-version", Msg: fmt.Sprintf("ClusterServiceVersion %s has apiVersion %s: treated as %s", o.Name(), is, csvVersion)})
			}
		}
	}
	if b.CSV == nil && len(*errs) == 0 {
		errs.Addf(diag.Pos{File: dir}, "no ClusterServiceVersion among the manifests")
	}
}

const csvVersion = "operators.coreos.com/v1alpha1"

func isCSV(o ManifestObject) bool { return o.Kind() == "ClusterServiceVersion" }

// inOLMGroup reports whether the API group of an object is operators.coreos.com or empty.
func inOLMGroup(o ManifestObject) bool { return o.Group() == "" || o.Group() == k8s.OLMGroup }

// readManifests decodes the manifests in dir, sorted by file name.
func readManifests(fsys fs.FS, dir string) ([]ManifestObject, []diag.Warning, error) {
	var errs diag.List
	names, warnings, err := manifestFiles(fsys, dir)
	if err != nil {
		return nil, nil, err
	}
	var objects []ManifestObject
	total := 0
	for _, name := range names {
		data, err := readFile(fsys, name)
		if err != nil {
			errs.Add(diag.Pos{File: name}, err)
			continue
		}
		if total += len(data); total > maxBundleBytes {
			errs.Addf(diag.Pos{File: name}, "the manifests exceed the limit of %d MiB", maxBundleBytes>>20)
			break
		}
		got, err := decodeObjects(name, data)
		errs.Add(diag.Pos{File: name}, err)
		objects = append(objects, got...)
	}
	return objects, warnings, errs.Err()
}

// manifestFiles returns the paths of the manifests in dir, sorted, and a warning for each file that is neither
// YAML nor JSON. A subdirectory is an error.
func manifestFiles(fsys fs.FS, dir string) ([]string, []diag.Warning, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("reading manifests: %w", err)
	}
	if len(entries) > maxFiles {
		return nil, nil, diag.Errorf(diag.Pos{File: dir}, "more than %d files", maxFiles)
	}
	var errs diag.List
	var names []string
	var warnings []diag.Warning
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch err := sanitize.CheckName(name); {
		case err != nil:
			errs.Addf(diag.Pos{File: name}, "file name %w", err)
		case e.IsDir():
			errs.Addf(diag.Pos{File: name}, "subdirectory not supported: put all manifests of a bundle into one directory")
		case isManifest(e.Name()):
			names = append(names, name)
		case !strings.HasPrefix(e.Name(), "."):
			warnings = append(warnings, diag.Warning{Pos: diag.Pos{File: name}, Code: "bundle-file-skipped", Msg: "neither YAML nor JSON: ignored"})
		}
	}
	slices.Sort(names)
	return names, warnings, errs.Err()
}

func isManifest(name string) bool {
	return !strings.HasPrefix(name, ".") && yamlnode.HasExtension(name)
}

// readFile reads a regular file of at most maxFileBytes.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	fi, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file")
	}
	if fi.Size() > maxFileBytes {
		return nil, fmt.Errorf("larger than %d MiB", maxFileBytes>>20)
	}
	return fs.ReadFile(fsys, name)
}

// Package bundle reads registry+v1 bundles: one version of an operator as a
// directory of manifests/ and metadata/.
//
// It decodes what the files say and keeps it whole: every object is there
// field by field, multi-document files and lists are taken apart, numbers and
// YAML 1.1 booleans mean what the API server would take them for. It does not
// judge ([Validate] does, on request) and it renders nothing.
//
// It promises nothing yet: its exported names may change in any release.
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
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
)

// Bundle is the content of one bundle. Treat it as read-only: its maps are
// shared with whoever else holds it.
type Bundle struct {
	Package        string   // "etcd", from metadata/annotations.yaml
	Channels       []string // in file order
	DefaultChannel string   // empty where the metadata names none
	Properties     []catalog.Property
	Dependencies   []catalog.Property // {type, value} as metadata/dependencies.yaml writes them
	CSV            *CSV               // never nil
	Objects        []Object           // all but the CSV, in the order of file name, then document
	Warnings       []diag.Warning     // files that were not read

	dropped []diag.Warning // what of the CSV was not, for Validate
}

// Object is one Kubernetes object of a bundle, of string, bool, int64, float64,
// json.Number (integers beyond int64), nil, []any and map[string]any.
type Object struct {
	kobj.Object
	File     string // "manifests/etcd.crd.yaml"
	Document int    // its place in the file, from 0, lists taken apart
}

// Pos returns the object's file.
func (o Object) Pos() diag.Pos { return diag.Pos{File: o.File} }

// String returns "Kind name".
func (o Object) String() string { return o.Kind() + " " + o.Name() }

const (
	maxFileBytes   = 64 << 20  // of one file
	maxBundleBytes = 256 << 20 // of all manifests
	maxFiles       = 10_000
)

// Load reads the bundle at the root of fsys. Every fault of every file is
// reported at once, as a diag.List with the file's name and the field.
func Load(fsys fs.FS) (*Bundle, error) {
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
	b.take(objects, meta.manifests, &errs)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return b, nil
}

// take sorts the objects read into the CSV and the others. Where none is of
// OLM's own group, the one whose group is misspelt is meant.
func (b *Bundle) take(objects []Object, dir string, errs *diag.List) {
	proper := slices.ContainsFunc(objects, func(o Object) bool { return isCSV(o) && inOLMGroup(o) })
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
			b.CSV, b.dropped = csv, dropped
			if is := o.APIVersion(); is != "" && is != csvVersion {
				b.Warnings = append(b.Warnings, diag.Warning{Pos: o.Pos(), Code: "csv-version", Msg: fmt.Sprintf("ClusterServiceVersion %s has apiVersion %s: it is read as %s", o.Name(), is, csvVersion)})
			}
		}
	}
	if b.CSV == nil && len(*errs) == 0 {
		errs.Addf(diag.Pos{File: dir}, "no ClusterServiceVersion among the manifests")
	}
}

const csvVersion = "operators.coreos.com/v1alpha1"

func isCSV(o Object) bool { return o.Kind() == "ClusterServiceVersion" }

// inOLMGroup reports whether an object is of OLM's API group, or of none.
func inOLMGroup(o Object) bool { return o.Group() == "" || o.Group() == "operators.coreos.com" }

// readManifests decodes every manifest of dir, in the order of their names.
func readManifests(fsys fs.FS, dir string) ([]Object, []diag.Warning, error) {
	var errs diag.List
	names, warnings, err := manifestFiles(fsys, dir)
	if err != nil {
		return nil, nil, err
	}
	var objects []Object
	total := 0
	for _, name := range names {
		data, err := readFile(fsys, name)
		if err != nil {
			errs.Add(diag.Pos{File: name}, err)
			continue
		}
		if total += len(data); total > maxBundleBytes {
			errs.Addf(diag.Pos{File: name}, "the manifests are larger than %d MiB together", maxBundleBytes>>20)
			break
		}
		got, err := decodeObjects(name, data)
		errs.Add(diag.Pos{File: name}, err)
		objects = append(objects, got...)
	}
	return objects, warnings, errs.Err()
}

// manifestFiles returns the paths of the manifests in dir, sorted. Files that
// are neither YAML nor JSON earn a warning, directories are an error.
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
		switch err := inert.Name(name); {
		case err != nil:
			errs.Addf(diag.Pos{File: name}, "file name %w", err)
		case e.IsDir():
			errs.Addf(diag.Pos{File: name}, "a bundle's manifests lie in one directory, without subdirectories")
		case isManifest(e.Name()):
			names = append(names, name)
		case !strings.HasPrefix(e.Name(), "."):
			warnings = append(warnings, diag.Warning{Pos: diag.Pos{File: name}, Code: "bundle-file-skipped", Msg: "neither YAML nor JSON, left out"})
		}
	}
	slices.Sort(names)
	return names, warnings, errs.Err()
}

func isManifest(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// readFile reads a regular file of bounded size.
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

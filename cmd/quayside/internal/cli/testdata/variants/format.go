package bundle

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
)

const flatFile = "flat.yaml"

// flat is a bundle in one file: its manifests, and a document of kind Flat with the name of the
// package.
func flat() format {
	return format{
		marker: flatFile, load: loadFlat,
		manifests: func(fsys fs.FS) ([]Manifest, error) {
			data, err := readFile(fsys, flatFile)
			return []Manifest{{Path: flatFile, Data: data}}, err
		},
		files: func(ms []Manifest, _ string) (fs.FS, error) {
			t := filetree.New()
			err := t.Add(flatFile, ms[0].Data)
			return t.FS(), err
		},
		image: func(fs.FS) (fs.FS, map[string]string, error) {
			return nil, nil, errors.New("no image of a flat bundle")
		},
	}
}

func loadFlat(fsys fs.FS) (*Bundle, error) {
	data, err := readFile(fsys, flatFile)
	if err != nil {
		return nil, err
	}
	objects, err := decodeObjects(flatFile, data)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(objects, func(o ManifestObject) bool { return o.Kind() == "Flat" })
	if i < 0 {
		return nil, diag.Errorf(diag.Pos{File: flatFile}, "no document of kind Flat")
	}
	b := &Bundle{Package: k8s.Text(objects[i].Object, "package"), Channels: []string{"stable"}, DefaultChannel: "stable"}
	var errs diag.List
	b.splitCSV(slices.Delete(objects, i, i+1), flatFile, &errs)
	return b, errs.Err()
}

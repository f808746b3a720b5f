package format

import (
	"context"
	"errors"
	"io/fs"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/yamlnode"
)

// maxObjects limits the objects of a kustomization.
const maxObjects = 20_000

// expandManifests returns the objects of a release, in the namespace of the pin.
func expandManifests(_ context.Context, files fs.FS, in Input) (bundle.Release, error) {
	r := bundle.Release{Package: in.Pin.Package, Name: in.Pin.Bundle, Version: in.Pin.Version, DisplayName: in.Pin.Package}
	var err error
	if r.Objects, err = readManifests(files, "."); err != nil {
		return r, err
	}
	r.File = r.Objects[0].File
	return r, moveObjects(r.Objects, in.Pin.Namespace)
}

// readManifests returns the objects of the kustomization in a directory. Without a kustomization, it returns
// the objects of the YAML and JSON files at any depth, sorted by path.
func readManifests(files fs.FS, dir string) ([]bundle.ReleaseObject, error) {
	o, err := overlay.New(overlay.FileFunc(func(name string) ([]byte, error) { return fs.ReadFile(files, name) })).Open(dir)
	if err == nil {
		return buildManifests(o)
	}
	if o != nil || !errors.Is(err, overlay.ErrNone) {
		return nil, err
	}
	var out []bundle.ReleaseObject
	var errs diag.List
	err = fs.WalkDir(files, dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !yamlnode.HasExtension(name) {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		docs, err := yamlnode.Objects(name, data, yamlnode.Limits{})
		errs.Add(diag.Pos{File: name}, err)
		for _, doc := range docs {
			out = append(out, bundle.ReleaseObject{File: name, Object: doc})
		}
		return nil
	})
	if errs.Add(diag.Pos{}, err); len(out) == 0 {
		errs.Addf(diag.Pos{}, "the release has no objects: expected YAML files, or a kustomization.yaml")
	}
	return out, errs.Err()
}

// buildManifests returns the objects of a kustomize build.
func buildManifests(o *overlay.Overlay) ([]bundle.ReleaseObject, error) {
	built, err := o.BuildAtMost(maxObjects)
	if err != nil {
		return nil, err
	}
	var out []bundle.ReleaseObject
	for _, raw := range built {
		var object map[string]any
		if err := utiljson.Unmarshal(raw, &object); err != nil {
			return nil, err
		}
		out = append(out, bundle.ReleaseObject{File: o.File, Object: object})
	}
	if len(out) == 0 {
		return nil, diag.Errorf(diag.Pos{File: o.File}, "the kustomization has no objects")
	}
	return out, nil
}

// askedByManifests returns no APIs, because manifests are the same on every cluster.
func askedByManifests(fs.FS, []string) ([]string, error) { return nil, nil }

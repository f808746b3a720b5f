// Package olm restores the objects of a recorded cluster with OLM on a control plane of the harness: every
// object with its owners, its status and its managers. OLM itself does not run on this control plane.
//
// Start from [Read], [Services] and [Restore].
package olm

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Clusters holds the recorded clusters of the corpus, by file name: "modes/before.json".
type Clusters map[string][]byte

// Read returns the corpus's clusters, and their catalogs.
func Read(corpus string) (Clusters, error) {
	f, err := os.Open(filepath.Join(corpus, "olm-clusters.tar.zst"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	all := Clusters{}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if all[path.Clean(h.Name)], err = io.ReadAll(in); err != nil {
			return nil, err
		}
	}
}

// Objects returns the objects in some of the files, in order. If several files contain an object, it returns
// the object from the first of these files.
func (c Clusters) Objects(names ...string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	seen := map[string]bool{}
	for _, name := range names {
		var list unstructured.UnstructuredList
		if err := list.UnmarshalJSON(c[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			key := objectID(o)
			if !seen[key] {
				seen[key] = true
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// Before returns the names of the clusters recorded before any operator left OLM.
func (c Clusters) Before() []string {
	names := []string{"modes/before.json"} // first: its versions of shared objects are used
	for name := range c {
		if path.Base(name) == "before.json" && name != names[0] {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names
}

// WriteCatalogs writes the catalogs of the clusters to a directory, each to a subdirectory with
// its name: "catalog-community".
func (c Clusters) WriteCatalogs(dir string) error {
	for name, text := range c {
		if !strings.HasPrefix(name, "catalog-") || !filepath.IsLocal(name) {
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func objectID(o *unstructured.Unstructured) string {
	return o.GroupVersionKind().GroupKind().String() + " " + o.GetNamespace() + "/" + o.GetName()
}

// objectText returns an object as JSON.
func objectText(o *unstructured.Unstructured) ([]byte, error) { return json.Marshal(o.Object) }

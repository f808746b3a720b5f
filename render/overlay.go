package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render/profile"
)

// StreamOverlay returns what a cluster gets as one multi-document YAML, in
// apply order: its CRDs, which no overlay transforms, and the overlays of the
// operators and of the reporter as kustomize builds them. disk is the tree as it
// stands, from which the user's own files are taken; nil where there is none.
func StreamOverlay(r *Result, disk *filetree.Tree, cluster string) ([]byte, error) {
	c, err := r.tree.cluster(cluster)
	if err != nil {
		return nil, err
	}
	gets, err := r.tree.gets(c)
	if err != nil {
		return nil, err
	}
	dir := path.Join("clusters", cluster)
	files := withUserFiles(r.Tree, disk)
	docs, err := build(files, dir)
	if err != nil {
		return nil, fmt.Errorf("building cluster %q: %w", cluster, err)
	}
	if _, ok := r.Tree.Get(path.Join(dir, reporterDir, kustomizationFile)); ok {
		more, err := build(files, path.Join(dir, reporterDir))
		if err != nil {
			return nil, fmt.Errorf("building the reporter of cluster %q: %w", cluster, err)
		}
		docs = append(docs, more...)
	}
	for _, o := range r.Objects {
		if kobj.IsCRD(o.Object) && gets(o.Object) {
			docs = append(docs, document{o.Object, yamlnode.Encode(o.Object)})
		}
	}
	slices.SortStableFunc(docs, func(a, b document) int {
		return cmp.Or(cmp.Compare(profile.Phase(a.head), profile.Phase(b.head)), a.head.Key().Compare(b.head.Key()))
	})
	var out bytes.Buffer
	for _, d := range docs {
		out.WriteString("---\n")
		out.Write(d.text)
	}
	return out.Bytes(), nil
}

// withUserFiles returns the files of a rendered tree, and those on disk that
// are the user's.
func withUserFiles(t, disk *filetree.Tree) map[string][]byte {
	files := map[string][]byte{}
	if disk != nil {
		for name, data := range disk.All() {
			if strings.HasPrefix(name, "clusters/") {
				files[name] = data
			}
		}
	}
	for name, data := range t.All() {
		if _, theirs := files[name]; !theirs || !t.Starter(name) {
			files[name] = data
		}
	}
	return files
}

// document is one object with its text.
type document struct {
	head Object // what names it
	text []byte
}

// build builds a kustomization of the files in memory, without plugins.
func build(files map[string][]byte, dir string) ([]document, error) {
	fsys := filesys.MakeFsInMemory()
	for name, data := range files {
		if err := fsys.WriteFile("/"+name, data); err != nil {
			return nil, err
		}
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, path.Join("/", dir))
	if err != nil {
		return nil, err
	}
	var out []document
	for _, o := range objects.Resources() {
		data, err := o.MarshalJSON()
		if err != nil {
			return nil, err
		}
		text, err := yamlnode.Marshal(json.RawMessage(data)) // in the form of the tree
		if err != nil {
			return nil, err
		}
		head := kobj.New(o.GetApiVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
		out = append(out, document{head, text})
	}
	return out, nil
}

package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// StreamOverlay returns all objects of a cluster as multi-document YAML, in the order of
// application: the CRDs, which no overlay changes, and the built pieces of the operators and the
// reporter. build runs kustomize on a directory of the tree, including the user's files, and
// returns the objects as JSON.
func StreamOverlay(r *Result, build func(dir string) ([][]byte, error), cluster string) ([]byte, error) {
	v, err := r.tree.view(cluster)
	if err != nil {
		return nil, err
	}
	gets := v.crdFilter()
	var docs []document
	treeLayout, here, err := r.layout(v.cluster)
	if err != nil {
		return nil, err
	}
	for _, dir := range treeLayout.Pieces(here) {
		built, err := build(dir)
		if err != nil {
			return nil, fmt.Errorf("building cluster %q: %w", cluster, err)
		}
		for _, data := range built {
			d, err := newDocument(data)
			if err != nil {
				return nil, fmt.Errorf("building cluster %q: %w", cluster, err)
			}
			docs = append(docs, d)
		}
	}
	for _, o := range r.Objects {
		if k8s.IsCRD(o.Object) && gets(o.Object) {
			docs = append(docs, document{o.Object, yamlnode.Encode(o.Object)})
		}
	}
	if r.tree.opt.Reporter != nil {
		installations, err := v.installations()
		if err != nil {
			return nil, err
		}
		for _, in := range installations {
			for _, o := range r.tree.annotateAll(r.tree.installationObjects(in)) {
				docs = append(docs, document{o, yamlnode.Encode(o)})
			}
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

// layout returns the layout of the tree, and the entry of a cluster in it.
func (r *Result) layout(c profile.Cluster) (*layout.Tree, layout.Cluster, error) {
	treeLayout, err := layout.Read(r.Tree.Names(), r.Tree.Get)
	if err != nil {
		return nil, layout.Cluster{}, err
	}
	here, _ := treeLayout.Cluster(c.Name)
	return treeLayout, here, nil
}

// document is an object with its YAML text.
type document struct {
	head Object // contains at least the fields that identify the object
	text []byte
}

// newDocument converts an object in JSON to YAML in the format of the tree.
func newDocument(data []byte) (document, error) {
	var head Object
	if err := json.Unmarshal(data, &head); err != nil {
		return document{}, err
	}
	text, err := yamlnode.Marshal(json.RawMessage(data))
	return document{head, text}, err
}

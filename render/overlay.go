package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Stream lists objects in the order of application.
type Stream []document

// StreamOverlay returns all objects of a cluster: the CRDs, which no overlay changes, and the objects that
// build returns for the pieces of the operators and the reporter. build runs kustomize on a directory of the
// tree, including the user's files, and returns the objects as JSON.
func StreamOverlay(r *Result, build func(dir string) ([][]byte, error), cluster string) (Stream, error) {
	v, err := r.tree.view(cluster)
	if err != nil {
		return nil, err
	}
	gets := v.crdFilter()
	var docs Stream
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
	for _, o := range v.objects {
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
	return docs, nil
}

// Of returns the objects of an operator, and its install Namespace.
func (s Stream) Of(namespace, pkg string) Stream {
	return slices.DeleteFunc(slices.Clone(s), func(d document) bool {
		labels := k8s.Map(d.head, "metadata", "labels")
		own := k8s.Text(labels, k8s.LabelPackage) == k8s.LabelValue(pkg) && (k8s.IsCRD(d.head) || k8s.Text(labels, k8s.LabelNamespace) == namespace)
		return !own && (d.head.Key() != k8s.Key{Kind: "Namespace", Name: namespace})
	})
}

// YAML returns the objects as multi-document YAML.
func (s Stream) YAML() []byte {
	var out bytes.Buffer
	for _, d := range s {
		out.WriteString("---\n")
		out.Write(d.text)
	}
	return out.Bytes()
}

// Files returns a file for each object. Objects can be applied in the alphabetical order of the files.
func (s Stream) Files() (*filetree.Tree, error) {
	var objects []Object
	for _, d := range s {
		objects = append(objects, d.head)
	}
	out := filetree.New()
	for i, name := range fileNames(naming{maxLength: maxPath - len("00-")}, objects) {
		if err := out.Add(fmt.Sprintf("%02d-%s", profile.Phase(objects[i]), name), s[i].text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// layout returns the layout of the tree, and the entry of cluster c in the layout.
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

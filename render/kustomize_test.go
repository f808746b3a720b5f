package render

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/layout"
)

// filesOf returns the files of a rendered tree and of the user's overlays next to it, by path:
// "../overlays/lab/kustomization.yaml".
func filesOf(t *filetree.Tree, overlays map[string]string) map[string][]byte {
	files := map[string][]byte{}
	for name, data := range t.All() {
		files[name] = data
	}
	for name, text := range overlays {
		files["../"+layout.Overlays+"/"+name] = []byte(text)
	}
	return files
}

// checkout writes the files of a tree to a file system in memory.
func checkout(files map[string][]byte) (filesys.FileSystem, error) {
	fsys := filesys.MakeFsInMemory()
	for name, data := range files {
		if err := fsys.WriteFile(path.Join("/rendered", name), data); err != nil {
			return nil, err
		}
	}
	return fsys, nil
}

// build builds a directory of a tree in memory, without plugins.
func build(files map[string][]byte, dir string) ([]document, error) {
	fsys, err := checkout(files)
	if err != nil {
		return nil, err
	}
	return buildIn(fsys, dir)
}

// buildIn builds a directory of a tree in a file system.
func buildIn(fsys filesys.FileSystem, dir string) ([]document, error) {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, path.Join("/rendered", dir))
	if err != nil {
		return nil, err
	}
	var out []document
	for _, o := range objects.Resources() {
		data, err := o.MarshalJSON()
		if err != nil {
			return nil, err
		}
		d, err := newDocument(data)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// builder returns a function that builds directories of a rendered tree, with the user's overlays.
func builder(res *Result, overlays map[string]string) func(dir string) ([][]byte, error) {
	return func(dir string) ([][]byte, error) {
		docs, err := build(filesOf(res.Tree, overlays), dir)
		var out [][]byte
		for _, d := range docs {
			data, err := yaml.YAMLToJSON(d.text)
			if err != nil {
				return nil, err
			}
			out = append(out, data)
		}
		return out, err
	}
}

// parts holds the objects of a cluster, parsed from the files of its tree.
type parts struct {
	pieces        map[string][]document // by directory
	definitions   []document
	installations []document
}

// operators returns the objects of all pieces except the reporter.
func (p parts) operators() []document {
	var out []document
	for dir, docs := range p.pieces {
		if path.Base(dir) != layout.Reporter {
			out = append(out, docs...)
		}
	}
	return out
}

// reporter returns the objects of the reporter, Installations included.
func (p parts) reporter() []document {
	out := slices.Clone(p.installations)
	for dir, docs := range p.pieces {
		if path.Base(dir) == layout.Reporter {
			out = append(out, docs...)
		}
	}
	return out
}

// all returns all objects of the cluster.
func (p parts) all() []document {
	return slices.Concat(p.operators(), p.definitions, p.reporter())
}

// partsOf returns the objects of a cluster, parsed from the files of its tree.
func partsOf(t testingT, res *Result, overlays map[string]string, cluster string) parts {
	t.Helper()
	files := filesOf(res.Tree, overlays)
	fsys, err := checkout(files)
	if err != nil {
		t.Fatalf("%v", err)
	}
	v, err := res.tree.view(cluster)
	if err != nil {
		t.Fatalf("%v", err)
	}
	lies, here, err := res.layout(v.cluster)
	if err != nil {
		t.Fatalf("%v", err)
	}
	out := parts{pieces: map[string][]document{}}
	read := func(dir string) []document {
		docs, err := buildIn(fsys, dir)
		if err != nil {
			t.Fatalf("cluster %s: %s does not build: %v", cluster, dir, err)
		}
		return docs
	}
	for _, dir := range lies.Pieces(here) {
		out.pieces[dir] = read(dir)
	}
	plain, own := lies.ClusterCRDDirs(here)
	if own != "" {
		out.definitions = read(own)
	}
	for _, dir := range plain {
		out.definitions = append(out.definitions, plainDocuments(t, files, dir)...)
	}
	for _, name := range lies.Installations(here) {
		out.installations = append(out.installations, fileDocuments(t, files[path.Join(here.Prefix, name)])...)
	}
	return out
}

// plainDocuments returns the objects of all files in a directory. It reads the directory like a tool that finds
// no kustomization.
func plainDocuments(t testingT, files map[string][]byte, dir string) []document {
	t.Helper()
	var out []document
	for name, data := range files {
		if strings.HasPrefix(name, dir+"/") && path.Ext(name) == ".yaml" && path.Base(name) != layout.Kustomization {
			out = append(out, fileDocuments(t, data)...)
		}
	}
	return out
}

// fileDocuments returns the objects of a file.
func fileDocuments(t testingT, data []byte) []document {
	t.Helper()
	var out []document
	for text := range bytes.SplitSeq(data, []byte("\n---\n")) {
		text, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatalf("%v", err)
		}
		d, err := newDocument(text)
		if err != nil {
			t.Fatalf("%v", err)
		}
		out = append(out, d)
	}
	return out
}

// canonicals returns the documents as formatted by canonical, sorted.
func canonicals(t testingT, docs []document) []string {
	t.Helper()
	out := make([]string, len(docs))
	for i, d := range docs {
		out[i] = canonicalText(t, d.text)
	}
	slices.Sort(out)
	return out
}

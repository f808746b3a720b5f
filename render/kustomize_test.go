package render

import (
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/filetree"
)

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
		d, err := newDocument(data)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// builder builds directories of a rendered tree, with the user's files of disk.
func builder(res *Result, disk *filetree.Tree) func(dir string) ([][]byte, error) {
	return func(dir string) ([][]byte, error) {
		docs, err := build(withUserFiles(res.Tree, disk), dir)
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

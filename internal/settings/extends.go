package settings

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Repository reads the files that quayside.yaml extends. If Read is nil, Load ignores spec.extends.
type Repository struct {
	Dir string // directory of the workspace in its repository: "envs/dev"; "." for the root
	// Read returns the content of a file, and its name for messages. path is relative to the
	// repository. Read must reject symbolic links out of the repository.
	Read func(path string) (name string, data []byte, err error)
}

// Limits on the settings files of one workspace.
const (
	maxChain = 10      // files in a chain of spec.extends
	maxBytes = 4 << 20 // of one file
)

// lineSpan is the range of line numbers for one file in the merged tree. Lines of file i are
// shifted by i*lineSpan, similar to offsets in go/token's FileSet, so that the line of a node
// identifies its file.
const lineSpan = 2 * maxBytes

// layer is one file in the chain of spec.extends.
type layer struct {
	name string // for messages
	path string // in the repository
	root *yaml.Node
}

// loader reads quayside.yaml and the files that it extends.
type loader struct {
	repo   Repository
	layers []layer // quayside.yaml first
	errs   diag.List
}

// load parses a file and the files that it extends. It returns false if validation is impossible
// because of a fault.
func (l *loader) load(name, file string, data []byte) bool {
	docs, err := yamlnode.Documents(name, data, yamlnode.Limits{Bytes: maxBytes, Depth: 50, Nodes: 100_000})
	if err != nil {
		l.errs.Add(diag.Pos{File: name}, err)
		return false
	}
	if len(docs) > 1 {
		l.errs.Addf(yamlnode.At(name, docs[1]), "second document: a workspace is a single document")
		return false
	}
	if len(docs) == 0 && len(l.layers) > 0 {
		l.errs.Addf(diag.Pos{File: name, Line: 1, Col: 1}, "no apiVersion (expected %s): the file is empty", APIVersion)
		return false
	}
	if len(docs) == 0 {
		docs = []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}}
	} else if !yamlnode.CheckHeader(name, docs[0], APIVersion, Kind, &l.errs) {
		return false
	}
	at := len(l.layers)
	l.layers = append(l.layers, layer{name: name, path: file, root: copyTree(docs[0], at*lineSpan)})
	if at > 0 {
		var top struct {
			APIVersion string     `json:"apiVersion"`
			Kind       string     `json:"kind"`
			Metadata   *yaml.Node `json:"metadata"`
			Spec       *yaml.Node `json:"spec"`
		}
		l.errs.Add(diag.Pos{File: name}, yamlnode.Decode(name, docs[0], &top))
	}
	return l.extend(name, file, docs[0])
}

// extend loads the file that spec.extends of root names, if it is set.
func (l *loader) extend(name, file string, root *yaml.Node) bool {
	var f struct {
		Spec struct {
			Extends *string `json:"extends"`
		} `json:"spec"`
	}
	if err := yamlnode.DecodeOpen(name, root, &f); err != nil {
		l.errs.Add(diag.Pos{File: name}, err)
		return false
	}
	if f.Spec.Extends == nil || l.repo.Read == nil {
		return true
	}
	_, spec := yamlnode.Field(root, "spec")
	_, value := yamlnode.Field(spec, "extends")
	v := validator{Checker: yamlnode.Checker{Fields: diag.Fields{"spec.extends": yamlnode.At(name, value)}, Faults: &l.errs}}
	base := path.Join(path.Dir(file), *f.Spec.Extends)
	before := len(l.errs)
	switch v.checkRelative("spec.extends", *f.Spec.Extends); {
	case len(l.errs) > before:
		return false
	case base == ".." || strings.HasPrefix(base, "../"):
		v.Addf("spec.extends", "%q is outside of the workspace's Git repository, or of the workspace if there is none", *f.Spec.Extends)
		return false
	}
	var names []string
	for _, other := range l.layers {
		names = append(names, other.name)
	}
	if i := slices.IndexFunc(l.layers, func(other layer) bool { return other.path == base }); i >= 0 {
		v.Addf("spec.extends", "forms a cycle: %s", strings.Join(append(names[i:], names[i]), " extends "))
		return false
	}
	if len(l.layers) == maxChain {
		v.Addf("spec.extends", "more than %d levels: %s", maxChain, strings.Join(names, " extends "))
		return false
	}
	shown, data, err := l.repo.Read(base)
	if err != nil {
		v.Addf("spec.extends", "%w", err)
		return false
	}
	return l.load(shown, base, data)
}

// locate maps a position in the merged tree to its file and line.
func (l *loader) locate(p diag.Pos) diag.Pos {
	p.File = l.layers[p.Line/lineSpan].name
	p.Line %= lineSpan
	return p
}

// mergedTree returns the tree of quayside.yaml with inherited settings. Only spec is inherited. Its
// paths are changed to be relative to the workspace.
func (l *loader) mergedTree() *yaml.Node {
	m := merger{reset: map[*yaml.Node]bool{}}
	var spec *yaml.Node
	for i := len(l.layers) - 1; i > 0; i-- {
		base := l.layers[i]
		_, own := yamlnode.Field(base.root, "spec")
		if own == nil {
			continue
		}
		dropField(own, "extends")
		if dir := path.Dir(base.path); dir != l.repo.Dir {
			rebaseScalars(own, "spec", func(p string) string { return l.fromWorkspace(path.Join(dir, p)) })
		}
		spec = m.merge("spec", spec, own)
	}
	root := l.layers[0].root
	if spec == nil {
		return root
	}
	key, own := yamlnode.Field(root, "spec")
	if spec = m.prune(m.merge("spec", spec, own)); key == nil {
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "spec", Line: spec.Line, Column: spec.Column}, spec)
		return root
	}
	for i := range root.Content {
		if root.Content[i] == own {
			root.Content[i] = spec
		}
	}
	return root
}

// fromWorkspace converts a path in the repository to a path relative to the workspace.
func (l *loader) fromWorkspace(p string) string {
	rel, err := filepath.Rel(filepath.FromSlash(l.repo.Dir), filepath.FromSlash(p))
	if err != nil {
		return p
	}
	return filepath.ToSlash(rel)
}

// extendedFiles returns the files that quayside.yaml extends, directly extended ones first. Their
// paths are relative to the workspace.
func (l *loader) extendedFiles() []string {
	var out []string
	for _, base := range l.layers[1:] {
		out = append(out, l.fromWorkspace(base.path))
	}
	return out
}

// copyTree returns a copy of n with lines added to each line number. Aliased nodes are copied for
// each alias.
func copyTree(n *yaml.Node, lines int) *yaml.Node {
	out := *n
	out.Line += lines
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = copyTree(c, lines)
	}
	return &out
}

func dropField(n *yaml.Node, name string) {
	if key, _ := yamlnode.Field(n, name); key != nil {
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i] == key {
				n.Content = append(n.Content[:i:i], n.Content[i+2:]...)
				return
			}
		}
	}
}

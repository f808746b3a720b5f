package settings

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Repository provides the files that quayside.yaml extends. If Read is nil, Load ignores
// spec.extends.
type Repository struct {
	Dir string // directory of the workspace in the repository, such as "envs/dev"; "." for the root
	// Read returns the content of a file, and its name for messages. path is relative to the
	// repository. Symbolic links that lead out of the repository must be errors.
	Read func(path string) (name string, data []byte, err error)
}

// Limits for the settings files of a workspace.
const (
	maxChain = 10      // maximum number of files in a chain of spec.extends
	maxBytes = 4 << 20 // maximum bytes of one file
)

// lineSpan is the number of line numbers reserved for each file in the merged tree. The line numbers of file i
// are increased by i*lineSpan, so that the line of a node also identifies its file. (token.FileSet does the
// same with offsets.)
const lineSpan = 2 * maxBytes

// layer is one file in the chain of spec.extends.
type layer struct {
	name string // name for messages
	path string // path in the repository
	root *yamlnode.Node
}

// loader reads quayside.yaml and the files that it extends.
type loader struct {
	repo   Repository
	layers []layer // files in the chain, quayside.yaml first
	errs   diag.List
}

// load parses a file and the files that it extends. It returns false if a fault makes it impossible to validate
// the settings.
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
		docs = []*yamlnode.Node{{Kind: yamlnode.MappingNode, Tag: "!!map", Line: 1, Column: 1}}
	} else if !yamlnode.CheckHeader(name, docs[0], APIVersion, Kind, &l.errs) {
		return false
	}
	at := len(l.layers)
	l.layers = append(l.layers, layer{name: name, path: file, root: copyTree(docs[0], at*lineSpan)})
	if at > 0 {
		var top struct {
			APIVersion string         `json:"apiVersion"`
			Kind       string         `json:"kind"`
			Metadata   *yamlnode.Node `json:"metadata"`
			Spec       *yamlnode.Node `json:"spec"`
		}
		l.errs.Add(diag.Pos{File: name}, yamlnode.Decode(name, docs[0], &top))
	}
	return l.extend(name, file, docs[0])
}

// extend loads the file in the field spec.extends of root. Without spec.extends, it does nothing.
func (l *loader) extend(name, file string, root *yamlnode.Node) bool {
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

// locate converts a position in the merged tree to a position in a file.
func (l *loader) locate(p diag.Pos) diag.Pos {
	p.File = l.layers[p.Line/lineSpan].name
	p.Line %= lineSpan
	return p
}

// mergedTree returns the settings of quayside.yaml, merged with the inherited settings. Only spec is inherited.
// In the result, inherited paths are relative to the workspace.
func (l *loader) mergedTree() *yamlnode.Node {
	m := merger{reset: map[*yamlnode.Node]bool{}}
	var spec *yamlnode.Node
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
		root.Content = append(root.Content, &yamlnode.Node{Kind: yamlnode.ScalarNode, Tag: "!!str", Value: "spec", Line: spec.Line, Column: spec.Column}, spec)
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

// extendedFiles returns the files that quayside.yaml extends, relative to the workspace. The file
// that it extends directly comes first.
func (l *loader) extendedFiles() []string {
	var out []string
	for _, base := range l.layers[1:] {
		out = append(out, l.fromWorkspace(base.path))
	}
	return out
}

// copyTree returns a copy of n with all line numbers increased by lines. For each alias of a node, it makes a
// separate copy of the node.
func copyTree(n *yamlnode.Node, lines int) *yamlnode.Node {
	out := *n
	out.Line += lines
	out.Content = make([]*yamlnode.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = copyTree(c, lines)
	}
	return &out
}

func dropField(n *yamlnode.Node, name string) {
	if key, _ := yamlnode.Field(n, name); key != nil {
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i] == key {
				n.Content = append(n.Content[:i:i], n.Content[i+2:]...)
				return
			}
		}
	}
}

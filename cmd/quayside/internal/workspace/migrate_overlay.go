package workspace

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/yamlnode"
)

// generated is the directory with the rendered files of a cluster in the earlier layout.
const generated = "generated"

// earlierOverlay is the team's kustomization of a cluster in the earlier layout, or that of
// its reporter.
type earlierOverlay struct {
	file, dir string // "rendered/clusters/prod/kustomization.yaml"
	to        string // "overlays/prod"
	cluster   string
	reporter  bool
	entries   []entry
	comments  []string          // the team's comments on omitted nodes
	docs      map[string][]byte // new kustomizations, by their directory below the field to
}

// entry is a field of a kustomization, or one item of a list field.
type entry struct {
	field     string
	item      int // index in a list field; -1: the whole field
	key, node *yaml.Node
}

// String returns the position in the kustomization: "patches[0]".
func (x entry) String() string {
	if x.item < 0 {
		return x.field
	}
	return fmt.Sprintf("%s[%d]", x.field, x.item)
}

// parse sets entries from a kustomization. It leaves out apiVersion, kind, and the reference to the
// directory of rendered files.
func (top *earlierOverlay) parse(data []byte) error {
	if _, err := yamlnode.Documents(top.file, data, yamlnode.Limits{}); err != nil { // yaml.Unmarshal has no limits
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) != 1 {
		return diag.Errorf(diag.Pos{File: top.file}, "cannot move overlay: expected one YAML document")
	}
	top.saveComments(&doc)
	for i := 0; i+1 < len(doc.Content[0].Content); i += 2 {
		key, value := doc.Content[0].Content[i], doc.Content[0].Content[i+1]
		if key.Value == "bases" { // the deprecated name of resources
			key.Value = "resources"
		}
		switch {
		case key.Value == "apiVersion" || key.Value == "kind":
			top.saveComments(key)
		case value.Kind != yaml.SequenceNode:
			top.entries = append(top.entries, entry{key.Value, -1, key, value})
		default:
			if len(value.Content) == 1 && path.Clean(value.Content[0].Value) == generated {
				top.saveComments(key)
			}
			for item, node := range value.Content {
				if key.Value == "resources" && path.Clean(node.Value) == generated {
					top.saveComments(node)
					continue
				}
				top.entries = append(top.entries, entry{key.Value, item, key, node})
			}
		}
	}
	return nil
}

// starterComments are the comments of the files that earlier versions wrote for the team to
// edit.
const starterComments = `
# This file is yours: quayside wrote it once and leaves it alone from now on.
# What it renders for this cluster is in generated/; put your own patches,
# components and resources here or beside this file.
# The reporter as it is rendered for this cluster is in generated/; put your own
# patches here or beside this file. What the reporter does never changes how an
# operator is applied.
#
# patches:
# - path: more-memory.yaml
#   target: {kind: Deployment, name: etcd-operator}
`

// saveComments saves the comments that the team wrote on an omitted node.
func (top *earlierOverlay) saveComments(n *yaml.Node) {
	for line := range strings.Lines(n.HeadComment + "\n" + n.FootComment) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(starterComments, "\n"+line+"\n") {
			top.comments = append(top.comments, line)
		}
	}
}

// compose returns a kustomization of the given kind with the entries that the predicate has
// selects.
func (top *earlierOverlay) compose(kind string, has func(entry) bool) ([]byte, error) {
	version := types.KustomizationVersion
	if kind == types.ComponentKind {
		version = types.ComponentVersion
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalarNode("apiVersion"), scalarNode(version), scalarNode("kind"), scalarNode(kind)}}
	root.Content[0].HeadComment = strings.Join(top.comments, "\n")
	lists := map[string]*yaml.Node{}
	for _, x := range top.entries {
		switch list := lists[x.field]; {
		case !has(x):
		case x.item < 0:
			root.Content = append(root.Content, x.key, x.node)
		case list == nil:
			lists[x.field] = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{x.node}}
			root.Content = append(root.Content, x.key, lists[x.field])
		default:
			list.Content = append(list.Content, x.node)
		}
	}
	return encode(root)
}

func scalarNode(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// encode returns a document in the format of kustomize.
func encode(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	err := enc.Encode(n)
	return b.Bytes(), err
}

// split composes one kustomization for each distinct directory in dirs, and plans the moves of the
// files that these kustomizations refer to. dirs has the directory of each entry of top.
func (m *migrator) split(top *earlierOverlay, dirs []string) error {
	top.docs = map[string][]byte{}
	all := slices.Compact(slices.Sorted(slices.Values(dirs)))
	if len(all) == 0 && len(top.comments) > 0 { // kustomize refuses a Component that changes nothing
		return diag.Hintf(diag.Pos{File: top.file}, "delete the file", "cannot move overlay: comments only, no changes")
	}
	for _, dir := range all {
		kind := types.ComponentKind
		if dir == layout.Resources {
			kind = types.KustomizationKind
		}
		text, err := top.compose(kind, func(x entry) bool { return dirs[slices.Index(top.entries, x)] == dir })
		if err != nil {
			return err
		}
		refs, err := overlay.Paths(text)
		if err != nil {
			return diag.Errorf(diag.Pos{File: top.file}, "cannot move overlay: %w", err)
		}
		for _, ref := range refs {
			m.planMove(top, path.Join(top.dir, ref), path.Join(top.to, dir), func(string) bool { return true })
		}
		top.docs[dir], top.comments = text, nil
	}
	return nil
}

// planMove plans the moves of a file, or of the files in a directory. It moves only files of the
// overlay top for which selected returns true, and leaves out the kustomizations in m.overlays.
func (m *migrator) planMove(top *earlierOverlay, name, to string, selected func(file string) bool) {
	for file := range m.teamFiles {
		isTop := slices.ContainsFunc(m.overlays, func(t *earlierOverlay) bool { return t.file == file })
		if isBelow(file, name) && isBelow(file, top.dir) && !isTop && selected(file) {
			m.newPaths[file] = append(m.newPaths[file], path.Join(to, filetree.Relative(top.dir, file)))
		}
	}
}

// rewrite returns the text of a kustomization that is moved between two paths, with its references
// changed to match the new paths of all files.
func (m *migrator) rewrite(text []byte, from, to string) []byte {
	refs, err := overlay.Paths(text)
	var doc yaml.Node
	if err != nil || yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return text // kustomize reports the error
	}
	changed := false
	for field, ref := range refs {
		place := m.newPathOf(path.Join(path.Dir(from), ref), path.Dir(to))
		if n := nodeAt(doc.Content[0], field); n != nil && path.Join(path.Dir(to), ref) != place {
			n.Value, changed = strings.TrimSuffix(n.Value, ref)+filetree.Relative(path.Dir(to), place), true
		}
	}
	if out, err := encode(&doc); changed && err == nil {
		return out
	}
	return text
}

// newPathOf returns the new path of a file or directory, or name if it is not moved. If there are
// several new paths, it prefers a path below dir.
func (m *migrator) newPathOf(name, dir string) string {
	place := name
	for _, file := range slices.Sorted(maps.Keys(m.newPaths)) {
		rest := strings.TrimPrefix(file, name)
		for _, to := range m.newPaths[file] {
			if to = strings.TrimSuffix(to, rest); isBelow(file, name) && (place == name || isBelow(to, dir)) {
				place = to
			}
		}
	}
	return place
}

// nodeAt returns the value of a field, such as "patches[1].path", or nil if there is no such field.
func nodeAt(n *yaml.Node, field string) *yaml.Node {
	for _, step := range strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		if i, err := strconv.Atoi(step); err == nil && n.Kind == yaml.SequenceNode && i < len(n.Content) {
			n = n.Content[i]
		} else if _, n = yamlnode.Field(n, step); n == nil {
			return nil
		}
	}
	return n
}

package settings

import (
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/yamlnode"
	"github.com/quayside/quayside/internal/profile/certificates"
)

// listRule defines how a list is merged with the inherited one.
type listRule struct {
	keys []string // fields that identify an entry: entries with equal identity merge
	add  bool     // append the entries to the inherited ones
}

// listRules returns the rules by list field. Any other list replaces the inherited one.
func listRules() map[string]listRule {
	return map[string]listRule{
		"spec.catalogs":       {keys: []string{"namespace", "name"}},
		"spec.clusters":       {keys: []string{"name"}},
		"spec.policy.rules":   {add: true},
		"spec.policy.waivers": {add: true},
	}
}

// relativeFields returns the fields with paths relative to the file that sets them, each with a
// function that moves the path in a value. It omits spec.output, a directory of each inheriting
// workspace, and spec.gitops.path, which is relative to the repository.
func relativeFields() map[string]func(value string, move func(string) string) string {
	whole := func(value string, move func(string) string) string { return move(value) }
	out := map[string]func(value string, move func(string) string) string{
		"spec.declarations[]":      whole, // in short form
		"spec.declarations[].path": whole,
		"spec.newDeclarations":     whole,
		"spec.catalogs[].source":   moveSource,
		"spec.mirrors[]":           whole,
		"spec.trust[].keys[]":      whole,
		"spec.trust[].trustRoot":   whole,
		"spec.follows":             moveDirectory,
	}
	for field := range (certificates.ProviderSettings{}).Files() {
		out["spec."+field] = whole
	}
	return out
}

// moveSource moves the path in a catalog source, if it has one.
func moveSource(value string, move func(string) string) string {
	return string(source.Ref(value).MapPath(move))
}

// moveDirectory moves a path, but not the name of an environment.
func moveDirectory(value string, move func(string) string) string {
	if (&Workspace{Follows: value}).FollowsPath() {
		return move(value)
	}
	return value
}

// rebaseScalars moves the paths below n, the value of a field, in place. It keeps invalid
// values for validation to report.
func rebaseScalars(n *yaml.Node, field string, move func(string) string) {
	switch n.Kind { //nolint:exhaustive // the rest holds nothing
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			rebaseScalars(n.Content[i+1], field+"."+yamlnode.Key(n.Content[i]), move)
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			rebaseScalars(c, field+"[]", move)
		}
	case yaml.ScalarNode:
		form, relative := relativeFields()[field]
		text, isText := yamlnode.Text(n)
		if relative && isText && text != "" {
			n.SetString(form(text, func(p string) string {
				if path.IsAbs(p) || strings.Contains(p, `\`) {
					return p
				}
				return move(p)
			}))
			n.Style = yaml.DoubleQuotedStyle
		}
	}
}

// merger merges YAML trees. Merging is associative: in a chain of files, the order in which
// neighbours are merged does not matter.
type merger struct {
	// reset has the nodes that replace inherited values instead of merging with them, because
	// of a null or a value of another kind in between.
	reset map[*yaml.Node]bool
}

// merge returns over with values inherited from base; either may be nil. The parameter field
// is their name, with [] for an entry of a list. It does not modify its arguments.
func (m merger) merge(field string, base, over *yaml.Node) *yaml.Node {
	switch {
	case base == nil:
		return over
	case over == nil:
		return base
	case m.reset[over]:
		return over
	}
	out := *over
	rule := listRules()[field]
	switch {
	case yamlnode.IsNull(base), base.Kind != over.Kind:
		m.reset[&out] = true
	case over.Kind == yaml.MappingNode:
		out.Content = m.mapping(field, base, over)
	case over.Kind == yaml.SequenceNode && rule.add:
		out.Content = append(base.Content[:len(base.Content):len(base.Content)], over.Content...)
	case over.Kind == yaml.SequenceNode && rule.keys != nil:
		out.Content = m.keyed(field+"[]", rule.keys, base, over)
	default:
		m.reset[&out] = true
	}
	if yamlnode.IsNull(over) || m.reset[base] {
		m.reset[&out] = true
	}
	return &out
}

func (m merger) mapping(field string, base, over *yaml.Node) []*yaml.Node {
	content := append([]*yaml.Node{}, base.Content...)
	at := map[string]int{}
	for i := 0; i+1 < len(content); i += 2 {
		at[yamlnode.Key(content[i])] = i
	}
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		name := yamlnode.Key(key)
		if j, inherited := at[name]; inherited {
			content[j], content[j+1] = key, m.merge(field+"."+name, content[j+1], value)
		} else {
			content = append(content, key, value)
		}
	}
	return content
}

// keyed merges lists by the identity of their entries. Inherited entries keep their position.
// A duplicate identity in over is kept for validation to report.
func (m merger) keyed(field string, keys []string, base, over *yaml.Node) []*yaml.Node {
	content := append([]*yaml.Node{}, base.Content...)
	at := map[string]int{}
	for i, entry := range content {
		if id, ok := listIdentity(entry, keys); ok {
			if _, dup := at[id]; !dup {
				at[id] = i
			}
		}
	}
	for _, entry := range over.Content {
		id, ok := listIdentity(entry, keys)
		if i, inherited := at[id]; ok && inherited {
			content[i] = m.merge(field, content[i], entry)
			delete(at, id)
		} else {
			content = append(content, entry)
		}
	}
	return content
}

// listIdentity returns the identity of a list entry. It returns false if the last key, the
// name, is empty.
func listIdentity(entry *yaml.Node, keys []string) (string, bool) {
	parts := make([]string, len(keys))
	for i, key := range keys {
		_, v := yamlnode.Field(entry, key)
		parts[i], _ = yamlnode.Text(v)
	}
	return strings.Join(parts, "/"), parts[len(parts)-1] != ""
}

// prune returns n without nulls that reset an inherited value.
func (m merger) prune(n *yaml.Node) *yaml.Node {
	var content []*yaml.Node
	switch n.Kind { //nolint:exhaustive // the rest holds nothing
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if v := n.Content[i+1]; !yamlnode.IsNull(v) || !m.reset[v] {
				content = append(content, n.Content[i], m.prune(v))
			}
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			content = append(content, m.prune(c))
		}
	}
	out := *n
	out.Content = content
	return &out
}

// newDeclarations adds a fault if spec.newDeclarations is not one of spec.declarations.
func (v validator) newDeclarations() {
	const field = "spec.newDeclarations"
	if _, set := v.w.Fields[field]; !set || !v.Require(field, v.w.NewDeclarations) {
		return
	}
	var paths []string
	for _, d := range v.w.Declarations {
		paths = append(paths, d.Path)
	}
	if !slices.Contains(paths, v.w.NewDeclarations) {
		v.Addf(field, "%q is not one of spec.declarations (%s)%s", v.w.NewDeclarations, strings.Join(paths, ", "), diag.DidYouMean(v.w.NewDeclarations, paths))
	}
}

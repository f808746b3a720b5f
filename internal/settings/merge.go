package settings

import (
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/yamlnode"
)

// listRule defines how a list is merged with the inherited list.
type listRule struct {
	keys []string // fields that identify an entry; entries with the same identity are merged
	add  bool     // whether entries are appended to the inherited ones
}

// listRules returns the rules by field. Lists of other fields replace the inherited list.
func listRules() map[string]listRule {
	return map[string]listRule{
		"spec.catalogs":                    {keys: []string{"namespace", "name"}},
		"spec.clusters":                    {keys: []string{"name"}},
		"spec.policy.rules":                {add: true},
		"spec.policy.waivers":              {add: true},
		"spec.provides.apis":               {add: true},
		"spec.provides.objects":            {add: true},
		"spec.clusters[].provides.apis":    {add: true},
		"spec.clusters[].provides.objects": {add: true},
	}
}

// relativeFields returns the fields that contain a path relative to their file. Each has a function
// that applies rebase to the path in a value. spec.output is not included, because each workspace
// has its own output, nor is spec.gitops.path, which is relative to the repository.
func relativeFields() map[string]func(value string, rebase func(string) string) string {
	whole := func(value string, rebase func(string) string) string { return rebase(value) }
	out := map[string]func(value string, rebase func(string) string) string{
		"spec.declarations[]":      whole, // in short form
		"spec.declarations[].path": whole,
		"spec.newDeclarations":     whole,
		"spec.catalogs[].source":   rebaseSource,
		"spec.mirrors[]":           whole,
		"spec.trust[].keys[]":      whole,
		"spec.trust[].trustRoot":   whole,
		"spec.follows":             rebaseDirectory,
	}
	for field := range (certificates.ProviderSettings{}).Files() {
		out["spec."+field] = whole
	}
	return out
}

// rebaseSource applies rebase to the path in a catalog source, if it has one.
func rebaseSource(value string, rebase func(string) string) string {
	return string(source.Ref(value).MapPath(rebase))
}

// rebaseDirectory applies rebase to a directory. It returns the name of an environment unchanged.
func rebaseDirectory(value string, rebase func(string) string) string {
	if (&Workspace{Follows: value}).FollowsPath() {
		return rebase(value)
	}
	return value
}

// rebaseScalars applies rebase to the paths in n, the value of field, in place. Invalid paths
// remain unchanged for validation.
func rebaseScalars(n *yaml.Node, field string, rebase func(string) string) {
	switch n.Kind { //nolint:exhaustive // other nodes have no text
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			rebaseScalars(n.Content[i+1], field+"."+yamlnode.Key(n.Content[i]), rebase)
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			rebaseScalars(c, field+"[]", rebase)
		}
	case yaml.ScalarNode:
		form, relative := relativeFields()[field]
		text, isText := yamlnode.Text(n)
		if relative && isText && text != "" {
			n.SetString(form(text, func(p string) string {
				if path.IsAbs(p) || strings.Contains(p, `\`) {
					return p
				}
				return rebase(p)
			}))
			n.Style = yaml.DoubleQuotedStyle
		}
	}
}

// merger merges YAML trees. Merging is associative: adjacent files of a chain can be merged in any
// order.
type merger struct {
	// reset contains the nodes that replace inherited values, because a null or a value of another
	// kind precedes them in the chain.
	reset map[*yaml.Node]bool
}

// merge returns over with values inherited from base. Either may be nil. Both are values of field,
// in which [] stands for any list entry. The arguments are not modified.
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
		out.Content = m.mergeMapping(field, base, over)
	case over.Kind == yaml.SequenceNode && rule.add:
		out.Content = append(base.Content[:len(base.Content):len(base.Content)], over.Content...)
	case over.Kind == yaml.SequenceNode && rule.keys != nil:
		out.Content = m.mergeKeyed(field+"[]", rule.keys, base, over)
	default:
		m.reset[&out] = true
	}
	if yamlnode.IsNull(over) || m.reset[base] {
		m.reset[&out] = true
	}
	return &out
}

// mergeMapping merges two mappings. Inherited fields keep their position.
func (m merger) mergeMapping(field string, base, over *yaml.Node) []*yaml.Node {
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

// mergeKeyed merges two lists by the identity of their entries. Inherited entries keep their
// position. Duplicates in over remain for validation.
func (m merger) mergeKeyed(field string, keys []string, base, over *yaml.Node) []*yaml.Node {
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

// listIdentity returns the identity of a list entry, and false if the last key is empty.
func listIdentity(entry *yaml.Node, keys []string) (string, bool) {
	parts := make([]string, len(keys))
	for i, key := range keys {
		_, v := yamlnode.Field(entry, key)
		parts[i], _ = yamlnode.Text(v)
	}
	return strings.Join(parts, "/"), parts[len(parts)-1] != ""
}

// prune returns n without the nulls that reset inherited values.
func (m merger) prune(n *yaml.Node) *yaml.Node {
	var content []*yaml.Node
	switch n.Kind { //nolint:exhaustive // other nodes have no content
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

// checkNewDeclarations adds a fault if spec.newDeclarations is not among spec.declarations.
func (v validator) checkNewDeclarations() {
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

package settings

import (
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/yamlnode"
)

// listRule determines how a list is merged with the inherited list.
type listRule struct {
	keys []string // fields that identify an entry: entries with equal values in them are merged
	add  bool     // append the entries to the inherited ones
}

// listRules returns the rules by field. A list in any other field replaces the inherited list.
func listRules() map[string]listRule {
	return map[string]listRule{
		"spec.catalogs":                    {keys: []string{"namespace", "name"}},
		"spec.clusters":                    {keys: []string{"name"}},
		"spec.owners":                      {keys: []string{"name"}},
		"spec.policy.rules":                {add: true},
		"spec.policy.waivers":              {add: true},
		"spec.windows":                     {add: true},
		"spec.provides.apis":               {add: true},
		"spec.provides.objects":            {add: true},
		"spec.clusters[].provides.apis":    {add: true},
		"spec.clusters[].provides.objects": {add: true},
	}
}

// relativeFields returns the fields whose paths must be rebased when another directory inherits the settings. The
// function of a field applies rebase to the path in the value. Two fields with a path are not in the result:
// spec.output, which each workspace sets for itself, and spec.gitops.path, because it is relative to the repository.
func relativeFields() map[string]func(value string, rebase func(string) string) string {
	whole := func(value string, rebase func(string) string) string { return rebase(value) }
	out := map[string]func(value string, rebase func(string) string) string{
		"spec.declarations[]":                whole, // short form of an entry
		"spec.declarations[].path":           whole,
		"spec.declarations[].valuesFiles[]":  whole,
		"spec.newDeclarations":               whole,
		"spec.catalogs[].source":             rebaseSource,
		"spec.catalogs[].helm":               rebaseIn("helm:"),
		"spec.catalogs[].manifests":          rebaseIn("manifests:"),
		"spec.catalogs[].manifests.location": rebaseIn("manifests:"),
		"spec.mirrors[]":                     whole,
		"spec.trust[].keys[]":                whole,
		"spec.trust[].trustRoot":             whole,
		"spec.follows":                       rebaseDirectory,
	}
	for field := range (certificates.ProviderSettings{}).Files() {
		out["spec."+field] = whole
	}
	return out
}

// rebaseSource applies rebase to the path in the source of a catalog. A source without a path is
// returned unchanged.
func rebaseSource(value string, rebase func(string) string) string {
	return string(source.Ref(value).MapPath(rebase))
}

// rebaseIn returns a function like rebaseSource, for sources of one scheme that are written without the scheme.
func rebaseIn(scheme string) func(value string, rebase func(string) string) string {
	return func(value string, rebase func(string) string) string {
		return strings.TrimPrefix(rebaseSource(scheme+value, rebase), scheme)
	}
}

// rebaseDirectory applies rebase to a directory. The name of an environment is returned unchanged.
func rebaseDirectory(value string, rebase func(string) string) string {
	if (&Workspace{Follows: value}).FollowsPath() {
		return rebase(value)
	}
	return value
}

// rebaseScalars applies rebase to the paths in n, the value of field. It modifies n. Invalid paths remain:
// validation reports them.
func rebaseScalars(n *yamlnode.Node, field string, rebase func(string) string) {
	switch n.Kind { //nolint:exhaustive // other nodes contain no paths
	case yamlnode.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			rebaseScalars(n.Content[i+1], field+"."+yamlnode.Key(n.Content[i]), rebase)
		}
	case yamlnode.SequenceNode:
		for _, c := range n.Content {
			rebaseScalars(c, field+"[]", rebase)
		}
	case yamlnode.ScalarNode:
		form, relative := relativeFields()[field]
		text, isText := yamlnode.Text(n)
		if relative && isText && text != "" {
			n.SetString(form(text, func(p string) string {
				if path.IsAbs(p) || strings.Contains(p, `\`) {
					return p
				}
				return rebase(p)
			}))
			n.Style = yamlnode.DoubleQuotedStyle
		}
	}
}

// merger merges YAML trees. Merging is associative: in a chain of files, it does not matter which neighbors are
// merged first.
type merger struct {
	// reset contains the nodes that replace the inherited value instead of being merged with it, because a
	// file in the chain between the two files sets the field to null or to a value of another kind.
	reset map[*yamlnode.Node]bool
}

// merge returns a copy of the node over, completed with the values inherited from the node base. Both nodes are
// values of field, and may be nil. In field, [] stands for any item of a list. merge does not modify its arguments.
func (m merger) merge(field string, base, over *yamlnode.Node) *yamlnode.Node {
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
	case over.Kind == yamlnode.MappingNode:
		out.Content = m.mergeMapping(field, base, over)
	case over.Kind == yamlnode.SequenceNode && rule.add:
		out.Content = append(base.Content[:len(base.Content):len(base.Content)], over.Content...)
	case over.Kind == yamlnode.SequenceNode && rule.keys != nil:
		out.Content = m.mergeKeyed(field+"[]", rule.keys, base, over)
	default:
		m.reset[&out] = true
	}
	if yamlnode.IsNull(over) || m.reset[base] {
		m.reset[&out] = true
	}
	return &out
}

// mergeMapping merges two mappings. Inherited fields keep their place.
func (m merger) mergeMapping(field string, base, over *yamlnode.Node) []*yamlnode.Node {
	content := append([]*yamlnode.Node{}, base.Content...)
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

// mergeKeyed merges two lists. The fields listed in keys identify an entry. Inherited entries keep their
// place. Duplicates in over remain: validation reports them.
func (m merger) mergeKeyed(field string, keys []string, base, over *yamlnode.Node) []*yamlnode.Node {
	content := append([]*yamlnode.Node{}, base.Content...)
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

// listIdentity returns the values of keys in an entry of a list, joined. It returns false if the value of the
// last key is empty.
func listIdentity(entry *yamlnode.Node, keys []string) (string, bool) {
	parts := make([]string, len(keys))
	for i, key := range keys {
		_, v := yamlnode.Field(entry, key)
		parts[i], _ = yamlnode.Text(v)
	}
	return strings.Join(parts, "/"), parts[len(parts)-1] != ""
}

// prune returns n without the nulls that only reset inherited values.
func (m merger) prune(n *yamlnode.Node) *yamlnode.Node {
	var content []*yamlnode.Node
	switch n.Kind { //nolint:exhaustive // other nodes have no content
	case yamlnode.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if v := n.Content[i+1]; !yamlnode.IsNull(v) || !m.reset[v] {
				content = append(content, n.Content[i], m.prune(v))
			}
		}
	case yamlnode.SequenceNode:
		for _, c := range n.Content {
			content = append(content, m.prune(c))
		}
	}
	out := *n
	out.Content = content
	return &out
}

// checkNewDeclarations adds a fault if spec.newDeclarations is not one of spec.declarations.
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

package diff

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// claim records the fields that a finding explains: those in covers, or else the path in steps.
func (c *comparison) claim(f Finding) {
	mark := func(o *Object, covers [][]step, steps []step) {
		if o == nil {
			return
		}
		if covers == nil && len(steps) > 0 {
			covers = [][]step{steps}
		}
		for _, path := range covers {
			c.claimed[o.Key()] = append(c.claimed[o.Key()], path)
		}
	}
	mark(f.where, f.covers, f.steps)
	for _, s := range f.locations {
		mark(s.where, s.covers, s.steps)
	}
}

// isCovered reports whether a finding explains the field of o at path. An empty path means the whole
// object.
func (c *comparison) isCovered(o *Object, path []step) bool {
	return slices.ContainsFunc(c.claimed[o.Key()], func(claim []step) bool { return hasPrefix(path, claim) })
}

func hasPrefix(path, prefix []step) bool {
	return len(prefix) <= len(path) && slices.Equal(path[:len(prefix)], prefix)
}

// allFields returns the covers of a finding that explains all fields of an object.
func allFields() [][]step { return [][]step{{}} }

// noFields returns the covers of a finding that explains no changed field.
func noFields() [][]step { return [][]step{} }

// change is a changed field. A value is nil if the field is absent.
type change struct {
	path          []step
	before, after any
}

// fieldDiff collects the changed fields of an object, except for those that findings explain and
// for exemptions. It lists only the topmost field of a changed subtree.
type fieldDiff struct {
	c          *comparison
	p          pair
	exemptions []exemption
	changes    []change
}

// maxChanges limits the changes per object, because the states may be untrusted.
const maxChanges = 1000

// unexplainedChanges returns the changed fields of p that no finding explains.
func (c *comparison) unexplainedChanges(p pair) []change {
	d := fieldDiff{c: c, p: p, exemptions: exemptions()}
	d.compare(nil, c.claimed[p.after.Key()], comparedContent(p.before), comparedContent(p.after))
	return d.changes
}

// compare compares the values a and b at a path. claims are the claimed paths in and below it.
func (d *fieldDiff) compare(at []step, claims [][]step, a, b any) {
	if len(d.changes) >= maxChanges || reflect.DeepEqual(a, b) || d.isExempt(at, a, b) {
		return
	}
	if slices.ContainsFunc(claims, func(claim []step) bool { return len(claim) == len(at) }) {
		return
	}
	descend := len(claims) > 0 || len(at) > 0 && at[0].key == "metadata" // some fields below the path may be explained or exempt
	x, mapA := a.(map[string]any)
	y, mapB := b.(map[string]any)
	if mapA && mapB || (mapA && b == nil || mapB && a == nil) && descend {
		for _, name := range unionKeys(x, y) {
			if n := len(at); n > 0 && at[n-1].by == name && (a == nil || b == nil) {
				continue // the paths of the other fields contain the key of the element
			}
			d.compareField(at, step{key: name}, claims, x[name], y[name])
		}
		if has := haveSameKeys(x, y); !has { // a field is null on one side and absent on the other
			d.compareNulls(at, x, y)
		}
		return
	}
	l, listA := a.([]any)
	m, listB := b.([]any)
	if by := elementKey(l, m); by != "" && (listA && listB || (a == nil || b == nil) && descend) {
		d.compareElements(at, claims, by, l, m)
		return
	}
	if listA && listB && len(l) == len(m) {
		for i := range l {
			d.compareField(at, step{key: strconv.Itoa(i), by: "#"}, claims, l[i], m[i])
		}
		return
	}
	d.changes = append(d.changes, change{at, a, b})
}

func haveSameKeys(x, y map[string]any) bool {
	for k := range x {
		if _, has := y[k]; !has {
			return false
		}
	}
	return len(x) == len(y)
}

// compareNulls adds the fields that are null on one side and absent on the other.
func (d *fieldDiff) compareNulls(at []step, x, y map[string]any) {
	for _, name := range unionKeys(x, y) {
		_, had := x[name]
		_, has := y[name]
		path := withStep(at, step{key: name})
		if had != has && x[name] == nil && y[name] == nil && !d.isExempt(path, nil, nil) {
			d.changes = append(d.changes, change{path, x[name], y[name]})
		}
	}
}

// compareField compares the values of the field s below a path.
func (d *fieldDiff) compareField(at []step, s step, claims [][]step, a, b any) {
	if reflect.DeepEqual(a, b) {
		return
	}
	var inside [][]step
	for _, claim := range claims {
		if claim[len(at)] == s {
			inside = append(inside, claim)
		}
	}
	d.compare(withStep(at, s), inside, a, b)
}

// withStep returns a copy of at, extended by s.
func withStep(at []step, s step) []step { return append(at[:len(at):len(at)], s) }

// elementKey returns the name of a field that identifies the elements of both lists, or "" if there
// is none.
func elementKey(l, m []any) string {
	unique := func(list []any, by string) bool {
		seen := map[string]bool{}
		for _, e := range list {
			name := k8s.Text(asMap(e), by)
			if name == "" || seen[name] {
				return false
			}
			seen[name] = true
		}
		return true
	}
	if len(l)+len(m) == 0 {
		return ""
	}
	for _, by := range []string{"name", "jsonPath", "rule"} {
		if unique(l, by) && unique(m, by) {
			return by
		}
	}
	return ""
}

// compareElements compares the elements of two lists by a key field, and the order of elements in
// both lists.
func (d *fieldDiff) compareElements(at []step, claims [][]step, by string, l, m []any) {
	index := func(list []any) (of map[string]any, order []any) {
		of = map[string]any{}
		for _, e := range list {
			name := k8s.Text(asMap(e), by)
			of[name], order = e, append(order, name)
		}
		return of, order
	}
	x, was := index(l)
	y, is := index(m)
	for _, name := range unionKeys(x, y) {
		d.compareField(at, step{key: name, by: by}, claims, x[name], y[name])
	}
	other := func(of map[string]any) func(any) bool {
		return func(name any) bool { return of[name.(string)] == nil }
	}
	was, is = slices.DeleteFunc(was, other(y)), slices.DeleteFunc(is, other(x))
	if !slices.Equal(was, is) {
		d.changes = append(d.changes, change{withStep(at, step{key: "order", by: "*"}), was, is})
	}
}

// comparedContent returns the content of an object for the comparison of its fields. RBAC rules are
// converted to a set of grants, and subjects to a set, so that their order does not matter.
func comparedContent(o *Object) map[string]any {
	content := o.Content
	key := o.Key()
	if key.Group != "rbac.authorization.k8s.io" {
		return content
	}
	replace := func(field string, set map[string]any) map[string]any {
		out := maps.Clone(content)
		out[field] = set
		return out
	}
	switch {
	case strings.HasSuffix(key.Kind, "RoleBinding"):
		list, set := k8s.List(content, "subjects"), map[string]any{}
		for _, e := range list {
			m := asMap(e)
			set[k8s.SubjectIn(key.Namespace, m).String()] = withoutFields(m, "kind", "namespace", "name")
		}
		if len(set) == len(list) && len(list) > 0 {
			return replace("subjects", set)
		}
	case strings.HasSuffix(key.Kind, "Role"):
		if set := roleGrants(content); set != nil {
			return replace("rules", set)
		}
	}
	return content
}

func withoutFields(m map[string]any, fields ...string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if !slices.Contains(fields, k) {
			out[k] = v
		}
	}
	return out
}

// maxRoleGrants limits the size of roles that are compared by grants. Larger roles are compared as
// text.
const maxRoleGrants = 20_000

// roleGrants returns the grants in the rules of a role, each as "verb object", and rules with other
// fields. It returns nil if there are too many.
func roleGrants(role map[string]any) map[string]any {
	set := map[string]any{}
	for i, rule := range k8s.List(role, "rules") {
		m := asMap(rule)
		if rest := withoutFields(m, "verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"); m == nil || len(rest) > 0 {
			set[fmt.Sprintf("rule %d", i)] = rule
		}
		names := k8s.Texts(m, "resourceNames")
		if len(names) == 0 {
			names = []string{""}
		}
		found := 0
		for _, verb := range k8s.Texts(m, "verbs") {
			for _, url := range k8s.Texts(m, "nonResourceURLs") {
				set[verb+" "+grantObject(k8s.Grant{URL: url})] = true
				found++
			}
			for _, group := range k8s.Texts(m, "apiGroups") {
				for _, resource := range k8s.Texts(m, "resources") {
					for _, name := range names {
						set[verb+" "+grantObject(k8s.Grant{Group: group, Resource: resource, Name: name})] = true
						found++
					}
				}
			}
			if len(set) > maxRoleGrants {
				return nil
			}
		}
		if found == 0 {
			set[fmt.Sprintf("rule %d", i)] = rule
		}
	}
	return set
}

// formatPath formats a path for users, such as "spec.containers[manager].image" or
// "spec.versions[v1] spec.size minimum".
func formatPath(path []step) string {
	var b strings.Builder
	for i, s := range path {
		if s.key == "openAPIV3Schema" {
			return strings.TrimSuffix(b.String(), ".schema") + " " + formatSchemaPath(path[i+1:])
		}
		switch {
		case s.by == "*":
			b.WriteString(" order")
		case s.by != "":
			b.WriteString("[" + s.key + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// formatSchemaPath formats the path of a keyword in the schema of a CRD for users.
func formatSchemaPath(path []step) string {
	field, keyword := "", ""
	for i := 0; i < len(path); i++ {
		switch key := path[i].key; {
		case keyword != "":
			keyword += formatPath(path[i : i+1])
		case key == "properties" && i+1 < len(path):
			i++
			field += "." + path[i].key
		case key == "items":
			field += "[]"
		case key == "additionalProperties":
			field += "{}"
		default:
			keyword = key
		}
	}
	return strings.TrimSpace(strings.TrimPrefix(field, ".") + " " + keyword)
}

// exemption is a kind of change that is not reported.
type exemption struct {
	description, reason string
	matches             func(d *fieldDiff, at []step, a, b any) bool
}

// exemptions returns all kinds of field changes that are not reported.
func exemptions() []exemption {
	isLabel := func(at []step, name string) bool {
		return len(at) >= 3 && at[len(at)-3].key == "metadata" && at[len(at)-1].key == name && slices.Contains([]string{"labels", "annotations"}, at[len(at)-2].key)
	}
	isCRD := func(d *fieldDiff) bool { return d.p.after.Key().Is(crdKind) }
	return []exemption{
		{"`quayside.dev/version`", "quayside's own label and annotation", func(_ *fieldDiff, at []step, _, _ any) bool {
			return isLabel(at, k8s.LabelVersion)
		}},
		{"`app.kubernetes.io/version` with the operator's version", "repeats the version of the operator", func(d *fieldDiff, at []step, a, b any) bool {
			return isLabel(at, "app.kubernetes.io/version") && d.isVersions(a, b)
		}},
		{"`helm.sh/chart` that ends with the operator's version", "repeats the version of the operator", func(d *fieldDiff, at []step, a, b any) bool {
			return isLabel(at, "helm.sh/chart") && d.isVersions(a, b)
		}},
		{"`controller-gen.kubebuilder.io/version` of a CRD", "the version of the author's tool", func(d *fieldDiff, at []step, _, _ any) bool {
			return isCRD(d) && isLabel(at, "controller-gen.kubebuilder.io/version")
		}},
		{"`description`, `title`, `example` and `externalDocs` in the schema of a CRD", "documentation", func(d *fieldDiff, at []step, _, _ any) bool {
			return isCRD(d) && len(at) > 4 && at[3].key == "schema" && at[len(at)-2].key != "properties" && slices.Contains([]string{"description", "title", "example", "externalDocs"}, at[len(at)-1].key)
		}},
		{"`x-kubernetes-list-type: atomic`, `x-kubernetes-map-type: granular`, and limits of 0 or `false`, explicit or omitted in the schema of a CRD", "the default of the API server", func(d *fieldDiff, at []step, a, b any) bool {
			return isCRD(d) && len(at) > 4 && at[3].key == "schema" && at[len(at)-2].key != "properties" && isSchemaDefault(at[len(at)-1].key, a) && isSchemaDefault(at[len(at)-1].key, b)
		}},
		{"`prefix` and `overlays` in `clusters.yaml`", "their effect on the cluster is compared", func(d *fieldDiff, at []step, _, _ any) bool {
			return d.p.after.Key().Is("File.quayside.dev") && len(at) == 3 && (at[2].key == "prefix" || at[2].key == "overlays") && strings.HasSuffix(d.p.after.Path, "clusters.yaml")
		}},
		{"`status` of a CRD", "the API server ignores it in manifests", func(d *fieldDiff, at []step, _, _ any) bool {
			return isCRD(d) && len(at) == 1 && at[0].key == "status"
		}},
		{"`metadata.creationTimestamp`, `generation`, `resourceVersion`, `uid`, `selfLink`, `managedFields`", "the API server writes them", func(_ *fieldDiff, at []step, _, _ any) bool {
			return len(at) == 2 && at[0].key == "metadata" && slices.Contains([]string{"creationTimestamp", "generation", "resourceVersion", "uid", "selfLink", "managedFields"}, at[1].key)
		}},
	}
}

// isSchemaDefault reports whether v, the value of a schema keyword, is absent or the default.
func isSchemaDefault(keyword string, v any) bool {
	switch keyword {
	case "x-kubernetes-list-type":
		return v == nil || v == "atomic"
	case "x-kubernetes-map-type":
		return v == nil || v == "granular"
	case "minLength", "minItems", "minProperties":
		return v == nil || v == int64(0)
	case "exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "nullable":
		return v == nil || v == false
	}
	return false
}

func (d *fieldDiff) isExempt(at []step, a, b any) bool {
	return len(at) > 0 && slices.ContainsFunc(d.exemptions, func(x exemption) bool { return x.matches(d, at, a, b) })
}

// isVersions reports whether both values end with the operator's version of their state, and are
// otherwise equal.
func (d *fieldDiff) isVersions(a, b any) bool {
	operator := d.p.after.Operator
	was, had := d.c.before.pin(operator)
	is, has := d.c.after.pin(operator)
	cutVersion := func(v any, version string) (prefix string, ok bool) {
		text, _ := v.(string)
		text = strings.ReplaceAll(text, "_", "+") // label values cannot contain a plus sign
		return strings.CutSuffix(text, strings.TrimPrefix(version, "v"))
	}
	x, ok1 := cutVersion(a, was.Version)
	y, ok2 := cutVersion(b, is.Version)
	return had && has && ok1 && ok2 && x == y && (x == "" || x == "v" || strings.HasSuffix(x, "-") || strings.HasSuffix(x, "-v"))
}

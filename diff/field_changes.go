package diff

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// change is a changed field with its values. A nil value means that the field is absent.
type change struct {
	path          fieldPath
	before, after any
}

// fieldChange is a changed field of an object that exists after the change. objects.before is nil if the object is
// added.
type fieldChange struct {
	c       *comparison
	objects pair
	change
}

// isOf reports whether the object is of one of the given kinds.
func (f fieldChange) isOf(kinds ...string) bool { return f.objects.after.Key().Is(kinds...) }

// fieldDiff collects the changed fields of one object. It omits exemptions, and fields that
// findings already cover. For a changed subtree it lists only the topmost field.
type fieldDiff struct {
	c          *comparison
	p          pair
	exemptions []exemption
	pods       []pod // of the object after
	changes    []change
}

// maxChanges is the maximum number of changed fields per object, because the states may be
// untrusted.
const maxChanges = 1000

// unexplainedChanges returns the changed fields of p that no finding covers.
func (c *comparison) unexplainedChanges(p pair) []change {
	d := fieldDiff{c: c, p: p, exemptions: exemptions(), pods: podsOf(p.after)}
	d.compare(nil, c.claimed[p.after.Key()], comparedContent(p.before), comparedContent(p.after))
	return d.changes
}

// addedFields returns the fields of an added object that no finding covers individually. It omits fields that
// identify the object or an element of a list, and fields with default values.
func (c *comparison) addedFields(o *Object) []change {
	content := o.Content
	if o.Key().Is(crdKind) {
		content = k8s.Without(content, "spec", "versions") // rule data.crd-added
	}
	nothing := *o
	nothing.Content = c.types.Normal(k8s.Object(identityOf(content).(map[string]any)))
	d := fieldDiff{c: c, p: pair{nil, o}, exemptions: exemptions(), pods: podsOf(o)}
	claims := slices.DeleteFunc(slices.Clone(c.claimed[o.Key()]), func(p fieldPath) bool { return len(p) == 0 })
	d.compare(nil, claims, comparedContent(&nothing), comparedContent(o))
	return d.changes
}

// identityOf returns v with only the fields that identify the object and the elements of its lists.
func identityOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, e := range v {
			_, isText := e.(string)
			switch below := identityOf(e); {
			case below != nil:
				out[name] = below
			case isText && slices.Contains([]string{"apiVersion", "kind", "name", "namespace"}, name):
				out[name] = e
			}
		}
		return out
	case []any:
		if elementKey(v, nil) == "" {
			return nil
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = identityOf(e)
		}
		return out
	}
	return nil
}

// compare compares the values a and b of the field at a path. claims are the covered paths at or
// below this path.
func (d *fieldDiff) compare(at fieldPath, claims []fieldPath, a, b any) {
	if len(d.changes) >= maxChanges || equalValues(a, b) || d.isExempt(at, a, b) {
		return
	}
	if slices.ContainsFunc(claims, func(claim fieldPath) bool { return len(claim) == len(at) }) {
		return
	}
	descend := len(claims) > 0 || at.key(0) == "metadata" || a == nil && (at.isContainer() || d.hasPod(at)) // single fields below the path may be covered, exempt or dangerous
	x, mapA := a.(map[string]any)
	y, mapB := b.(map[string]any)
	if mapA && mapB || (mapA && b == nil || mapB && a == nil) && descend {
		for _, name := range unionKeys(x, y) {
			if n := len(at); n > 0 && at[n-1].by == name && (a == nil || b == nil) {
				continue // the key identifies the element: it is part of the paths of its other fields
			}
			d.compareField(at, step{key: name}, claims, x[name], y[name])
		}
		if has := haveSameKeys(x, y); !has { // a field is null on one side and missing on the other
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
	if listA && listB && len(l) == len(m) || (listA || a == nil) && listB && d.hasPod(at) {
		for i := range max(len(l), len(m)) {
			d.compareField(at, step{key: strconv.Itoa(i), by: "#"}, claims, elementAt(l, i), elementAt(m, i))
		}
		return
	}
	d.changes = append(d.changes, change{at, a, b})
}

// hasPod reports whether the object has a pod template or pod spec at a path or below it.
func (d *fieldDiff) hasPod(at fieldPath) bool {
	return slices.ContainsFunc(d.pods, func(p pod) bool { return p.at.isIn(at) })
}

// elementAt returns the element of a list with index i, or nil if there is none.
func elementAt(list []any, i int) any {
	if i >= len(list) {
		return nil
	}
	return list[i]
}

func haveSameKeys(x, y map[string]any) bool {
	for k := range x {
		if _, has := y[k]; !has {
			return false
		}
	}
	return len(x) == len(y)
}

// compareNulls adds the fields that are null on one side and missing on the other.
func (d *fieldDiff) compareNulls(at fieldPath, x, y map[string]any) {
	for _, name := range unionKeys(x, y) {
		_, had := x[name]
		_, has := y[name]
		path := at.field(name)
		if had != has && x[name] == nil && y[name] == nil && !d.isExempt(path, nil, nil) {
			d.changes = append(d.changes, change{path, x[name], y[name]})
		}
	}
}

// isExempt reports whether a changed field belongs to one of the exemptions.
func (d *fieldDiff) isExempt(at fieldPath, a, b any) bool {
	f := fieldChange{d.c, d.p, change{at, a, b}}
	return len(at) > 0 && slices.ContainsFunc(d.exemptions, func(x exemption) bool { return x.matches(f) })
}

// compareField compares a and b, the values of the field or list element s directly below a path.
// claims are the covered paths below that path.
func (d *fieldDiff) compareField(at fieldPath, s step, claims []fieldPath, a, b any) {
	if equalValues(a, b) {
		return
	}
	var inside []fieldPath
	for _, claim := range claims {
		if claim[len(at)] == s {
			inside = append(inside, claim)
		}
	}
	d.compare(at.with(s), inside, a, b)
}

// elementKey returns the name of a field, such as "name", whose values identify the elements of
// both lists. It returns "" if there is none.
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

// compareElements compares the elements of two lists, and their order. An element is identified by
// the value of one of its fields, such as "name".
func (d *fieldDiff) compareElements(at fieldPath, claims []fieldPath, by string, l, m []any) {
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
		d.changes = append(d.changes, change{at.with(step{key: "order", by: "*"}), was, is})
	}
}

// comparedContent returns the content of an object in the form in which its fields are compared.
// The rules of a role become a set of grants, and the subjects of a binding become a set, because
// their order has no effect.
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

// maxRoleGrants is the maximum number of grants of a role. The rules of a larger role are compared
// as a list.
const maxRoleGrants = 20_000

// roleGrants returns the grants in the rules of a role, with "verb object" as keys. Rules with
// unknown fields are kept as they are. It returns nil if there are more than maxRoleGrants.
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

// Package rbac computes what each subject of a set of Kubernetes objects may
// do: roles, bindings, groups of ServiceAccounts and aggregation resolved.
//
// It knows nothing of operators, reads nothing and never guesses: a binding to
// a role that is neither in the set nor built into every API server becomes a
// grant that only names the role.
//
// Start from [New], [Model.Of] and [Gained].
package rbac

import (
	"cmp"
	"slices"
	"strings"
)

// Subject is who may act.
type Subject struct {
	Kind      string // "ServiceAccount", "User", "Group"; "ClusterRole" for everybody bound to a role that others aggregate into
	Namespace string // of a ServiceAccount
	Name      string
}

// String returns "ServiceAccount namespace/name" or "Kind name".
func (s Subject) String() string {
	if s.Namespace != "" {
		return s.Kind + " " + s.Namespace + "/" + s.Name
	}
	return s.Kind + " " + s.Name
}

// Compare orders by kind, namespace, name.
func (s Subject) Compare(t Subject) int {
	return cmp.Or(strings.Compare(s.Kind, t.Kind), strings.Compare(s.Namespace, t.Namespace), strings.Compare(s.Name, t.Name))
}

// Grant is one permission, as small as RBAC can say it.
type Grant struct {
	Namespace string // empty: everywhere
	Verb      string // "get", "*"
	Group     string // "apps", "*"; empty: the core group
	Resource  string // "pods/exec", "*"; empty for a URL or a role
	Name      string // the one object; empty: all
	URL       string // non-resource URL: "/metrics"; else empty
	Role      string // "ClusterRole view": a role that is not in the set; else empty
}

// Compare orders by namespace, group, resource, name, URL, role, verb.
func (g Grant) Compare(h Grant) int {
	return cmp.Or(strings.Compare(g.Namespace, h.Namespace), strings.Compare(g.Group, h.Group),
		strings.Compare(g.Resource, h.Resource), strings.Compare(g.Name, h.Name), strings.Compare(g.URL, h.URL),
		strings.Compare(g.Role, h.Role), strings.Compare(g.Verb, h.Verb))
}

// Covers reports whether whoever has g may do all that h permits.
func (g Grant) Covers(h Grant) bool {
	if g.Namespace != "" && g.Namespace != h.Namespace {
		return false
	}
	if g.Role != "" || h.Role != "" {
		return g.Role == h.Role
	}
	if g.Verb != "*" && g.Verb != h.Verb {
		return false
	}
	if g.URL != "" || h.URL != "" {
		return coversURL(g.URL, h.URL)
	}
	return (g.Group == "*" || g.Group == h.Group) && coversResource(g.Resource, h.Resource) && (g.Name == "" || g.Name == h.Name)
}

// coversURL follows the API server: "*" or a prefix that ends in "*".
func coversURL(have, want string) bool {
	if have == want {
		return have != ""
	}
	prefix, ok := strings.CutSuffix(have, "*")
	return ok && want != "" && strings.HasPrefix(want, prefix)
}

// coversResource follows the API server: "*" is everything, "*/sub" that
// subresource of everything. "pods" does not cover "pods/exec".
func coversResource(have, want string) bool {
	if have == "*" || have == want {
		return true
	}
	sub, ok := strings.CutPrefix(have, "*/")
	if !ok {
		return false
	}
	_, of, ok := strings.Cut(want, "/")
	return ok && of == sub
}

// Covers reports whether set permits g. It is exact for grants that no union of
// several grants covers, which is all that RBAC can express but for names.
func Covers(set []Grant, g Grant) bool {
	return slices.ContainsFunc(set, func(have Grant) bool { return have.Covers(g) })
}

// Gained returns the grants of after that before does not cover, in order. A
// grant that another gained one covers is left out.
func Gained(before, after []Grant) []Grant {
	var out []Grant
	for _, g := range after {
		if !Covers(before, g) {
			out = append(out, g)
		}
	}
	return Reduce(out)
}

// Reduce returns the grants without repeats and without those that another one
// covers, sorted.
func Reduce(grants []Grant) []Grant {
	sorted := slices.Clone(grants)
	slices.SortFunc(sorted, Grant.Compare)
	sorted = slices.Compact(sorted)
	wide := slices.DeleteFunc(slices.Clone(sorted), func(g Grant) bool { return !g.isWide() })
	return slices.DeleteFunc(sorted, func(g Grant) bool {
		return slices.ContainsFunc(wide, func(w Grant) bool { return w != g && w.Covers(g) }) ||
			g.Name != "" && contains(sorted, g.nameless()) || g.Namespace != "" && contains(sorted, g.everywhere())
	})
}

// isWide reports whether a pattern or an emptiness lets g cover other grants.
func (g Grant) isWide() bool {
	return g.Verb == "*" || g.Group == "*" || strings.HasPrefix(g.Resource, "*") || strings.HasSuffix(g.URL, "*")
}

func (g Grant) nameless() Grant   { g.Name = ""; return g }
func (g Grant) everywhere() Grant { g.Namespace = ""; return g }

// contains searches a sorted list.
func contains(sorted []Grant, g Grant) bool {
	_, ok := slices.BinarySearchFunc(sorted, g, Grant.Compare)
	return ok
}

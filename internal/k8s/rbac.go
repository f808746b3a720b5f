package k8s

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Subject is a user, a group or a ServiceAccount with permissions.
type Subject struct {
	Kind      string // "ServiceAccount", "User", "Group"; "ClusterRole" for all subjects bound to a role that aggregates others
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

// Grant is one permission, in the smallest unit of RBAC.
type Grant struct {
	Namespace string `json:"namespace,omitempty"` // empty: everywhere
	Verb      string `json:"verb,omitempty"`      // "get", "*"
	Group     string `json:"group,omitempty"`     // "apps", "*"; empty: the core group
	Resource  string `json:"resource,omitempty"`  // "pods/exec", "*"; empty for a URL or a role
	Name      string `json:"name,omitempty"`      // name of the only object; empty: all
	URL       string `json:"url,omitempty"`       // non-resource URL: "/metrics"; else empty
	Role      string `json:"role,omitempty"`      // "ClusterRole view": a role that is not in the set; else empty
}

// Compare orders by namespace, group, resource, name, URL, role, verb.
func (g Grant) Compare(h Grant) int {
	return cmp.Or(strings.Compare(g.Namespace, h.Namespace), strings.Compare(g.Group, h.Group),
		strings.Compare(g.Resource, h.Resource), strings.Compare(g.Name, h.Name), strings.Compare(g.URL, h.URL),
		strings.Compare(g.Role, h.Role), strings.Compare(g.Verb, h.Verb))
}

// Covers reports whether g permits everything that h permits.
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

// coversURL compares URLs as the API server does: a pattern is "*" or a prefix that ends in "*".
func coversURL(have, want string) bool {
	if have == want {
		return have != ""
	}
	prefix, ok := strings.CutSuffix(have, "*")
	return ok && want != "" && strings.HasPrefix(want, prefix)
}

// coversResource compares resources as the API server does: "*" covers everything, and "*/sub"
// covers this subresource of every resource. "pods" does not cover "pods/exec".
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

// GrantSet is a set of grants.
type GrantSet map[Grant]struct{}

// NewGrantSet returns the set of these grants.
func NewGrantSet(grants []Grant) GrantSet {
	s := make(GrantSet, len(grants))
	for _, g := range grants {
		s[g] = struct{}{}
	}
	return s
}

// Covers reports whether the set permits g. A lookup is sufficient, because in RBAC several
// grants never combine to a further permission. Its duration does not depend on the size of the
// set.
func (s GrantSet) Covers(g Grant) bool {
	for have := range coveringGrants(g) {
		if _, ok := s[have]; ok {
			return true
		}
	}
	return false
}

// coveringGrants yields g and every grant that covers it.
func coveringGrants(g Grant) iter.Seq[Grant] {
	return func(yield func(Grant) bool) {
		for _, ns := range distinctPair(g.Namespace, "") {
			if g.Role != "" {
				if !yield(Grant{Namespace: ns, Role: g.Role}) {
					return
				}
				continue
			}
			for _, verb := range distinctPair(g.Verb, "*") {
				for have := range coveringObjects(g) {
					have.Namespace, have.Verb = ns, verb
					if !yield(have) {
						return
					}
				}
			}
		}
	}
}

// coveringObjects yields the object of g, without verb and namespace, and every
// pattern that covers it.
func coveringObjects(g Grant) iter.Seq[Grant] {
	return func(yield func(Grant) bool) {
		if g.URL != "" {
			for i := range len(g.URL) {
				if !yield(Grant{URL: g.URL[:i] + "*"}) {
					return
				}
			}
			yield(Grant{URL: g.URL})
			return
		}
		resources := distinctPair(g.Resource, "*")
		if _, sub, ok := strings.Cut(g.Resource, "/"); ok {
			resources = append(resources, "*/"+sub)
		}
		for _, group := range distinctPair(g.Group, "*") {
			for _, res := range resources {
				for _, name := range distinctPair(g.Name, "") {
					if !yield(Grant{Group: group, Resource: res, Name: name}) {
						return
					}
				}
			}
		}
	}
}

// distinctPair returns s, and other if it differs.
func distinctPair(s, other string) []string {
	if s == other {
		return []string{s}
	}
	return []string{s, other}
}

// GainedGrants returns the grants in after that before does not cover, in order. It omits grants
// covered by another gained one.
func GainedGrants(before, after []Grant) []Grant {
	had := NewGrantSet(before)
	return ReduceGrants(slices.DeleteFunc(slices.Clone(after), had.Covers))
}

// ReduceGrants returns the grants, sorted, without duplicates and without grants covered by
// another.
func ReduceGrants(grants []Grant) []Grant {
	set := NewGrantSet(grants)
	out := make([]Grant, 0, len(set))
	for g := range set {
		covered := false
		for have := range coveringGrants(g) {
			if _, ok := set[have]; ok && have != g {
				covered = true
				break
			}
		}
		if !covered {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, Grant.Compare)
	return out
}

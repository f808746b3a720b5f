package k8s

import (
	"cmp"
	_ "embed" // for the go:embed directive
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
)

// Subject is a user, a group or a ServiceAccount.
type Subject struct {
	Kind      string // "ServiceAccount", "User" or "Group"; "ClusterRole" stands for all subjects bound to that role
	Namespace string // namespace of a ServiceAccount
	Name      string
}

// String returns "ServiceAccount namespace/name" or "Kind name".
func (s Subject) String() string {
	if s.Namespace != "" {
		return s.Kind + " " + s.Namespace + "/" + s.Name
	}
	return s.Kind + " " + s.Name
}

// Compare orders subjects by kind, namespace and name.
func (s Subject) Compare(t Subject) int {
	return cmp.Or(strings.Compare(s.Kind, t.Kind), strings.Compare(s.Namespace, t.Namespace), strings.Compare(s.Name, t.Name))
}

// Grant is a single permission: one verb on one resource, URL or object.
type Grant struct {
	Namespace string `json:"namespace,omitempty"` // empty: the whole cluster
	Verb      string `json:"verb,omitempty"`      // "get", "*"
	Group     string `json:"group,omitempty"`     // "apps", "*"; empty: the core group
	Resource  string `json:"resource,omitempty"`  // "pods/exec", "*"; empty for a URL or a role
	Name      string `json:"name,omitempty"`      // name of the object; empty: all objects
	URL       string `json:"url,omitempty"`       // non-resource URL such as "/metrics"; otherwise empty
	Role      string `json:"role,omitempty"`      // all permissions of an unknown role, such as "ClusterRole view"; otherwise empty
}

// Compare orders grants by namespace, group, resource, name, URL, role and verb.
func (g Grant) Compare(h Grant) int {
	return cmp.Or(strings.Compare(g.Namespace, h.Namespace), strings.Compare(g.Group, h.Group),
		strings.Compare(g.Resource, h.Resource), strings.Compare(g.Name, h.Name), strings.Compare(g.URL, h.URL),
		strings.Compare(g.Role, h.Role), strings.Compare(g.Verb, h.Verb))
}

// Covers reports whether g allows everything that h allows.
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

// coversURL reports whether the URL pattern have matches the URL or pattern want. As in the API server, a
// pattern is a URL, "*", or a prefix that ends in "*".
func coversURL(have, want string) bool {
	if have == want {
		return have != ""
	}
	prefix, ok := strings.CutSuffix(have, "*")
	return ok && want != "" && strings.HasPrefix(want, prefix)
}

// coversResource reports whether the resource pattern have matches the resource or pattern want. As in the API
// server, "*" matches everything, and "*/sub" matches the subresource "sub" of every resource. "pods" does not
// match "pods/exec".
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

// NewGrantSet returns grants as a set.
func NewGrantSet(grants []Grant) GrantSet {
	s := make(GrantSet, len(grants))
	for _, g := range grants {
		s[g] = struct{}{}
	}
	return s
}

// Covers reports whether a grant of the set covers g. The duration does not depend on the size of the set,
// because Covers looks up only the few grants that can cover g. Single grants are enough: in RBAC, grants do
// not combine to a further permission.
func (s GrantSet) Covers(g Grant) bool {
	for have := range coveringGrants(g) {
		if _, ok := s[have]; ok {
			return true
		}
	}
	return false
}

// coveringGrants yields g and every other grant that covers g.
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

// coveringObjects yields the resource or URL of g and every pattern that covers it, as grants
// without verb and namespace.
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

// distinctPair returns s and other, or only s if they are equal.
func distinctPair(s, other string) []string {
	if s == other {
		return []string{s}
	}
	return []string{s, other}
}

// GainedGrants returns, sorted, the grants in the new list, after, that no grant in the old list, before,
// covers. It omits a grant that another gained grant covers.
func GainedGrants(before, after []Grant) []Grant {
	had := NewGrantSet(before)
	return ReduceGrants(slices.DeleteFunc(slices.Clone(after), had.Covers))
}

// ReduceGrants returns the grants sorted, without duplicates and without each grant that another grant
// covers.
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

// defaultObjects contains the roles and bindings that the API server creates in a new cluster. The
// cluster test TestDefaultRBAC compares the file with a real cluster, and updates it with -update.
//
//go:embed defaults.json
var defaultObjects []byte

// DefaultRBAC returns the roles and bindings that the API server creates in a new cluster, and the
// Kubernetes version of the list. An API server restores removed rules of these roles, but keeps
// added rules. The caller must not modify the result.
func DefaultRBAC() (version string, objects []map[string]any) {
	f := parseDefaults()
	return f.Kubernetes, f.Objects
}

type defaultsFile struct {
	Kubernetes string
	Objects    []map[string]any
	roles      map[roleID]*role
}

var parseDefaults = sync.OnceValue(func() (f defaultsFile) { //nolint:gochecknoglobals // parsed on first use
	if err := json.Unmarshal(defaultObjects, &f); err != nil {
		panic(err)
	}
	f.roles = map[roleID]*role{}
	for _, o := range f.Objects {
		if kind := Text(o, "kind"); kind == "Role" || kind == "ClusterRole" {
			f.roles[roleIDOf(o)] = newRole(o)
		}
	}
	return f
})

func defaultRoles() map[roleID]*role { return parseDefaults().roles }

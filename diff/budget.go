package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/rbac"
)

// Accepted is what reviewers have let one operator have: an update that stays
// inside needs no question, one that leaves it is a named question.
type Accepted struct {
	Operator    string   `json:"operator"`              // "namespace/package"
	Permissions []string `json:"permissions,omitempty"` // "create deployments.apps in ops"; sorted
	APIs        []string `json:"apis,omitempty"`        // "etcdclusters.etcd.database.coreos.com/v1beta2"; sorted
}

// Question is one thing that a person has to accept.
type Question struct {
	Operator   string `json:"operator"`
	Permission string `json:"permission,omitempty"` // as Accepted has it
	API        string `json:"api,omitempty"`
	Text       string `json:"text"` // "may ops/etcd list secrets?"

	Clusters []string `json:"clusters,omitempty"` // where it may; nil: in all
}

// Budget returns what the operators of a state have: the lock may keep it as
// accepted. It is sorted by operator. The error is about a state that is broken.
func Budget(s State) ([]Accepted, error) {
	v, err := newView(s)
	if err != nil {
		return nil, err
	}
	grants, err := operatorGrants(v)
	if err != nil {
		return nil, err
	}
	surface := apiSurface(v)
	var out []Accepted
	for _, operator := range union(grants, surface) {
		a := Accepted{Operator: operator, APIs: surface[operator]}
		for _, g := range grants[operator] {
			a.Permissions = append(a.Permissions, formatGrant(g))
		}
		slices.Sort(a.Permissions)
		out = append(out, a)
	}
	return out, nil
}

// Outside returns what the operators of a state have beyond what is accepted,
// by operator, permissions first. Subset semantics: an accepted wildcard covers
// what it stands for. Errors name the entry that cannot be read.
func Outside(s State, accepted []Accepted) ([]Question, error) {
	v, err := newView(s)
	if err != nil {
		return nil, err
	}
	grants, err := operatorGrants(v)
	if err != nil {
		return nil, err
	}
	surface := apiSurface(v)
	var out []Question
	for _, operator := range union(grants, surface) {
		var a Accepted
		if i := slices.IndexFunc(accepted, func(a Accepted) bool { return a.Operator == operator }); i >= 0 {
			a = accepted[i]
		}
		have, err := parseGrants(a)
		if err != nil {
			return nil, err
		}
		for _, g := range rbac.Gained(have, grants[operator]) {
			p := formatGrant(g)
			out = append(out, Question{Operator: operator, Permission: p, Text: fmt.Sprintf("may %s %s?", operator, p)})
		}
		for _, api := range surface[operator] {
			if !slices.Contains(a.APIs, api) {
				out = append(out, Question{Operator: operator, API: api, Text: fmt.Sprintf("may %s add %s to the API?", operator, api)})
			}
		}
	}
	return out, nil
}

// operatorGrants returns what each operator may do: what its ServiceAccounts are
// given, whoever gives it, and what its own objects give to anybody else. Of a
// role that many operators aggregate into, each answers for its part. Who is not
// pinned is none: the rights of the reporter follow from what is installed.
func operatorGrants(v *view) (map[string][]rbac.Grant, error) {
	m, from, err := permissions(v)
	if err != nil {
		return nil, err
	}
	out, at := map[string][]rbac.Grant{}, homes(v)
	for _, g := range m.Gifts() {
		var operator string
		if home := at[g.To]; home != nil && home.Ref().Kind == "ServiceAccount" {
			operator = home.Operator
		} else if g.From < len(from) {
			operator = from[g.From].Operator
		}
		if _, pinned := v.pin(operator); pinned {
			out[operator] = append(out[operator], g.Grants...)
		}
	}
	for operator, list := range out {
		out[operator] = rbac.Reduce(list)
	}
	return out, nil
}

// apiSurface returns the served versions of the kinds that each operator brings.
func apiSurface(v *view) map[string][]string {
	out := map[string][]string{}
	for _, o := range v.order {
		if !o.Ref().is(crdKind) {
			continue
		}
		for _, version := range kinds.Define(o.Whole()).Served() {
			out[o.Operator] = append(out[o.Operator], o.Ref().Name+"/"+version)
		}
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}

// formatGrant writes a grant as the lock has it: "list secrets",
// "get deployments.apps named web in ops", "get URL /metrics",
// "use ClusterRole view in ops".
func formatGrant(g rbac.Grant) string {
	var s string
	switch {
	case g.Role != "":
		s = "use " + g.Role
	case g.URL != "":
		s = g.Verb + " URL " + g.URL
	default:
		s = g.Verb + " " + g.Resource
		if g.Group != "" {
			s += "." + g.Group
		}
		if g.Name != "" {
			s += " named " + g.Name
		}
	}
	if g.Namespace != "" {
		s += " in " + g.Namespace
	}
	return s
}

func parseGrants(a Accepted) ([]rbac.Grant, error) {
	var out []rbac.Grant
	for _, p := range a.Permissions {
		g, ok := parseGrant(p)
		if !ok {
			return nil, fmt.Errorf("accepted permission %q of %s: want %q", p, a.Operator, "verb resource.group [named name] [in namespace]")
		}
		out = append(out, g)
	}
	return out, nil
}

// parseGrant reads what formatGrant writes.
func parseGrant(s string) (rbac.Grant, bool) {
	var g rbac.Grant
	rest := s
	if i := strings.LastIndex(rest, " in "); i >= 0 {
		rest, g.Namespace = rest[:i], rest[i+len(" in "):]
	}
	verb, what, ok := strings.Cut(rest, " ")
	if !ok || verb == "" || what == "" || strings.Contains(g.Namespace, " ") {
		return rbac.Grant{}, false
	}
	switch {
	case verb == "use":
		g.Role = what
		return g, true
	case strings.HasPrefix(what, "URL "):
		g.Verb, g.URL = verb, strings.TrimPrefix(what, "URL ")
		return g, g.URL != "" && !strings.Contains(g.URL, " ")
	}
	g.Verb = verb
	what, g.Name, _ = strings.Cut(what, " named ")
	g.Resource, g.Group, _ = strings.Cut(what, ".")
	return g, g.Resource != "" && !strings.Contains(what, " ")
}

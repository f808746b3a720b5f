package k8s

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, docs string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, doc := range strings.Split(docs, "\n---\n") {
		var m map[string]any
		if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func words(grants []Grant) []string {
	out := []string{}
	for _, g := range grants {
		scope := g.Namespace
		if scope == "" {
			scope = "*"
		}
		switch {
		case g.Role != "":
			out = append(out, fmt.Sprintf("%s: %s", scope, g.Role))
		case g.URL != "":
			out = append(out, fmt.Sprintf("%s: %s %s", scope, g.Verb, g.URL))
		default:
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s: %s %s.%s %s", scope, g.Verb, g.Resource, g.Group, g.Name)))
		}
	}
	return out
}

const head = "apiVersion: rbac.authorization.k8s.io/v1\n"

func TestModel(t *testing.T) {
	account := Subject{"ServiceAccount", "ops", "etcd"}
	role := head + "kind: Role\nmetadata: {name: r, namespace: ops}\nrules: [{apiGroups: [''], resources: [pods, pods/exec], verbs: [get, create]}]"
	clusterRole := head + "kind: ClusterRole\nmetadata: {name: c}\nrules: [{apiGroups: [apps], resources: ['*'], verbs: ['*']}, {nonResourceURLs: [/metrics], verbs: [get]}]"
	bind := func(kind, ns, ref, subject string) string {
		return fmt.Sprintf("%skind: %s\nmetadata: {name: b, namespace: %q}\nroleRef: {%s}\nsubjects: [%s]", head, kind, ns, ref, subject)
	}
	const sa = "{kind: ServiceAccount, name: etcd, namespace: ops}"
	cases := []struct {
		name string
		docs []string
		want []string
	}{
		{"role", []string{role, bind("RoleBinding", "ops", "kind: Role, name: r", sa)}, []string{
			"ops: create pods.", "ops: get pods.", "ops: create pods/exec.", "ops: get pods/exec.",
		}},
		{"subject without namespace is in the binding's", []string{clusterRole, bind("RoleBinding", "ops", "kind: ClusterRole, name: c", "{kind: ServiceAccount, name: etcd}")}, []string{
			"ops: * *.apps",
		}},
		{"cluster role, cluster-wide", []string{clusterRole, bind("ClusterRoleBinding", "", "kind: ClusterRole, name: c", sa)}, []string{
			"*: get /metrics", "*: * *.apps",
		}},
		{"group of all accounts", []string{clusterRole, bind("ClusterRoleBinding", "", "kind: ClusterRole, name: c", "{kind: Group, name: 'system:serviceaccounts'}")}, []string{
			"*: get /metrics", "*: * *.apps",
		}},
		{"group of the namespace", []string{role, bind("RoleBinding", "ops", "kind: Role, name: r", "{kind: Group, name: 'system:serviceaccounts:ops'}")}, []string{
			"ops: create pods.", "ops: get pods.", "ops: create pods/exec.", "ops: get pods/exec.",
		}},
		{"group of another namespace", []string{role, bind("RoleBinding", "ops", "kind: Role, name: r", "{kind: Group, name: 'system:serviceaccounts:other'}")}, []string{}},
		{"user name of the account", []string{clusterRole, bind("RoleBinding", "x", "kind: ClusterRole, name: c", "{kind: User, name: 'system:serviceaccount:ops:etcd'}")}, []string{
			"x: * *.apps",
		}},
		{"role of another namespace is not found", []string{role, bind("RoleBinding", "x", "kind: Role, name: r", sa)}, []string{"x: Role r"}},
		{"a shipped cluster-admin does not change the built-in one", []string{head + "kind: ClusterRole\nmetadata: {name: cluster-admin}\nrules: []", bind("ClusterRoleBinding", "", "kind: ClusterRole, name: cluster-admin", sa)}, []string{"*: * *", "*: * *.*"}},
		{"cluster-admin is known", []string{bind("ClusterRoleBinding", "", "kind: ClusterRole, name: cluster-admin", sa)}, []string{"*: * *", "*: * *.*"}},
		{"unknown role", []string{bind("ClusterRoleBinding", "", "kind: ClusterRole, name: view", sa)}, []string{"*: ClusterRole view"}},
		{"aggregation, through two levels and a cycle", []string{
			head + "kind: ClusterRole\nmetadata: {name: top, labels: {a: x}}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: x}}]}\nrules: [{apiGroups: [''], resources: [ghosts], verbs: [get]}]",
			head + "kind: ClusterRole\nmetadata: {name: mid, labels: {a: x}}\naggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: b, operator: Exists}]}]}",
			head + "kind: ClusterRole\nmetadata: {name: leaf, labels: {b: 'y'}}\nrules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]",
			bind("ClusterRoleBinding", "", "kind: ClusterRole, name: top", sa),
		}, []string{"*: get nodes."}},
		{"aggregation of every role", []string{
			head + "kind: ClusterRole\nmetadata: {name: c}\naggregationRule: {clusterRoleSelectors: [{}]}", bind("ClusterRoleBinding", "", "kind: ClusterRole, name: c", sa),
		}, []string{"*: * *", "*: * *.*"}},
		{"aggregation of built-in roles", []string{
			head + "kind: ClusterRole\nmetadata: {name: c}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: x}}, {matchLabels: {kubernetes.io/bootstrapping: rbac-defaults}}]}",
			bind("RoleBinding", "ops", "kind: ClusterRole, name: c", sa),
		}, []string{"ops: * *.*"}},
		{"wide grants replace narrow ones", []string{
			head + "kind: ClusterRole\nmetadata: {name: c}\nrules: [{apiGroups: [''], resources: [secrets], verbs: [get, '*']}, {apiGroups: ['*'], resources: [secrets], resourceNames: [a], verbs: [get]}, {apiGroups: [''], resources: [secrets], resourceNames: [b], verbs: [list]}]",
			bind("ClusterRoleBinding", "", "kind: ClusterRole, name: c", sa),
		}, []string{"*: * secrets.", "*: get secrets.* a"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			objs := parse(t, strings.Join(c.docs, "\n---\n"))
			for range 2 {
				m, err := NewPermissions(objs)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(c.want, words(m.Of(account))); d != "" {
					t.Error(d)
				}
				for i, j := 0, len(objs)-1; i < j; i, j = i+1, j-1 {
					objs[i], objs[j] = objs[j], objs[i]
				}
			}
		})
	}
}

func TestCovers(t *testing.T) {
	cases := []struct {
		have, want Grant
		covers     bool
	}{
		{Grant{Verb: "get", Resource: "pods"}, Grant{Verb: "get", Resource: "pods/log"}, false},
		{Grant{Verb: "get", Resource: "*"}, Grant{Verb: "get", Resource: "pods/log"}, true},
		{Grant{Verb: "get", Resource: "*/log"}, Grant{Verb: "get", Resource: "pods/log"}, true},
		{Grant{Verb: "get", Resource: "*/log"}, Grant{Verb: "get", Resource: "pods"}, false},
		{Grant{Verb: "*", Group: "*", Resource: "*"}, Grant{Verb: "get", URL: "/x"}, false},
		{Grant{Verb: "get", URL: "/api/*"}, Grant{Verb: "get", URL: "/api/v1"}, true},
		{Grant{Verb: "get", URL: "/api/v1"}, Grant{Verb: "get", URL: "/api/*"}, false},
		{Grant{Verb: "get", Resource: "pods", Namespace: "a"}, Grant{Verb: "get", Resource: "pods"}, false},
		{Grant{Verb: "get", Resource: "pods"}, Grant{Verb: "get", Resource: "pods", Namespace: "a"}, true},
		{Grant{Verb: "get", Resource: "pods", Name: "x"}, Grant{Verb: "get", Resource: "pods"}, false},
		{Grant{Role: "ClusterRole view"}, Grant{Role: "ClusterRole view", Namespace: "a"}, true},
		{Grant{Verb: "*", Group: "*", Resource: "*"}, Grant{Role: "ClusterRole view"}, false},
	}
	for _, c := range cases {
		if got := c.have.Covers(c.want); got != c.covers {
			t.Errorf("%+v covers %+v: got %v", c.have, c.want, got)
		}
		if got := NewGrantSet([]Grant{c.have}).Covers(c.want); got != c.covers {
			t.Errorf("the set of %+v covers %+v: got %v", c.have, c.want, got)
		}
	}
}

func TestGainedMirrors(t *testing.T) {
	a := []Grant{{Verb: "get", Resource: "pods"}, {Verb: "list", Resource: "pods", Namespace: "x"}}
	b := []Grant{{Verb: "*", Resource: "pods", Namespace: "x"}}
	if got, want := words(GainedGrants(a, b)), []string{"x: * pods."}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := words(GainedGrants(b, a)), []string{"*: get pods."}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := GainedGrants(a, a); len(got) != 0 {
		t.Errorf("a set differs from itself by %v", got)
	}
}

func TestBuiltinRolesGrow(t *testing.T) {
	for label, role := range map[string]string{
		"rbac.authorization.k8s.io/aggregate-to-edit":             "edit",
		"rbac.authorization.k8s.io/aggregate-to-cluster-reader":   "cluster-reader",
		"authorization.openshift.io/aggregate-to-basic-user":      "basic-user",
		"rbac.crossplane.io/aggregate-to-crossplane":              "crossplane",
		"example.com/rbac.authorization.k8s.io/aggregate-to-edit": "",
	} {
		m, err := NewPermissions(parse(t, head+"kind: ClusterRole\nmetadata: {name: c, labels: {"+label+": 'true'}}\nrules: [{apiGroups: [x.io], resources: [xs], verbs: [create]}]"))
		if err != nil {
			t.Fatal(err)
		}
		var want []Subject
		if role != "" {
			want = []Subject{{Kind: "ClusterRole", Name: role}}
		}
		if d := cmp.Diff(want, m.Subjects()); d != "" {
			t.Errorf("%s: %s", label, d)
		}
		for _, s := range want {
			if d := cmp.Diff([]string{"*: create xs.x.io"}, words(m.Of(s))); d != "" {
				t.Error(d)
			}
		}
	}
}

func TestTooMany(t *testing.T) {
	list := make([]any, 1000)
	for i := range list {
		list[i] = fmt.Sprintf("r%d", i)
	}
	r := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "c"},
		"rules": []any{map[string]any{"verbs": list, "apiGroups": list, "resources": list}},
	}
	b := parse(t, head+"kind: ClusterRoleBinding\nmetadata: {name: b}\nroleRef: {kind: ClusterRole, name: c}\nsubjects: [{kind: ServiceAccount, name: s, namespace: n}]")
	if _, err := NewPermissions(append(b, r)); !errors.Is(err, ErrTooManyGrants) {
		t.Errorf("got %v, want ErrTooMany", err)
	}
}

// TestSetAgrees compares GrantSet.Covers, which looks up wider grants, with Grant.Covers, which
// compares two grants.
func TestSetAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) Grant {
			pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label+what) }
			ns := pick("namespace", "", "a", "b")
			switch pick("kind", "resource", "resource", "url", "role") {
			case "url":
				return Grant{Verb: pick("verb", "get", "*"), URL: pick("url", "*", "/a", "/a/*", "/a/b", "/*")}
			case "role":
				return Grant{Namespace: ns, Role: pick("role", "Role x", "Role y")}
			}
			return Grant{
				Namespace: ns, Verb: pick("verb", "get", "list", "*"), Group: pick("group", "", "apps", "*"),
				Resource: pick("resource", "*", "pods", "pods/exec", "*/exec"), Name: pick("name", "", "n", "m"),
			}
		}
		have, want := draw("have "), draw("want ")
		if a, b := have.Covers(want), NewGrantSet([]Grant{have}).Covers(want); a != b {
			t.Fatalf("%+v covers %+v: %v, as a set: %v", have, want, a, b)
		}
	})
}

// TestGainedAgrees compares GainedGrants of two random sets with all requests of a small API. The result must
// cover each request that only the second set allows.
func TestGainedAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) []Grant {
			var out []Grant
			for i := range rapid.IntRange(0, 5).Draw(t, label) {
				pick := func(from ...string) string { return rapid.SampledFrom(from).Draw(t, fmt.Sprint(label, i)) }
				out = append(out, Grant{
					Namespace: pick("", "a", "b"), Verb: pick("get", "list", "*"), Group: pick("", "apps", "*"),
					Resource: pick("*", "pods", "pods/exec", "*/exec"), Name: pick("", "n", "m"),
				})
			}
			return out
		}
		before, after := draw("before"), draw("after")
		had, has, gained := NewGrantSet(before), NewGrantSet(after), NewGrantSet(GainedGrants(before, after))
		for _, namespace := range []string{"", "a", "b", "c"} {
			for _, verb := range []string{"get", "list", "create"} {
				for _, group := range []string{"", "apps", "other"} {
					for _, resource := range []string{"pods", "jobs", "pods/exec", "jobs/exec", "pods/log"} {
						for _, name := range []string{"", "n", "o"} {
							g := Grant{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Name: name}
							if isNew := has.Covers(g) && !had.Covers(g); isNew && !gained.Covers(g) || gained.Covers(g) && !has.Covers(g) {
								t.Fatalf("%+v: newly allowed: %t, gained: %t", g, isNew, gained.Covers(g))
							}
						}
					}
				}
			}
		}
	})
}

// TestModelAgrees compares the model, which expands roles to grants, with the algorithm of the API
// server: a controller copies rules between aggregated roles until nothing changes, and the authorizer
// searches for a rule. The cluster test TestRandomRoleSets uses a real API server.
func TestModelAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(from ...string) string { return rapid.SampledFrom(from).Draw(t, "word") }
		some := func(from ...string) []any {
			out := []any{pick(from...)}
			for rapid.IntRange(0, 2).Draw(t, "more") == 0 {
				out = append(out, pick(from...))
			}
			return out
		}
		var objects []map[string]any
		var roles []string
		for i := range rapid.IntRange(1, 5).Draw(t, "roles") {
			name := fmt.Sprint("r", i)
			roles = append(roles, name)
			o := map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name, "labels": map[string]any{"l": pick("x", "y", "z")}}}
			aggregated := rapid.Bool().Draw(t, "aggregated")
			if aggregated {
				o["aggregationRule"] = map[string]any{"clusterRoleSelectors": []any{map[string]any{"matchLabels": map[string]any{"l": pick("x", "y", "z")}}}}
			}
			if alone := rapid.IntRange(0, 3).Draw(t, "alone") == 0; alone || !aggregated {
				if aggregated { // no other role copies its rules before they are replaced
					delete(o["metadata"].(map[string]any), "labels")
				}
				rule := map[string]any{"apiGroups": some("", "apps", "*"), "resources": some("pods", "pods/exec", "*", "*/exec"), "verbs": some("get", "list", "*")}
				if rapid.Bool().Draw(t, "named") {
					rule["resourceNames"] = some("a", "b")
				}
				o["rules"] = []any{rule, map[string]any{"nonResourceURLs": some("/a", "/a/*", "*"), "verbs": some("get", "*")}}
			}
			objects = append(objects, o)
		}
		for range rapid.IntRange(1, 3).Draw(t, "bindings") {
			b := map[string]any{
				"apiVersion": "rbac.authorization.k8s.io/v1", "kind": pick("ClusterRoleBinding", "RoleBinding"), "metadata": map[string]any{"name": "b", "namespace": "ops"},
				"roleRef": map[string]any{"kind": "ClusterRole", "name": pick(append(roles, "missing")...)}, "subjects": []any{map[string]any{"kind": "ServiceAccount", "name": pick("a", "b"), "namespace": "ops"}},
			}
			objects = append(objects, b)
		}
		m, err := NewPermissions(objects)
		if err != nil {
			t.Fatal(err)
		}
		may := NewGrantSet(m.Of(Subject{"ServiceAccount", "ops", "a"}))
		for _, verb := range []string{"get", "list"} {
			for _, url := range []string{"/a", "/a/b", "/b"} {
				agree(t, objects, may, Grant{Verb: verb, URL: url})
			}
			for _, resource := range []string{"pods", "pods/exec", "jobs/exec"} {
				for _, name := range []string{"", "a"} {
					for _, namespace := range []string{"", "ops", "other"} {
						agree(t, objects, may, Grant{Namespace: namespace, Verb: verb, Group: "apps", Resource: resource, Name: name})
					}
				}
			}
		}
	})
}

func agree(t *rapid.T, objects []map[string]any, may GrantSet, g Grant) {
	if got, want := may.Covers(g), authorized(objects, g); got != want {
		t.Fatalf("%+v: model: %v, authorizer: %v: %v", g, got, want, objects)
	}
}

// authorized reports whether the ServiceAccount ops/a may do g.
func authorized(objects []map[string]any, g Grant) bool {
	rules := map[string][]map[string]any{}
	for _, o := range objects {
		if o["kind"] == "ClusterRole" {
			rules[Text(o, "metadata", "name")] = Items(o, "rules")
		}
	}
	for range len(objects) {
		for _, o := range objects {
			if selectors := Items(o, "aggregationRule", "clusterRoleSelectors"); len(selectors) > 0 {
				var all []map[string]any
				for _, other := range objects {
					if other["kind"] == "ClusterRole" && Text(other, "metadata", "name") != Text(o, "metadata", "name") && Text(other, "metadata", "labels", "l") == Text(selectors[0], "matchLabels", "l") {
						all = append(all, rules[Text(other, "metadata", "name")]...)
						slices.SortFunc(all, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
						all = slices.CompactFunc(all, func(a, b map[string]any) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
					}
				}
				if len(all) > 0 {
					rules[Text(o, "metadata", "name")] = all
				}
			}
		}
	}
	matches := func(rule map[string]any, field, want string) bool {
		return slices.ContainsFunc(Texts(rule, field), func(s string) bool { return s == "*" || s == want })
	}
	for _, b := range objects {
		if !strings.HasSuffix(Text(b, "kind"), "Binding") || Text(Items(b, "subjects")[0], "name") != "a" || b["kind"] == "RoleBinding" && g.Namespace != "ops" {
			continue
		}
		for _, rule := range rules[Text(b, "roleRef", "name")] {
			_, sub, _ := strings.Cut(g.Resource, "/")
			names := Texts(rule, "resourceNames")
			switch {
			case !matches(rule, "verbs", g.Verb):
			case g.URL != "":
				if b["kind"] == "ClusterRoleBinding" && (matches(rule, "nonResourceURLs", g.URL) || matches(rule, "nonResourceURLs", "/a/*") && strings.HasPrefix(g.URL, "/a/")) {
					return true
				}
			case matches(rule, "apiGroups", g.Group) && (matches(rule, "resources", g.Resource) || sub != "" && matches(rule, "resources", "*/"+sub)) && (len(names) == 0 || slices.Contains(names, g.Name)):
				return true
			}
		}
	}
	return false
}

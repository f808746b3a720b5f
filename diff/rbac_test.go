package diff

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
)

// drawGrant draws a grant that matches a row of the table of powers, or a similar one.
func drawGrant(t *rapid.T) k8s.Grant {
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	g := k8s.Grant{Namespace: pick("namespace", "", "", "ops", "kube-system")}
	if pick("kind", "resource", "resource", "resource", "url") == "url" {
		return k8s.Grant{Verb: pick("verb", "get", "*", "post"), URL: pick("url", "/metrics", "/metrics/x", "/healthz", "/debug")}
	}
	d := rapid.SampledFrom(dangers(k8s.Resource)).Draw(t, "danger")
	g.Verb, g.Group, g.Resource = pick("verb", append(strings.Fields(d.verbs), "get", "delete")...), pick("group", d.group, d.group, "demo.io", "sub."+d.group), pick("resource", cmp.Or(d.resource, "things"), "widgets", "pods")
	g.Name = pick("name", "", "strong", "weak", "demo", "default", "system:masters", "cluster-admin", "small", "x", "kubernetes.io/a", "privileged")
	return g
}

// widen returns a grant that covers g.
func widen(t *rapid.T, g k8s.Grant) k8s.Grant {
	if rapid.Bool().Draw(t, "everywhere") {
		g.Namespace = ""
	}
	if rapid.Bool().Draw(t, "every verb") {
		g.Verb = "*"
	}
	if g.URL != "" {
		g.URL = g.URL[:rapid.IntRange(0, len(g.URL)).Draw(t, "prefix")] + "*"
		return g
	}
	if rapid.Bool().Draw(t, "every group") {
		g.Group = "*"
	}
	if rapid.Bool().Draw(t, "every resource") {
		g.Resource = "*"
	}
	if rapid.Bool().Draw(t, "every name") {
		g.Name = ""
	}
	return g
}

// TestWiderIsWorse checks that no grant has a lower severity than a grant that it covers.
func TestWiderIsWorse(t *testing.T) {
	c := &comparison{rules: rulesByID(), before: mustView(t, State{}), after: mustView(t, State{})}
	_, objects := k8s.DefaultRBAC()
	objects = append(objects[:len(objects):len(objects)], objectsOf(t, doc(account,
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: strong, namespace: ops}", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: weak, namespace: ops}",
		rbacHead+"kind: ClusterRoleBinding\nmetadata: {name: strong}\nroleRef: {kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: ServiceAccount, name: strong, namespace: ops}]",
		rbacHead+"kind: ClusterRole\nmetadata: {name: small}\nrules: ["+rule("''", "configmaps", "get")+"]",
	))...)
	all, err := k8s.NewPermissions(objects)
	if err != nil {
		t.Fatal(err)
	}
	r, of := c.newRater(all), k8s.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "demo"}
	rapid.Check(t, func(t *rapid.T) {
		narrow := drawGrant(t)
		wide := widen(t, narrow)
		if !wide.Covers(narrow) {
			t.Fatalf("%+v does not cover %+v", wide, narrow)
		}
		low := r.rate(of, narrow, maxDepth).severity
		if high := r.rate(of, wide, maxDepth); high.severity < low {
			t.Fatalf("%+v is %s, but the wider %+v is %s (%s)", narrow, low, wide, high.severity, high.rule)
		}
	})
}

func objectsOf(t testing.TB, docs string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, o := range parsed(t, "ops/demo", "rendered/demo.yaml", docs) {
		out = append(out, o.Content)
	}
	return out
}

// TestWiderRulesAreWorse checks that a wider rule in a role does not result in a lower severity.
func TestWiderRulesAreWorse(t *testing.T) {
	text := func(g k8s.Grant) string {
		if g.URL != "" {
			return fmt.Sprintf("{nonResourceURLs: [%q], verbs: [%q]}", g.URL, g.Verb)
		}
		names := ""
		if g.Name != "" {
			names = fmt.Sprintf(", resourceNames: [%q]", g.Name)
		}
		return fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%q]%s}", g.Group, g.Resource, g.Verb, names)
	}
	worst := func(rules ...string) Severity {
		out := Off
		for _, f := range compareManifests(t, doc(account, clusterRole(), binding, local), doc(account, clusterRole(rules...), binding, local)).Findings {
			out = max(out, f.Severity)
		}
		return out
	}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawGrant(rt), drawGrant(rt)
		if low, high := worst(text(a), text(b)), worst(text(widen(rt, a)), text(b)); high < low {
			rt.Fatalf("narrow rule: %s, wide rule: %s", low, high)
		}
	})
}

package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func paths[T any](list []T, of func(T) string) []string {
	out := []string{}
	for _, e := range list {
		out = append(out, of(e))
	}
	return out
}

func TestBaseAndOwn(t *testing.T) {
	files := []File{
		{Path: "rendered/crds/demo/widgets.yaml", Data: []byte(widget("{type: string}"))},
		{Path: "rendered/operators/ops/demo/serviceaccount-demo.yaml", Data: []byte(account)},
		{Path: "rendered/operators/ops/demo/kustomization.yaml", Data: []byte("resources: []")},
		{Path: "rendered/clusters/prod/patch.yaml", Data: []byte(account + "\nsecrets: []")},
		{Path: "renderedly/crds/x.yaml", Data: []byte(account)},
		{Path: "team/widget.yaml", Data: []byte(custom("v1", "{x: a}"))},
		{Path: "team/chart/templates/widget.yaml", Data: []byte("apiVersion: demo.io/v1\nkind: {{ .Kind }\n")},
		{Path: "team/other.yaml", Data: []byte("a: [")},
		{Path: "team/namespace.yaml", Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}")},
	}
	base := BaseFiles("rendered", files)
	if d := cmp.Diff([]string{"rendered/crds/demo/widgets.yaml", "rendered/operators/ops/demo/serviceaccount-demo.yaml", "rendered/operators/ops/demo/kustomization.yaml"}, paths(base, func(f File) string { return f.Path })); d != "" {
		t.Error(d)
	}
	rendered, err := Objects(base, nil)
	if err != nil || len(rendered) != 2 {
		t.Fatalf("%d objects, %v", len(rendered), err)
	}
	mine, skipped := ownObjects(files[5:], rendered)
	if d := cmp.Diff([]string{"team/widget.yaml", "team/namespace.yaml"}, paths(mine, func(o Object) string { return o.Path })); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"team/chart/templates/widget.yaml"}, skipped); d != "" {
		t.Error(d)
	}
}

// TestBaseContainsTheReporter checks that the reporter's role is compared like any other, and that
// Installations are ignored.
func TestBaseContainsTheReporter(t *testing.T) {
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: quayside-reporter, labels: {quayside.dev/package: quayside-reporter, quayside.dev/install-namespace: qs}}\nrules: [{apiGroups: [''], resources: [RESOURCE], verbs: [get]}]\n"
	const program = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: quayside-reporter, namespace: qs, labels: {quayside.dev/package: quayside-reporter, quayside.dev/install-namespace: qs}}\n---\n" +
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: quayside-reporter}\nroleRef: {kind: ClusterRole, name: quayside-reporter}\nsubjects: [{kind: ServiceAccount, name: quayside-reporter, namespace: qs}]\n"
	state := func(resource string) State {
		files := BaseFiles("out", []File{
			{Path: "out/reporter/all.yaml", Data: []byte(program)},
			{Path: "out/installations/a.b.yaml", Data: []byte(strings.Replace(role, "RESOURCE", resource, 1))},
			{Path: "out/installations/a.c.yaml", Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Installation\nmetadata: {name: b, namespace: a}\nspec: {package: " + resource + "}\n")},
			{Path: "out/clusters/c/reporter/clusterrole-quayside-reporter.yaml", Data: []byte(role)},
		})
		objects, err := Objects(files, nil)
		if err != nil {
			t.Fatal(err)
		}
		return State{Objects: objects}
	}
	want := []string{"high rbac.secrets secrets: - → get", "info rbac.lost all namespaces: get pods → -"}
	if d := cmp.Diff(want, lines(compare(t, state("pods"), state("secrets")))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestIsList checks which invalid manifests are lists.
func TestIsList(t *testing.T) {
	for text, want := range map[string]bool{
		"- {op: add}\n":            true,
		"# a patch\n\n- op: add\n": true,
		"--- \n- a\n":              false,
		"a: [\n- b\n":              false,
		"":                         false,
	} {
		if got := isList(File{Data: []byte(text)}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEngineObjects compares the objects of GitOps tools.
func TestEngineObjects(t *testing.T) {
	objects := func(path, data string) []Object {
		out, err := EngineObjects([]File{{Path: path, Data: []byte(data)}}, "")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	list := func(server string) State {
		return State{Objects: objects("rendered/clusters.yaml", "- cluster: prod\n  overlays: false\n  prefix: ''\n  server: "+server+"\n")}
	}
	for _, c := range []struct {
		name          string
		before, after State
		want          []string
	}{
		{"another server", list("https://a.example.com"), list("https://b.example.com"), []string{"critical objects.changed data.prod.server: https://a.example.com → https://b.example.com"}},
		{"the same server", list("https://a.example.com"), list("https://a.example.com"), nil},
		{
			"the parameters of directories", list("https://a.example.com"),
			State{Objects: objects("rendered/clusters.yaml", "- cluster: prod\n  overlays: true\n  prefix: clusters/prod/\n  server: https://a.example.com\n")},
			nil,
		},
		{
			"a file of inputs",
			State{Objects: objects("rendered/inputs/a.yaml", "- {cluster: prod, directory: a}\n")},
			State{Objects: objects("rendered/inputs/a.yaml", "- {cluster: prod, directory: b}\n")},
			[]string{"high objects.changed data.prod.directory: a → b"},
		},
	} {
		if d := cmp.Diff(append([]string{}, c.want...), lines(compare(t, c.before, c.after))); d != "" {
			t.Errorf("%s: -want +got\n%s", c.name, d)
		}
	}
	got := objects("rendered/pieces/x.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: x}\nspec: {template: {spec: {sources: [{path: 'envs/prod/rendered/crds/etcd'}, {path: 'envs/prod/rendered/{{.prefix}}operators/my-etcd.etcd'}]}}}\n")
	if d := cmp.Diff([]string{"crds/etcd", "operators/my-etcd.etcd"}, got[0].AppliedDirs()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestEngineSeverity checks that changes of the source, the target and the pruning of objects have at least
// high severity, and that changes that result from an upgrade have a lower severity.
func TestEngineSeverity(t *testing.T) {
	kustomization := func(spec string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: x, namespace: flux-system}\nspec: {" + spec + "}"
	}
	set := func(sources string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: x, namespace: argocd}\nspec: {template: {spec: {sources: [" + sources + "]}}}"
	}
	empty := func(path, automated string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: x, namespace: argocd}\nspec: {template: {spec: {sources: [{path: " + path + "}], syncPolicy: {automated: {" + automated + "}}}}}"
	}
	const crd, own = "{repoURL: 'https://a.example.com', path: rendered/crds/etcd}", "{repoURL: 'https://a.example.com', path: rendered/operators/ops.etcd}"
	for _, c := range []struct {
		name, before, after string
		want                Severity
	}{
		{"needs another operator", kustomization("prune: true"), kustomization("prune: true, dependsOn: [{name: y}]"), Low},
		{"prunes", kustomization("prune: false"), kustomization("prune: true"), High},
		{"differs from others", kustomization("path: ./r/pieces/_shared"), kustomization("path: ./r/pieces/prod"), Low},
		{"another repository path", kustomization("path: ./r/pieces/_shared"), kustomization("path: ./evil/pieces/_shared"), High},
		{"gets CRDs", set(own), set(crd + ", " + own), Low},
		{"gets CRDs from another repository", set(own), set("{repoURL: 'https://b.example.com', path: crds/etcd}, " + own), High},
		{"gets more", set(own), set("{repoURL: 'https://a.example.com', path: evil}, " + own), High},
		{"selects other clusters", kustomization("selector: {matchLabels: {env: dev}}"), kustomization("selector: {matchLabels: {env: prod}}"), High},
		{"begins to leave", set(crd + ", " + own), set("{repoURL: 'https://a.example.com', path: rendered/leaving/ops.etcd}"), Low},
		{"leaves with a path outside of the tree", set(crd + ", " + own), set("{repoURL: 'https://a.example.com', path: evil/leaving/ops.etcd}"), High},
		{"leaves with another repository", set(crd + ", " + own), set("{repoURL: 'https://b.example.com', path: rendered/leaving/ops.etcd}"), High},
		{"allows the uninstallation", empty("rendered/leaving/ops.etcd", "prune: true"), empty("rendered/leaving/ops.etcd", "prune: true, allowEmpty: true"), Low},
		{"allows that nothing remains", empty("rendered/operators/ops.etcd", "prune: true"), empty("rendered/operators/ops.etcd", "prune: true, allowEmpty: true"), High},
		{"another repository", set(own), set("{repoURL: 'https://b.example.com', path: rendered/operators/ops.etcd}"), Critical},
	} {
		r := compare(t, State{Objects: parsed(t, "", "x.yaml", c.before)}, State{Objects: parsed(t, "", "x.yaml", c.after), Declared: []string{"argocd", "flux-system"}})
		if len(r.Findings) != 1 || r.Findings[0].Severity != c.want {
			t.Errorf("%s: %v", c.name, lines(r))
		}
	}
}

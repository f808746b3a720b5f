package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestVersionChangesFewObjects renders two versions of a bundle that differ only in the version number. Only
// objects with quayside's version label may change, even if the bundle sets version labels on others.
func TestVersionChangesFewObjects(t *testing.T) {
	render := func(version string) *Result {
		res, err := renderBundles(map[string]fstest.MapFS{"ns/x": newBundle("x", version, "v1",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: forged, labels: {quayside.dev/version: "+version+"}, annotations: {a: b, quayside.dev/version: "+version+"}}}")},
			nil, Options{GitOps: &profile.GitOps{Name: "env", RepoURL: "https://git.example.com/x.git", Path: "rendered", Revision: "main", Namespace: "argocd", ArgoCDSettings: profile.ArgoCDSettings{Project: "default"}}, Profile: "argocd"})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	before, after := render("1.0.0"), render("1.0.1+a")
	var got []string
	for _, ch := range filetree.Diff(before.Tree, after.Tree) {
		got = append(got, ch.Path)
	}
	if d := cmp.Diff([]string{"crds/x/customresourcedefinition-things.x.io.yaml", "operators/ns.x/deployment-d.yaml"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for _, r := range after.Objects {
		if strings.HasSuffix(r.Path, "-things.x.io.yaml") || r.Object.Kind() == "Deployment" {
			label, annotation := k8s.Text(r.Object, "metadata", "labels", k8s.LabelVersion), k8s.Text(r.Object, "metadata", "annotations", k8s.LabelVersion)
			if label != "1.0.1_a" || annotation != "1.0.1+a" {
				t.Errorf("%s: label %q, annotation %q", r.Path, label, annotation)
			}
		}
	}
}

// TestServerFields checks that fields of metadata that only the API server sets are not rendered.
func TestServerFields(t *testing.T) {
	const meta = "uid: SMUGGLED, resourceVersion: SMUGGLED, managedFields: [{manager: SMUGGLED}], selfLink: SMUGGLED"
	bundles := newBundle("x", "1.0.0", "v1",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, "+meta+"}, data: {uid: kept}}",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, "+meta+"}, spec: {schedule: '0 0 * * *', jobTemplate: {metadata: {"+meta+"}, spec: {template: {metadata: {"+meta+"}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}")
	for file, edit := range map[string][2]string{
		"manifests/csv.yaml": {"template: {metadata: {labels: {a: b}", "template: {metadata: {labels: {a: b}, " + meta},
		"manifests/crd.yaml": {"metadata: {name: things.x.io", "metadata: {name: things.x.io, " + meta},
	} {
		bundles[file].Data = []byte(strings.Replace(string(bundles[file].Data), edit[0], edit[1], 1))
	}
	res, err := renderBundles(map[string]fstest.MapFS{"ns/x": bundles}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range res.Tree.All() {
		if strings.Contains(string(data), "SMUGGLED") {
			t.Errorf("%s:\n%s", file, data)
		}
	}
}

// TestAggregatedRoles checks that NoAggregatedRoles omits exactly the roles for an operator's APIs. Without
// this option, these roles share a file, sorted by key.
func TestAggregatedRoles(t *testing.T) {
	bundles := map[string]fstest.MapFS{"ns/x": newBundle("x", "1.0.0", "v1")}
	with, err := renderBundles(bundles, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	without, err := renderBundles(bundles, nil, Options{NoAggregatedRoles: true})
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, r := range without.Objects {
		kept[r.Path] = true
	}
	gone, marker := 0, ""
	var want []byte
	for _, r := range with.Objects {
		aggregates := strings.Contains(strings.Join(labelKeys(r.Object), " "), "aggregate-to-")
		if kept[r.Path] == aggregates {
			t.Errorf("%s is rendered: %v, aggregated: %v", r.Path, kept[r.Path], aggregates)
		}
		if aggregates {
			gone++
			want = append(append(want, marker...), yamlnode.Encode(r.Object)...)
			marker = "---\n"
		}
	}
	if got, _ := with.Tree.Get("operators/ns.x/aggregated-roles.yaml"); string(got) != string(want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if gone != 4 {
		t.Errorf("%d aggregated roles, want 4", gone)
	}
}

func labelKeys(o Object) []string {
	var out []string
	for key := range k8s.Map(o, "metadata", "labels") {
		out = append(out, key)
	}
	return out
}

package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestABumpTouchesLittle renders two versions that differ in their number alone:
// only what says the version changes, whatever a bundle writes where quayside
// says it.
func TestABumpTouchesLittle(t *testing.T) {
	render := func(version string) *Result {
		res, err := renderSmall(map[string]fstest.MapFS{"ns/x": small("x", version, "v1",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: forged, labels: {quayside.dev/version: "+version+"}, annotations: {a: b, quayside.dev/version: "+version+"}}}")},
			nil, Options{GitOps: &GitOps{Name: "env", RepoURL: "https://git.example.com/x.git", Path: "rendered", Revision: "main", Namespace: "argocd", Project: "default"}, Profile: "argocd"})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	before, after := render("1.0.0"), render("1.0.1+a")
	var got []string
	for _, ch := range filetree.Diff(before.Tree, after.Tree) {
		if ch.Path != filetree.Index {
			got = append(got, ch.Path)
		}
	}
	if d := cmp.Diff([]string{"crds/x/customresourcedefinition-things.x.io.yaml", "operators/ns/x/deployment-d.yaml"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for _, r := range after.Objects {
		if strings.HasSuffix(r.Path, "-things.x.io.yaml") || r.Object.Kind() == "Deployment" {
			label, annotation := kobj.Text(r.Object, "metadata", "labels", kobj.LabelVersion), kobj.Text(r.Object, "metadata", "annotations", kobj.LabelVersion)
			if label != "1.0.1_a" || annotation != "1.0.1+a" {
				t.Errorf("%s: label %q, annotation %q", r.Path, label, annotation)
			}
		}
	}
}

// TestAggregatedRoles leaves the roles out that give users an operator's API,
// and nothing else. With them, they share a file, in the order of their keys.
func TestAggregatedRoles(t *testing.T) {
	bundles := map[string]fstest.MapFS{"ns/x": small("x", "1.0.0", "v1")}
	with, err := renderSmall(bundles, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	without, err := renderSmall(bundles, nil, Options{NoAggregatedRoles: true})
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
			t.Errorf("%s is kept: %v, aggregates: %v", r.Path, kept[r.Path], aggregates)
		}
		if aggregates {
			gone++
			want = append(append(want, marker...), yamlnode.Encode(r.Object)...)
			marker = "---\n"
		}
	}
	if got, _ := with.Tree.Get("operators/ns/x/aggregated-roles.yaml"); string(got) != string(want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if gone != 4 {
		t.Errorf("%d roles aggregate, want 4", gone)
	}
}

func labelKeys(o Object) []string {
	var out []string
	for key := range kobj.Map(o, "metadata", "labels") {
		out = append(out, key)
	}
	return out
}

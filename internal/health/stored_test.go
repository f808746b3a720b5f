package health

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/lockfile"
)

// definitionOf returns an observed CRD with the given versions and status.storedVersions.
func definitionOf(name string, versions, stored []any) v1alpha1.Observed {
	var list []any
	for _, v := range versions {
		list = append(list, map[string]any{"name": v, "served": true})
	}
	return v1alpha1.Observed{
		Ref: v1alpha1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: name},
		Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"versions": list}, "status": map[string]any{"storedVersions": stored},
		},
	}
}

// TestStoredVersions checks that the status and the file with observations contain the stored versions of CRDs.
func TestStoredVersions(t *testing.T) {
	got := []v1alpha1.Observed{
		definitionOf("widgets.demo.io", []any{"v1", "v1beta1"}, []any{"v1beta1", "v1", "v1"}),
		definitionOf("gadgets.demo.io", []any{"v1", "v1beta1"}, []any{"v1"}),
		definitionOf("plain.demo.io", []any{"v1"}, []any{"v1"}),
		definitionOf("new.demo.io", []any{"v1", "v1beta1"}, nil),
		definitionOf("broken.demo.io", []any{"v1", "v1beta1"}, []any{int64(1)}),
		{Ref: v1alpha1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "secret.demo.io"}, Reason: v1alpha1.ReasonForbidden},
	}
	spec := v1alpha1.InstallationSpec{Package: "demo", Version: "1.0.0"}
	for _, o := range got {
		spec.Objects = append(spec.Objects, o.Ref)
	}
	status := Judge(spec, 1, v1alpha1.InstallationStatus{}, got, nil, noon())
	want := []v1alpha1.StoredVersions{
		{Definition: "gadgets.demo.io", Versions: []string{"v1"}},
		{Definition: "widgets.demo.io", Versions: []string{"v1", "v1beta1"}},
	}
	if d := cmp.Diff(want, status.StoredVersions); d != "" {
		t.Errorf("status (-want +got):\n%s", d)
	}

	pin := lockfile.Pin{Namespace: "ops", Package: "demo", Version: "1.0.0"}
	sum := Summarize(&lockfile.File{Pins: []lockfile.Pin{pin}}, []OperatorObservation{{Namespace: "ops", Package: "demo", Status: status}}, noon())
	sum.Cluster = "prod"
	text := FormatObserved(sum)
	if line := "  - crd: widgets.demo.io\n    versions:\n    - v1\n    - v1beta1\n"; !strings.Contains(string(text), line) {
		t.Errorf("no %q in\n%s", line, text)
	}
	f, err := readOne("observed.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, f.Operators[0].StoredVersions); d != "" || f.Cluster != "prod" {
		t.Errorf("parsed, cluster %q (-want +got):\n%s", f.Cluster, d)
	}

	other := &Summary{Operators: []OperatorHealth{{StoredVersions: []v1alpha1.StoredVersions{{Definition: "gadgets.demo.io", Versions: []string{"v1alpha1", "v1"}}}}}}
	all := map[string][]string{"gadgets.demo.io": {"v1", "v1alpha1"}, "widgets.demo.io": {"v1", "v1beta1"}}
	for _, files := range [][]*Summary{{f, other}, {other, f}} {
		if d := cmp.Diff(all, StoredVersions(files)); d != "" {
			t.Errorf("two clusters (-want +got):\n%s", d)
		}
	}
	other.Problem = "at 2025-01-01T00:00:00Z"
	if d := cmp.Diff(map[string][]string{"gadgets.demo.io": {"v1"}, "widgets.demo.io": {"v1", "v1beta1"}}, StoredVersions([]*Summary{f, other})); d != "" {
		t.Errorf("with an unusable file (-want +got):\n%s", d)
	}
}

// TestStoredVersionsBound judges more CRDs than a status lists.
func TestStoredVersionsBound(t *testing.T) {
	var spec v1alpha1.InstallationSpec
	var got []v1alpha1.Observed
	for i := range maxDefinitions + 100 {
		o := definitionOf(fmt.Sprintf("d%04d.demo.io", i), []any{"v1", "v2"}, []any{"v1"})
		spec.Objects, got = append(spec.Objects, o.Ref), append(got, o)
	}
	status := Judge(spec, 1, v1alpha1.InstallationStatus{}, got, nil, noon())
	if n := len(status.StoredVersions); n != maxDefinitions || status.StoredVersions[n-1].Definition != fmt.Sprintf("d%04d.demo.io", maxDefinitions-1) {
		t.Errorf("%d are listed", n)
	}
}

// TestStoredVersionsFaults parses files with observations whose stored versions are incomplete.
func TestStoredVersionsFaults(t *testing.T) {
	for _, item := range []string{"{crd: a}", "{versions: [v1]}", "{crd: a, versions: []}", `{crd: a, versions: [""]}`} {
		text := "apiVersion: quayside.dev/v1alpha1\nkind: Observed\nobservedAt: \"2026-01-01T00:00:00Z\"\noperators:\n- namespace: ops\n  package: demo\n  state: Ready\n  storedVersions:\n  - " + item + "\n"
		if _, err := readOne("o.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "o.yaml:9:3: storedVersions: must be a CRD and its versions") {
			t.Errorf("%s: %v", item, err)
		}
	}
}

// TestMigration evaluates a StorageVersionMigration by its conditions.
func TestMigration(t *testing.T) {
	for text, want := range map[string]v1alpha1.HealthStatus{
		"":                                     v1alpha1.InProgress,
		"{type: Running, status: \"True\"}":    v1alpha1.InProgress,
		"{type: Succeeded, status: \"False\"}": v1alpha1.InProgress,
		"{type: Running, status: \"False\"}, {type: Succeeded, status: \"True\"}":           v1alpha1.Current,
		"{type: Succeeded, status: \"True\"}, {type: Failed, status: \"True\", message: x}": v1alpha1.Failed,
	} {
		o := parse(t, "apiVersion: storagemigration.k8s.io/v1\nkind: StorageVersionMigration\nmetadata: {name: a, generation: 1}\nstatus: {conditions: ["+text+"]}\n")
		if h := Compute(o, noon()); h.Status != want {
			t.Errorf("%s: got %v, want %s", text, h, want)
		}
	}
}

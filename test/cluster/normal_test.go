package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestNormalForm creates objects in unusual spellings. quayside compares objects in their normal form. The
// normal form of an object must equal the normal form of the object that the API server stores, with the same
// defaults and the same conversion of deprecated fields.
func TestNormalForm(t *testing.T) {
	t.Parallel()
	cluster := harness.Start(t, harness.Options{APIOnly: true})
	live, ctx := applier(t, cluster), within(t, 2*time.Minute)
	data, err := os.ReadFile(filepath.Join("testdata", "normal.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	var sent []*unstructured.Unstructured
	for _, o := range objects(t, string(data)) {
		stored, err := live.Create(ctx, o)
		if err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			continue
		}
		sent, all = append(sent, o), append(all, o.Object, withoutAllocated(stored.Object))
	}
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, buildIn(t, "normal", "test/cluster/cmd/normal/main.go"))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var forms []map[string]any
	if err := json.Unmarshal(out, &forms); err != nil {
		t.Fatal(err)
	}
	for i, o := range sent {
		stored, form := all[2*i+1], forms[2*i]
		if d := cmp.Diff(withoutEmptyExtras(forms[2*i+1], form), any(form)); d != "" {
			t.Errorf("%s %s: the normal form of the stored object differs (-stored +sent):\n%s", o.GetKind(), o.GetName(), d)
		}
		for _, field := range fieldsOf("", form) {
			if !slices.Contains(fieldsOf("", stored), field) {
				t.Errorf("%s %s: the API server does not set %s", o.GetKind(), o.GetName(), field)
			}
		}
	}
}

// withoutEmptyExtras returns stored without the empty strings, maps and lists that are missing in sent. Normal
// forms have no empty defaults.
func withoutEmptyExtras(stored, sent any) any {
	switch v := stored.(type) {
	case map[string]any:
		other, _ := sent.(map[string]any)
		out := map[string]any{}
		for key, e := range v {
			o, has := other[key]
			if e = withoutEmptyExtras(e, o); has || !slices.Contains([]string{"", "map[]", "[]"}, fmt.Sprint(e)) {
				out[key] = e
			}
		}
		return out
	case []any:
		other, _ := sent.([]any)
		out := slices.Clone(v)
		for i := range min(len(v), len(other)) {
			out[i] = withoutEmptyExtras(v[i], other[i])
		}
		return out
	}
	return stored
}

// withoutAllocated returns an object without the values that an API server allocates or records.
func withoutAllocated(o map[string]any) map[string]any {
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers"} {
		unstructured.RemoveNestedField(o, "metadata", field)
	}
	switch o["kind"] {
	case "DaemonSet":
		unstructured.RemoveNestedField(o, "metadata", "annotations", "deprecated.daemonset.template.generation")
	case "Job":
		for _, field := range [][]string{{"metadata", "labels"}, {"spec", "selector"}, {"spec", "template", "metadata", "labels"}} {
			unstructured.RemoveNestedField(o, field...)
		}
	case "Service":
		if ip, _, _ := unstructured.NestedString(o, "spec", "clusterIP"); ip != "None" {
			unstructured.RemoveNestedField(o, "spec", "clusterIP")
		}
		for _, field := range []string{"clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
			unstructured.RemoveNestedField(o, "spec", field)
		}
	}
	delete(o, "status")
	return o
}

package cli_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/filetree"
)

// TestOwnerLabels builds the quickstart's tree with kustomize, and checks the labels of every object.
func TestOwnerLabels(t *testing.T) {
	out, err := kustomize("../../../../examples/quickstart/rendered")
	if err != nil {
		t.Fatal(err)
	}
	byOperator := map[string]int{}
	dec := yaml.NewDecoder(bytes.NewReader(out))
	for {
		var o map[string]any
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := o["kind"].(string) + " " + valueAt(o, "metadata", "name").(string)
		labels, _ := valueAt(o, "metadata", "labels").(map[string]any)
		operator := checkLabels(t, name, labels)
		byOperator[operator]++
		for _, path := range [][]string{{"spec", "selector"}, {"spec", "template"}, {"spec", "podSelector"}} {
			if text, _ := yaml.Marshal(valueAt(o, path...)); bytes.Contains(text, []byte("quayside.dev/")) {
				t.Errorf("%s: %s carries an owner label", name, strings.Join(path, "."))
			}
		}
	}
	for _, want := range []string{
		"at-operator/at-operator", "memcached-operator-system/memcached-operator", "my-etcd/etcd", "vault/etcd", "vault/vault",
	} {
		if byOperator[want] < 4 {
			t.Errorf("%s: the labels find %d objects", want, byOperator[want])
		}
	}
}

// checkLabels checks the owner labels of an object, and returns the operator in them. Only CRDs have
// no install namespace, and only CRDs and Deployments have a version. Objects that several operators
// share belong to quayside, so that no selector for one operator matches them.
func checkLabels(t *testing.T, name string, labels map[string]any) string {
	t.Helper()
	ns, _ := labels["quayside.dev/install-namespace"].(string)
	pkg, _ := labels["quayside.dev/package"].(string)
	version, _ := labels["quayside.dev/version"].(string)
	var ok bool
	switch {
	case name == "Namespace vault":
		ok = ns == "vault" && pkg == "quayside" && version == ""
	case name == "CustomResourceDefinition operatorconditions.operators.coreos.com":
		ok = ns == "" && pkg == "quayside" && version == "v1alpha1"
	case strings.HasPrefix(name, "CustomResourceDefinition "):
		ok = ns == "" && pkg != "" && version != ""
	default:
		ok = ns != "" && pkg != "" && (version != "") == strings.HasPrefix(name, "Deployment ")
	}
	if !ok {
		t.Errorf("%s: package %q, install namespace %q, version %q", name, pkg, ns, version)
	}
	if got := labels["app.kubernetes.io/managed-by"]; got != "quayside" {
		t.Errorf("%s: managed by %v", name, got)
	}
	if labels["app.kubernetes.io/instance"] != nil {
		t.Errorf("%s: carries app.kubernetes.io/instance", name)
	}
	return ns + "/" + pkg
}

// valueAt returns the value at a path of keys, or nil.
func valueAt(v any, keys ...string) any {
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

// TestShuffledInputs checks that the result depends neither on the order of declarations nor on the names of
// their files.
func TestShuffledInputs(t *testing.T) {
	dir := quickstart(t)
	remove(t, dir, "quayside.lock", "rendered")
	var docs []string
	names, err := filepath.Glob(filepath.Join(dir, "subscriptions", "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		for _, doc := range strings.Split(read(t, "", name), "\n---\n") {
			docs = append([]string{doc}, docs...)
		}
	}
	remove(t, dir, "subscriptions")
	put(t, dir, "subscriptions/z/all.yaml", strings.Join(docs[2:], "\n---\n"))
	put(t, dir, "subscriptions/a.yaml", strings.Join(docs[:2], "\n---\n"))

	mustRun(t, dir, "resolve", "--offline")
	mustRun(t, dir, "render", "--offline")
	checkSameOutput(t, "../../../../examples/quickstart", dir)
}

// TestSecondRun resolves and renders again with an existing lock and tree.
func TestSecondRun(t *testing.T) {
	dir := quickstart(t)
	mustRun(t, dir, "resolve", "--offline")
	mustRun(t, dir, "render", "--offline")
	checkSameOutput(t, "../../../../examples/quickstart", dir)
}

// checkSameOutput compares the lock and the tree of two workspaces, byte for byte.
func checkSameOutput(t *testing.T, want, got string) {
	t.Helper()
	if d := cmp.Diff(read(t, want, "quayside.lock"), read(t, got, "quayside.lock")); d != "" {
		t.Errorf("quayside.lock (-want +got):\n%s", d)
	}
	if d := cmp.Diff(readTree(t, want, "rendered"), readTree(t, got, "rendered")); d != "" {
		t.Errorf("rendered (-want +got):\n%s", d)
	}
}

// readTree returns the files below a directory, by path.
func readTree(t *testing.T, dir, name string) map[string]string {
	t.Helper()
	tree, err := filetree.Read(os.DirFS(filepath.Join(dir, name)))
	check(t, err)
	files := map[string]string{}
	for path, data := range tree.All() {
		files[path] = string(data)
	}
	if len(files) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return files
}

func remove(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

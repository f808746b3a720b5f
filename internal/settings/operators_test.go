package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/profile"
)

// TestAddOperators adds operators to a cluster in files of several styles. The other text must not change.
func TestAddOperators(t *testing.T) {
	const head = "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n"
	for name, tc := range map[string]struct{ text, want string }{
		"ok/no spec":        {"", "+spec:\n+  clusters:\n+  - name: prod\n+    operators: [\"a/*\", b/c]\n"},
		"ok/no clusters":    {"spec:\n    profile: flux # tool\n    # more\n", "spec:\n    profile: flux # tool\n    # more\n+    clusters:\n+    - name: prod\n+      operators: [\"a/*\", b/c]\n"},
		"ok/not last":       {"spec:\n  profile: flux\n\nmetadata: {name: x}\n", "spec:\n  profile: flux\n+  clusters:\n+  - name: prod\n+    operators: [\"a/*\", b/c]\n\nmetadata: {name: x}\n"},
		"ok/name alone":     {"spec:\n  clusters:\n  - name: prod # ours\n  - name: test\n", "spec:\n  clusters:\n  - name: prod # ours\n+    operators: [\"a/*\", b/c]\n  - name: test\n"},
		"ok/later name":     {"spec:\n  clusters:\n  - kubernetesVersion: \"1.34\"\n    name: 'prod'\n", "spec:\n  clusters:\n  - kubernetesVersion: \"1.34\"\n    name: 'prod'\n+    operators: [\"a/*\", b/c]\n"},
		"ok/flow":           {"spec:\n  clusters: [{name: test}, {name: prod}] # all\n", "spec:\n  clusters: [{name: test}, {name: prod, operators: [\"a/*\", b/c]}] # all\n"},
		"ok/flow list":      {"spec:\n  clusters:\n  - {name: prod, operators: [\"x/*\"]}\n", "spec:\n  clusters:\n  - {name: prod, operators: [\"x/*\", \"a/*\", b/c]}\n"},
		"ok/block list":     {"spec:\n  clusters:\n  - name: prod\n    operators:\n    - x/y # first\n    config: {}\n", "spec:\n  clusters:\n  - name: prod\n    operators:\n    - x/y # first\n+    - \"a/*\"\n+    - b/c\n    config: {}\n"},
		"error/flow spec":   {"spec: {profile: flux}\n", ""},
		"error/other names": {"spec:\n  clusters: [{name: test}]\n", ""},
		"error/empty list":  {"spec:\n  clusters:\n  - name: prod\n    operators: []\n", ""},
		"error/anchor":      {"spec:\n  clusters:\n  - name: test\n    operators: &all [x/y]\n  - name: prod\n    operators: *all\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := AddOperators([]byte(head+tc.text), "prod", []string{"a/*", "b/c"})
			if (err == nil) != strings.HasPrefix(name, "ok/") {
				t.Fatalf("%v", err)
			}
			want := strings.ReplaceAll("\n"+head+tc.want, "\n+", "\n")[1:]
			if err == nil && string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if err != nil && !strings.Contains(err.Error(), "quayside.yaml") {
				t.Errorf("%v", err)
			}
		})
	}
	if got, err := AddOperators(Draft{}.Text(), "prod", []string{"a/*"}); err != nil || !strings.HasSuffix(string(got), "\n  clusters:\n  - name: prod\n    operators: [\"a/*\"]\n") {
		t.Errorf("%v\n%s", err, got)
	}
}

// FuzzAddOperators checks that the result is a valid file with the added operators, and that no text was removed.
func FuzzAddOperators(f *testing.F) {
	for _, text := range []string{
		"", "spec: {}\n", "spec:\n  clusters: []\n", "spec:\n  clusters:\n  - name: prod\n    operators: []\n", "spec:\n  clusters: [{name: prod, operators: [x/y]}]\n",
		"spec:\n  clusters:\n  - name: \"prod\"\n    operators:\n    - 'x/y' # first\n", "spec:\n  clusters:\n  - operators: [\n      x/y]\n    name: >-\n      prod\n",
	} {
		f.Add(text, "prod", "a/*")
	}
	f.Fuzz(func(t *testing.T, text, cluster, pattern string) {
		const head = "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n"
		got, err := AddOperators([]byte(head+text), cluster, []string{pattern})
		if err != nil {
			return
		}
		w, err := Parse(FileName, got)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(w.Clusters, func(c profile.Cluster) bool { return c.Name == cluster })
		if i < 0 || !slices.Contains(w.Clusters[i].Operators, pattern) {
			t.Errorf("the cluster lacks the pattern:\n%s", got)
		}
		rest := string(got)
		for _, c := range text {
			_, after, found := strings.Cut(rest, string(c))
			if !found {
				t.Fatalf("%q was removed:\n%s", c, got)
			}
			rest = after
		}
	})
}

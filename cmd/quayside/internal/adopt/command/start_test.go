package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// TestSelectOperators selects operators of namespace a. OLM manages operators in namespaces a and b, and
// quayside manages c/z.
func TestSelectOperators(t *testing.T) {
	lock := lockfile.New([]lockfile.Pin{{Namespace: "a", Package: "x"}, {Namespace: "a", Package: "y"}, {Namespace: "b", Package: "x"}, {Namespace: "c", Package: "z"}})
	sub := func(ns, pkg string) string {
		return `{"kind": "Subscription", "apiVersion": "operators.coreos.com/v1alpha1", "metadata": {"name": "` + pkg + `", "namespace": "` + ns + `"}, "spec": {"name": "` + pkg + `"}}`
	}
	for name, tc := range map[string]struct {
		clusters string
		subs     []string
		names    []string
		want     []string // patterns to add
		has      []string // patterns of the cluster afterwards
	}{
		"no clusters":         {"", []string{sub("a", "x"), sub("b", "x")}, []string{"a/*"}, []string{"a/*", "c/z"}, []string{"a/*", "c/z"}},
		"no list":             {"clusters: [{name: prod}]", []string{sub("a", "x"), sub("b", "x")}, []string{"a/*"}, []string{"a/*", "c/z"}, []string{"a/*", "c/z"}},
		"no list, last":       {"clusters: [{name: prod}]", []string{sub("a", "x")}, []string{"a/*"}, nil, []string{"*"}},
		"no list, last, left": {"clusters: [{name: prod}]", []string{sub("a", "x"), sub("a", "y")}, []string{"a/x"}, []string{"a/x", "b/x", "c/z"}, []string{"a/x", "b/x", "c/z"}},
		"list":                {"clusters: [{name: prod, operators: [c/z]}]", []string{sub("a", "x"), sub("b", "x")}, []string{"a/*"}, []string{"a/*"}, []string{"c/z", "a/*"}},
		"list, done":          {"clusters: [{name: prod, operators: [c/z, a/x, \"a/*\"]}]", []string{sub("a", "x"), sub("b", "x")}, []string{"a/*"}, nil, []string{"c/z", "a/x", "a/*"}},
		"all":                 {"clusters: [{name: prod, operators: [\"*\"]}]", []string{sub("a", "x"), sub("b", "x")}, []string{"a/*"}, nil, []string{"*"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  profile: flux\n  " + tc.clusters + "\n")
			current, err := settings.Parse(settings.FileName, config)
			if err != nil {
				t.Fatal(err)
			}
			snap, err := snapshot.Read("dump", strings.NewReader(`{"kind": "List", "apiVersion": "v1", "items": [`+strings.Join(tc.subs, ",")+`]}`), snapshot.Selection{})
			if err != nil {
				t.Fatal(err)
			}
			r := &preparation{cluster: "prod"}
			w, err := r.selectOperators(config, current, lock, snap, tc.names)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, r.patterns); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tc.has, w.Clusters[0].Operators); d != "" || (r.settings != nil) != (tc.want != nil) {
				t.Errorf("%s\n%s", d, r.settings)
			}
			if after, err := settings.Parse(settings.FileName, r.settings); r.settings != nil && (err != nil || !slices.Equal(after.Clusters[0].Operators, tc.has)) {
				t.Errorf("%v\n%s", err, r.settings)
			}
		})
	}
}

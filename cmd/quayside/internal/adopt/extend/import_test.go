package extend_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/extend"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
)

type fields = map[string]any

// newCatalog returns a catalog of packages with versions 1, 2 and 3 in a channel "stable", and version 1 in a
// channel "old".
//
//   - app requires the API of lib, and lib requires the API of base
//   - own can only watch its own namespace, and all can only watch all namespaces
//   - new needs Kubernetes 1.30
func newCatalog() string {
	gvk := func(kind string) fields { return fields{"group": "example.com", "version": "v1", "kind": kind} }
	var out strings.Builder
	put := func(o fields) {
		text, _ := json.Marshal(o)
		fmt.Fprintf(&out, "%s\n", text)
	}
	for _, p := range []struct{ name, requires, modes, kubernetes string }{
		{name: "base"},
		{name: "lib", requires: "Base"},
		{name: "app", requires: "Lib"},
		{name: "own", modes: "OwnNamespace"},
		{name: "all", modes: "AllNamespaces"},
		{name: "new", kubernetes: "1.30.0"},
	} {
		put(fields{"schema": "olm.package", "name": p.name, "defaultChannel": "stable"})
		put(fields{"schema": "olm.channel", "package": p.name, "name": "old", "entries": []fields{{"name": p.name + ".v1"}}})
		put(fields{"schema": "olm.channel", "package": p.name, "name": "stable", "entries": []fields{
			{"name": p.name + ".v1"}, {"name": p.name + ".v2", "replaces": p.name + ".v1"}, {"name": p.name + ".v3", "replaces": p.name + ".v2"},
		}})
		var modes []fields
		for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
			modes = append(modes, fields{"type": mode, "supported": p.modes == "" || p.modes == mode})
		}
		for v := range 3 {
			props := []fields{
				{"type": "olm.package", "value": fields{"packageName": p.name, "version": fmt.Sprintf("%d.0.0", v+1)}},
				{"type": "olm.gvk", "value": gvk(strings.ToUpper(p.name[:1]) + p.name[1:])},
				{"type": "olm.csv.metadata", "value": fields{"installModes": modes, "minKubeVersion": p.kubernetes}},
			}
			if p.requires != "" {
				props = append(props, fields{"type": "olm.gvk.required", "value": gvk(p.requires)})
			}
			put(fields{"schema": "olm.bundle", "package": p.name, "name": fmt.Sprintf("%s.v%d", p.name, v+1), "image": imageOf(p.name, v+1), "properties": props})
		}
	}
	return out.String()
}

func imageOf(pkg string, version int) string {
	return fmt.Sprintf("registry.example.com/%s@sha256:%064d", pkg, version)
}

// newGroup returns an OperatorGroup whose status has the watched namespaces, and the Namespace objects.
func newGroup(namespace string, watched ...string) []fields {
	spec, status := fields{}, fields{}
	if len(watched) > 0 {
		status["namespaces"] = watched
		if watched[0] != "" {
			spec["targetNamespaces"] = watched
		}
	}
	return []fields{{"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": fields{"namespace": namespace, "name": "group"}, "spec": spec, "status": status}}
}

// newSubscription returns a Subscription and the ClusterServiceVersion that it installed.
func newSubscription(namespace, pkg string, version int, channel string) []fields {
	csv := fmt.Sprintf("%s.v%d", pkg, version)
	return []fields{
		{
			"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": fields{"namespace": namespace, "name": pkg},
			"spec": fields{"name": pkg, "channel": channel, "source": "hub", "sourceNamespace": "olm"}, "status": fields{"installedCSV": csv},
		},
		{
			"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": fields{"namespace": namespace, "name": csv},
			"spec": fields{"version": fmt.Sprintf("%d.0.0", version)}, "status": fields{"phase": "Succeeded"},
		},
	}
}

// newInstallPlan returns the InstallPlan that fetched a bundle.
func newInstallPlan(namespace, csv, image string) []fields {
	return []fields{{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan", "metadata": fields{"namespace": namespace, "name": "install-" + csv},
		"status": fields{"phase": "Complete", "bundleLookups": []fields{{"identifier": csv, "path": image}}},
	}}
}

// newClusterExtension returns a ClusterExtension with an installed bundle.
func newClusterExtension(name, pkg string, version int, spec fields) []fields {
	spec["namespace"], spec["serviceAccount"] = name, fields{"name": "installer"}
	spec["source"] = fields{"sourceType": "Catalog", "catalog": fields{"packageName": pkg, "version": "<3"}}
	return []fields{{
		"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": fields{"name": name}, "spec": spec,
		"status": fields{"install": fields{"bundle": fields{"name": fmt.Sprintf("%s.v%d", pkg, version), "version": fmt.Sprintf("%d.0.0", version)}}},
	}}
}

const hub = "{name: hub, namespace: olm, source: \"dir:catalog\"}"

// newSettings returns a workspace with a quayside.yaml.
func newSettings(more string) map[string]string {
	return map[string]string{"quayside.yaml": "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec: {catalogs: [" + hub + "]" + more + "}\n"}
}

const otherGroup = `{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: another, namespace: a}, spec: {targetNamespaces: [a]}}
`

const ownGroup = `{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: own, namespace: a}, spec: {targetNamespaces: [a]}}
`

const declaredBase = `apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: base, namespace: a}
spec: {name: base, channel: stable, source: hub, sourceNamespace: olm}
`

// TestImport imports clusters. It checks the declarations, the pins, and the reasons why objects are skipped.
func TestImport(t *testing.T) {
	all := slices.Concat[[]fields]
	for _, c := range []struct {
		name    string
		cluster []fields
		files   map[string]string // of the workspace; nil: quayside.yaml with the catalog
		want    []string
	}{
		{name: "nothing", want: nil},
		{
			name: "not the newest", cluster: all(newGroup("a", "a"), newSubscription("a", "base", 2, "stable")),
			want: []string{"declares OperatorGroup a/group", "declares Subscription a/base", "pins a/base base.v2 in stable, watching a"},
		},
		{
			name: "no longer in its channel", cluster: all(newGroup("a", "a"), newSubscription("a", "base", 2, "old")),
			want: []string{"leaves OperatorGroup group: no operator is imported in its namespace", "leaves Subscription base: channel old of catalog olm/hub no longer has base.v2, and its image cannot be found in the cluster"},
		},
		{
			name: "no longer published", cluster: all(newGroup("a", "a"), newSubscription("a", "base", 7, "stable"), newInstallPlan("a", "base.v7", "not an image")),
			want: []string{"leaves OperatorGroup group: no operator is imported in its namespace", `leaves Subscription base: catalog olm/hub no longer has base.v7, and "not an image" from its InstallPlan is not an image`},
		},
		{
			name: "another image", cluster: all(newGroup("a", "a"), newSubscription("a", "base", 2, "stable"), newInstallPlan("a", "base.v2", imageOf("base", 9))),
			want: []string{
				"leaves OperatorGroup group: no operator is imported in its namespace",
				`leaves Subscription base: its bundle cannot be read: bundle "image:` + imageOf("base", 9) + `": image "` + imageOf("base", 9) + `": manifest ` + imageOf("base", 9)[len("registry.example.com/base@"):] + " is not in the cache, and --offline allows no download",
			},
		},
		{
			name: "all namespaces", cluster: all(newGroup("a", ""), newSubscription("a", "all", 1, "old")),
			want: []string{"declares OperatorGroup a/group", "declares Subscription a/all", "pins a/all all.v1 in old, watching all namespaces"},
		},
		{
			name: "nobody says what is watched", cluster: all(newGroup("a"), newSubscription("a", "base", 2, "stable")),
			want: []string{"declares OperatorGroup a/group", "declares Subscription a/base", "pins a/base base.v2 in stable, watching all namespaces"},
		},
		{
			name: "unsupported install mode", cluster: all(newGroup("a", "a", "b"), newSubscription("a", "own", 2, "stable")),
			want: []string{"leaves OperatorGroup group: no operator is imported in its namespace", "leaves Subscription own: own.v2 does not support install mode MultiNamespace, which is needed to watch a, b (supported: OwnNamespace)"},
		},
		{
			name: "dependencies", cluster: all(newGroup("a", "a"), newSubscription("a", "app", 1, "stable"), newSubscription("a", "lib", 2, "stable"), newSubscription("a", "base", 2, "stable")),
			want: []string{
				"declares OperatorGroup a/group", "declares Subscription a/app", "declares Subscription a/base", "declares Subscription a/lib",
				"pins a/app app.v1 in stable, watching a", "pins a/base base.v2 in stable, watching a", "pins a/lib lib.v2 in stable, watching a",
			},
		},
		{
			name: "a dependency is missing", cluster: all(newGroup("a", "a"), newSubscription("a", "app", 1, "stable"), newSubscription("a", "lib", 2, "stable"), newGroup("b", "b"), newSubscription("b", "base", 2, "stable")),
			want: []string{
				"declares OperatorGroup b/group", "declares Subscription b/base", "pins b/base base.v2 in stable, watching b",
				"leaves OperatorGroup group: no operator is imported in its namespace",
				"leaves Subscription app: the operator needs another operator, which is not installed: lib.v3 would be added in namespace a",
				"leaves Subscription lib: the operator needs another operator, which is not installed: base.v3 would be added in namespace a",
			},
		},
		{
			name: "two that overlap", cluster: all(newGroup("a", ""), newSubscription("a", "base", 2, "stable"), newGroup("b", ""), newSubscription("b", "base", 2, "stable")),
			want: []string{
				"declares OperatorGroup a/group", "declares Subscription a/base", "pins a/base base.v2 in stable, watching all namespaces",
				"leaves OperatorGroup group: no operator is imported in its namespace",
				"leaves Subscription base: it cannot be resolved: subscription a/base requests package base, channel stable, from catalog olm/hub: base.v2 and base.v3 match; " +
					"subscription b/base requests package base, channel stable, from catalog olm/hub: base.v2 and base.v3 match; operators in namespaces a and b would both provide the API example.com/v1 Base to the same watched namespaces",
			},
		},
		{
			name: "ruled out by the workspace", files: newSettings(`, kubernetesVersion: "1.20"`), cluster: all(newGroup("a", "a"), newSubscription("a", "new", 2, "stable")),
			want: []string{
				"declares OperatorGroup a/group", "declares Subscription a/new", "pins a/new new.v2 in stable, watching a",
				"warns a/new: new.v2 needs Kubernetes 1.30.0, the workspace has 1.20",
			},
		},
		{
			name: "extension", cluster: all(newClusterExtension("a", "base", 1, fields{}), newClusterExtension("b", "own", 2, fields{"config": fields{"configType": "Inline", "inline": fields{"watchNamespace": "b"}}}), newClusterExtension("c", "own", 3, fields{})),
			want: []string{
				"declares ClusterExtension a", "declares ClusterExtension b", "pins a/base base.v1, watching all namespaces", "pins b/own own.v2 in stable, watching b",
				`leaves ClusterExtension c: it cannot be resolved: subscription c/c: own 3.0.0 is installed, not in the range "<3", and no upgrade edge leads to it`,
			},
		},
		{
			name: "declared and locked otherwise", cluster: all(newGroup("a", "a"), newSubscription("a", "base", 2, "stable")),
			files: map[string]string{
				"quayside.yaml": newSettings("")["quayside.yaml"], "subscriptions/a.yaml": declaredBase,
				"quayside.lock": string(lockfile.Format(lockfile.New([]lockfile.Pin{{Namespace: "a", Package: "base", Version: "3.0.0", Bundle: "base.v3", RequestedBy: []string{"a/base"}}}))),
			},
			want: []string{
				"keeps Subscription a/base at subscriptions/a.yaml:1:1: base.v2 is installed, but the lock pins base.v3",
				"leaves OperatorGroup group: no operator is imported in its namespace",
			},
		},
		{
			name: "declared and not locked", cluster: all(newGroup("a", "a"), newSubscription("a", "base", 2, "stable")),
			files: map[string]string{"quayside.yaml": newSettings("")["quayside.yaml"], "subscriptions/a.yaml": declaredBase},
			want: []string{
				"keeps Subscription a/base at subscriptions/a.yaml:1:1: base.v2 of package base is installed, but not pinned: run 'quayside resolve', or remove the declaration and import again",
				"leaves OperatorGroup group: no operator is imported in its namespace",
			},
		},
		{
			name: "beside what is declared and not pinned", cluster: all(newGroup("b", "b"), newSubscription("b", "lib", 2, "stable"), newSubscription("b", "base", 1, "stable")),
			files: map[string]string{"quayside.yaml": newSettings("")["quayside.yaml"], "subscriptions/a.yaml": declaredBase + "---\n" + ownGroup},
			want: []string{
				"declares OperatorGroup b/group", "declares Subscription b/base", "declares Subscription b/lib",
				"pins a/base base.v3 in stable, watching a", "pins b/base base.v1 in stable, watching b", "pins b/lib lib.v2 in stable, watching b",
			},
		},
		{
			name: "into the only file", cluster: all(newGroup("a", "a"), newSubscription("a", "base", 2, "stable"), newSubscription("a", "lib", 2, "stable")),
			files: map[string]string{"quayside.yaml": newSettings(", declarations: [all.yaml]")["quayside.yaml"], "all.yaml": "# ours\n"},
			want: []string{
				"declares OperatorGroup a/group", "declares Subscription a/base", "declares Subscription a/lib",
				"pins a/base base.v2 in stable, watching a", "pins a/lib lib.v2 in stable, watching a",
			},
		},
		{
			name: "another OperatorGroup is declared", cluster: all(newGroup("a", "a"), newSubscription("a", "base", 2, "stable")),
			files: map[string]string{"quayside.yaml": newSettings("")["quayside.yaml"], "subscriptions/a.yaml": otherGroup},
			want: []string{
				"declares Subscription a/base", "pins a/base base.v2 in stable, watching a",
				"keeps OperatorGroup a/group at subscriptions/a.yaml:1:1: the workspace already has OperatorGroup another in that namespace",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"catalog/catalog.json": newCatalog()}
			for name, text := range newSettings("") {
				files[name] = text
			}
			for name, text := range c.files {
				files[name] = text
			}
			for name, text := range files {
				check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
				check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
			check(t, os.MkdirAll(filepath.Join(dir, "subscriptions"), 0o755))
			e, r := importCluster(t, dir, c.cluster)
			if d := cmp.Diff(c.want, summarizeImport(e, r)); d != "" {
				t.Fatal(d)
			}
			for _, change := range r.Changes {
				if change.Operator != "" && change.Why == "" {
					t.Errorf("%s is pinned for no reason", change.Operator)
				}
			}
			if sum := r.Counts.Added + r.Counts.Unchanged + r.Counts.Conflicts + r.Counts.Skipped; sum != r.Counts.Found {
				t.Errorf("counts do not add up: %+v", r.Counts)
			}
			if e == nil {
				return
			}
			_, err := e.Write(t.Context(), false)
			check(t, err)
			if e, r := importCluster(t, dir, c.cluster); e != nil {
				t.Errorf("a second import writes %v", summarizeImport(e, r))
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func importCluster(t *testing.T, dir string, cluster []fields) (*edit.Edit, *extend.ImportReport) {
	t.Helper()
	var text strings.Builder
	for _, o := range cluster {
		check(t, json.NewEncoder(&text).Encode(o))
	}
	s, err := snapshot.Read("dump", strings.NewReader(text.String()), snapshot.Selection{})
	check(t, err)
	p, err := workspace.Open(workspace.Dir(dir), workspace.Env{Offline: true, Getenv: func(name string) string {
		return map[string]string{"HOME": dir, "XDG_CACHE_HOME": filepath.Join(dir, ".cache")}[name]
	}})
	check(t, err)
	e, r, err := extend.Import(t.Context(), p, extend.Read(s), nil, false)
	check(t, err)
	return e, r
}

// summarizeImport returns the result of an import, one fact per line.
func summarizeImport(e *edit.Edit, r *extend.ImportReport) []string {
	var out []string
	for _, f := range r.Files {
		for _, o := range f.Objects {
			out = append(out, "declares "+o)
		}
	}
	if e != nil {
		for _, p := range e.Resolution.Lock.Pins {
			text, watched := fmt.Sprintf("pins %s %s", p.Key(), p.Bundle), "all namespaces"
			if len(p.WatchNamespaces) > 0 {
				watched = strings.Join(p.WatchNamespaces, ", ")
			}
			if p.Channel != "" {
				text += " in " + p.Channel
			}
			out = append(out, text+", watching "+watched)
		}
	}
	for _, c := range r.Conflicts {
		out = append(out, fmt.Sprintf("keeps %s at %s: %s", c.Object, c.Position, c.Reason))
	}
	for _, l := range r.Skipped {
		out = append(out, fmt.Sprintf("leaves %s %s: %s", l.Kind, l.Name, l.Reason))
	}
	for _, w := range r.Warnings {
		if w.Code == "requirement" {
			out = append(out, "warns "+w.Msg)
		}
	}
	return out
}

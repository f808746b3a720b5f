package extend_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/extend"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

type declaredObject = map[string]any

const v0, og, v1 = "operators.coreos.com/v1alpha1", "operators.coreos.com/v1", "olm.operatorframework.io/v1"

// newSnapshotOf returns a snapshot of the objects.
func newSnapshotOf(t interface{ Fatal(args ...any) }, objects []k8s.Object) *snapshot.Snapshot {
	var text bytes.Buffer
	for _, o := range objects {
		if err := json.NewEncoder(&text).Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	s, err := snapshot.Read("dump", &text, snapshot.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drawCluster draws objects of a cluster. Some of them are inconsistent.
func drawCluster(t *rapid.T) []k8s.Object {
	var out []k8s.Object
	namespaces := []string{"a", "b", "kube-system"}
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	add := func(api, kind, namespace, name string, spec, status declaredObject) k8s.Object {
		o := k8s.New(api, kind, namespace, name)
		if spec != nil {
			o["spec"] = spec
		}
		if status != nil {
			o["status"] = status
		}
		out = append(out, o)
		return o
	}
	for _, ns := range namespaces {
		add("v1", "Namespace", "", ns, nil, nil)
		for i := range rapid.IntRange(0, 2).Draw(t, "groups") {
			add(og, "OperatorGroup", ns, fmt.Sprintf("og%d", i), declaredObject{"upgradeStrategy": "Default"}, declaredObject{"namespaces": []any{pick("target", "", "a", "b")}})
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "subscriptions") {
			status := declaredObject{"state": "AtLatestKnown"}
			if csv := pick("installed", "", "x.v1", "y.v1", "gone.v1"); csv != "" {
				status["installedCSV"] = csv
			}
			status["currentCSV"] = pick("current", "x.v1", "z.v1")
			add(v0, "Subscription", ns, fmt.Sprintf("s%d", i), declaredObject{"name": "x", "source": pick("source", "one", "two"), "sourceNamespace": "olm"}, status)
		}
		for _, name := range []string{"x.v1", "y.v1", "z.v1", "packageserver"} {
			switch pick("csv", "none", "original", "copy") {
			case "original":
				o := add(v0, "ClusterServiceVersion", ns, name, nil, declaredObject{"phase": pick("phase", "Succeeded", "Replacing", "")})
				k8s.Ensure(o, "metadata", "annotations")["olm.operatorGroup"] = pick("of", "og0", "og1")
			case "copy":
				k8s.Ensure(add(v0, "ClusterServiceVersion", ns, name, nil, nil), "metadata", "labels")["olm.copiedFrom"] = "b"
			}
		}
	}
	for _, name := range []string{"one", "two", "three"} {
		if spec := pick("catalog", "none", "image", "address"); spec != "none" {
			add(v0, "CatalogSource", "olm", name, declaredObject{"sourceType": "grpc", spec: "registry.example.com/" + name}, nil)
		}
	}
	if rapid.Bool().Draw(t, "v1") {
		add(v1, "ClusterCatalog", "", "one", declaredObject{"source": declaredObject{"type": "Image", "image": declaredObject{"ref": "registry.example.com/one"}}}, nil)
		add(v1, "ClusterExtension", "", "e", declaredObject{"namespace": "e", "source": declaredObject{"sourceType": "Catalog", "catalog": declaredObject{"packageName": "p"}}},
			rapid.SampledFrom([]declaredObject{nil, {"install": declaredObject{"bundle": declaredObject{"name": "p.v1", "version": "1.0.0"}}}}).Draw(t, "installed"))
	}
	return rapid.Permutation(out).Draw(t, "order")
}

// TestEveryInstallationIsReported checks that every object that describes an installation is either declared,
// or skipped with a reason. The declarations must be valid. The order of objects must have no effect.
func TestEveryInstallationIsReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawCluster(t)
		look := func(objects []k8s.Object) (*extend.Installations, []extend.Declaration, []string) {
			c := extend.Read(newSnapshotOf(t, objects))
			var ops []extend.Operator
			left := c.Skipped
			for i, op := range c.Operators {
				if i%3 == 1 {
					left = append(left, op.AsSkipped("for a reason"))
					continue
				}
				if op.Kind == "Subscription" {
					op.ByImage, op.Image = i%3 == 2, "registry.example.com/x@sha256:"+strings.Repeat("0", 64)
				}
				ops = append(ops, op)
			}
			declarations, others := c.Objects(ops, func(id catalog.ID) string {
				return map[string]string{"two": "quayside.yaml"}[id.Name]
			})
			var names []string
			for _, l := range append(left, others...) {
				if l.Reason == "" {
					t.Fatalf("%v is skipped without a reason", l)
				}
				names = append(names, k8s.Key{Kind: l.Kind, Namespace: l.Namespace, Name: l.Name}.String())
			}
			slices.Sort(names)
			return c, declarations, names
		}
		c, declarations, left := look(objects)
		seen := slices.Clone(left)
		for _, d := range declarations {
			if _, err := declare.Parse(d.File, yamlnode.Encode(d.Object)); err != nil {
				t.Fatalf("%v: %v", d.Object, err)
			}
			switch d.Object.Kind() {
			case "Namespace":
				if d.Object.Name() == "kube-system" {
					t.Fatal("a system namespace is declared")
				}
			default:
				o := d.Object
				seen = append(seen, k8s.Key{Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}.String())
			}
		}
		slices.Sort(seen)
		if len(slices.Compact(slices.Clone(seen))) != len(seen) || len(seen) != c.Total {
			t.Fatalf("%d of %d: %v", len(seen), c.Total, seen)
		}
		slices.Reverse(objects)
		_, again, leftAgain := look(objects)
		strip := func(ds []extend.Declaration) (out []k8s.Object) {
			for _, d := range ds {
				out = append(out, d.Object)
			}
			return out
		}
		if d := cmp.Diff(strip(declarations), strip(again)) + cmp.Diff(left, leftAgain); d != "" {
			t.Fatalf("in another order:\n%s", d)
		}
	})
}

// TestSelector checks that a selector is declared only if it selects exactly the namespaces in the status that
// OLM wrote.
func TestSelector(t *testing.T) {
	group := func(found ...string) []k8s.Object {
		ns := func(name string, labels map[string]string) k8s.Object {
			return k8s.Label(k8s.New("v1", "Namespace", "", name), labels)
		}
		g := k8s.New(og, "OperatorGroup", "a", "g")
		g["spec"] = declaredObject{"selector": declaredObject{"matchLabels": declaredObject{"team": "x"}}}
		g["status"] = declaredObject{"namespaces": k8s.Values(found...)}
		sub := k8s.New(v0, "Subscription", "a", "s")
		sub["spec"], sub["status"] = declaredObject{"name": "x", "source": "c", "sourceNamespace": "olm"}, declaredObject{"installedCSV": "x.v1"}
		return []k8s.Object{g, sub, k8s.New(v0, "ClusterServiceVersion", "a", "x.v1"), ns("a", nil), ns("t1", map[string]string{"team": "x"}), ns("t2", map[string]string{"team": "x"})}
	}
	for _, c := range []struct {
		name  string
		found []string
		spec  declaredObject
		files []string
	}{
		{"ok/selected", []string{"t2", "t1"}, declaredObject{"selector": declaredObject{"matchLabels": declaredObject{"team": "x"}}}, []string{"a", "t1", "t2"}},
		{"ok/other", []string{"t1"}, declaredObject{"targetNamespaces": []any{"t1"}}, []string{"a"}},
		{"ok/all", []string{""}, nil, []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := extend.Read(newSnapshotOf(t, group(c.found...)))
			declarations, _ := found.Objects(found.Operators, func(catalog.ID) string { return "" })
			var files []string
			for _, d := range declarations {
				switch d.Object.Kind() {
				case "Namespace":
					files = append(files, d.Object.Name())
				case "OperatorGroup":
					if diff := cmp.Diff(len(c.spec) > 0, len(k8s.Map(d.Object, "spec")) > 0) + cmp.Diff(c.spec, k8s.Map(d.Object, "spec")); diff != "" && c.spec != nil {
						t.Error(diff)
					}
				}
			}
			if d := cmp.Diff(c.files, files); d != "" {
				t.Error(d)
			}
		})
	}
}

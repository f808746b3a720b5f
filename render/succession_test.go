package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/testing/yamltest"
	"github.com/quayside/quayside/lockfile"
)

// newSuccessorBundle returns a bundle of package pkg with the CRD of the package named old.
func newSuccessorBundle(pkg string, files ...string) fstest.MapFS {
	b := newBundle(pkg, "2.0.0", "v1", files...)
	for _, name := range []string{"manifests/csv.yaml", "manifests/crd.yaml"} {
		b[name].Data = []byte(strings.ReplaceAll(string(b[name].Data), pkg+".io", "old.io"))
	}
	return b
}

// successionLocks returns three locks: before the replacement, with the successor and leftover objects, and
// with only the successor. The operators in needs require the operator other/base.
func successionLocks(bundles map[string]fstest.MapFS, old, follower string, needs ...string) [3]*lockfile.File {
	all := newLock(bundles, nil, nil)
	const base = "other/base"
	pin := func(name string) lockfile.Pin {
		ns, pkg, _ := strings.Cut(name, "/")
		i := slices.IndexFunc(all.Pins, func(p lockfile.Pin) bool { return p.Namespace == ns && p.Package == pkg })
		p := all.Pins[i]
		if slices.Contains(needs, name) {
			p.Requires = []lockfile.Requirement{{Pin: base, Requirement: "olm.package.required"}}
		}
		return p
	}
	before := lockfile.New([]lockfile.Pin{pin(old), pin(base)})
	after := lockfile.New([]lockfile.Pin{pin(follower), pin(base)})
	beside := lockfile.New(after.Pins)
	beside.Leaving = []lockfile.Leaving{{ReplacedBy: follower, Pin: pin(old)}}
	return [3]*lockfile.File{before, beside, after}
}

// TestSuccession replaces an operator by its successor, in the same or another namespace, with common objects
// and requirements. Between consecutive trees of the three, no object that is still needed may be deleted.
func TestSuccession(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		files := func(label string) []string {
			var out []string
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID).Draw(r, label) {
				out = append(out, fmt.Sprintf("{kind: ConfigMap, apiVersion: v1, metadata: {name: %s}, data: {of: %s}}", name, label),
					fmt.Sprintf("{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: %s}, value: %d}", name, len(label)))
			}
			return out
		}
		homes := []string{"ops", "elsewhere"}
		old, follower := "ops/old", rapid.SampledFrom(homes).Draw(r, "home")+"/new"
		bundles := map[string]fstest.MapFS{
			old: newBundle("old", "1.0.0", "v1", files("old")...), follower: newSuccessorBundle("new", files("new")...), "other/base": newBundle("base", "1.0.0", "v1"),
		}
		if rapid.Bool().Draw(r, "deployment of its own") {
			b := bundles[old]["manifests/csv.yaml"]
			b.Data = []byte(strings.ReplaceAll(string(b.Data), "{name: d,", "{name: d-old,"))
		}
		locks := successionLocks(bundles, old, follower, rapid.SliceOfDistinct(rapid.SampledFrom([]string{old, follower}), rapid.ID).Draw(r, "needs")...)
		opt := engineOptions(rapid.SampledFrom([]profile.Name{profile.ArgoCD, profile.Flux}).Draw(r, "profile"))
		if rapid.Bool().Draw(r, "all as one") {
			opt = asOneUnit(opt)
		}
		var trees [3]map[Key]Object
		for i, lock := range locks {
			res, err := All(lock, opt, openBundles(bundles))
			if err != nil {
				r.Fatal(err)
			}
			trees[i] = map[Key]Object{}
			for _, o := range res.Objects {
				trees[i][o.Object.Key()] = o.Object
			}
		}
		for _, fault := range slices.Concat(findLost(trees), findRecreated(trees[0], trees[1]), findRecreated(trees[1], trees[2]), findBothRunning(trees[1], opt)) {
			r.Error(fault)
		}
	})
}

// findLost returns errors about objects that are missing in the second tree, and CRDs that are missing in the third.
func findLost(trees [3]map[Key]Object) []string {
	var out []string
	for key, o := range trees[0] {
		_, beside := trees[1][key]
		_, after := trees[2][key]
		switch {
		case k8s.IsCRD(o) && !(beside && after):
			out = append(out, fmt.Sprintf("definition %s goes", key))
		case !beside:
			out = append(out, fmt.Sprintf("%s goes before its operator's follower was seen to run", key))
		}
	}
	return out
}

// findRecreated returns errors about objects that Flux would delete and recreate, because they move to a later
// stage and have no annotation that prevents pruning.
func findRecreated(before, after map[Key]Object) []string {
	stage := func(o Object) int {
		return slices.Index([]string{"first", "", "last"}, k8s.Text(o, "metadata", "annotations", "quayside.dev/stage"))
	}
	var out []string
	for key, o := range before {
		now, stays := after[key]
		kept := k8s.Text(o, "metadata", "annotations", "kustomize.toolkit.fluxcd.io/prune") == "disabled"
		if stays && stage(now) > stage(o) && !kept {
			out = append(out, fmt.Sprintf("%s is applied in a later stage than before, and deleted first", key))
		}
	}
	return out
}

// findBothRunning returns errors about workloads of the replaced operator that still run, or that stop only
// after the successor starts. With Flux and a Kustomization for each piece, it does not check the order,
// because a single apply stops the replaced operator and starts the successor.
func findBothRunning(tree map[Key]Object, opt Options) []string {
	ordered := opt.Profile != profile.Flux || opt.GitOps.Granularity == profile.PerCluster
	var out []string
	for key, o := range tree {
		if key.Kind != "Deployment" || k8s.Text(o, "metadata", "labels", k8s.LabelPackage) != "old" {
			continue
		}
		if k8s.At(o, "spec", "replicas") != int64(0) {
			out = append(out, fmt.Sprintf("%s still runs", key))
		}
		wave, err := strconv.Atoi(k8s.Text(o, "metadata", "annotations", "argocd.argoproj.io/sync-wave"))
		if first := k8s.Text(o, "metadata", "annotations", "quayside.dev/stage") == "first"; ordered && !first && (err != nil || wave >= 0) {
			out = append(out, fmt.Sprintf("%s does not stop before its successor starts", key))
		}
	}
	return out
}

// object decodes one object.
func object(t *testing.T, text string) Object {
	t.Helper()
	v, err := yamltest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Object(v.(map[string]any))
}

// TestLeftoversAreStopped checks how leftover objects of each kind are stopped or removed.
func TestLeftoversAreStopped(t *testing.T) {
	works := []string{
		"{kind: ValidatingWebhookConfiguration, apiVersion: admissionregistration.k8s.io/v1, metadata: {name: v}, webhooks: [{name: a.b.c, failurePolicy: Fail}, {name: d.e.f}]}",
		"{kind: HorizontalPodAutoscaler, apiVersion: autoscaling/v2, metadata: {name: h}, spec: {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: d-old}}}",
		"{kind: CronJob, apiVersion: batch/v1, metadata: {name: c}, spec: {schedule: '* * * * *'}}",
		"{kind: APIService, apiVersion: apiregistration.k8s.io/v1, metadata: {name: v1.x.io}, spec: {group: x.io, version: v1, groupPriorityMinimum: 1, versionPriority: 1}}",
		"{kind: Secret, apiVersion: v1, metadata: {name: s}}",
	}
	tree := &tree{replaced: []operator{{successor: "ops/new", pin: lockfile.Pin{Namespace: "ops", Package: "old"}}}}
	for _, text := range works {
		tree.replaced[0].objects = append(tree.replaced[0].objects, object(t, text))
	}
	tree.replaced[0].objects = append(tree.replaced[0].objects, object(t, "{kind: Deployment, apiVersion: apps/v1, metadata: {name: d}, spec: {replicas: 3}}"))
	if err := tree.reduceLeftovers(); err != nil {
		t.Fatal(err)
	}
	got := map[string]Object{}
	for _, o := range tree.replaced[0].objects {
		got[o.Kind()] = o
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"Deployment", "Secret", "ValidatingWebhookConfiguration"}) {
		t.Errorf("remaining objects: %v", names)
	}
	if n := k8s.At(got["Deployment"], "spec", "replicas"); n != int64(0) {
		t.Errorf("%v replicas", n)
	}
	for _, w := range k8s.Items(got["ValidatingWebhookConfiguration"], "webhooks") {
		if w["failurePolicy"] != "Ignore" {
			t.Errorf("webhook %v", w)
		}
	}
}

// TestSuccessionRefused checks the errors of the two cases in which CRDs would be removed: a successor
// without the CRDs, and a cluster without the successor.
func TestSuccessionRefused(t *testing.T) {
	bundles := map[string]fstest.MapFS{"ops/old": newBundle("old", "1.0.0", "v1"), "ops/new": newSuccessorBundle("new"), "ops/stranger": newBundle("stranger", "1.0.0", "v1"), "other/base": newBundle("base", "1.0.0", "v1")}
	for _, c := range []struct {
		follower string
		clusters []profile.Cluster
		says     string
	}{
		{"ops/stranger", nil, "ops/stranger replaces ops/old (old.v1.0.0) but does not contain CustomResourceDefinition things.old.io"},
		{"ops/new", []profile.Cluster{{Name: "a"}, {Name: "b", Operators: []string{"ops/old"}}}, `cluster "b" would lose the CRDs of ops/old and all their custom resources, because spec.clusters does not give it the successor ops/new`},
		{"ops/new", []profile.Cluster{{Name: "a"}, {Name: "b", Operators: []string{"other/*"}}}, ""},
	} {
		lock := successionLocks(bundles, "ops/old", c.follower)[1]
		_, err := All(lock, Options{Clusters: c.clusters}, openBundles(bundles))
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.follower, err, c.says)
		}
	}
}

// TestLeftoversOfClusters checks that a cluster has leftover objects only of operators that it had before, and
// that no directory is empty.
func TestLeftoversOfClusters(t *testing.T) {
	bundles := map[string]fstest.MapFS{
		"ops/old": newBundle("old", "1.0.0", "v1", "{kind: ConfigMap, apiVersion: v1, metadata: {name: a}}"), "ops/new": newSuccessorBundle("new"), "other/base": newBundle("base", "1.0.0", "v1"),
	}
	opt := Options{Clusters: []profile.Cluster{{Name: "all"}, {Name: "base", Operators: []string{"other/*"}}, {Name: "late", Operators: []string{"ops/new"}}}}
	res, err := All(successionLocks(bundles, "ops/old", "ops/new")[1], opt, openBundles(bundles))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"all": true, "base": false, "late": false} {
		got := slices.ContainsFunc(partsOf(t, res, nil, name).operators(), func(d document) bool {
			return k8s.Text(d.head, "metadata", "labels", k8s.LabelPackage) == "old"
		})
		if got != want {
			t.Errorf("cluster %s has leftover objects: %v, want %v", name, got, want)
		}
	}
	if in, err := res.Installations("all"); err != nil || slices.ContainsFunc(in, func(i Installation) bool { return i.Spec.Package == "old" }) {
		t.Errorf("an Installation expects leftover objects: %v", err)
	}
}

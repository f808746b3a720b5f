package run_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// chart is a Helm release in a fake cluster, and the tree that replaces the release.
type chart struct {
	cluster *runtest.Cluster
	tree    []render.Rendered
	pin     lockfile.Pin
	storage string // namespace of the release's records

	values   map[string]any
	manifest string
	hooks    []any
}

// installChart returns a cluster with a Helm release that has two revisions. If flux is true, a HelmRelease in
// another namespace manages the release.
func installChart(t testing.TB, flux bool) *chart {
	t.Helper()
	c := &chart{
		cluster: runtest.New(k8s.New("v1", "Namespace", "", "kube-system"), k8s.New("v1", "Namespace", "", "lights"), k8s.New("v1", "Namespace", "", "flux-system")),
		pin: lockfile.Pin{
			Namespace: "lights", Package: "lamp", Bundle: "lamp-1.0.0", Version: "1.0.0", Format: "helm", RequestedBy: []string{"lights/lamp"},
			Template: &lockfile.Template{Release: "lamp", Values: json.RawMessage(`{"replicas": 2}`)},
		},
		storage: "lights", values: map[string]any{"replicas": 2},
	}
	crd := k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "lamps.example.com")
	crd["spec"] = map[string]any{
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Lamp", "plural": "lamps"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
	}
	lamp := deployment("lights", "lamp", 2, map[string]any{k8s.LabelManagedBy: "Helm"}, "x")
	objects := []k8s.Object{
		crd, newUIDObject("apps/v1", "Deployment", "lights", "lamp", "", lamp), k8s.New("v1", "ServiceAccount", "lights", "lamp"),
		{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "lamp", "namespace": "lights"}, "stringData": map[string]any{"a": "b"}},
	}
	if flux {
		c.storage = "flux-system"
		owner := k8s.New("helm.toolkit.fluxcd.io/v2", "HelmRelease", "flux-system", "lamp")
		owner["spec"] = map[string]any{"targetNamespace": "lights"}
		c.cluster.Put(owner)
	}
	for _, o := range objects {
		o = k8s.Without(o, "metadata", "uid")
		installed := o
		if path := "operators/lights.lamp/" + o.Kind() + ".yaml"; k8s.IsCRD(o) {
			c.tree = append(c.tree, render.Rendered{Path: "crds/lamp/lamps.yaml", Object: ownObject(o)})
		} else {
			c.tree = append(c.tree, render.Rendered{Path: path, Object: ownObject(o)})
			text, err := json.Marshal(k8s.Without(o, "metadata", "namespace"))
			check(t, err)
			c.manifest += "---\n# Source: lamp/templates/x.yaml\n" + string(text) + "\n"
			installed = k8s.Label(o, map[string]string{k8s.LabelManagedBy: "Helm"})
			installed = k8s.With(installed, any(map[string]any{"meta.helm.sh/release-name": "lamp", "meta.helm.sh/release-namespace": "lights"}), "metadata", "annotations")
			if flux {
				installed = k8s.Label(installed, map[string]string{"helm.toolkit.fluxcd.io/name": "lamp", "helm.toolkit.fluxcd.io/namespace": "flux-system"})
			}
		}
		manager := "helm"
		if flux {
			manager = "helm-controller"
		}
		_, err := c.cluster.Apply(context.Background(), installed, manager, false, false)
		check(t, err)
	}
	c.manifest += "---\n# Source: lamp/templates/empty.yaml\n"
	c.cluster.Settle()
	c.record(t, 1, "superseded")
	c.record(t, 2, "deployed")
	return c
}

// ownObject returns an object with the labels of the tree.
func ownObject(o k8s.Object) k8s.Object {
	return k8s.Label(o, map[string]string{k8s.LabelManagedBy: k8s.Manager, k8s.LabelPackage: "lamp", k8s.LabelNamespace: "lights"})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// record adds a revision of the release to the cluster.
func (c *chart) record(t testing.TB, revision int, status string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"name": "lamp", "namespace": "lights", "version": revision, "info": map[string]any{"status": status},
		"chart": map[string]any{"metadata": map[string]any{"name": "lamp", "version": "1.0.0"}}, "config": c.values, "manifest": c.manifest, "hooks": c.hooks,
	})
	check(t, err)
	c.putRecord(t, revision, status, text)
}

func (c *chart) putRecord(t testing.TB, revision int, status string, text []byte) {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(text)
	check(t, err)
	check(t, w.Close())
	secret := k8s.New("v1", "Secret", c.storage, fmt.Sprintf("sh.helm.release.v1.lamp.v%d", revision))
	secret = k8s.Label(secret, map[string]string{"owner": "helm", "name": "lamp", "status": status, "version": fmt.Sprint(revision)})
	secret["type"] = "helm.sh/release.v1"
	secret["data"] = map[string]any{"release": base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(packed.Bytes())))}
	c.cluster.Put(secret)
}

// plan returns the plan for the cluster, and the inspected operator.
func (c *chart) plan(t testing.TB) (*plan.Plan, adopt.Operator) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": c.cluster.Objects()})
	check(t, err)
	seen, err := snapshot.Read("dump", bytes.NewReader(text), snapshot.Selection{ManagedFields: true, Releases: []string{"lamp"}})
	check(t, err)
	in := plan.Input{Snapshot: seen, Manager: "kustomize-controller", Rendered: c.tree, Lock: (&lockfile.File{}).With([]lockfile.Pin{c.pin})}
	in.Report = adopt.Inspect(adopt.Input{Snapshot: seen, Lock: in.Lock, Rendered: c.tree})
	p, err := plan.Make(in)
	check(t, err)
	check(t, p.CheckLimits())
	again, err := plan.Parse("plan.yaml", plan.Format(p))
	check(t, err)
	if diff := cmp.Diff(p, again); diff != "" {
		t.Errorf("the parsed plan differs:\n%s", diff)
	}
	if len(in.Report.Operators) != 1 {
		t.Fatalf("operators: %+v", in.Report.Operators)
	}
	return p, in.Report.Operators[0]
}

// scene returns the scene of a plan.
func (c *chart) scene(p *plan.Plan) *scene {
	s := &scene{cluster: c.cluster, plan: p, files: &runtest.Files{}, clock: &runtest.Clock{Cluster: c.cluster}}
	for _, r := range c.tree {
		s.rendered = append(s.rendered, r.Object)
	}
	return s
}

// TestRelease adopts an operator of Helm, and returns it to Helm. No pod may restart, no object may be
// recreated, and only Helm's records may be deleted. With flux, the HelmRelease must be suspended. The objects
// of the release must have no trace of Helm. The return must restore everything, including the content of the
// records.
func TestRelease(t *testing.T) {
	for _, flux := range []bool{false, true} {
		c := installChart(t, flux)
		before, uids := state(c.cluster), uidsOf(c.cluster)
		p, op := c.plan(t)
		if op.State != adopt.Adoptable || len(p.Operators) != 1 || p.Operators[0].Release != "lamp.v2" || op.Release.Chart != "lamp-1.0.0" {
			t.Fatalf("operator %+v, release %+v, skipped %+v", op, op.Release, p.Skipped)
		}
		s := c.scene(p)
		_, err := s.run(t, nil)
		check(t, err)
		after := uidsOf(c.cluster)
		for key, uid := range uids {
			if gone := snapshot.IsReleaseRecord(key); gone != (after[key] == "") || !gone && after[key] != uid {
				t.Errorf("flux %v: %s had the UID %s, now %q", flux, key, uid, after[key])
			}
		}
		if len(after) != len(uids)-2 {
			t.Errorf("flux %v: objects were added: %v", flux, slices.Collect(maps.Keys(after)))
		}
		owner := newRef("helm.toolkit.fluxcd.io/v2", "HelmRelease", "flux-system", "lamp")
		if flux && !k8s.True(c.cluster.Object(owner), "spec", "suspend") {
			t.Error("the HelmRelease is not suspended")
		}
		for _, r := range c.tree {
			live := c.cluster.Object(k8s.RefTo(r.Object))
			if k8s.Text(live, "metadata", "labels", k8s.LabelManagedBy) != k8s.Text(r.Object, "metadata", "labels", k8s.LabelManagedBy) || k8s.Text(live, "metadata", "annotations", "meta.helm.sh/release-name") != "" {
				t.Errorf("flux %v: %s: %v", flux, live.Key(), live["metadata"])
			}
			for _, e := range k8s.Items(live, "metadata", "managedFields") {
				if m := k8s.Text(e, "manager"); strings.HasPrefix(m, "helm") && !k8s.IsCRD(live) {
					t.Errorf("flux %v: %s still has fields of %s", flux, live.Key(), m)
				}
			}
		}

		s.revert(t, p)
		if diff := cmp.Diff(withoutUIDs(before), withoutUIDs(state(c.cluster))); diff != "" {
			t.Errorf("flux %v: the return leaves:\n%s", flux, diff)
		}
		for _, r := range c.tree {
			if live := c.cluster.Object(k8s.RefTo(r.Object)); live.Is("apps", "Deployment") && !strings.HasPrefix(k8s.Text(k8s.Items(live, "metadata", "managedFields")[0], "manager"), "helm") {
				t.Errorf("flux %v: Helm no longer owns its fields: %v", flux, k8s.At(live, "metadata", "managedFields"))
			}
		}
	}
}

func uidsOf(c *runtest.Cluster) map[k8s.Key]string {
	out := map[k8s.Key]string{}
	for _, o := range c.Objects() {
		out[o.Key()] = k8s.Text(o, "metadata", "uid")
	}
	return out
}

// withoutUIDs returns objects without empty metadata. For Helm's records, it also removes the UIDs, because a
// return creates the records again.
func withoutUIDs(objects []k8s.Object) []k8s.Object {
	var out []k8s.Object
	for _, o := range objects {
		if snapshot.IsReleaseRecord(o.Key()) {
			o = k8s.Without(o, "metadata", "uid")
		}
		for _, field := range []string{"labels", "annotations"} {
			if len(k8s.Map(o, "metadata", field)) == 0 {
				o = k8s.Without(o, "metadata", field)
			}
		}
		out = append(out, o)
	}
	return out
}

// TestReleaseStays checks the reasons why an operator stays with Helm. Each reason must contain a remedy.
func TestReleaseStays(t *testing.T) {
	lamp := newRef("apps/v1", "Deployment", "lights", "lamp")
	edit := func(path string, value any) func(testing.TB, *chart) {
		return func(_ testing.TB, c *chart) {
			c.cluster.Edit(lamp, func(o k8s.Object) { maps.Copy(o, k8s.With(o, value, strings.Split(path, ".")...)) })
		}
	}
	for name, test := range map[string]struct {
		change func(testing.TB, *chart)
		code   string
		says   string
		state  adopt.State
	}{
		"pending": {func(t testing.TB, c *chart) { c.record(t, 3, "pending-upgrade") }, "replacing", "lamp.v3 is pending-upgrade", adopt.MustWait},
		"failed":  {func(t testing.TB, c *chart) { c.record(t, 3, "failed") }, "release-not-deployed", "helm rollback", adopt.NeedsDecision},
		"version": {func(_ testing.TB, c *chart) { c.pin.Version = "1.1.0" }, "other-version", "Helm installed lamp-1.0.0", adopt.NeedsDecision},
		"drift":   {edit("spec.replicas", int64(5)), "unlike-release", "spec.replicas", adopt.NeedsDecision},
		"values": {func(t testing.TB, c *chart) {
			c.values = map[string]any{"replicas": 1}
			c.record(t, 2, "deployed")
			c.tree[1].Object = k8s.With(c.tree[1].Object, any("lamp:v2"), "spec", "template", "spec", "serviceAccountName")
		}, "other-values", "helm get values lamp --namespace lights", adopt.NeedsDecision},
		"secret": {func(_ testing.TB, c *chart) {
			c.tree[3].Object = k8s.With(c.tree[3].Object, any("c"), "stringData", "a")
		}, "other-secret", "Secret lights/lamp", adopt.NeedsDecision},
		"unknown": {func(t testing.TB, c *chart) {
			config := k8s.New("v1", "ConfigMap", "lights", "old")
			c.cluster.Put(config)
			c.manifest += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: old}\n"
			c.record(t, 2, "deployed")
		}, "unknown-object", "was installed by Helm, and the tree does not contain it", adopt.NeedsDecision},
		"bomb": {func(t testing.TB, c *chart) { c.putRecord(t, 2, "deployed", bytes.Repeat([]byte(" "), 33<<20)) }, "unreadable", "exceeds the limit", adopt.NeedsDecision},
		"text": {func(t testing.TB, c *chart) { c.putRecord(t, 2, "deployed", []byte("{")) }, "unreadable", "cannot be read", adopt.NeedsDecision},
		"redacted": {func(_ testing.TB, c *chart) {
			c.cluster.Edit(newRef("v1", "Secret", "lights", "sh.helm.release.v1.lamp.v2"), func(o k8s.Object) { delete(o, "data") })
		}, "unreadable", "kubectl get secret", adopt.NeedsDecision},
		"restart": {func(_ testing.TB, c *chart) {
			c.tree[1].Object = k8s.With(c.tree[1].Object, any("other"), "spec", "template", "spec", "serviceAccountName")
		}, "restart", "serviceAccountName", adopt.WithRestart},
	} {
		c := installChart(t, false)
		test.change(t, c)
		p, op := c.plan(t)
		i := slices.IndexFunc(op.Reasons, func(r adopt.Reason) bool { return r.Code == test.code && strings.Contains(r.Message, test.says) })
		if i < 0 || op.State != test.state || (len(p.Steps) > 0) != (test.state == adopt.WithRestart) {
			t.Errorf("%s: state %s, %d steps, reasons %+v", name, op.State, len(p.Steps), op.Reasons)
		}
	}
}

// TestReleaseOfOthers checks that a field set by others is kept. If only the values of the chart differ but the
// objects are equal, the operator must be adoptable. Hooks must be listed but not applied.
func TestReleaseOfOthers(t *testing.T) {
	c := installChart(t, false)
	c.values = map[string]any{"replicas": 2, "unused": true}
	c.hooks = []any{
		map[string]any{"events": []any{"pre-install"}, "manifest": `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "check"}}`},
		map[string]any{"events": []any{"test"}, "manifest": `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "smoke"}}`},
	}
	c.record(t, 2, "deployed")
	c.tree = append(c.tree, render.Rendered{Path: "operators/lights.lamp/job.yaml", Object: k8s.New("batch/v1", "Job", "lights", "check")})
	lamp := newRef("apps/v1", "Deployment", "lights", "lamp")
	c.cluster.Edit(lamp, func(o k8s.Object) {
		maps.Copy(o, k8s.With(o, any("2026-01-01T00:00:00Z"), "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"))
	})
	c.cluster.Settle()
	p, op := c.plan(t)
	if want := []string{"Job.batch lights/check"}; op.State != adopt.Adoptable || !slices.Equal(op.Release.Hooks, want) || len(p.Operators) != 1 || !slices.Equal(p.Operators[0].Hooks, want) {
		t.Fatalf("state %s, release %+v, reasons %+v", op.State, op.Release, op.Reasons)
	}
	if want := []adopt.Field{{Path: "unused", Kind: adopt.OnlyLive}}; !slices.Equal(op.Release.Values, want) {
		t.Errorf("values: %v", op.Release.Values)
	}
	uids := uidsOf(c.cluster)
	_, err := c.scene(p).run(t, nil)
	check(t, err)
	if after := uidsOf(c.cluster); len(after) != len(uids)-2 {
		t.Errorf("objects: %v", slices.Collect(maps.Keys(after)))
	}
	if k8s.Text(c.cluster.Object(lamp), "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt") == "" {
		t.Error("the annotation of 'kubectl rollout restart' was removed")
	}
}

// TestReleaseKilled interrupts a run at the request that deletes a record, and returns to Helm. The record that
// still exists must be kept, and the other record must be created again.
func TestReleaseKilled(t *testing.T) {
	c := installChart(t, true)
	p, _ := c.plan(t)
	before, s := state(c.cluster), c.scene(p)
	c.cluster.Before = func(call runtest.Call) error {
		if call.Verb == "delete" && strings.HasSuffix(call.Object.Name, ".v2") {
			return errors.New("killed")
		}
		return nil
	}
	if _, err := s.run(t, nil); err == nil {
		t.Fatal("the run succeeded")
	}
	c.cluster.Before = nil
	s.revert(t, p)
	if diff := cmp.Diff(withoutUIDs(before), withoutUIDs(state(c.cluster))); diff != "" {
		t.Errorf("the return leaves:\n%s", diff)
	}
}

// revert reverts a plan.
func (s *scene) revert(t testing.TB, p *plan.Plan) {
	t.Helper()
	j, err := run.OpenJournal(s.files, p)
	check(t, err)
	rev, log, err := j.PlanRevert(context.Background(), s.cluster, p)
	check(t, err)
	check(t, p.CheckRevert(rev.Plan))
	check(t, rev.Plan.CheckLimits())
	in := run.Input{Plan: rev.Plan, Rendered: slices.Collect(maps.Values(rev.Objects)), Cluster: s.cluster, Journal: log, Clock: s.clock, Prompter: &quiet{manual: true}}
	_, err = run.Run(context.Background(), in)
	check(t, err)
}

// TestNewRevision adds a revision of Helm during a run. The run must stop before its next change.
func TestNewRevision(t *testing.T) {
	c := installChart(t, false)
	p, _ := c.plan(t)
	s := c.scene(p)
	_, err := s.run(t, func(in *run.Input) { in.Only = 1 })
	check(t, err)
	c.record(t, 3, "pending-upgrade")
	if _, err = s.run(t, nil); err == nil || !strings.Contains(err.Error(), "sh.helm.release.v1.lamp.v3 is a new revision of Helm (pending-upgrade)") {
		t.Errorf("error: %v", err)
	}
	if c.cluster.Object(newRef("v1", "Secret", "lights", "sh.helm.release.v1.lamp.v1")) == nil {
		t.Error("a record was deleted")
	}
}

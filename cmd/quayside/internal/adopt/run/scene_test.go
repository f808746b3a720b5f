package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

const (
	olmV1alpha1 = "operators.coreos.com/v1alpha1"
	rbacV1      = "rbac.authorization.k8s.io/v1"
	cleanup     = "operators.coreos.com/csv-cleanup"
	csvName     = "etcd.v1.0.0"
)

// newUIDObject returns an object of a kind with additional fields.
func newUIDObject(apiVersion, kind, namespace, name, uid string, fields map[string]any) k8s.Object {
	o := k8s.New(apiVersion, kind, namespace, name)
	o = k8s.With(o, any(uid), "metadata", "uid")
	for k, v := range fields {
		if k == "metadata" {
			for f, w := range v.(map[string]any) {
				o = k8s.With(o, w, "metadata", f)
			}
			continue
		}
		o = k8s.With(o, v, k)
	}
	return o
}

func ownerReferences(name, uid string) []any {
	return []any{map[string]any{"apiVersion": olmV1alpha1, "kind": "ClusterServiceVersion", "name": name, "uid": uid, "controller": false, "blockOwnerDeletion": false}}
}

func deployment(namespace, name string, replicas int64, labels map[string]any, env string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec": map[string]any{
			"replicas": replicas,
			"selector": map[string]any{"matchLabels": map[string]any{"app": name}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": name}},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "main", "image": "example.com/" + namespace + "/" + name + ":v1",
					"env": []any{map[string]any{"name": "OPERATOR_CONDITION_NAME", "value": env}},
				}}},
			},
		},
	}
}

// byOLM returns managedFields in which OLM owns a label and the containers.
func byOLM(apiVersion string, fields map[string]any) []any {
	return []any{map[string]any{"manager": "olm", "operation": "Update", "apiVersion": apiVersion, "fieldsType": "FieldsV1", "fieldsV1": fields, "time": "2026-01-01T00:00:00Z"}}
}

func ownedFields(below ...string) map[string]any {
	out := map[string]any{}
	for i := len(below) - 1; i >= 0; i-- {
		out = map[string]any{"f:" + below[i]: out}
	}
	return out
}

// component is OLM's component label of the operator.
const component = "operators.coreos.com/etcd.ops"

// scene is a cluster in which OLM installed an operator. The operator watches two namespaces. scene includes
// the plan for adopting the operator, and the rendered lock.
type scene struct {
	cluster  *runtest.Cluster
	plan     *plan.Plan
	rendered []k8s.Object
	files    *runtest.Files
	clock    *runtest.Clock
}

func newScene(t testing.TB) *scene {
	t.Helper()
	role := map[string]any{"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}}
	binding := func(role string) map[string]any {
		return map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "etcd", "namespace": "ops"}},
		}
	}
	with := func(fields, meta map[string]any) map[string]any {
		return k8s.With(fields, any(meta), "metadata")
	}
	owned := map[string]any{"ownerReferences": ownerReferences(csvName, "u-csv"), "labels": map[string]any{"olm.managed": "true", component: ""}}
	ownedByCopy := map[string]any{"ownerReferences": ownerReferences(csvName, "u-copy"), "labels": map[string]any{"olm.copiedFrom": "ops"}}
	live := deployment("ops", "etcd", 1, map[string]any{"olm.managed": "true", "app": "etcd"}, csvName)
	live["metadata"].(map[string]any)["ownerReferences"] = ownerReferences(csvName, "u-csv")
	fields := ownedFields("metadata", "labels", "olm.managed")
	fields["f:spec"] = map[string]any{"f:template": map[string]any{"f:spec": map[string]any{"f:containers": map[string]any{`k:{"name":"main"}`: map[string]any{
		".": map[string]any{}, "f:name": map[string]any{}, "f:image": map[string]any{},
	}}}}}
	live["metadata"].(map[string]any)["managedFields"] = byOLM("apps/v1", fields)

	c := runtest.New(
		newUIDObject("v1", "Namespace", "", "kube-system", "u-kube", nil),
		newUIDObject("v1", "Namespace", "", "olm", "u-olm", nil),
		newUIDObject("v1", "Namespace", "", "ops", "u-ops", nil),
		newUIDObject("v1", "Namespace", "", "team-a", "u-team", nil),
		newUIDObject("apps/v1", "Deployment", "olm", "olm-operator", "u-oo", deployment("olm", "olm-operator", 1, nil, "")),
		newUIDObject("apps/v1", "Deployment", "olm", "catalog-operator", "u-co", deployment("olm", "catalog-operator", 1, nil, "")),
		newUIDObject(olmV1alpha1, "Subscription", "ops", "etcd", "u-sub", map[string]any{"spec": map[string]any{"name": "etcd", "channel": "stable"}}),
		newUIDObject(olmV1alpha1, "ClusterServiceVersion", "ops", csvName, "u-csv", map[string]any{
			"metadata": map[string]any{"finalizers": []any{cleanup}, "annotations": map[string]any{"olm.operatorGroup": "og"}},
			"status":   map[string]any{"phase": "Succeeded"},
		}),
		newUIDObject(olmV1alpha1, "ClusterServiceVersion", "team-a", csvName, "u-copy", map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"olm.copiedFrom": "ops"}},
			"status":   map[string]any{"phase": "Succeeded", "reason": "Copied"},
		}),
		newUIDObject("v1", "ServiceAccount", "ops", "etcd", "u-sa", with(nil, owned)),
		newUIDObject("apps/v1", "Deployment", "ops", "etcd", "u-deploy", live),
		newUIDObject(rbacV1, "Role", "team-a", "olm-etcd", "u-role", with(role, ownedByCopy)),
		newUIDObject(rbacV1, "RoleBinding", "team-a", "olm-etcd", "u-binding", with(binding("olm-etcd"), ownedByCopy)),
		newUIDObject(rbacV1, "ClusterRole", "", "olm-etcd-cluster", "u-cr", with(role, map[string]any{"labels": map[string]any{
			"olm.owner": csvName, "olm.owner.namespace": "ops", "olm.owner.kind": "ClusterServiceVersion",
		}})),
	)
	c.Put(newUIDObject("apiregistration.k8s.io/v1", "APIService", "", "v1.etcd.example.com", "u-api", map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"olm.managed": "true", "olm.owner": csvName, "olm.owner.namespace": "ops", "olm.owner.kind": "ClusterServiceVersion"}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "True"}}},
	}))
	c.OLM = true
	c.Settle()
	c.Events()
	s := &scene{cluster: c, files: &runtest.Files{}, clock: &runtest.Clock{Cluster: c}}
	s.rendered = []k8s.Object{
		newUIDObject(rbacV1, "Role", "team-a", "etcd", "", role),
		newUIDObject(rbacV1, "RoleBinding", "team-a", "etcd", "", binding("etcd")),
		newUIDObject("v1", "ServiceAccount", "ops", "etcd", "", nil),
		newUIDObject("apps/v1", "Deployment", "ops", "etcd", "", deployment("ops", "etcd", 1, map[string]any{"app": "etcd"}, csvName)),
	}
	for i, o := range s.rendered {
		s.rendered[i] = k8s.Without(o, "metadata", "uid")
	}
	s.plan = thePlan()
	s.record()
	return s
}

// journal returns the entries of the journal.
func (s *scene) journal(t *testing.T) []run.Entry {
	t.Helper()
	data, err := s.files.Read("log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []run.Entry
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var e run.Entry
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

// record writes the current state of the cluster into the plan.
func (s *scene) record() {
	sub, deploy := newRef(olmV1alpha1, "Subscription", "ops", "etcd"), newRef("apps/v1", "Deployment", "ops", "etcd")
	s.plan.State = []plan.State{
		{Object: deploy, Pods: plan.TemplateDigest(s.cluster.Object(deploy))}, {Object: sub, Spec: plan.SpecText(s.cluster.Object(sub))},
	}
}

func newRef(apiVersion, kind, namespace, name string) k8s.Ref {
	return k8s.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

func thePlan() *plan.Plan {
	oo, co := newRef("apps/v1", "Deployment", "olm", "olm-operator"), newRef("apps/v1", "Deployment", "olm", "catalog-operator")
	sub, csv, cp := newRef(olmV1alpha1, "Subscription", "ops", "etcd"), newRef(olmV1alpha1, "ClusterServiceVersion", "ops", csvName), newRef(olmV1alpha1, "ClusterServiceVersion", "team-a", csvName)
	role, bind := newRef(rbacV1, "Role", "team-a", "etcd"), newRef(rbacV1, "RoleBinding", "team-a", "etcd")
	oldRole, oldBind := newRef(rbacV1, "Role", "team-a", "olm-etcd"), newRef(rbacV1, "RoleBinding", "team-a", "olm-etcd")
	sa, deploy := newRef("v1", "ServiceAccount", "ops", "etcd"), newRef("apps/v1", "Deployment", "ops", "etcd")
	cr, api := newRef(rbacV1, "ClusterRole", "", "olm-etcd-cluster"), newRef("apiregistration.k8s.io/v1", "APIService", "", "v1.etcd.example.com")
	stopped := []plan.Check{{Check: plan.IsStopped}}[:1:1]
	kept := []plan.Check{{Check: plan.SameUID}, {Check: plan.Available}, {Check: plan.NoRestart}, {Check: plan.Permissions}}
	p := &plan.Plan{
		APIVersion: "quayside.dev/v1alpha1", Kind: "AdoptionPlan", ClusterUID: "u-kube", Mode: plan.Stopped, Manager: "kustomize-controller",
		OLM:       []plan.Workload{{Object: oo, UID: "u-oo", Replicas: 1}, {Object: co, UID: "u-co", Replicas: 1}},
		Operators: []plan.Operator{{Namespace: "ops", Package: "etcd", CSV: csvName}},
		Steps: []plan.Step{
			{Name: plan.Guard, Title: "guard", Before: []plan.Check{{Check: plan.Succeeded}, {Check: plan.NoPlan}, {Check: plan.SameVersion}}, Actions: []plan.Action{
				{Do: plan.Annotate, Object: sub, UID: "u-sub", Set: map[string]string{"kustomize.toolkit.fluxcd.io/prune": "disabled"}},
			}},
			{Name: plan.Prepare, Title: "prepare", Actions: []plan.Action{{Do: plan.Apply, Object: role}, {Do: plan.Apply, Object: bind}}, After: []plan.Check{{Check: plan.Prepared}}},
			{Name: plan.Stop, Title: "stop OLM", Before: []plan.Check{{Check: plan.Succeeded}, {Check: plan.NoPlan}}, Actions: []plan.Action{
				{Do: plan.Scale, Object: co, UID: "u-co", From: 1, To: 0}, {Do: plan.Scale, Object: oo, UID: "u-oo", From: 1, To: 0},
			}, After: stopped},
			{Name: plan.Backup, Title: "back up", Before: append(stopped, plan.Check{Check: plan.SameVersion}), Actions: []plan.Action{
				{Do: plan.Save, Object: sub, UID: "u-sub"}, {Do: plan.Save, Object: csv, UID: "u-csv"}, {Do: plan.Save, Object: deploy, UID: "u-deploy"},
			}},
			{Name: plan.Detach, Title: "detach", Before: append(stopped, plan.Check{Check: plan.SameVersion}), Actions: []plan.Action{
				{Do: plan.Unlabel, Object: api, UID: "u-api", Unset: []string{"olm.owner", "olm.owner.kind", "olm.owner.namespace"}},
				{Do: plan.Orphan, Object: sub, UID: "u-sub"},
				{Do: plan.Unfinalize, Object: csv, UID: "u-csv", Finalizer: cleanup},
				{Do: plan.Orphan, Object: csv, UID: "u-csv"},
				{Do: plan.Orphan, Object: cp, UID: "u-copy"},
			}, After: append([]plan.Check{{Check: plan.Deleted}, {Check: plan.NoOwner}}, kept...)},
			{Name: plan.Tree, Title: "apply the tree", Before: stopped, Actions: []plan.Action{
				{Do: plan.Apply, Object: sa, UID: "u-sa", Force: true}, {Do: plan.Apply, Object: deploy, UID: "u-deploy", Force: true},
			}, After: kept},
			{Name: plan.Start, Title: "start OLM", Actions: []plan.Action{
				{Do: plan.Scale, Object: oo, UID: "u-oo", From: 0, To: 1}, {Do: plan.Scale, Object: co, UID: "u-co", From: 0, To: 1},
			}, After: append([]plan.Check{{Check: plan.IsReady, Objects: []k8s.Ref{oo, co}}}, kept...)},
			{Name: plan.Restart, Title: "restart OLM", Actions: []plan.Action{
				{Do: plan.RestartPods, Object: oo, UID: "u-oo"}, {Do: plan.RestartPods, Object: co, UID: "u-co"},
			}, After: append([]plan.Check{{Check: plan.IsReady, Objects: []k8s.Ref{oo, co}}}, kept...)},
			{Name: plan.Fields, Title: "take over fields", Actions: []plan.Action{
				{Do: plan.TransferFields, Object: deploy, UID: "u-deploy"}, {Do: plan.Apply, Object: deploy, UID: "u-deploy", Force: true},
			}, After: kept},
			{Name: plan.CleanUp, Title: "clean up", Before: []plan.Check{{Check: plan.Prepared}, {Check: plan.Permissions}}, Actions: []plan.Action{
				{Do: plan.Delete, Object: oldRole, UID: "u-role"},
				{Do: plan.Delete, Object: oldBind, UID: "u-binding"},
				{Do: plan.Delete, Object: cr, UID: "u-cr"},
				{Do: plan.Unlabel, Object: sa, UID: "u-sa", Unset: []string{component}},
			}, After: []plan.Check{{Check: plan.Deleted}}},
			{Name: plan.Certificates, Title: "certificates", Manual: "Upgrade before 2028-07-01."},
		},
	}
	for i := range p.Steps {
		p.Steps[i].Number = i + 1
		switch p.Steps[i].Name {
		case plan.Certificates, plan.Stop, plan.Start, plan.Restart:
		default:
			p.Steps[i].Namespace = "ops"
		}
	}
	return p
}

// quiet confirms every step except the one with the number in the field no.
type quiet struct {
	asked  []int
	manual bool
	no     int             // the step that is declined
	held   []plan.StepKind // the steps that kept OLM stopped
}

func (q *quiet) ConfirmStep(_ context.Context, s plan.Step) (bool, error) {
	q.asked = append(q.asked, s.Number)
	return s.Number != q.no, nil
}
func (q *quiet) ConfirmManualStep(context.Context, plan.Step) (bool, error) { return q.manual, nil }
func (*quiet) ReportAction(plan.Step, run.ActionResult)                     {}
func (*quiet) ReportWaiting(plan.Step, []verify.Finding)                    {}
func (*quiet) ReportProbing(time.Duration)                                  {}
func (q *quiet) ReportOLM(s plan.Step, started bool) {
	if !started {
		q.held = append(q.held, s.Name)
	}
}

// run starts or continues the plan.
func (s *scene) run(t testing.TB, change func(*run.Input)) (*run.Progress, error) {
	t.Helper()
	j, err := run.OpenJournal(s.files, s.plan)
	if err != nil {
		t.Fatal(err)
	}
	in := run.Input{Plan: s.plan, Rendered: s.rendered, Cluster: s.cluster, Journal: j, Clock: s.clock, Prompter: &quiet{}, CleanUp: true, SyncDelay: 15 * time.Second, MaxDowntime: time.Minute}
	if change != nil {
		change(&in)
	}
	return run.Run(context.Background(), in)
}

// state returns all objects of a cluster without versions, timestamps, and traces of OLM's restarts.
func state(c *runtest.Cluster) []k8s.Object {
	out := slices.DeleteFunc(slices.Clone(c.Objects()), func(o k8s.Object) bool { return o.Kind() == "ReplicaSet" && o.Namespace() == "olm" })
	for i, o := range out {
		if o.Namespace() == "olm" {
			o = k8s.Without(o, "spec", "template", "metadata", "annotations")
		}
		for _, field := range []string{"resourceVersion", "managedFields", "creationTimestamp", "generation"} {
			o = k8s.Without(o, "metadata", field)
		}
		out[i] = k8s.Without(o, "status", "observedGeneration")
	}
	return out
}

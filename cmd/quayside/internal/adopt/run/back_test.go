package run_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/internal/k8s"
)

// olmObject reports whether OLM creates the object again when it installs the operator.
func olmObject(o k8s.Object) bool {
	return o.Is("operators.coreos.com", "ClusterServiceVersion") || o.Is("operators.coreos.com", "Subscription") || o.Is("operators.coreos.com", "InstallPlan")
}

// comparableObjects returns the objects that must be unchanged after a revert, without owners and status. It
// omits the objects that OLM creates again.
func comparableObjects(c *runtest.Cluster) []k8s.Object {
	var out []k8s.Object
	for _, o := range state(c) {
		if olmObject(o) {
			continue
		}
		for _, field := range []string{"labels", "annotations"} {
			if len(k8s.Map(o, "metadata", field)) == 0 {
				o = k8s.Without(o, "metadata", field)
			}
		}
		out = append(out, k8s.Without(k8s.Without(o, "metadata", "ownerReferences"), "status"))
	}
	return out
}

// newBackScene returns a scene for reverts. The plan backs up all objects that it changes, and ends with a
// clean-up. OLM installs the operators of Subscriptions.
func newBackScene(t testing.TB) *scene {
	t.Helper()
	s := newScene(t)
	sub := newRef(olmV1alpha1, "Subscription", "ops", "etcd")
	s.cluster.Edit(sub, func(o k8s.Object) {
		o["spec"] = map[string]any{"name": "etcd", "channel": "stable"}
		o["status"] = map[string]any{"installedCSV": csvName}
	})
	s.record()
	api := newRef("apiregistration.k8s.io/v1", "APIService", "", "v1.etcd.example.com")
	s.rendered = append(s.rendered, k8s.New(api.APIVersion, api.Kind, "", api.Name))
	s.plan.Lock, s.plan.Tree = "sha256:"+strings.Repeat("0", 64), "sha256:"+strings.Repeat("0", 64)
	for i, step := range s.plan.Steps {
		switch step.Name {
		case plan.Guard:
			step.Actions = append([]plan.Action{{Do: plan.Save, Object: sub, UID: "u-sub"}, {Do: plan.Save, Object: newRef("v1", "Namespace", "", "ops"), UID: "u-ops"}}, step.Actions...)
			step.Actions = append(step.Actions, plan.Action{Do: plan.Annotate, Object: newRef("v1", "Namespace", "", "ops"), UID: "u-ops", Set: map[string]string{"kustomize.toolkit.fluxcd.io/prune": "disabled"}})
		case plan.Backup:
			step.Actions = append(slices.Clone(step.Actions[1:]), plan.Action{Do: plan.Save, Object: newRef("v1", "ServiceAccount", "ops", "etcd"), UID: "u-sa"}, plan.Action{Do: plan.Save, Object: api, UID: "u-api"})
		case plan.Tree:
			step.Actions = append(slices.Clone(step.Actions), plan.Action{Do: plan.Apply, Object: api, UID: "u-api", Force: true})
		default:
		}
		s.plan.Steps[i] = step
	}
	return s
}

// back starts or continues the revert.
func (s *scene) back(t testing.TB) (*run.Progress, error) {
	t.Helper()
	j, err := run.OpenJournal(s.files, s.plan)
	if err != nil {
		t.Fatal(err)
	}
	way, log, err := j.PlanRevert(context.Background(), s.cluster, s.plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.SaveRevert(way); err != nil {
		t.Fatal(err)
	}
	var objects []k8s.Object
	for _, o := range way.Objects {
		objects = append(objects, o)
	}
	return run.Run(context.Background(), run.Input{Plan: way.Plan, Rendered: objects, Cluster: s.cluster, Journal: log, Clock: s.clock, Prompter: &quiet{manual: true}})
}

// wasKilled reports whether do was killed.
func wasKilled(do func()) (dead bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			dead = true
		}
	}()
	do()
	return false
}

// TestRevertAfterKill kills a run before its clean-up at a random request or write. It then reverts the run,
// with further kills. The previous objects must be unchanged and have their UIDs. No object of the tree may
// remain. No pod may restart. The Subscription must have the running version.
func TestRevertAfterKill(t *testing.T) {
	whole := newBackScene(t)
	want := comparableObjects(whole.cluster)
	rapid.Check(t, func(rt *rapid.T) {
		s := newBackScene(t)
		last := rapid.IntRange(1, 9).Draw(rt, "last step")
		s.killAfter(rapid.IntRange(0, 60).Draw(rt, "requests"), rapid.Bool().Draw(rt, "taken"))
		wasKilled(func() {
			for n := 1; n <= last; n++ {
				if _, err := s.run(t, func(in *run.Input) { in.Only = n }); err != nil {
					rt.Fatal(err)
				}
			}
		})
		if rapid.Bool().Draw(rt, "time passes") {
			s.cluster.Settle()
		}
		for {
			s.killAfter(rapid.IntRange(0, 40).Draw(rt, "requests back"), rapid.Bool().Draw(rt, "taken back"))
			var err error
			if !wasKilled(func() { _, err = s.back(t) }) {
				if err != nil {
					rt.Fatal(err)
				}
				break
			}
		}
		s.cluster.Settle()
		if d := cmp.Diff(want, comparableObjects(s.cluster)); d != "" {
			rt.Fatalf("(-before +after):\n%s", d)
		}
		for _, o := range []k8s.Ref{newRef(olmV1alpha1, "Subscription", "ops", "etcd"), newRef(olmV1alpha1, "ClusterServiceVersion", "ops", csvName)} {
			if s.cluster.Object(o) == nil {
				rt.Fatalf("%s is missing", o)
			}
		}
		sub := s.cluster.Object(newRef(olmV1alpha1, "Subscription", "ops", "etcd"))
		if csv := k8s.Text(sub, "spec", "startingCSV"); k8s.Text(sub, "metadata", "uid") != "u-sub" && csv != csvName {
			rt.Fatalf("startingCSV is %q", csv)
		}
	})
}

// approver records the texts of manual steps, and confirms no step.
type approver struct {
	quiet
	texts []string
}

func (a *approver) ConfirmManualStep(_ context.Context, s plan.Step) (bool, error) {
	a.texts = append(a.texts, s.Manual)
	return false, nil
}

// TestApproveNamesInstallPlan checks that the manual step for approval names only the InstallPlan of
// the running version.
func TestApproveNamesInstallPlan(t *testing.T) {
	s := newBackScene(t)
	for name, csv := range map[string]string{"install-now": csvName, "install-next": "etcd.v2.0.0"} {
		o := k8s.New(olmV1alpha1, "InstallPlan", "ops", name)
		o["spec"], o["status"] = map[string]any{"clusterServiceVersionNames": k8s.Values(csv)}, map[string]any{"phase": "RequiresApproval"}
		s.cluster.Put(o)
	}
	way := *s.plan
	csv := newRef(olmV1alpha1, "ClusterServiceVersion", "ops", csvName)
	way.Steps = []plan.Step{{Number: 1, Name: plan.Approve, Namespace: "ops", Title: "approve", Manual: "Approve it.", After: []plan.Check{{Check: plan.Succeeded, Objects: []k8s.Ref{csv}}}}}
	s.plan = &way
	asked := &approver{}
	if _, err := s.run(t, func(in *run.Input) { in.Prompter = asked }); err == nil {
		t.Fatal("the step was not confirmed, but the run succeeded")
	}
	want := `Approve it. Now: kubectl patch installplan install-now -n ops --type merge -p '{"spec":{"approved":true}}'`
	if len(asked.texts) != 1 || asked.texts[0] != want {
		t.Errorf("got %q", asked.texts)
	}
}

// TestRevertRestoresFieldManagers reverts a run that stopped after it had transferred an object's fields and
// before it applied the object. OLM must manage its fields again.
func TestRevertRestoresFieldManagers(t *testing.T) {
	s := newBackScene(t)
	deploy := newRef("apps/v1", "Deployment", "ops", "etcd")
	if _, err := s.cluster.Apply(context.Background(), s.rendered[3], s.plan.Manager, true, false); err != nil {
		t.Fatal(err)
	}
	s.plan.Operators[0].Detached = true
	s.plan.Steps = []plan.Step{
		{Number: 1, Name: plan.Backup, Namespace: "ops", Title: "back up", Actions: []plan.Action{{Do: plan.Save, Object: deploy, UID: "u-deploy"}}},
		{Number: 2, Name: plan.Fields, Namespace: "ops", Title: "fields", Actions: []plan.Action{{Do: plan.TransferFields, Object: deploy, UID: "u-deploy"}}},
	}
	managers := func() (out []string) {
		for _, e := range k8s.Items(s.cluster.Object(deploy), "metadata", "managedFields") {
			out = append(out, k8s.Text(e, "manager"))
		}
		slices.Sort(out)
		return out
	}
	before := managers()
	if _, err := s.run(t, nil); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(managers(), "olm") {
		t.Error("OLM still manages fields")
	}
	if _, err := s.back(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, managers()); diff != "" {
		t.Error(diff)
	}
}

// replace replaces a text in a file. The file must contain the text.
func replace(t *testing.T, f *runtest.Files, name, old, now string) {
	t.Helper()
	data, err := f.Read(name)
	if err != nil || !strings.Contains(string(data), old) {
		t.Fatalf("%s has no %q: %v", name, old, err)
	}
	if err := f.Write(name, []byte(strings.ReplaceAll(string(data), old, now))); err != nil {
		t.Fatal(err)
	}
}

// TestForgedBackups alters and swaps backups, removes digests from the journal, and forges the plan for the
// revert. Each of these must be rejected before anything is restored.
func TestForgedBackups(t *testing.T) {
	s := newBackScene(t)
	for n := 1; n <= 6; n++ {
		if _, err := s.run(t, func(in *run.Input) { in.Only = n }); err != nil {
			t.Fatal(err)
		}
	}
	whole := s.files.Clone()
	open := func(t *testing.T) error {
		t.Helper()
		j, err := run.OpenJournal(s.files, s.plan)
		if err == nil {
			_, _, err = j.PlanRevert(context.Background(), s.cluster, s.plan)
		}
		return err
	}
	if err := open(t); err != nil {
		t.Fatal(err)
	}
	const deployment, account = "backup/deployment.apps/ops/etcd.json", "backup/serviceaccount/ops/etcd.json"
	for name, c := range map[string]struct {
		forge func(f *runtest.Files)
		want  string
	}{
		"altered": {func(f *runtest.Files) { replace(t, f, deployment, `"replicas": 1`, `"replicas": 9`) }, "the backup was altered"},
		"swapped": {func(f *runtest.Files) {
			data, err := f.Read(account)
			if err != nil || data == nil || f.Write(deployment, data) != nil {
				t.Fatal(err)
			}
		}, "the backup was altered"},
		"without digests":           {func(f *runtest.Files) { replace(t, f, "log.jsonl", `"digest":"`, `"other":"`) }, "the backup was altered"},
		"without the plan's digest": {func(f *runtest.Files) { replace(t, f, "log.jsonl", `"plan":"`, `"other":"`) }, "the journal belongs to another plan"},
	} {
		s.files = whole.Clone()
		c.forge(s.files)
		if err := open(t); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}

	s.files = whole.Clone()
	s.killAfter(3, true)
	if !wasKilled(func() { _, _ = s.back(t) }) {
		t.Fatal("the revert was not killed")
	}
	s.killAfter(1000, true)
	replace(t, s.files, "back/plan.yaml", "apps/v1 Deployment ops/etcd", "apps/v1 Deployment ops/other")
	// The journal of the revert contains the digest of the saved plan, so the test also forges the digest.
	text, _ := s.files.Read("back/plan.yaml")
	forged, err := plan.Parse("plan.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	log, _ := s.files.Read("back/log.jsonl")
	old := strings.Split(strings.SplitN(string(log), `"plan":"`, 2)[1], `"`)[0]
	replace(t, s.files, "back/log.jsonl", old, run.Digest(forged))
	if err := open(t); err == nil || !strings.Contains(err.Error(), "the plan has no action restore on apps/v1 Deployment ops/other") {
		t.Errorf("a forged revert plan: %v", err)
	}
}

// TestForgedPlan runs a forged plan that deletes a Namespace, with a matching journal. The run must reject the
// plan before its first action.
func TestForgedPlan(t *testing.T) {
	s := newScene(t)
	before := state(s.cluster)
	s.plan.Steps = append(s.plan.Steps, plan.Step{Number: len(s.plan.Steps) + 1, Name: plan.CleanUp, Namespace: "ops", Title: "clean up", Actions: []plan.Action{
		{Do: plan.Delete, Object: newRef("v1", "Namespace", "", "ops"), UID: "u-ops"},
	}})
	entries := `{"event":"opened","schema":2,"plan":"` + run.Digest(s.plan) + `"}` + "\n" + `{"event":"began","step":1}` + "\n"
	if err := s.files.Write("log.jsonl", []byte(entries)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.run(t, nil); err == nil || !strings.Contains(err.Error(), "delete v1 Namespace ops is refused") {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff(before, state(s.cluster)); d != "" {
		t.Errorf("the cluster was changed (-before +after):\n%s", d)
	}
}

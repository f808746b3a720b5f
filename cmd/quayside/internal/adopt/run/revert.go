package run

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// The names of the directory for the return to OLM, and of the plan file in it.
const (
	revertDir      = "back/"
	revertPlanName = "plan.yaml"
)

// subdirectory is a subdirectory of a journal's directory.
type subdirectory struct {
	Files
	dir string
}

func (b subdirectory) Read(name string) ([]byte, error)     { return b.Files.Read(b.dir + name) }
func (b subdirectory) Write(name string, data []byte) error { return b.Files.Write(b.dir+name, data) }

func (b subdirectory) Append(name string, data []byte) error {
	return b.Files.Append(b.dir+name, data)
}

// PlanRevert derives the plan for the return to OLM from the executed part of p, and opens the
// journal of the return. Once that journal has entries, PlanRevert uses the saved plan instead of
// the derived one. If the journal of p does not record the UID of a created object, because the
// response was lost, the UID is read from the cluster. PlanRevert writes nothing.
func (j *Journal) PlanRevert(ctx context.Context, c Client, p *plan.Plan) (*plan.Revert, *Journal, error) {
	in, err := j.executedActions(ctx, c, p)
	if err != nil {
		return nil, nil, err
	}
	rev := plan.MakeRevert(*in)
	files := subdirectory{j.files, revertDir}
	begun, err := files.Read(logName)
	if err != nil {
		return nil, nil, err
	}
	if begun != nil {
		text, err := files.Read(revertPlanName)
		if err == nil {
			rev.Plan, err = plan.Parse(revertDir+revertPlanName, text)
		}
		if err == nil {
			err = p.CheckRevert(rev.Plan)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	log, err := OpenJournal(files, rev.Plan)
	return rev, log, err
}

// SaveRevert saves a plan to return to OLM before it is executed.
func (j *Journal) SaveRevert(rev *plan.Revert) error {
	return j.files.Write(revertDir+revertPlanName, plan.Format(rev.Plan))
}

// IsReverting reports whether the return to OLM has begun.
func (j *Journal) IsReverting() (bool, error) {
	data, err := j.files.Read(revertDir + logName)
	return data != nil, err
}

// executedActions returns the executed part of a plan, with the backups.
func (j *Journal) executedActions(ctx context.Context, c Client, p *plan.Plan) (*plan.RevertInput, error) {
	in := &plan.RevertInput{Plan: p, Before: map[k8s.Ref]k8s.Object{}, Stopped: len(j.Stopped(p)) > 0}
	for _, s := range p.Steps {
		for i, a := range s.Actions {
			before, err := j.Backup(a.Object)
			if err != nil {
				return nil, err
			}
			if before != nil {
				in.Before[a.Object] = before
			}
			first := j.lastEntry(s.Number, i+1, Intends)
			if first == nil {
				continue
			}
			d := plan.ExecutedAction{Step: s.Number, Action: i + 1}
			if a.Do == plan.Apply && first.UID == "" {
				if d.CreatedUID, err = j.createdUID(ctx, c, p, s.Number, i+1); err != nil {
					return nil, err
				}
			}
			in.Executed = append(in.Executed, d)
		}
	}
	return in, nil
}

// createdUID returns the UID of the object that an action created. If the journal does not record
// it, createdUID reads the live object, and returns "" unless the plan's manager applied it.
func (j *Journal) createdUID(ctx context.Context, c Client, p *plan.Plan, step, action int) (string, error) {
	if did := j.lastEntry(step, action, Did); did != nil {
		return did.UID, nil
	}
	live, err := c.Get(ctx, *j.lastEntry(step, action, Intends).Object)
	if err != nil || !plan.AppliedBy(live, p.Manager) {
		return "", err
	}
	return k8s.Text(live, "metadata", "uid"), nil
}

// approvalCommands returns a sentence with the commands that approve the InstallPlans of an Approve
// step: those that install only versions in its postconditions. OLM creates them within seconds.
// For other steps it returns "".
func (r *runner) approvalCommands(ctx context.Context, s plan.Step) (string, error) {
	if s.Name != plan.Approve {
		return "", nil
	}
	var versions, commands []string
	for _, c := range s.After {
		for _, ref := range c.Objects {
			versions = append(versions, ref.Name)
		}
	}
	for begun := r.Clock.Now(); r.Clock.Now().Sub(begun) <= defaultTimeout; {
		found, err := r.Cluster.List(ctx, k8s.OLMGroup+"/v1alpha1", "InstallPlan", s.Namespace, "")
		if err != nil {
			return "", err
		}
		for _, o := range found {
			names := k8s.Texts(o, "spec", "clusterServiceVersionNames")
			foreign := func(name string) bool { return !slices.Contains(versions, name) }
			if k8s.Text(o, "status", "phase") == "RequiresApproval" && len(names) > 0 && !slices.ContainsFunc(names, foreign) {
				commands = append(commands, "kubectl patch installplan "+o.Name()+" -n "+s.Namespace+` --type merge -p '{"spec":{"approved":true}}'`)
			}
		}
		if len(commands) > 0 {
			break
		}
		if err := r.Clock.Sleep(ctx, time.Second); err != nil {
			return "", err
		}
	}
	if len(commands) == 0 {
		return " None waits for approval: it is approved, or OLM has not created it yet.", nil
	}
	return " Now: " + strings.Join(commands, "; "), nil
}

// isCreated reports whether an earlier run created the object.
func isCreated(a *action, live k8s.Object) (bool, error) {
	switch {
	case a.rendered[a.Object.Key()] == nil:
		return false, a.changedf("has no backup: create it by hand")
	case live == nil || a.sent:
		return live != nil, nil
	}
	return false, a.changedf("was recreated, but not by this plan: stop whatever applies it, and delete it (with --cascade=orphan)")
}

func create(ctx context.Context, a *action, _ k8s.Object) (k8s.Object, error) {
	return a.Cluster.Create(ctx, a.rendered[a.Object.Key()], a.DryRun)
}

// isRestored reports whether an object has its earlier values, OLM's earlier field managers, and
// no field manager that the adoption added. A missing or recreated object counts as restored, because
// OLM recreates or changes it.
func isRestored(a *action, live k8s.Object) (bool, error) {
	before := a.rendered[a.Object.Key()]
	switch {
	case live == nil, a.UID != "" && k8s.Text(live, "metadata", "uid") != a.UID:
		return true, nil
	case before == nil:
		return false, a.changedf("has no backup: compare it with its bundle")
	}
	restored := k8s.Equal(a.restoredObject(live), live) && !plan.HasNewManager(live, before, a.writers()...) && !plan.HasLostOLMManager(live, before)
	return restored, a.checkSame(live)
}

// writers returns the field managers of the adoption. A restore removes the entries that they
// added to managedFields.
func (a *action) writers() []string { return []string{a.Plan.Manager, Manager} }

func (a *action) restoredObject(live k8s.Object) k8s.Object {
	return plan.RestoreValues(live, a.rendered[a.Object.Key()], a.writers()...)
}

// restore restores the earlier values of an object. A second patch then restores managedFields,
// because the first one makes this program the manager of the restored fields.
func restore(ctx context.Context, a *action, live k8s.Object) (k8s.Object, error) {
	if ops := replaceOperations(live, a.restoredObject(live)); len(ops) > 0 {
		var err error
		if live, err = a.Cluster.Patch(ctx, a.Object, cluster.Patch{JSON: append(testVersion(live), ops...)}, a.DryRun); err != nil || a.DryRun {
			return live, err
		}
	}
	managed := plan.RestoreManagedFields(live, a.rendered[a.Object.Key()], a.writers()...)
	if len(managed) == 0 {
		managed = []any{map[string]any{}} // the API server clears managedFields for this value
	}
	return a.Cluster.Patch(ctx, a.Object, cluster.Patch{JSON: append(testVersion(live), cluster.Operation{Op: "replace", Path: "/metadata/managedFields", Value: managed})}, a.DryRun)
}

// testVersion returns a JSON patch test that fails if the object has changed since it was read.
func testVersion(live k8s.Object) []cluster.Operation {
	return []cluster.Operation{{Op: "test", Path: "/metadata/resourceVersion", Value: k8s.Text(live, "metadata", "resourceVersion")}}
}

// replaceOperations returns a JSON patch that changes one object to another. Of the metadata, it
// changes only labels and annotations.
func replaceOperations(from, to k8s.Object) []cluster.Operation {
	ops := diffMembers("/", k8s.Without(from, "metadata"), k8s.Without(to, "metadata"))
	pick := func(o k8s.Object) map[string]any {
		out := map[string]any{}
		for _, key := range []string{"labels", "annotations"} {
			if v := k8s.At(o, "metadata", key); v != nil {
				out[key] = v
			}
		}
		return out
	}
	return append(ops, diffMembers("/metadata/", pick(from), pick(to))...)
}

func diffMembers(at string, from, to map[string]any) []cluster.Operation {
	var ops []cluster.Operation
	both := maps.Clone(from)
	maps.Copy(both, to)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		was, had := from[key]
		is, has := to[key]
		switch {
		case !has:
			ops = append(ops, cluster.Operation{Op: "remove", Path: at + k8s.EscapePointer(key)})
		case !had:
			ops = append(ops, cluster.Operation{Op: "add", Path: at + k8s.EscapePointer(key), Value: is})
		case !k8s.Equal(was, is):
			ops = append(ops, cluster.Operation{Op: "replace", Path: at + k8s.EscapePointer(key), Value: is})
		}
	}
	return ops
}

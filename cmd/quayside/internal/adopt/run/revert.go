package run

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
)

// Names of the journal's subdirectory for the return to OLM, and of the plan file in this subdirectory.
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

// PlanRevert returns the plan for returning to OLM, and the journal of the return. It makes the plan from the
// executed part of p. Once the return has begun, it uses the saved plan instead. If a response was lost, the
// journal of p lacks the UID of a created object, and PlanRevert reads the UID from the cluster. It writes
// nothing.
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

// SaveRevert saves the plan for returning to OLM. The caller must call it before executing the plan.
func (j *Journal) SaveRevert(rev *plan.Revert) error {
	return j.files.Write(revertDir+revertPlanName, plan.Format(rev.Plan))
}

// IsReverting reports whether the return to OLM has begun.
func (j *Journal) IsReverting() (bool, error) {
	data, err := j.files.Read(revertDir + logName)
	return data != nil, err
}

// executedActions returns the executed actions of a plan, with the backups of their objects.
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

// createdUID returns the UID of the object that an action created. If the journal lacks the UID, it reads the
// live object. If the plan's manager has not applied that object, it returns "".
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

// approvalCommands returns a sentence with the commands that approve InstallPlans, for a step of the kind
// Approve. An InstallPlan is listed if the step's postconditions contain all versions that it installs.
// approvalCommands waits up to 15 seconds for such InstallPlans. For other steps, it returns "".
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
	for begun := r.Clock.Now(); r.Clock.Now().Sub(begun) <= 15*time.Second; {
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
		return " No InstallPlan waits for approval: it is already approved, or OLM has not created it yet.", nil
	}
	return " Now: " + strings.Join(commands, "; "), nil
}

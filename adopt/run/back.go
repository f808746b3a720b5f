package run

import (
	"context"
	"maps"
	"slices"

	"github.com/quayside/quayside/adopt/back"
	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/kobj"
)

// The directory of what is known of the way back, and in it the plan of that.
const (
	backDir  = "back/"
	backName = "plan.yaml"
)

// below is a directory in that of a journal.
type below struct {
	Files
	dir string
}

func (b below) Read(name string) ([]byte, error)      { return b.Files.Read(b.dir + name) }
func (b below) Write(name string, data []byte) error  { return b.Files.Write(b.dir+name, data) }
func (b below) Append(name string, data []byte) error { return b.Files.Append(b.dir+name, data) }

// Back returns the way back to OLM from what was done of a plan, with the journal of
// that. Once something of it was done it stays the same. Of a request whose answer
// was lost the cluster is asked what came of it. Nothing is written.
func (j *Journal) Back(ctx context.Context, c Cluster, p *plan.Plan) (*back.Way, *Journal, error) {
	in, err := j.deeds(ctx, c, p)
	if err != nil {
		return nil, nil, err
	}
	way := back.Make(*in)
	files := below{j.files, backDir}
	begun, err := files.Read(logName)
	if err != nil {
		return nil, nil, err
	}
	if begun != nil {
		text, err := files.Read(backName)
		if err == nil {
			way.Plan, err = plan.Parse(backDir+backName, text)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	log, err := OpenJournal(files, way.Plan)
	return way, log, err
}

// KeepBack writes down the plan of a way back that is about to be gone.
func (j *Journal) KeepBack(way *back.Way) error {
	return j.files.Write(backDir+backName, plan.Format(way.Plan))
}

// IsBack reports whether something was done of the way back already.
func (j *Journal) IsBack() (bool, error) {
	data, err := j.files.Read(backDir + logName)
	return data != nil, err
}

// deeds returns what was done of a plan, and what there was before.
func (j *Journal) deeds(ctx context.Context, c Cluster, p *plan.Plan) (*back.Input, error) {
	in := &back.Input{Plan: p, Before: map[kobj.Ref]kobj.Object{}}
	for _, s := range p.Steps {
		for i, a := range s.Actions {
			before, err := j.Backup(a.Object)
			if err != nil {
				return nil, err
			}
			if before != nil {
				in.Before[a.Object] = before
			}
			first := j.last(s.Number, i+1, Intends)
			if first == nil {
				continue
			}
			d := back.Deed{Step: s.Number, Action: i + 1}
			if a.Do == plan.Apply && first.UID == "" {
				if d.Made, err = j.made(ctx, c, p, s.Number, i+1); err != nil {
					return nil, err
				}
			}
			in.Deeds = append(in.Deeds, d)
		}
	}
	return in, nil
}

// made returns the UID of the object that an action made.
func (j *Journal) made(ctx context.Context, c Cluster, p *plan.Plan, step, action int) (string, error) {
	if did := j.last(step, action, Did); did != nil {
		return did.UID, nil
	}
	live, err := c.Get(ctx, *j.last(step, action, Intends).Object)
	if err != nil || !manages(live, p.Manager) {
		return "", err
	}
	return kobj.Text(live, "metadata", "uid"), nil
}

// created is so where an earlier run made the object.
func created(a *action, live kobj.Object) (bool, error) {
	switch {
	case a.rendered[a.Object.Key()] == nil:
		return false, a.changedf("was never written to a file: create it by hand")
	case live == nil || a.sent:
		return live != nil, nil
	}
	return false, a.changedf("is there again, and somebody else made it: see that nothing applies it meanwhile, and delete it (with --cascade=orphan)")
}

func create(ctx context.Context, a *action, _ kobj.Object) (kobj.Object, error) {
	return a.Cluster.Create(ctx, a.rendered[a.Object.Key()], a.DryRun)
}

// restored is so where nothing of the plan's manager is left in an object, and OLM has
// the fields again that it had. One that
// is gone is left to OLM, which makes it again.
func restored(a *action, live kobj.Object) (bool, error) {
	before := a.rendered[a.Object.Key()]
	switch {
	case live == nil:
		return true, nil
	case before == nil:
		return false, a.changedf("was never written to a file: compare it with its bundle")
	}
	handed := kobj.Equal(a.asBefore(live), live) && !back.Manage(live, before, a.writers()...) && !back.TakenFromOLM(live, before)
	return handed, a.mine(live)
}

// writers are the field managers that give up what they wrote.
func (a *action) writers() []string { return []string{a.Plan.Manager, Manager} }

func (a *action) asBefore(live kobj.Object) kobj.Object {
	return back.Restored(live, a.rendered[a.Object.Key()], a.writers()...)
}

// restore makes an object as it was, and then gives up the fields: the first of
// these makes them the program's own.
func restore(ctx context.Context, a *action, live kobj.Object) (kobj.Object, error) {
	if ops := replaced(live, a.asBefore(live)); len(ops) > 0 {
		var err error
		if live, err = a.Cluster.Patch(ctx, a.Object, cluster.Patch{JSON: append(asSeen(live), ops...)}, a.DryRun); err != nil || a.DryRun {
			return live, err
		}
	}
	managed := back.Managed(live, a.rendered[a.Object.Key()], a.writers()...)
	if len(managed) == 0 {
		managed = []any{map[string]any{}} // which the API server takes for none
	}
	return a.Cluster.Patch(ctx, a.Object, cluster.Patch{JSON: append(asSeen(live), cluster.Operation{Op: "replace", Path: "/metadata/managedFields", Value: managed})}, a.DryRun)
}

// asSeen tests that an object is as it was looked at.
func asSeen(live kobj.Object) []cluster.Operation {
	return []cluster.Operation{{Op: "test", Path: "/metadata/resourceVersion", Value: kobj.Text(live, "metadata", "resourceVersion")}}
}

// replaced returns what makes one object of another one, but for what the API server
// alone writes.
func replaced(from, to kobj.Object) []cluster.Operation {
	ops := members("/", kobj.Without(from, "metadata"), kobj.Without(to, "metadata"))
	pick := func(o kobj.Object) map[string]any {
		out := map[string]any{}
		for _, key := range []string{"labels", "annotations"} {
			if v := kobj.At(o, "metadata", key); v != nil {
				out[key] = v
			}
		}
		return out
	}
	return append(ops, members("/metadata/", pick(from), pick(to))...)
}

func members(at string, from, to map[string]any) []cluster.Operation {
	var ops []cluster.Operation
	both := maps.Clone(from)
	maps.Copy(both, to)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		was, had := from[key]
		is, has := to[key]
		switch {
		case !has:
			ops = append(ops, cluster.Operation{Op: "remove", Path: at + escaped(key)})
		case !had:
			ops = append(ops, cluster.Operation{Op: "add", Path: at + escaped(key), Value: is})
		case !kobj.Equal(was, is):
			ops = append(ops, cluster.Operation{Op: "replace", Path: at + escaped(key), Value: is})
		}
	}
	return ops
}

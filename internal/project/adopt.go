package project

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/bundle/fetch"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Inspection is what was found of a cluster that OLM runs in.
type Inspection struct {
	Report   *adopt.Report
	Lock     *lockfile.File    // with what has to be kept of OLM's so that no pod restarts
	Rendered []render.Rendered // what Lock renders to for the cluster
}

// Inspect says of the operators of a cluster whether the tree can take them over
// from OLM, as the lock would have them then; the tree need not be written.
func (p *Project) Inspect(ctx context.Context, s *snapshot.Snapshot, cluster string) (*Inspection, error) {
	lock, err := p.LockIfAny()
	if lock == nil && err == nil {
		err = cmp.Or(p.Absent(), fmt.Errorf("no %s in %s: run 'quayside import' first, which pins what the cluster has", LockFile, p.Name()))
	}
	if err != nil {
		return nil, err
	}
	lock, rendered, err := p.fit(ctx, s, lock, cluster)
	if err != nil {
		return nil, err
	}
	c, err := p.contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	rep := adopt.Inspect(adopt.Input{Snapshot: s, Lock: lock, Rendered: rendered, Made: func(pin lockfile.Pin) ([]kobj.Object, error) {
		return made(ctx, c, pin)
	}})
	return &Inspection{Report: rep, Lock: lock, Rendered: rendered}, nil
}

// fit returns the lock with what has to be kept of the operators that OLM has
// installed, and what a cluster gets of it.
func (p *Project) fit(ctx context.Context, s *snapshot.Snapshot, lock *lockfile.File, cluster string) (*lockfile.File, []render.Rendered, error) {
	begun := adopt.Begin(s, lock)
	opt, err := p.renderOptions()
	if err != nil {
		return nil, nil, err
	}
	opt.ObjectsOnly = true // each is held once, and the cluster has taken the CRDs
	res, err := p.render(ctx, begun, opt)
	if err != nil {
		return nil, nil, err
	}
	rendered, err := res.In(cluster)
	if err != nil {
		return nil, nil, err
	}
	lock, rendered = adopt.Record(s, lock, begun, rendered)
	return lock, rendered, nil
}

// made returns the Deployments of a pin, without what the workspace says of them.
func made(ctx context.Context, c *fetch.Contents, pin lockfile.Pin) ([]kobj.Object, error) {
	fsys, err := c.Open(ctx, pin)
	if err != nil {
		return nil, err
	}
	b, err := bundle.Load(fsys)
	if err != nil {
		return nil, err
	}
	objects, _, err := render.Manifests(b, pin, render.Options{})
	return slices.DeleteFunc(objects, func(o kobj.Object) bool { return !o.Is("apps", "Deployment") }), err
}

// Finishing is what changes once nothing of OLM's is kept any more.
type Finishing struct {
	Written   bool             `json:"written" doc:"Whether the lock was written. false: nothing was to be written, or --check."`
	Operators []adopt.Finished `json:"operators" doc:"By namespace and package."`
	Shared    []adopt.Change   `json:"shared" doc:"What else of the tree changes."`

	Lock *lockfile.File `json:"-"`
}

// Finish drops from the lock what it keeps of OLM's for the operators named
// (namespace/package), for all where none is, and says what of the tree changes by
// that. Nothing is written.
func (p *Project) Finish(ctx context.Context, names []string) (*Finishing, error) {
	before, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	if _, err := chosen(before, names); err != nil {
		return nil, err
	}
	after := adopt.Finish(before, names)
	was, err := p.Render(ctx, before)
	if err != nil {
		return nil, err
	}
	now, err := p.Render(ctx, after)
	if err != nil {
		return nil, err
	}
	operators, shared := adopt.Shed(before, after, was.Objects, now.Objects)
	return &Finishing{Lock: after, Operators: operators, Shared: shared}, nil
}

// Print prints what changes of each operator, and of the rest of the tree.
func (f *Finishing) Print(out *terminal.Terminal) {
	for _, op := range f.Operators {
		fmt.Fprintf(out, "%s/%s (%s)\n", inert.Line(op.Namespace), inert.Line(op.Package), inert.Line(op.Bundle))
		for _, r := range op.Restarts {
			var paths []string
			for _, field := range r.Fields {
				paths = append(paths, field.Path)
			}
			fmt.Fprintf(out, "    %s restarts: %s\n", inert.Line("Deployment "+r.Deployment), inert.Line(strings.Join(paths, ", ")))
		}
		if op.Condition.From != op.Condition.To {
			fmt.Fprintf(out, "    %s\n", inert.Line("OperatorCondition "+op.Condition.From+" becomes "+op.Condition.To))
		}
		for _, service := range op.Certificates {
			fmt.Fprintf(out, "    %s\n", inert.Line("the certificate of Service "+service+" comes from the provider in spec.certificates"))
		}
		for _, kind := range op.Needs {
			fmt.Fprintf(out, "    %s\n", inert.Line("the cluster must serve "+kind+" before the tree is applied"))
		}
		listChanges(out, op.Objects)
	}
	if len(f.Shared) > 0 {
		fmt.Fprint(out, "of several operators, or of none\n")
		listChanges(out, f.Shared)
	}
	fmt.Fprintf(out, "%s\n", diag.Count(len(f.Operators), "operator"))
}

func listChanges(out *terminal.Terminal, changes []adopt.Change) {
	signs := map[string]string{"added": "+", "changed": "~", "removed": "-"}
	for _, c := range changes {
		fmt.Fprintf(out, "    %s %s\n", out.Sign(signs[c.Change]), inert.Line(c.Key().String()))
	}
}

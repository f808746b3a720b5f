// Package inspect compares a cluster that runs OLM with a workspace. It finds the operators that can be
// adopted, and the OLM settings that the lock must keep. It makes the adoption plan, and lists the changes that
// result from removing these settings later. Package adopt and the packages below it make the decisions.
//
// Start from [Inspect].
package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Inspection is the result of Inspect.
type Inspection struct {
	Report   *adopt.Inspection
	Lock     *lockfile.File    // lock with the OLM settings that avoid pod restarts
	Rendered []render.Rendered // rendered tree of Lock for the cluster
}

// Inspect reports which operators of a cluster can be adopted from OLM. It renders the lock with the OLM
// settings to keep, and does not use the rendered tree on disk.
func Inspect(ctx context.Context, p *workspace.Project, s *snapshot.Snapshot, cluster string) (*Inspection, error) {
	lock, err := p.LockIfAny()
	if lock == nil && err == nil {
		err = cmp.Or(p.SuggestWorkspaces(), fmt.Errorf("no %s in %s: run 'quayside import' first to pin the installed operators", workspace.LockFile, p.Location()))
	}
	if err != nil {
		return nil, err
	}
	lock, rendered, err := recordSettings(ctx, p, s, lock, cluster)
	if err != nil {
		return nil, err
	}
	c, err := p.Contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	rep := adopt.Inspect(adopt.Input{Snapshot: s, Lock: lock, Rendered: rendered, GenerateDeployments: func(pin lockfile.Pin) ([]k8s.Object, error) {
		return generateDeployments(ctx, c, pin)
	}})
	return &Inspection{Report: rep, Lock: lock, Rendered: rendered}, nil
}

// Releases returns the Helm release names of the charts in the lock, sorted.
func Releases(p *workspace.Project) []string {
	lock, err := p.LockIfAny()
	if err != nil || lock == nil {
		return nil // reported later
	}
	var out []string
	for _, pin := range lock.Pins {
		if pin.Template != nil {
			out = append(out, pin.Template.Release)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// recordSettings returns the lock with the OLM settings to keep, and its rendered tree for the cluster.
func recordSettings(ctx context.Context, p *workspace.Project, s *snapshot.Snapshot, lock *lockfile.File, cluster string) (*lockfile.File, []render.Rendered, error) {
	begun := adopt.Begin(s, lock)
	res, err := p.RenderObjects(ctx, begun) // the cluster has accepted the CRDs: do not check them
	if err != nil {
		return nil, nil, err
	}
	rendered, err := res.ObjectsIn(cluster)
	if err != nil {
		return nil, nil, err
	}
	lock, rendered = adopt.Record(s, lock, begun, rendered)
	return lock, rendered, nil
}

// generateDeployments returns the Deployments that OLM generates for a pin: the Deployments of its bundle,
// rendered without settings of the workspace.
func generateDeployments(ctx context.Context, c *workspace.Contents, pin lockfile.Pin) ([]k8s.Object, error) {
	fsys, err := c.Open(ctx, pin)
	if err != nil {
		return nil, err
	}
	b, err := bundle.Load(fsys)
	if err != nil {
		return nil, err
	}
	objects, _, err := render.Manifests(b, pin, render.Options{})
	return slices.DeleteFunc(objects, func(o k8s.Object) bool { return !o.Is("apps", "Deployment") }), err
}

// FinishResult lists the changes to the tree that result from removing OLM's settings from the lock.
type FinishResult struct {
	Written   bool                     `json:"written" doc:"Whether the lock was written. false if it was unchanged, or with --check."`
	Operators []adopt.FinishedOperator `json:"operators" doc:"By namespace and package."`
	Shared    []adopt.Change           `json:"shared" doc:"Other changes of the tree."`

	Lock *lockfile.File `json:"-"`
}

// Finish returns the lock without OLM's settings, and the resulting changes to the tree. names are the
// operators (namespace/package). If names is empty, Finish removes the settings of all operators. It writes
// nothing.
func Finish(ctx context.Context, p *workspace.Project, names []string) (*FinishResult, error) {
	before, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	if _, err := workspace.SelectPins(before, names); err != nil {
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
	operators, shared := adopt.CompareFinished(before, after, was.Objects, now.Objects)
	return &FinishResult{Lock: after, Operators: operators, Shared: shared}, nil
}

// Package look looks at a cluster: what it has of what a lock renders to, how
// healthy that is, and what the reporter there says of it.
//
// It only reads, with the rights of whoever asks, and fetches no content of
// Secrets and ConfigMaps. What it reads is judged by report, as the reporter
// does; a cluster that does not answer is an error, an object that may not be
// read is none.
//
// Start from [Expected], [At] and [Seen].
package look

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/selector"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/report/v1alpha1"
)

// Expected is what a cluster should have.
type Expected struct {
	Cluster       string // as quayside.yaml names it
	Lock          *lockfile.File
	Installations []render.Installation // of the lock's pins, in their order
	All           bool                  // what the lock does not pin counts too
	Reporter      bool                  // the workspace has one rendered
}

// Options says how a cluster is looked at.
type Options struct {
	Wait     time.Duration // look again until all is well, for so long; 0: once
	Custom   bool          // count the custom resources of the operators' kinds
	Progress func(format string, args ...any)
}

// Seen is what a cluster was found to have.
type Seen struct {
	Summary   report.Summary
	Operators map[string]*Operator // of the lock, by namespace/package

	objects []v1alpha1.Observed // in the order of the installations
}

// Operator is what was found of one operator of the lock.
type Operator struct {
	Objects  []v1alpha1.ObjectHealth // all that is expected
	Custom   []CustomKind
	Reporter *Reporter // nil where there is none, and none is wanted
	Notes    []string  // what could not be read
}

// At looks at a cluster. One that has answered once may be away for a while,
// where there is time to wait.
func At(ctx context.Context, c *cluster.Client, want *Expected, opt Options) (*Seen, error) {
	l := &looker{c: c, want: want}
	opt.Progress("reading cluster %s", c.Server)
	got, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	limit := time.Now().Add(opt.Wait)
	for pause := time.Second; opt.Wait > 0 && (err != nil || !got.Summary.Well()); pause = min(2*pause, 15*time.Second) {
		left := time.Until(limit)
		if left <= 0 {
			break
		}
		opt.Progress("%s", waiting(got, err))
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		var unreachable *cluster.UnreachableError
		if got, err = l.look(ctx); err != nil && !errors.As(err, &unreachable) {
			return nil, err
		}
	}
	if err == nil && opt.Custom {
		err = l.custom(ctx, got)
	}
	return got, err
}

// waiting says what is waited for.
func waiting(got *Seen, err error) string {
	if err != nil {
		return err.Error()
	}
	ready, first := 0, ""
	for _, op := range got.Summary.Operators {
		switch {
		case op.State == report.StateReady:
			ready++
		case first == "":
			first = fmt.Sprintf("%s/%s: %s", op.Namespace, op.Package, op.Message)
		}
	}
	return fmt.Sprintf("%d of %d ready; %s", ready, len(got.Summary.Operators), first)
}

// looker looks at a cluster.
type looker struct {
	c    *cluster.Client
	want *Expected
}

// look reads what the cluster has of what is expected, and judges it.
func (l *looker) look(ctx context.Context) (*Seen, error) {
	l.c.Forget()
	var refs []v1alpha1.ObjectReference
	for _, in := range l.want.Installations {
		refs = append(refs, in.Spec.Objects...)
	}
	got, err := l.c.Read(ctx, refs)
	if err != nil {
		return nil, err
	}
	there, err := l.installed(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := l.pods(ctx, got)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	out := &Seen{objects: got, Operators: map[string]*Operator{}}
	var found []report.Operator
	for _, in := range l.want.Installations {
		own := got[:len(in.Spec.Objects)]
		got = got[len(in.Spec.Objects):]
		op := report.Operator{Namespace: in.Namespace, Package: in.Spec.Package, Applied: report.Applied(in.Spec, own)}
		inst := there.of(in)
		if inst != nil {
			op.Spec = &inst.Spec
		}
		op.Status = report.Judge(in.Spec, 0, v1alpha1.InstallationStatus{}, own, pods.of[in.Namespace], now)
		found = append(found, op)
		one := &Operator{Objects: report.Objects(in.Spec, own, now), Notes: pods.faults[in.Namespace]}
		one.Reporter = there.says(inst, op.Status)
		out.Operators[in.Namespace+"/"+in.Spec.Package] = one
	}
	if l.want.All {
		found = append(found, there.others(l.want.Installations)...)
	}
	out.Summary = report.Summarize(l.want.Lock, found, now)
	out.Summary.Cluster = l.want.Cluster
	return out, nil
}

// reported is what the reporter says in a cluster.
type reported struct {
	wanted  bool
	absent  string // why there are no Installations at all
	objects []v1alpha1.Installation
}

// installed reads the Installations, which are there where the reporter is.
func (l *looker) installed(ctx context.Context) (*reported, error) {
	api := v1alpha1.Group + "/" + v1alpha1.Version
	found, err := l.c.List(ctx, cluster.ListOptions{APIVersion: api, Kind: v1alpha1.Kind})
	if err != nil {
		return nil, err
	}
	r := &reported{wanted: l.want.Reporter}
	switch found.Reason {
	case "":
	case v1alpha1.ReasonForbidden: // in every namespace; perhaps not in each
		var refs []v1alpha1.ObjectReference
		for _, in := range l.want.Installations {
			refs = append(refs, v1alpha1.ObjectReference{APIVersion: api, Kind: v1alpha1.Kind, Namespace: in.Namespace, Name: in.Name})
		}
		got, err := l.c.Read(ctx, refs)
		if err != nil {
			return nil, err
		}
		for _, o := range got {
			if o.Object != nil {
				found.Objects = append(found.Objects, o.Object)
			}
		}
		r.absent = found.Message
	default:
		r.absent = found.Message
	}
	for _, o := range found.Objects {
		var inst v1alpha1.Installation
		data, err := json.Marshal(o)
		if err == nil {
			err = json.Unmarshal(data, &inst)
		}
		if err == nil { // else it is none that quayside rendered
			r.objects = append(r.objects, inst)
		}
	}
	return r, nil
}

// of returns the Installation of a pin, or nil.
func (r *reported) of(in render.Installation) *v1alpha1.Installation {
	for i := range r.objects {
		if o := &r.objects[i]; o.Namespace == in.Namespace && o.Spec.Package == in.Spec.Package {
			return o
		}
	}
	return nil
}

// others returns what the cluster has Installations of and the lock does not
// pin.
func (r *reported) others(known []render.Installation) []report.Operator {
	var out []report.Operator
	for i := range r.objects {
		o := &r.objects[i]
		if !slices.ContainsFunc(known, func(in render.Installation) bool {
			return in.Namespace == o.Namespace && in.Spec.Package == o.Spec.Package
		}) {
			out = append(out, report.Operator{Namespace: o.Namespace, Package: o.Spec.Package, Spec: &o.Spec, Status: o.Status})
		}
	}
	return out
}

// podsSeen are the pods of the workloads.
type podsSeen struct {
	of     map[string][]map[string]any // by namespace
	faults map[string][]string         // why pods of a namespace could not be read
}

// mostPods is how many pods of a workload are looked at.
const mostPods = 100

// pods reads the pods of the workloads that were found.
func (l *looker) pods(ctx context.Context, got []v1alpha1.Observed) (*podsSeen, error) {
	var lists []cluster.ListOptions
	for _, o := range got {
		if len(o.Ref.Images) == 0 || o.Object == nil {
			continue
		}
		if own, ok := selector.OfPods(o.Object); ok {
			lists = append(lists, cluster.ListOptions{APIVersion: "v1", Kind: "Pod", Namespace: o.Ref.Namespace, Labels: own.String(), Most: mostPods})
		}
	}
	found, err := l.c.Lists(ctx, lists)
	if err != nil {
		return nil, err
	}
	out := &podsSeen{of: map[string][]map[string]any{}, faults: map[string][]string{}}
	for i, f := range found {
		ns := lists[i].Namespace
		out.of[ns] = append(out.of[ns], f.Objects...)
		if f.Reason != "" && len(out.faults[ns]) == 0 {
			out.faults[ns] = []string{"its pods cannot be listed: " + f.Message}
		}
	}
	return out, nil
}

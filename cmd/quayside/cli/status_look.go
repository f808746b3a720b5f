package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/report/live"
	"github.com/quayside/quayside/report/v1alpha1"
)

// expected is what a cluster should have.
type expected struct {
	cluster       string // of quayside.yaml
	lock          *lockfile.File
	installations []render.Installation // of the lock's pins, in their order
	all           bool                  // no operator was named: what the lock does not pin counts too
	reporter      bool                  // the workspace has one rendered
}

// expected renders the lock and returns what the cluster should have of the
// operators named.
func (o *statusOptions) expected(ctx context.Context, s *space, names []string) (*expected, error) {
	lock, err := s.needLock()
	if err != nil {
		return nil, err
	}
	want := &expected{cluster: o.cluster, all: len(names) == 0, reporter: s.ws.Reporter.Enabled}
	switch have := s.clusterNames(); {
	case o.cluster == "" && len(have) > 1:
		return nil, fmt.Errorf("there are several clusters: name one with --cluster (have %s)", strings.Join(have, ", "))
	case o.cluster == "":
		want.cluster = have[0]
	case !slices.Contains(have, o.cluster):
		return nil, fmt.Errorf("no cluster %q (have %s)%s", o.cluster, strings.Join(have, ", "), diag.DidYouMean(o.cluster, have))
	}
	part, err := chosen(lock, names)
	if err != nil {
		return nil, err
	}
	res, err := s.renderQuietly(ctx, lock, o.offline)
	if err != nil {
		return nil, err
	}
	here, err := res.Installations(want.cluster)
	if err != nil {
		return nil, err
	}
	var pins []lockfile.Pin
	for _, in := range here {
		if p, ok := part.Pin(in.Namespace, in.Spec.Package); ok {
			want.installations = append(want.installations, in)
			pins = append(pins, p)
		}
	}
	if len(pins) < len(names) {
		return nil, fmt.Errorf("cluster %q does not get all of %s: see spec.clusters of quayside.yaml", want.cluster, strings.Join(names, ", "))
	}
	want.lock = lockfile.New(lock.Catalogs, pins)
	return want, nil
}

// seen is what a cluster was found to have.
type seen struct {
	objects   []v1alpha1.Observed // in the order of the installations
	summary   report.Summary
	operators map[string]*seenOperator // by namespace/package
}

// seenOperator is what was found of one operator of the lock.
type seenOperator struct {
	objects  []v1alpha1.ObjectHealth // all that is expected
	custom   []customKind
	reporter *reporterView
	notes    []string
}

// look looks at the cluster, with --wait until all is well or the time is over.
// A cluster that has answered once may be away for a while.
func (o *statusOptions) look(ctx context.Context, c *live.Cluster, want *expected) (*seen, error) {
	l := &looker{c: c, want: want}
	o.talk.progress("reading cluster %s", c.Server)
	got, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	limit := time.Now().Add(o.timeout)
	for pause := time.Second; o.wait && (err != nil || !got.summary.Well()); pause = min(2*pause, 15*time.Second) {
		left := time.Until(limit)
		if left <= 0 {
			break
		}
		o.talk.progress("%s", waiting(got, err))
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		var unreachable *live.UnreachableError
		if got, err = l.look(ctx); err != nil && !errors.As(err, &unreachable) {
			return nil, err
		}
	}
	if err == nil && o.custom {
		err = l.custom(ctx, got)
	}
	return got, err
}

// waiting says what --wait waits for.
func waiting(got *seen, err error) string {
	if err != nil {
		return oneLine(err.Error())
	}
	ready, first := 0, ""
	for _, op := range got.summary.Operators {
		switch {
		case op.State == report.StateReady:
			ready++
		case first == "":
			first = fmt.Sprintf("%s/%s: %s", op.Namespace, op.Package, op.Message)
		}
	}
	return oneLine(fmt.Sprintf("%d of %d ready; %s", ready, len(got.summary.Operators), first))
}

// looker looks at a cluster.
type looker struct {
	c    *live.Cluster
	want *expected
}

// look reads what the cluster has of what is expected, and judges it.
func (l *looker) look(ctx context.Context) (*seen, error) {
	l.c.Forget()
	var refs []v1alpha1.ObjectReference
	for _, in := range l.want.installations {
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
	out := &seen{objects: got, operators: map[string]*seenOperator{}}
	var found []report.Operator
	for _, in := range l.want.installations {
		own := got[:len(in.Spec.Objects)]
		got = got[len(in.Spec.Objects):]
		op := report.Operator{Namespace: in.Namespace, Package: in.Spec.Package, Applied: report.Applied(in.Spec, own)}
		inst := there.of(in)
		if inst != nil {
			op.Spec = &inst.Spec
		}
		op.Status = report.Judge(in.Spec, 0, v1alpha1.InstallationStatus{}, own, pods.of[in.Namespace], now)
		found = append(found, op)
		one := &seenOperator{objects: report.Objects(in.Spec, own, now), notes: pods.faults[in.Namespace]}
		one.reporter = there.says(inst, op.Status)
		out.operators[in.Namespace+"/"+in.Spec.Package] = one
	}
	if l.want.all {
		found = append(found, there.others(l.want.installations)...)
	}
	out.summary = report.Summarize(l.want.lock, found, now)
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
	found, err := l.c.List(ctx, live.ListOptions{APIVersion: api, Kind: v1alpha1.Kind})
	if err != nil {
		return nil, err
	}
	r := &reported{wanted: l.want.reporter}
	switch found.Reason {
	case "":
	case v1alpha1.ReasonForbidden: // in every namespace; perhaps not in each
		var refs []v1alpha1.ObjectReference
		for _, in := range l.want.installations {
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
	var lists []live.ListOptions
	for _, o := range got {
		if len(o.Ref.Images) == 0 || o.Object == nil {
			continue
		}
		if selector, ok := live.PodSelector(o.Object); ok {
			lists = append(lists, live.ListOptions{APIVersion: "v1", Kind: "Pod", Namespace: o.Ref.Namespace, Labels: selector, Most: mostPods})
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

// Package status observes a cluster: the rendered objects and their health, and the status that the
// reporter wrote.
//
// The package reads the cluster with the permissions of its user, and changes nothing. It does not fetch the
// content of Secrets and ConfigMaps. The health package evaluates the observations, as it does in the reporter.
// If the cluster is unreachable, the package returns an error. If the user may not read an object, the object's
// health is Unknown.
//
// Start from [Expect] and [Observe].
package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/provided"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Expected is the desired state of a cluster.
type Expected struct {
	Environment   string // name of the workspace
	Cluster       string // name of the cluster in quayside.yaml
	Lock          *lockfile.File
	Installations []render.Installation // in the order of the lock's pins
	All           bool                  // whether to include operators that have an Installation in the cluster but no pin
	Reporter      bool                  // whether the workspace renders a reporter
}

// Expect renders the lock and returns the desired state of a cluster. It includes the operators in names, or
// all operators if names is empty.
func Expect(ctx context.Context, p *workspace.Project, cluster string, names []string) (*Expected, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	want := &Expected{Environment: p.Environment(), All: len(names) == 0, Reporter: p.Settings.Reporter.Enabled}
	if want.Cluster, err = p.Settings.ClusterName(cluster, "--cluster"); err != nil {
		return nil, err
	}
	part, err := workspace.SelectPins(lock, names)
	if err != nil {
		return nil, err
	}
	res, err := p.Render(ctx, lock)
	if err != nil {
		return nil, err
	}
	installations, err := res.Installations(want.Cluster)
	if err != nil {
		return nil, err
	}
	var pins []lockfile.Pin
	for _, in := range installations {
		if pin, ok := part.Pin(in.Namespace, in.Spec.Package); ok {
			want.Installations = append(want.Installations, in)
			pins = append(pins, pin)
		}
	}
	if len(pins) < len(names) {
		return nil, fmt.Errorf("cluster %q does not get all operators of %s: see spec.clusters of %s", want.Cluster, strings.Join(names, ", "), settings.FileName)
	}
	want.Lock = lock.With(pins)
	return want, nil
}

// ObserveOptions configures an observation.
type ObserveOptions struct {
	Wait     time.Duration // maximum time to wait until the cluster is healthy; 0: observe once
	Custom   bool          // count the custom resources of the operators' kinds
	CustomIn string        // namespace of the counted custom resources; empty: all
	Supply   bool          // list the APIs and classes that the cluster provides
	Progress func(format string, args ...any)
}

// Observe observes a cluster repeatedly, until the cluster is healthy or opt.Wait has passed, and returns the
// last result. If the cluster becomes unreachable after the first observation, Observe retries.
func Observe(ctx context.Context, c *cluster.Client, want *Expected, opt ObserveOptions) (*Status, error) {
	l := &observer{c: c, want: want}
	opt.Progress("reading cluster %s", c.Server)
	got, objects, err := l.observe(ctx)
	if err != nil {
		return nil, err
	}
	limit := time.Now().Add(opt.Wait)
	for pause := time.Second; opt.Wait > 0 && (err != nil || !got.Healthy); pause = min(2*pause, 15*time.Second) {
		left := time.Until(limit)
		if left <= 0 {
			break
		}
		opt.Progress("%s", waitReason(got, err))
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		var unreachable *cluster.UnreachableError
		if got, objects, err = l.observe(ctx); err != nil && !errors.As(err, &unreachable) {
			return nil, err
		}
	}
	if err == nil && opt.Custom {
		err = l.countCustomResources(ctx, got, objects, opt.CustomIn)
	}
	if err == nil && opt.Supply {
		got.APIs, got.Classes, err = l.listSupply(ctx)
	}
	return got, err
}

// waitReason describes what Observe is waiting for, for the progress line.
func waitReason(got *Status, err error) string {
	if err != nil {
		return err.Error()
	}
	ready, first := 0, ""
	for _, op := range got.Operators {
		switch {
		case op.State == health.StateReady:
			ready++
		case first == "":
			first = op.Key() + ": " + op.Message
		}
	}
	return fmt.Sprintf("%d of %d ready; %s", ready, len(got.Operators), first)
}

type observer struct {
	c    *cluster.Client
	want *Expected
}

// observe reads the expected objects once. It returns their health, and the objects in the order of the
// Installations.
func (l *observer) observe(ctx context.Context) (*Status, []v1alpha1.Observed, error) {
	l.c.Forget()
	var refs []v1alpha1.ObjectReference
	for _, in := range l.want.Installations {
		refs = append(refs, in.Spec.Objects...)
	}
	objects, err := l.c.Read(ctx, refs)
	if err != nil {
		return nil, nil, err
	}
	there, err := l.readInstallations(ctx)
	if err != nil {
		return nil, nil, err
	}
	pods, err := l.readPods(ctx, objects)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	details := map[string]health.Details{}
	var found []health.OperatorObservation
	rest := objects
	for _, in := range l.want.Installations {
		own := rest[:len(in.Spec.Objects)]
		rest = rest[len(in.Spec.Objects):]
		op := health.OperatorObservation{Namespace: in.Namespace, Package: in.Spec.Package, Applied: health.ObservedVersions(in.Spec, own)}
		inst := there.find(in)
		if inst != nil {
			op.Spec = &inst.Spec
		}
		op.Status = health.Judge(in.Spec, 0, v1alpha1.InstallationStatus{}, own, pods.byNamespace[in.Namespace], now)
		found = append(found, op)
		details[in.Namespace+"/"+in.Spec.Package] = health.Details{
			Objects: health.JudgeObjects(in.Spec, own, now), Reporter: there.compare(inst, op.Status), Notes: pods.faults[in.Namespace],
		}
	}
	if l.want.All {
		found = append(found, there.unpinned(l.want.Installations)...)
	}
	summary := health.Summarize(l.want.Lock, found, now)
	unread, err := l.failOLMInstalls(ctx, &summary)
	if err != nil {
		return nil, nil, err
	}
	summary.Environment, summary.Cluster = l.want.Environment, l.want.Cluster
	if summary.ClusterUID, err = l.clusterUID(ctx); err != nil {
		return nil, nil, err
	}
	out := l.newStatus(summary, details)
	out.Warnings = unread
	return out, objects, nil
}

// listSupply returns the APIs and the classes that the cluster provides, except built-in APIs. Without
// permission to list them, the result is empty.
func (l *observer) listSupply(ctx context.Context) (apis, classes []string, err error) {
	var status *apierrors.StatusError
	if apis, err = l.c.APIs(ctx); err != nil && !errors.As(err, &status) {
		return nil, nil, err
	}
	apis = slices.DeleteFunc(apis, func(api string) bool { return k8s.IsBuiltinGroup(k8s.Group(api)) })
	for _, kind := range provided.Classes() {
		found, err := l.c.List(ctx, cluster.ListOptions{APIVersion: kind.APIVersion, Kind: kind.Kind})
		if err != nil {
			return nil, nil, err
		}
		for _, o := range found.Objects {
			classes = append(classes, provided.FormatObject(k8s.Object(o).Key()))
		}
	}
	return apis, classes, nil
}

// clusterUID returns the UID of the cluster, or "" without permission to get it.
func (l *observer) clusterUID(ctx context.Context) (string, error) {
	got, err := l.c.Read(ctx, []v1alpha1.ObjectReference{{APIVersion: "v1", Kind: "Namespace", Name: health.SystemNamespace}})
	if err != nil || len(got) == 0 {
		return "", err
	}
	return k8s.Text(got[0].Object, "metadata", "uid"), nil
}

// reporterState contains the Installations in a cluster. The reporter writes their status.
type reporterState struct {
	wanted  bool   // whether the workspace renders a reporter
	absent  string // reason why Installations cannot be listed; empty if they can
	objects []v1alpha1.Installation
}

// readInstallations reads the Installations. If the cluster does not have their CRD, it returns
// none and sets absent.
func (l *observer) readInstallations(ctx context.Context) (*reporterState, error) {
	api := v1alpha1.Group + "/" + v1alpha1.Version
	found, err := l.c.List(ctx, cluster.ListOptions{APIVersion: api, Kind: v1alpha1.Kind})
	if err != nil {
		return nil, err
	}
	r := &reporterState{wanted: l.want.Reporter}
	switch found.Reason {
	case "":
	case v1alpha1.ReasonForbidden: // get may still be permitted where list is not
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
		if err == nil { // omit objects of another format, which quayside did not render
			r.objects = append(r.objects, inst)
		}
	}
	return r, nil
}

// find returns the Installation in the cluster that belongs to a rendered Installation, or nil.
func (r *reporterState) find(in render.Installation) *v1alpha1.Installation {
	for i := range r.objects {
		if o := &r.objects[i]; o.Namespace == in.Namespace && o.Spec.Package == in.Spec.Package {
			return o
		}
	}
	return nil
}

// unpinned returns the operators that have an Installation in the cluster, but no Installation in known.
func (r *reporterState) unpinned(known []render.Installation) []health.OperatorObservation {
	var out []health.OperatorObservation
	for i := range r.objects {
		o := &r.objects[i]
		if !slices.ContainsFunc(known, func(in render.Installation) bool {
			return in.Namespace == o.Namespace && in.Spec.Package == o.Spec.Package
		}) {
			out = append(out, health.OperatorObservation{Namespace: o.Namespace, Package: o.Spec.Package, Spec: &o.Spec, Status: o.Status})
		}
	}
	return out
}

// workloadPods contains the pods of the observed workloads.
type workloadPods struct {
	byNamespace map[string][]map[string]any
	faults      map[string][]string // errors when listing pods, by namespace
}

// maxPods is the maximum number of pods to read for one workload.
const maxPods = 100

// readPods reads the pods of the observed workloads.
func (l *observer) readPods(ctx context.Context, got []v1alpha1.Observed) (*workloadPods, error) {
	var lists []cluster.ListOptions
	for _, o := range got {
		if len(o.Ref.Images) == 0 || o.Object == nil {
			continue
		}
		if own, ok := k8s.PodSelectorOf(o.Object); ok {
			lists = append(lists, cluster.ListOptions{APIVersion: "v1", Kind: "Pod", Namespace: o.Ref.Namespace, Labels: own.String(), Limit: maxPods})
		}
	}
	found, err := l.c.ListAll(ctx, lists)
	if err != nil {
		return nil, err
	}
	out := &workloadPods{byNamespace: map[string][]map[string]any{}, faults: map[string][]string{}}
	for i, f := range found {
		ns := lists[i].Namespace
		out.byNamespace[ns] = append(out.byNamespace[ns], f.Objects...)
		if f.Reason != "" && len(out.faults[ns]) == 0 {
			out.faults[ns] = []string{"its pods cannot be listed: " + f.Message}
		}
	}
	return out, nil
}

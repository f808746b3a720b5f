package status

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// olmInstall is an OLM object that installs an operator of the lock.
type olmInstall struct {
	operator string // namespace/package in the lock
	object   string
}

// listOLMInstalls lists the OLM objects in a cluster that install packages of the lock, sorted by
// name: Subscriptions, ClusterExtensions, and ClusterServiceVersions without a Subscription. It
// omits operators that are being adopted from OLM. unread has a warning for each kind that cannot
// be listed.
func listOLMInstalls(ctx context.Context, c *cluster.Client, lock *lockfile.File) (found []olmInstall, unread []diag.Warning, err error) {
	for _, kind := range []struct {
		api, kind          string
		pkg, installedInto []string // field paths of the package and the namespace
	}{
		{"operators.coreos.com/v1alpha1", "Subscription", []string{"spec", "name"}, []string{"metadata", "namespace"}},
		{"olm.operatorframework.io/v1", "ClusterExtension", []string{"spec", "source", "catalog", "packageName"}, []string{"spec", "namespace"}},
	} {
		list, err := c.List(ctx, cluster.ListOptions{APIVersion: kind.api, Kind: kind.kind})
		if err != nil {
			return nil, nil, err
		}
		if list.Reason != "" && list.Reason != v1alpha1.ReasonNoKind {
			unread = append(unread, unreadOLM(kind.kind, list.Message))
		}
		for _, o := range list.Objects {
			i := findPin(lock, k8s.Text(o, kind.installedInto...), k8s.Text(o, kind.pkg...))
			if i >= 0 && lock.Pins[i].Adopted == nil {
				found = append(found, olmInstall{lock.Pins[i].Key(), k8s.Object(o).Key().String()})
			}
		}
	}
	// The label excludes copies, which OLM creates in watched namespaces: copies install nothing.
	list, err := c.List(ctx, cluster.ListOptions{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Labels: "!olm.copiedFrom"})
	if err != nil {
		return nil, nil, err
	}
	if list.Reason != "" && list.Reason != v1alpha1.ReasonNoKind {
		unread = append(unread, unreadOLM("ClusterServiceVersion", list.Message))
	}
	for _, o := range list.Objects {
		labels, namespace := k8s.TextMap(o, "metadata", "labels"), k8s.Text(o, "metadata", "namespace")
		for _, pin := range lock.Pins {
			_, labeled := labels["operators.coreos.com/"+pin.Package+"."+namespace]
			known := slices.ContainsFunc(found, func(in olmInstall) bool { return in.operator == pin.Key() })
			if (labeled || k8s.Text(o, "metadata", "name") == pin.Bundle) && namespace == pin.Namespace && pin.Adopted == nil && !known {
				found = append(found, olmInstall{pin.Key(), k8s.Object(o).Key().String()})
			}
		}
	}
	slices.SortFunc(found, func(a, b olmInstall) int { return strings.Compare(a.object, b.object) })
	return found, unread, nil
}

// unreadOLM returns the warning for a kind of OLM object that cannot be listed.
func unreadOLM(kind, cause string) diag.Warning {
	return diag.Warning{Code: "not-checked", Msg: fmt.Sprintf("objects of OLM in the cluster cannot be read: %s: %s", kind, cause)}
}

// findPin returns the index of a pin of a package, or -1. It prefers the pin in the given namespace.
func findPin(lock *lockfile.File, namespace, pkg string) int {
	i := slices.IndexFunc(lock.Pins, func(p lockfile.Pin) bool { return p.Package == pkg && p.Namespace == namespace })
	if i < 0 {
		i = slices.IndexFunc(lock.Pins, func(p lockfile.Pin) bool { return p.Package == pkg })
	}
	return i
}

// failOLMInstalls sets the state to Failed for each operator that OLM also installs. It returns a
// warning for each kind of object that cannot be listed.
func (l *observer) failOLMInstalls(ctx context.Context, s *health.Summary) ([]diag.Warning, error) {
	found, unread, err := listOLMInstalls(ctx, l.c, l.want.Lock)
	for _, in := range found {
		for i := range s.Operators {
			if o := &s.Operators[i]; o.Key() == in.operator {
				o.State, o.Message = health.StateFailed, "OLM installs it as well: "+in.object
			}
		}
	}
	return unread, err
}

// CheckOLM returns a fault for each operator of the lock that OLM also installs in the cluster: OLM and the
// GitOps tool must not manage the same objects. It returns a warning for each kind of object that cannot be
// listed.
func CheckOLM(ctx context.Context, c *cluster.Client, lock *lockfile.File, waive func([]diag.Warning) []diag.Warning) ([]diag.Warning, error) {
	found, unread, err := listOLMInstalls(ctx, c, lock)
	if err != nil {
		return nil, err
	}
	var faults diag.List
	for _, in := range found {
		w := diag.Warning{Code: "still-applied", Subject: in.operator, Msg: fmt.Sprintf("%s in the cluster installs %s through OLM, and quayside renders it", in.object, in.operator)}
		if w = waive([]diag.Warning{w})[0]; !w.Waived {
			faults.Add(diag.Pos{}, diag.Hintf(diag.Pos{}, "leave OLM first (docs/adopt.md), or delete the object if OLM has not installed anything yet", "%s [%s]", w.Msg, w.Code))
		}
	}
	return waive(unread), faults.Err()
}

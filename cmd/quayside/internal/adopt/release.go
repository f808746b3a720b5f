package adopt

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
)

// Release is a Helm release that installed an operator.
type Release struct {
	Name   string   `json:"name" doc:"Name of the release, with its newest revision: cert-manager.v3."`
	Chart  string   `json:"chart,omitempty" doc:"Chart and version: cert-manager-1.19.1."`
	Status string   `json:"status" doc:"Status of the newest revision, such as deployed."`
	Owner  string   `json:"owner,omitempty" doc:"The HelmRelease of Flux that manages the release."`
	Values []Field  `json:"values,omitempty" doc:"Values that differ between the release (cluster) and the lock (tree)."`
	Hooks  []string `json:"hooks,omitempty" doc:"Hooks of the release in the tree that are not in the cluster. A plan does not apply them: they run when the GitOps tool first applies the tree."`
}

// assignReleases assigns Helm releases, and the objects that they installed, to operators. A release belongs to
// the operator whose pin is a chart with the same namespace and release name.
func (c *clusterState) assignReleases() {
	for _, r := range c.Releases() {
		i := slices.IndexFunc(c.operators, func(op *operator) bool {
			return op.pin != nil && op.pin.Template != nil && op.Namespace == r.Namespace && op.pin.Template.Release == r.Name
		})
		if i < 0 {
			continue
		}
		op := c.operators[i]
		op.release = r
		for _, o := range r.Records {
			c.add(o, op)
		}
		for _, o := range r.Objects {
			live := c.Find(r, o)
			if c.add(live, op); live == nil || live.Labels[snapshot.FluxRelease] == "" || op.flux != nil {
				continue
			}
			key := k8s.Key{Group: snapshot.FluxGroup, Kind: "HelmRelease", Namespace: live.Labels[snapshot.FluxReleaseIn], Name: live.Labels[snapshot.FluxRelease]}
			op.flux = &key
			if c.add(c.Get(key), op); c.Get(key) == nil {
				op.addReason(Reason{Code: "unreadable", Object: key.String(), Message: key.String() + " of Flux installed " + live.String() + " and must be suspended, but was not found: include HelmReleases (helm.toolkit.fluxcd.io)"})
			}
		}
	}
}

// installer returns the name of the program that installed the operator.
func (op *operator) installer() string {
	if op.release != nil {
		return "Helm"
	}
	return "OLM"
}

// reportRelease returns the report about the release of an operator, or nil if Helm did not install the
// operator.
func (op *operator) reportRelease() *Release {
	r := op.release
	if r == nil {
		return nil
	}
	out := &Release{Name: fmt.Sprintf("%s.v%d", r.Name, r.Revision), Status: r.Status}
	if r.Chart != "" {
		out.Chart = r.Chart + "-" + r.Version
	}
	if op.flux != nil {
		out.Owner = op.flux.String()
	}
	for _, o := range op.objects {
		if o.Class == Added && op.isHook(o.Key) {
			out.Hooks = append(out.Hooks, o.String())
		}
	}
	if r.Fault != "" || r.Chart == "" {
		return out
	}
	ours := map[string]any{}
	_ = utiljson.Unmarshal(op.pin.Template.Values, &ours) // absent, or validated with the lock
	CompareValues("", toMapping(any(r.Values)), ours, func(f Field, _, _ any) { out.Values = append(out.Values, f) })
	return out
}

// isHook reports whether the object with this key is a hook of the operator's release.
func (op *operator) isHook(key k8s.Key) bool {
	return op.release != nil && slices.ContainsFunc(op.release.Hooks, func(o *snapshot.LiveObject) bool {
		return o.Group == key.Group && o.Kind == key.Kind && o.Name == key.Name
	})
}

// releaseReasons returns the reasons against adopting an operator that follow from its Helm release.
func (x *inspector) releaseReasons(op *operator) []Reason {
	out, r, report := []Reason{}, op.release, op.reportRelease()
	block := func(code, format string, args ...any) {
		out = append(out, Reason{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case strings.HasPrefix(r.Status, "pending-"), r.Status == "uninstalling":
		block("replacing", "Helm release %s is %s: wait until Helm is done; if it was interrupted, return to the previous revision with 'helm rollback'", report.Name, r.Status)
	case r.Status != "deployed":
		block("release-not-deployed", "Helm release %s is %s, not deployed: repeat the upgrade, or return to the previous revision with 'helm rollback'", report.Name, r.Status)
	case r.Fault != "":
		block("unreadable", "Helm release %s cannot be read: %s", report.Name, r.Fault)
	case strings.TrimPrefix(r.Version, "v") != strings.TrimPrefix(op.pin.Version, "v"):
		block("other-version", "the lock pins version %s, but Helm installed %s: pin that version, and upgrade after the adoption", op.pin.Version, report.Chart)
	case len(report.Values) > 0 && x.isRenderedOtherwise(op):
		block("other-values", "the values of Helm release %s differ from the values in the lock, and change objects (%s): declare the values of the release ('helm get values %s --namespace %s >values.yaml', 'quayside add %s --values values.yaml'), then resolve and render again",
			report.Name, fieldPaths(report.Values), r.Name, r.Records[0].Namespace, op.Package)
	}
	for _, o := range r.Objects {
		if ours := x.treeObject(r, o); ours != nil && o.Is("Secret") && !maps.Equal(secretData(o.Body()), secretData(ours)) {
			block("other-secret", "the data of %s in the tree differs from the data that Helm installed: set the chart's values that determine this data", ours.Key())
		}
	}
	return out
}

// treeObject returns the object of the tree that corresponds to a manifest of a release, or nil.
func (x *inspector) treeObject(r *snapshot.Release, o *snapshot.LiveObject) k8s.Object {
	key := o.Key
	if x.ours[key].Object == nil {
		key.Namespace = cmp.Or(key.Namespace, r.Namespace)
	}
	return x.ours[key].Object
}

// isRenderedOtherwise reports whether the objects of an operator in the tree differ from those of its release.
func (x *inspector) isRenderedOtherwise(op *operator) bool {
	if slices.ContainsFunc(op.objects, func(o ClassifiedObject) bool {
		return o.Class == Unknown || o.Class == Added && !op.isHook(o.Key)
	}) {
		return true
	}
	return slices.ContainsFunc(op.release.Objects, func(o *snapshot.LiveObject) bool {
		ours := x.treeObject(op.release, o)
		if ours == nil {
			return false
		}
		fields, err := x.compareFields(k8s.With(o.Body(), ours.Namespace(), "metadata", "namespace"), ours)
		return err != nil || slices.ContainsFunc(fields, func(f Field) bool { return !f.isMark() && f.Path != "metadata.namespace" })
	})
}

// secretData returns the data of a Secret. Entries of stringData take precedence, as in the API server.
func secretData(o k8s.Object) map[string]string {
	out := map[string]string{}
	for key, text := range k8s.TextMap(o, "data") {
		data, err := base64.StdEncoding.DecodeString(text)
		if out[key] = string(data); err != nil {
			out[key] = text
		}
	}
	maps.Copy(out, k8s.TextMap(o, "stringData"))
	return out
}

// addReleasePodReasons adds a reason for the differences between a live workload and the tree. If a field was changed
// in the cluster after Helm had written it, the reason blocks the adoption, because the tree would revert the change.
// Fields that exist only in the cluster and were not written by Helm give no reason: applying the tree keeps them.
func (x *inspector) addReleasePodReasons(op *operator, live *snapshot.LiveObject, fields []Field) {
	i := slices.IndexFunc(op.release.Objects, func(o *snapshot.LiveObject) bool { return x.Find(op.release, o) == live })
	if i < 0 {
		return
	}
	name := live.String()
	theirs, err := x.compareFields(live.Body(), op.release.Objects[i].Body())
	if err != nil {
		op.addReason(Reason{Code: "unreadable", Object: name, Message: "the release's manifest of " + name + " does not match its kind: " + err.Error()})
		return
	}
	theirs = fieldsBelow(theirs, "spec.")
	foreign := func(f Field) bool { return f.Kind == OnlyLive && slices.Contains(theirs, f) }
	restarts := slices.DeleteFunc(fieldsBelow(fields, "spec.template."), foreign)
	if drift := slices.DeleteFunc(theirs, func(f Field) bool { return f.Kind == OnlyLive || !slices.Contains(fields, f) }); len(drift) > 0 {
		op.addReason(Reason{Code: "unlike-release", Object: name, Fields: drift, Message: name + " differs from the object that Helm installed: " + fieldPaths(drift) +
			"; the tree would revert this. Set it by values or spec.config of the Subscription, or by a patch in the cluster's overlay, or revert it first"})
	} else if len(restarts) > 0 {
		op.addReason(Reason{Code: "restart", Object: name, Fields: restarts, Message: "the tree changes the pods of " + name + ": " + fieldPaths(restarts)})
	}
}

// writeText writes the owner of the release, the differing values, and the hooks.
func (r *Release) writeText(w io.Writer) {
	if r == nil {
		return
	}
	if r.Owner != "" {
		fmt.Fprintf(w, "    managed by %s\n", sanitize.Line(r.Owner))
	}
	for _, f := range r.Values {
		fmt.Fprintf(w, "    value %s\n", sanitize.Line(fmt.Sprintf("%s: %s", f.Kind, f.Path)))
	}
	for _, h := range r.Hooks {
		fmt.Fprintf(w, "    hook %s runs when the tree is first applied by the GitOps tool\n", sanitize.Line(h))
	}
}

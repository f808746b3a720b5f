package adopt

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/render/needs"
)

// classifyShared classifies a live object that is also in the tree.
func (x *inspector) classifyShared(live *snapshot.LiveObject, r render.Rendered, c comparison, ops []*operator) ClassifiedObject {
	out := ClassifiedObject{Key: live.Key}
	if c.err != nil {
		out.Class = Unknown
		for _, op := range ops {
			op.addReason(Reason{Code: "unreadable", Object: live.String(), Message: live.String() + " does not match its kind: " + c.err.Error()})
		}
		return out
	}
	out.Class, out.Fields = Equal, c.fields
	if len(out.Changes()) > 0 {
		out.Class = Changed
	}
	switch {
	case len(ops) != 1 || isOurs(live):
	case ops[0].release != nil && live.Group == "apps":
		x.addReleasePodReasons(ops[0], live, c.fields)
	case r.Object.Is("apps", "Deployment"):
		x.addPodReasons(ops[0], live, r.Object, c.fields)
	}
	return out
}

// isMark reports whether the field only identifies the owner or the manager of the object.
func (f Field) isMark() bool {
	if strings.HasPrefix(f.Path, "metadata.ownerReferences") || strings.HasPrefix(f.Path, "metadata.finalizers") {
		return true
	}
	for _, meta := range []string{"metadata.labels.", "metadata.annotations."} {
		key, ok := strings.CutPrefix(f.Path, meta)
		if !ok {
			continue
		}
		for _, own := range []string{
			k8s.LabelManagedBy, "quayside.dev/", "olm.", prefixComponent, "operatorframework.io/installed-alongside-", "meta.helm.sh/release-",
		} {
			if strings.HasPrefix(key, own) {
				return true
			}
		}
		if profile.IsToolKey(key) {
			return true
		}
	}
	return false
}

// addPodReasons compares the spec of a live Deployment with ours, the rendered Deployment. If the live Deployment
// differs from the bundle, too, the adoption is blocked. Otherwise the workspace's settings cause the differences:
// addPodReasons announces a restart if they change the pod template, and adds no reason if they do not.
func (x *inspector) addPodReasons(op *operator, live *snapshot.LiveObject, ours k8s.Object, fields []Field) {
	spec := fieldsBelow(fields, "spec.")
	if len(spec) == 0 || op.pin == nil {
		return
	}
	name := ours.Key().String()
	if len(op.extensions) > 0 { // OLM v1 reverts changes to its objects: the live Deployment is as in the bundle
		if restarts := fieldsBelow(spec, "spec.template."); len(restarts) > 0 {
			op.addReason(Reason{Code: "restart", Object: name, Fields: restarts, Message: "the tree changes the pods of " + name + ": " + fieldPaths(restarts)})
		}
		return
	}
	theirs, err := x.compareGenerated(op, live)
	if err != nil {
		op.addReason(Reason{Code: "unreadable", Object: name, Message: "OLM's version of " + name + " cannot be determined: " + err.Error()})
		return
	}
	if unlike := fieldsBelow(theirs, "spec."); len(unlike) > 0 {
		op.addReason(Reason{Code: "unlike-bundle", Object: name, Fields: unlike, Message: name + " differs from the object that OLM generates from the bundle: " + fieldPaths(unlike) +
			"; the tree would revert this. Move it to spec.config of the Subscription or to a patch in the cluster's overlay, or revert it first"})
		return
	}
	if restarts := fieldsBelow(spec, "spec.template."); len(restarts) > 0 {
		op.addReason(Reason{Code: "restart", Object: name, Fields: restarts, Message: "the workspace's settings change the pods of " + name + ": " + fieldPaths(restarts)})
	}
}

// compareGenerated returns the fields that differ between a live Deployment and the Deployment that OLM
// generates from the pinned bundle.
func (x *inspector) compareGenerated(op *operator, live *snapshot.LiveObject) ([]Field, error) {
	if op.generated == nil {
		pin := *op.pin
		if op.subscription != nil {
			var err error
			if pin.Config, err = json.Marshal(op.subscription.Config); err != nil {
				return nil, err
			}
		}
		all, err := x.GenerateDeployments(pin)
		if err != nil {
			return nil, err
		}
		op.generated = map[string]k8s.Object{}
		for _, o := range all {
			op.generated[o.Name()] = o
		}
	}
	made, has := op.generated[live.Name]
	if !has {
		return nil, errors.New("the bundle does not have it")
	}
	return x.compareFields(live.Body(), made)
}

// fieldsBelow returns the fields whose path starts with prefix.
func fieldsBelow(fields []Field, prefix string) []Field {
	var out []Field
	for _, f := range fields {
		if strings.HasPrefix(f.Path, prefix) {
			out = append(out, f)
		}
	}
	return out
}

// maxFields is the maximum number of fields listed in a message.
const maxFields = 3

func fieldPaths(fields []Field) string {
	var out []string
	for _, f := range fields {
		out = append(out, f.Path)
	}
	return diag.Some(out, maxFields)
}

// isLost reports whether OLM created an object of the tree that is now missing from the cluster. OLM created it
// if the InstallPlan of the pinned version lists it, or if it is a Deployment, APIService or Service of this
// version. If OLM no longer manages the operator, only Deployments and APIServices can be lost.
func (x *inspector) isLost(op *operator, o k8s.Object) bool {
	runs := o.Is("apps", "Deployment") || o.Is(k8s.APIServiceGroup, "APIService")
	csv := op.csv()
	if csv == nil && op.subscription == nil {
		return runs
	}
	if csv == nil || csv.Phase != "Succeeded" || op.pin == nil || csv.Name != op.pin.Bundle {
		return false
	}
	key := o.Key()
	planned := false
	for _, plan := range x.plans[op.Namespace] {
		for _, step := range plan.Steps {
			planned = planned || step.CSV == csv.Name
			if step.CSV == csv.Name && step.Group == key.Group && step.Kind == key.Kind && step.Name == key.Name {
				return true
			}
		}
	}
	if o.Is("", "Service") {
		return !planned || strings.HasSuffix(key.Name, "-service") && x.Get(k8s.Key{Group: "apps", Kind: "Deployment", Namespace: key.Namespace, Name: strings.TrimSuffix(key.Name, "-service")}) != nil
	}
	return runs
}

func (x *inspector) reportOperator(op *operator) Operator {
	out := Operator{OperatorKey: op.OperatorKey, Objects: append([]ClassifiedObject{}, op.objects...), Counts: countObjects(op.objects)}
	if csv := op.csv(); csv != nil {
		out.CSV = csv.Name
	}
	if op.pin != nil {
		out.Pinned = op.pin.Bundle
	}
	if len(op.extensions) > 0 {
		out.Extension = op.extensions[0].Name
	}
	out.Release = op.reportRelease()
	out.State, out.Reasons = x.adoptionState(op)
	return out
}

// adoptionState returns the state of an operator with its reasons.
func (x *inspector) adoptionState(op *operator) (State, []Reason) {
	reasons := []Reason{}
	if op.subscription != nil || len(op.csvs) > 0 {
		reasons = x.blockingReasons(op)
	} else if len(op.extensions) > 0 {
		reasons = op.extensionReasons()
	} else if op.release != nil {
		reasons = x.releaseReasons(op)
	} else if state := op.detachedState(); state != Adoptable {
		return state, reasons
	}
	reasons = append(reasons, op.unknownObjectReasons()...)
	restart := false
	for _, r := range op.reasons {
		restart = restart || r.Code == "restart"
		if r.Code != "restart" {
			reasons = append(reasons, r)
		}
	}
	if len(op.tree) == 0 && len(reasons) == 0 {
		reasons = []Reason{notInTreeReason()}
	}
	switch {
	case len(reasons) > 0:
		return blockedState(reasons), reasons
	case restart:
		return WithRestart, op.reasons
	}
	return Adoptable, reasons
}

// notInTreeReason returns the reason for a pinned operator that has no objects in this cluster's tree.
func notInTreeReason() Reason {
	return Reason{Code: "not-in-tree", Message: "after the adoption, nothing would manage the operator, because the tree of this cluster does not contain it: add the operator to the cluster's operators in quayside.yaml"}
}

// detachedState returns the state of an operator without a Subscription and ClusterServiceVersion. The state is
// Adoptable if some of its objects have OLM's labels and quayside rendered none of its objects.
func (op *operator) detachedState() State {
	theirs, own := 0, 0
	for _, o := range op.members {
		switch {
		case isOurs(o):
			own++
		case o.Labels[labelManaged] != "" || o.Labels[labelOwner] != "":
			theirs++
		}
	}
	switch {
	case own > 0 && (theirs > 0 || op.pin != nil && op.pin.Adopted != nil):
		return AlreadyAdopted
	case own > 0, theirs == 0:
		return NotOLM
	}
	return Adoptable
}

// unknownObjectReasons returns a blocking reason for each object of unknown origin.
func (op *operator) unknownObjectReasons() []Reason {
	var out []Reason
	for _, o := range op.objects {
		if o.Class == Unknown {
			out = append(out, Reason{Code: "unknown-object", Object: o.String(), Message: o.String() +
				" belongs to the operator, but OLM did not create it and the tree does not contain it. Decide whether to keep it: delete it, or detach it from the operator by removing its label or ownerReference"})
			if op.release != nil {
				out[len(out)-1].Message = o.String() + " was installed by Helm, and the tree does not contain it: change the values so that the tree contains the object, or upgrade the release so that Helm deletes the object"
			}
		}
	}
	return out
}

// blockingReasons returns the reasons against adopting an operator that follow from OLM's own objects, such as
// a pending upgrade.
func (x *inspector) blockingReasons(op *operator) []Reason {
	out := []Reason{}
	block := func(code, format string, args ...any) {
		out = append(out, Reason{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	csv := op.csv()
	switch {
	case csv == nil && op.subscription.InstalledCSV == "":
		block("not-installed", "Subscription %s has no installed version: wait until OLM has installed a version, or delete the Subscription", op.subscription.Name)
	case csv == nil:
		block("installed-csv-gone", "ClusterServiceVersion %s, the installedCSV of Subscription %s, is missing: set spec.startingCSV and delete the Subscription's status, or install again", op.subscription.InstalledCSV, op.subscription.Name)
	case parentOf(csv) != "" && parentOf(csv) != csv.Namespace:
		block("copy-as-parent", "ClusterServiceVersion %s has the annotation olm.operatorNamespace: %s, so OLM treats it as a copy and never installed the operator: publish the bundle without this annotation", csv.Name, parentOf(csv))
	case csv.Phase != "Succeeded":
		block("csv-not-succeeded", "ClusterServiceVersion %s is %s%s: OLM has not installed it", csv.Name, formatPhase(csv), strings.TrimSuffix(": "+csv.Message, ": "))
	}
	if len(op.otherSubscriptions) > 0 {
		block("several-subscriptions", "the package also has the Subscription %s, from which OLM would install: keep only %s, and delete the others with --cascade=orphan", strings.Join(op.otherSubscriptions, ", "), op.subscription.Name)
	}
	switch {
	case op.pin == nil && op.subscription == nil:
		block("not-pinned", "no Subscription: create a Subscription for package %s with spec.startingCSV %s, and run 'quayside import' when the version is installed", op.Package, csv.Name)
	case op.pin == nil:
		block("not-pinned", "not in the lock: run 'quayside import'")
	case csv != nil && csv.Name != op.pin.Bundle:
		block("other-version", "the lock pins %s, but %s is installed: run 'quayside import', or let OLM upgrade first", op.pin.Bundle, csv.Name)
	}
	if len(op.csvs) > 1 {
		var names []string
		for _, c := range op.csvs {
			names = append(names, c.Name+" ("+formatPhase(&c)+")")
		}
		block("replacing", "an upgrade is in progress: %s; wait until only one is left", strings.Join(names, ", "))
	}
	for _, plan := range x.plans[op.Namespace] {
		if x.isInFlight(op, plan) {
			block("plan-in-flight", "InstallPlan %s is %s: wait until it is Complete", plan.Name, plan.Phase)
		}
	}
	if permissions := op.installPermissions(); len(permissions) > 0 {
		block("drives-olm", "the operator uses OLM itself: %s; these functions stop with OLM (see 'quayside adopt check')", strings.Join(permissions, "; "))
	}
	return out
}

// extensionReasons returns the reasons against adopting an operator that follow from its ClusterExtensions.
func (op *operator) extensionReasons() []Reason {
	out := []Reason{}
	block := func(code, format string, args ...any) {
		out = append(out, Reason{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	e := op.extensions[0]
	switch {
	case e.Bundle == "":
		block("not-installed", "ClusterExtension %s has no installed version: wait until OLM has installed a version", e.Name)
	case op.pin == nil:
		block("not-pinned", "not in the lock: run 'quayside import'")
	case e.Bundle != op.pin.Bundle:
		block("other-version", "the lock pins %s, but %s is installed: run 'quayside import', and pin the version in the ClusterExtension", op.pin.Bundle, e.Bundle)
	}
	if e.Progress == "RollingOut" {
		block("replacing", "ClusterExtension %s is being rolled out: %s", e.Name, e.Message)
	}
	if len(op.extensions) > 1 {
		block("several-subscriptions", "ClusterExtension %s is for the same package in the same namespace: delete the ClusterExtension that installed nothing", op.extensions[1].Name)
	}
	return out
}

// isInFlight reports whether OLM is executing an InstallPlan for the operator.
func (x *inspector) isInFlight(op *operator, plan snapshot.InstallPlan) bool {
	return (plan.Phase == "Installing" || plan.Phase == "Planning") && slices.Contains(x.operatorsOf[plan.Key], op)
}

func formatPhase(csv *snapshot.CSV) string {
	if csv.Phase == "" {
		return "without a phase"
	}
	return csv.Phase
}

// parentOf returns the annotation olm.operatorNamespace of a ClusterServiceVersion, or "". OLM sets
// it to the install namespace, but a bundle can override it.
func parentOf(csv *snapshot.CSV) string {
	namespace, _ := csv.At("metadata", "annotations", "olm.operatorNamespace").(string)
	return namespace
}

// installPermissions returns the permissions in the tree that let the operator install other operators through
// OLM, sorted.
func (op *operator) installPermissions() []string {
	signals, _ := needs.PermissionSignals(op.tree)
	var out []string
	for _, s := range signals {
		if s.Need == needs.NeedsOLM {
			out = append(out, s.Object+" "+s.What)
		}
	}
	slices.Sort(out)
	return out
}

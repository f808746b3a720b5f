package adopt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/render"
)

// taken returns what becomes of a live object that the tree has too.
func (x *inspector) taken(live *snapshot.Object, r render.Rendered, c compared, ops []*operator) Object {
	out := described(live.Key)
	if c.err != nil {
		out.Class = Unknown
		for _, op := range ops {
			x.because(op, Reason{Code: "unreadable", Object: live.String(), Message: live.String() + " is not what its kind should be: " + c.err.Error()})
		}
		return out
	}
	out.Class, out.Fields = Equal, c.fields
	if len(out.Changes()) > 0 {
		out.Class = Changed
	}
	if len(ops) == 1 && r.Object.Is("apps", "Deployment") && !ours(live) {
		x.pods(ops[0], live, r.Object, c.fields)
	}
	return out
}

// mark reports whether a field only says who manages the object.
func (f Field) mark() bool {
	if strings.HasPrefix(f.Path, "metadata.ownerReferences") || strings.HasPrefix(f.Path, "metadata.finalizers") {
		return true
	}
	for _, meta := range []string{"metadata.labels.", "metadata.annotations."} {
		key, ok := strings.CutPrefix(f.Path, meta)
		if !ok {
			continue
		}
		for _, own := range []string{
			kobj.LabelManagedBy, "quayside.dev/", "olm.", prefixComponent, "operatorframework.io/installed-alongside-",
			"argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/",
		} {
			if strings.HasPrefix(key, own) {
				return true
			}
		}
	}
	return false
}

// pods says what a Deployment's differences mean for its pods: those that come of
// the workspace's settings restart them; others are none of the bundle.
func (x *inspector) pods(op *operator, live *snapshot.Object, ours kobj.Object, fields []Field) {
	spec := within(fields, "spec.")
	if len(spec) == 0 || op.pin == nil {
		return
	}
	name := ours.Key().String()
	made, err := x.deployment(op, ours.Name())
	if err != nil {
		x.because(op, Reason{Code: "unreadable", Object: name, Message: "what OLM made of " + name + " cannot be told: " + err.Error()})
		return
	}
	theirs, err := x.fields(live.Body(), made)
	if unlike := within(theirs, "spec."); err != nil || len(unlike) > 0 {
		x.because(op, Reason{Code: "unlike-bundle", Object: name, Fields: unlike, Message: name + " is not as OLM makes it of the bundle: " + paths(unlike) +
			"; the tree would undo that. Put it into spec.config of the Subscription or into a patch of the cluster's overlay, or undo it first"})
		return
	}
	if restarts := within(spec, "spec.template."); len(restarts) > 0 {
		x.because(op, Reason{Code: "restart", Object: name, Fields: restarts, Message: "the workspace's settings change the pods of " + name + ": " + paths(restarts)})
	}
}

// deployment returns a Deployment as OLM makes it of the operator's pin.
func (x *inspector) deployment(op *operator, name string) (kobj.Object, error) {
	if x.made[op] == nil {
		pin := *op.pin
		if op.subscription != nil {
			var err error
			if pin.Config, err = json.Marshal(op.subscription.Config); err != nil {
				return nil, err
			}
		}
		all, err := x.Made(pin)
		if err != nil {
			return nil, err
		}
		x.made[op] = map[string]kobj.Object{}
		for _, o := range all {
			x.made[op][o.Name()] = o
		}
	}
	return x.made[op][name], nil
}

// within returns the fields below a path.
func within(fields []Field, prefix string) []Field {
	var out []Field
	for _, f := range fields {
		if strings.HasPrefix(f.Path, prefix) {
			out = append(out, f)
		}
	}
	return out
}

// most is how many fields a message names.
const most = 3

func paths(fields []Field) string {
	var out []string
	for _, f := range fields[:min(most, len(fields))] {
		out = append(out, f.Path)
	}
	text := strings.Join(out, ", ")
	if more := len(fields) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// lost reports whether OLM made an object that is no longer there: one that the
// InstallPlan names, or one that follows from the ClusterServiceVersion and to
// which quayside gives the name that OLM does. Where OLM has forgotten the operator
// it is what the operator runs and serves by.
func (x *inspector) lost(op *operator, o kobj.Object) bool {
	runs := o.Is("apps", "Deployment") || o.Is("apiregistration.k8s.io", "APIService")
	csv := op.csv()
	if csv == nil && op.subscription == nil {
		return runs
	}
	if csv == nil || csv.Phase != "Succeeded" || op.pin == nil || csv.Name != op.pin.Bundle {
		return false
	}
	key := o.Key()
	planned := false
	for _, plan := range x.plans[op.namespace] {
		for _, step := range plan.Steps {
			planned = planned || step.CSV == csv.Name
			if step.CSV == csv.Name && step.Group == key.Group && step.Kind == key.Kind && step.Name == key.Name {
				return true
			}
		}
	}
	if o.Is("", "Service") {
		return !planned || strings.HasSuffix(key.Name, "-service") && x.Get(kobj.Key{Group: "apps", Kind: "Deployment", Namespace: key.Namespace, Name: strings.TrimSuffix(key.Name, "-service")}) != nil
	}
	return runs
}

// judge returns what is to be said of an operator.
func (x *inspector) judge(op *operator) Operator {
	out := Operator{Namespace: op.namespace, Package: op.pkg, Objects: append([]Object{}, x.objects[op]...), Counts: count(x.objects[op])}
	if csv := op.csv(); csv != nil {
		out.CSV = csv.Name
	}
	if op.pin != nil {
		out.Pinned = op.pin.Bundle
	}
	out.State, out.Reasons = x.state(op, out.Objects)
	return out
}

// state returns the state of an operator with its reasons.
func (x *inspector) state(op *operator, objects []Object) (State, []Reason) {
	if op.subscription == nil && len(op.csvs) == 0 {
		return x.without(op, objects)
	}
	reasons := append(x.refusals(op), x.unknown(objects)...)
	restart := false
	for _, r := range x.reasons[op] {
		restart = restart || r.Code == "restart"
		if r.Code != "restart" {
			reasons = append(reasons, r)
		}
	}
	switch {
	case len(reasons) > 0:
		return Blocked, reasons
	case len(x.tree[op.key()]) == 0:
		return Blocked, []Reason{notInTree()}
	case restart:
		return WithRestart, x.reasons[op]
	}
	return Adoptable, []Reason{}
}

// notInTree is why nothing can take over from OLM what the lock pins.
func notInTree() Reason {
	return Reason{Code: "not-in-tree", Message: "the cluster does not get it of the tree, so that nothing would take OLM's place: name it in operators of the cluster in quayside.yaml"}
}

// without returns the state of an operator that OLM does not have, or no longer.
func (x *inspector) without(op *operator, objects []Object) (State, []Reason) {
	theirs, own := 0, 0
	for _, o := range op.members {
		switch {
		case ours(o):
			own++
		case o.Labels[labelManaged] != "" || o.Labels[labelOwner] != "":
			theirs++
		}
	}
	switch {
	case op.pin != nil && op.pin.Adopted != nil && own > 0:
		return AlreadyAdopted, []Reason{}
	case own > 0, theirs == 0:
		if own > 0 && theirs > 0 {
			return AlreadyAdopted, []Reason{}
		}
		return NotOLM, []Reason{}
	}
	reasons := append([]Reason{}, x.unknown(objects)...)
	for _, r := range x.reasons[op] {
		if r.Code != "restart" {
			reasons = append(reasons, r)
		}
	}
	switch {
	case len(reasons) > 0:
		return Blocked, reasons
	case len(x.tree[op.key()]) == 0:
		return Blocked, []Reason{notInTree()}
	}
	return Adoptable, append(reasons, x.reasons[op]...)
}

// unknown returns a reason for each object of which nobody knows why it is there.
func (x *inspector) unknown(objects []Object) []Reason {
	var out []Reason
	for _, o := range objects {
		if o.Class == Unknown {
			out = append(out, Reason{Code: "unknown-object", Object: o.Key().String(), Message: o.Key().String() +
				" belongs to the operator, and neither OLM nor the tree makes it: nobody knows what becomes of it. Delete it, or take it out of the operator by removing its label or ownerReference"})
		}
	}
	return out
}

// refusals returns what of OLM's keeps an operator from being adopted.
func (x *inspector) refusals(op *operator) []Reason {
	out := []Reason{}
	no := func(code, format string, args ...any) {
		out = append(out, Reason{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	csv := op.csv()
	switch {
	case csv == nil && op.subscription.InstalledCSV == "":
		no("not-installed", "Subscription %s has installed nothing: let OLM install it, or delete the Subscription", op.subscription.Name)
	case csv == nil:
		no("installed-csv-gone", "ClusterServiceVersion %s, which Subscription %s says is installed, is not there: set spec.startingCSV and delete the Subscription's status, or install again", op.subscription.InstalledCSV, op.subscription.Name)
	case parentOf(csv) != "" && parentOf(csv) != csv.Namespace:
		no("copy-as-parent", "ClusterServiceVersion %s says that it is of namespace %s, and OLM takes it for a copy: it never installed the operator; publish it without the annotation olm.operatorNamespace", csv.Name, parentOf(csv))
	case csv.Phase != "Succeeded":
		no("csv-not-succeeded", "ClusterServiceVersion %s is %s%s: OLM has not installed it", csv.Name, phaseOf(csv), strings.TrimSuffix(": "+csv.Message, ": "))
	}
	if len(op.rivals) > 0 {
		no("several-subscriptions", "Subscription %s subscribes to the package too: delete all but %s, with --cascade=orphan, for OLM installs by any that is left", strings.Join(op.rivals, ", "), op.subscription.Name)
	}
	switch {
	case op.pin == nil && op.subscription == nil:
		no("not-pinned", "no Subscription says that OLM installed it: create one to package %s with spec.startingCSV %s, and run quayside import when it is installed", op.pkg, csv.Name)
	case op.pin == nil:
		no("not-pinned", "the lock does not have it: run quayside import")
	case csv != nil && csv.Name != op.pin.Bundle:
		no("other-version", "the lock pins %s, and %s is installed: run quayside import, or let OLM upgrade first", op.pin.Bundle, csv.Name)
	}
	if len(op.csvs) > 1 {
		var names []string
		for _, c := range op.csvs {
			names = append(names, c.Name+" ("+phaseOf(&c)+")")
		}
		no("replacing", "an upgrade is under way: %s; wait until one is left", strings.Join(names, ", "))
	}
	for _, plan := range x.plans[op.namespace] {
		if x.inFlight(op, plan) {
			no("plan-in-flight", "InstallPlan %s is %s: wait until it is Complete", plan.Name, plan.Phase)
		}
	}
	if rights := x.drives(op); len(rights) > 0 {
		no("drives-olm", "the operator drives OLM itself: %s; what it does so stops with OLM (quayside adopt check says more)", strings.Join(rights, "; "))
	}
	return out
}

// inFlight reports whether OLM is carrying out a plan of an operator.
func (x *inspector) inFlight(op *operator, plan snapshot.InstallPlan) bool {
	return (plan.Phase == "Installing" || plan.Phase == "Planning") && slices.Contains(x.of[plan.Key], op)
}

func phaseOf(csv *snapshot.CSV) string {
	if csv.Phase == "" {
		return "in no phase"
	}
	return csv.Phase
}

// parentOf returns the namespace that a ClusterServiceVersion says OLM installed it
// in, which is its own unless the bundle says it.
func parentOf(csv *snapshot.CSV) string {
	namespace, _ := csv.At("metadata", "annotations", "olm.operatorNamespace").(string)
	return namespace
}

// drives returns by which rights an operator, as the tree has it, installs others
// through OLM.
func (x *inspector) drives(op *operator) []string {
	signals, _ := rights(x.tree[op.key()])
	var out []string
	for _, s := range signals {
		if s.Need == NeedsOLM {
			out = append(out, s.Object+" "+s.What)
		}
	}
	slices.Sort(out)
	return out
}

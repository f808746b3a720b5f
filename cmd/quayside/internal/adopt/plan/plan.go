// Package plan makes the plan to adopt operators from OLM: a file that people review and commit,
// and that `quayside adopt run` executes step by step. [MakeRevert] makes the plan to return them
// to OLM, from a plan, the executed steps, and the earlier state of the objects.
//
// The package is pure: its arguments are the result of adopt.Inspect, a snapshot of the cluster
// and the rendered lock, and its result is a [Plan]. It also defines the meaning of a step, as
// kubectl commands and as required permissions.
package plan

import (
	"slices"

	"github.com/quayside/quayside/internal/k8s"
)

// Plan is the migration of a cluster's operators away from OLM. Each step is completed,
// with its checks, before the next begins.
type Plan struct {
	APIVersion string            `json:"apiVersion" form:"required const=quayside.dev/v1alpha1" doc:"quayside.dev/v1alpha1"`
	Kind       string            `json:"kind" form:"required const=AdoptionPlan" doc:"AdoptionPlan"`
	Cluster    string            `json:"cluster,omitempty" doc:"Cluster of quayside.yaml whose objects are applied. Absent if there is only one."`
	ClusterUID string            `json:"clusterUID" form:"required" doc:"UID of the Namespace kube-system: the plan is for no other cluster."`
	Mode       Mode              `json:"mode" form:"required enum=stopped|live|uninstall" doc:"stopped: OLM's controllers are stopped while an operator is detached; live: they keep running, and the losses are listed; uninstall: OLM itself is deleted."`
	Lock       string            `json:"lock" form:"required" doc:"Digest of the lock that is rendered."`
	Tree       string            `json:"tree" form:"required" doc:"Digest of the tree rendered for the cluster."`
	Manager    string            `json:"manager" form:"required" doc:"Field manager of applied objects: that of the GitOps tool that applies the tree later."`
	OLM        []Workload        `json:"olm" doc:"OLM's controllers, which are stopped and started again."`
	State      []State           `json:"state" doc:"State of OLM's declarations and of the pods when the plan was made. A plan is refused if it has changed."`
	Operators  []Operator        `json:"operators" doc:"By namespace and package."`
	Skipped    []SkippedOperator `json:"skipped" doc:"Omitted operators and objects, with the reason."`
	Steps      []Step            `json:"steps" doc:"In order."`
}

// Namespaces returns the namespaces of the operators that the plan adopts, sorted.
func (p *Plan) Namespaces() []string {
	var out []string
	for _, op := range p.Operators {
		out = append(out, op.Namespace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// IsForExtensions reports whether OLM v1 manages the operators of the plan.
func (p *Plan) IsForExtensions() bool {
	return slices.ContainsFunc(p.Operators, func(op Operator) bool { return op.Extension != "" })
}

// Mode is the handling of OLM's controllers during the detach.
type Mode string

// The modes.
const (
	Stopped Mode = "stopped"   // mode A
	Live    Mode = "live"      // mode B
	Removal Mode = "uninstall" // no operator is left: OLM itself is deleted
)

// Workload is a Deployment with the number of its replicas.
type Workload struct {
	Object   k8s.Ref `json:"object"`
	UID      string  `json:"uid"`
	Replicas int64   `json:"replicas"`
}

// State is the state of a Subscription, an OperatorGroup, a CatalogSource or a Deployment.
type State struct {
	Object k8s.Ref `json:"object" form:"required"`
	Spec   string  `json:"spec,omitempty" doc:"Its spec, as JSON. Absent for a Deployment."`
	Pods   string  `json:"podTemplate,omitempty" doc:"Digest of the pod template of a Deployment."`
}

// Operator is an operator that the plan adopts.
type Operator struct {
	Namespace    string   `json:"namespace"`
	Package      string   `json:"package"`
	CSV          string   `json:"csv" doc:"Its ClusterServiceVersion, or its bundle if it has none."`
	Extension    string   `json:"clusterExtension,omitempty" doc:"Its ClusterExtension, if OLM v1 manages it: adopt run refuses the plan, whose steps are carried out by hand."`
	Detached     bool     `json:"detached,omitempty" doc:"Detached from OLM, and the lock keeps no settings of OLM: the plan removes OLM's remaining fields from its objects."`
	Restarts     []string `json:"restarts,omitempty" doc:"Deployments that the tree changes, so that their pods restart."`
	Losses       []string `json:"losses,omitempty" doc:"Losses while OLM's controllers run; with OLM v1, webhooks that refuse requests until the provider has injected the CA."`
	Certificates string   `json:"certificates,omitempty" doc:"The day on which OLM's certificates expire (2028-07-01); they are not renewed."`
}

// SkippedOperator is an operator or a namespace that the plan does not cover: it stays with OLM.
type SkippedOperator struct {
	Namespace string   `json:"namespace"`
	Package   string   `json:"package,omitempty"`
	Reasons   []string `json:"reasons"`
}

// Step is a part of a plan that is completed before the next begins.
type Step struct {
	Number    int      `json:"number" doc:"From 1."`
	Name      StepKind `json:"name" form:"required enum=guard|prepare|stop|backup|detach|tree|start|restart|fields|clean-up|certificates|uninstall|suspend|hand-back|subscribe|approve|withdraw|unguard"`
	Namespace string   `json:"namespace,omitempty" doc:"Namespace of the operators. Absent if the step is for the whole cluster."`
	Title     string   `json:"title" doc:"Description of the step."`
	Manual    string   `json:"manual,omitempty" doc:"Manual action, to be confirmed by a person; nothing is written."`
	Before    []Check  `json:"preconditions,omitempty" doc:"Preconditions. If one fails, the step is not started."`
	Actions   []Action `json:"actions,omitempty" doc:"In order."`
	After     []Check  `json:"postconditions,omitempty" doc:"Postconditions. If one fails, the next step is not started."`
}

// StepKind is the kind of a step.
type StepKind string

// The kinds of steps, in their order for a namespace.
const (
	Guard        StepKind = "guard"        // keep GitOps tools from pruning objects whose declarations leave Git
	Prepare      StepKind = "prepare"      // apply objects with new names
	Stop         StepKind = "stop"         // stop OLM's controllers
	Backup       StepKind = "backup"       // write OLM's objects, and objects to be changed, to files
	Detach       StepKind = "detach"       // detach the operators from OLM
	Tree         StepKind = "tree"         // apply the rest of the tree
	Start        StepKind = "start"        // start OLM's controllers again
	Restart      StepKind = "restart"      // restart OLM's controllers once: OLM deletes objects at its start
	Fields       StepKind = "fields"       // transfer the fields that OLM wrote
	CleanUp      StepKind = "clean-up"     // delete OLM's leftover objects
	Certificates StepKind = "certificates" // replace OLM's certificates before they expire
	Uninstall    StepKind = "uninstall"    // delete OLM, or keep it without operators
)

// The kinds of steps of a return to OLM, in addition to stop, detach and start.
const (
	Suspend   StepKind = "suspend"   // keep GitOps tools from applying the tree
	HandBack  StepKind = "hand-back" // restore objects that the tree changed
	Subscribe StepKind = "subscribe" // create the Subscriptions
	Approve   StepKind = "approve"   // approve InstallPlans, or wait for OLM
	Withdraw  StepKind = "withdraw"  // delete objects that the tree added
	Unguard   StepKind = "unguard"   // remove the annotations that prevent pruning
)

// Action is one change of one object, or its backup.
type Action struct {
	Do     Verb    `json:"verb" form:"required enum=annotate|apply|backup|create|delete|orphan|restart|restore|scale|transfer-fields|remove-finalizer|remove-labels|remove-owner"`
	Object k8s.Ref `json:"object" form:"required"`
	UID    string  `json:"uid,omitempty" doc:"UID that the object must have. Absent if the object does not exist yet."`

	Set       map[string]string `json:"set,omitempty" doc:"annotate: annotations to set; apply: guard annotations, which override those of the tree."`
	Unset     []string          `json:"unset,omitempty" doc:"annotate and remove-finalizer: annotations to remove; remove-labels: labels."`
	Force     bool              `json:"force,omitempty" doc:"apply: take fields from other managers, OLM's among them."`
	From      int64             `json:"from,omitempty" doc:"scale: replicas before."`
	To        int64             `json:"to,omitempty" doc:"scale: replicas afterwards."`
	Finalizer string            `json:"finalizer,omitempty" doc:"remove-finalizer: the finalizer to remove."`
	Owner     string            `json:"owner,omitempty" doc:"remove-owner: UID of the owner."`
	Index     int64             `json:"index,omitempty" doc:"remove-owner: position in the ownerReferences, from 0."`
}

// Applied returns a rendered object with the annotations in Set, which is the object to apply. It
// does not modify its argument.
func (a Action) Applied(rendered k8s.Object) k8s.Object {
	for key, value := range a.Set {
		rendered = k8s.With(rendered, value, "metadata", "annotations", key)
	}
	return rendered
}

// IsDone reports whether an existing object has the changes of an action that changes only its
// metadata: annotate, remove-labels, remove-finalizer, remove-owner or transfer-fields.
func (a Action) IsDone(o k8s.Object) bool {
	has := func(field string) bool {
		have := k8s.TextMap(o, "metadata", field)
		for key, value := range a.Set {
			if have[key] != value {
				return false
			}
		}
		return !slices.ContainsFunc(a.Unset, func(key string) bool { _, there := have[key]; return there })
	}
	switch a.Do { //nolint:exhaustive // the others change more than the metadata
	case Annotate:
		return has("annotations")
	case Unlabel:
		return has("labels")
	case Unfinalize:
		return !slices.Contains(k8s.Texts(o, "metadata", "finalizers"), a.Finalizer) && has("annotations")
	case Disown:
		return !slices.ContainsFunc(k8s.Items(o, "metadata", "ownerReferences"), func(by map[string]any) bool { return k8s.Text(by, "uid") == a.Owner })
	case TransferFields:
		return !slices.ContainsFunc(k8s.Items(o, "metadata", "managedFields"), IsWrittenByOLM)
	}
	panic("plan: no change of metadata: " + a.Do)
}

// MetadataPatch returns the merge patch of an action that changes annotations or removes labels.
// The patch contains uid, so that it is rejected if the object was recreated.
func (a Action) MetadataPatch(uid string) map[string]any {
	values := map[string]any{}
	for key, value := range a.Set {
		values[key] = value
	}
	for _, key := range a.Unset {
		values[key] = nil
	}
	field := "annotations"
	if a.Do == Unlabel {
		field = "labels"
	}
	return map[string]any{"metadata": map[string]any{"uid": uid, field: values}}
}

// Replicas returns the desired number of replicas of a Deployment.
func Replicas(o k8s.Object) int64 {
	if n, ok := k8s.At(o, "spec", "replicas").(int64); ok {
		return n
	}
	return 1 // the API server's default
}

// Verb is the kind of an action.
type Verb string

// The verbs of actions.
const (
	Annotate       Verb = "annotate"         // set and remove annotations, by a merge patch
	Apply          Verb = "apply"            // apply the tree's object server-side
	Save           Verb = "backup"           // read the object and write it to a file
	Create         Verb = "create"           // create the object from its backup, without fields that the API server sets
	Delete         Verb = "delete"           // delete the object with its dependents
	Orphan         Verb = "orphan"           // delete the object without its dependents
	Restore        Verb = "restore"          // restore the object from its backup, as far as the plan's manager changed it
	RestartPods    Verb = "restart"          // replace the pods of a Deployment
	Scale          Verb = "scale"            // set spec.replicas
	TransferFields Verb = "transfer-fields"  // transfer the fields of OLM's managers to the plan's manager
	Unfinalize     Verb = "remove-finalizer" // remove a finalizer and annotations by a patch that tests the UID
	Unlabel        Verb = "remove-labels"    // remove labels, by a merge patch
	Disown         Verb = "remove-owner"     // remove an ownerReference by a patch that tests the UIDs
)

// Check is a condition on objects. A condition on unchanged state compares the objects with the
// state that verify.Capture returned before the first step of the namespace.
type Check struct {
	Check   Condition `json:"check" form:"required enum=available|conversion|deleted|installed|no-owner|no-install-plan|no-restart|prepared|ready|permissions|same-version|stopped|succeeded|uid|unused"`
	Objects []k8s.Ref `json:"objects,omitempty" doc:"Scope. Absent: all objects of the namespace's operators."`
}

// Condition is the condition of a check.
type Condition string

// The conditions of checks.
const (
	Succeeded   Condition = "succeeded"       // each ClusterServiceVersion is Succeeded
	Installed   Condition = "installed"       // each ClusterExtension is installed
	NoPlan      Condition = "no-install-plan" // no InstallPlan of the namespace is in flight
	IsStopped   Condition = "stopped"         // each Deployment has no replica left
	IsReady     Condition = "ready"           // each Deployment has its replicas
	Deleted     Condition = "deleted"         // no object exists
	SameUID     Condition = "uid"             // each earlier object exists, with its UID
	NoOwner     Condition = "no-owner"        // no object has an ownerReference to a ClusterServiceVersion
	Conversion  Condition = "conversion"      // each CRD converts as before
	Available   Condition = "available"       // each APIService that was available exists and is available
	Permissions Condition = "permissions"     // each ServiceAccount has the same permissions
	Prepared    Condition = "prepared"        // the tree's own roles grant each ServiceAccount all its permissions
	NoRestart   Condition = "no-restart"      // no pod restarted without being named in the plan
	SameVersion Condition = "same-version"    // each object still has its UID and generation
	IsUnused    Condition = "unused"          // no custom resource of each CRD exists, except packageserver
)

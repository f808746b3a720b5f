// Package plan makes the plan for adopting operators from OLM. The plan is a file that people
// review and commit, and that `quayside adopt run` executes step by step. [MakeRevert] makes the
// plan for returning the operators to OLM, from a plan, its executed steps, and the earlier state
// of the objects.
//
// The package has no side effects: it makes a [Plan] from the result of adopt.Inspect, a snapshot
// of the cluster and the rendered lock. It also converts steps to kubectl commands and to required
// permissions.
package plan

import (
	"slices"

	"github.com/quayside/quayside/internal/k8s"
)

// Plan describes in steps how a cluster's operators leave OLM. A step begins only when the previous step is
// done and its checks passed.
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
	State      []State           `json:"state" doc:"State of OLM's declarations and of the pods when the plan was made. If this state has changed, the plan is refused."`
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

// ConfidentialNamespaces returns the namespaces whose Secrets and ConfigMaps must be read to make the plan
// again, sorted.
func (p *Plan) ConfidentialNamespaces() []string {
	out := p.Namespaces()
	if p.IsForReleases() {
		for _, s := range p.Steps {
			for _, a := range s.Actions {
				if a.Object.Key().Is("Secret", "ConfigMap") {
					out = append(out, a.Object.Namespace)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// IsForExtensions reports whether OLM v1 manages the operators of the plan.
func (p *Plan) IsForExtensions() bool {
	return slices.ContainsFunc(p.Operators, func(op Operator) bool { return op.Extension != "" })
}

// Mode is the way in which a plan treats OLM's controllers.
type Mode string

// The modes.
const (
	Stopped Mode = "stopped"   // they are stopped
	Live    Mode = "live"      // they keep running
	Removal Mode = "uninstall" // OLM itself is deleted, because it has no operators
)

// Workload is a Deployment with its number of replicas.
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
	Extension    string   `json:"clusterExtension,omitempty" doc:"The operator's ClusterExtension, if OLM v1 manages the operator: adopt run refuses the plan, whose steps are carried out by hand."`
	Release      string   `json:"release,omitempty" doc:"The operator's Helm release with the newest revision, such as cert-manager.v3."`
	Hooks        []string `json:"hooks,omitempty" doc:"Hooks of the release that the plan does not apply: they run when the GitOps tool first applies the tree."`
	Detached     bool     `json:"detached,omitempty" doc:"Detached from OLM, and the lock keeps no settings of OLM: the plan removes OLM's remaining fields from its objects."`
	Restarts     []string `json:"restarts,omitempty" doc:"Deployments that the tree changes, so that their pods restart."`
	Losses       []string `json:"losses,omitempty" doc:"Losses while OLM's controllers run; with OLM v1, webhooks that refuse requests until the provider has injected the CA."`
	Certificates string   `json:"certificates,omitempty" doc:"The day on which OLM's certificates expire (2028-07-01); they are not renewed."`
}

// SkippedOperator is an operator or a namespace that stays with OLM or Helm, with the reason.
type SkippedOperator struct {
	Namespace string   `json:"namespace"`
	Package   string   `json:"package,omitempty"`
	Release   string   `json:"release,omitempty" doc:"Its release, if Helm manages it."`
	Reasons   []string `json:"reasons"`
}

// Step is a part of a plan. It must be done before the next step begins.
type Step struct {
	Number    int      `json:"number" doc:"From 1."`
	Name      StepKind `json:"name" form:"required enum=guard|prepare|stop|backup|detach|tree|start|restart|fields|clean-up|certificates|uninstall|suspend|forget|hand-back|records|subscribe|approve|withdraw|unguard|resume"`
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
	Prepare      StepKind = "prepare"      // apply the tree's objects with new names
	Stop         StepKind = "stop"         // stop OLM's controllers
	Backup       StepKind = "backup"       // back up OLM's objects and the objects to change
	Detach       StepKind = "detach"       // detach the operators from OLM
	Tree         StepKind = "tree"         // apply the rest of the tree
	Start        StepKind = "start"        // start OLM's controllers again
	Restart      StepKind = "restart"      // restart OLM's controllers once, because OLM deletes objects when it starts
	Fields       StepKind = "fields"       // make the plan's manager the owner of OLM's fields
	CleanUp      StepKind = "clean-up"     // delete OLM's leftover objects
	Certificates StepKind = "certificates" // replace OLM's certificates before they expire
	Uninstall    StepKind = "uninstall"    // delete OLM, or keep it without operators
)

// Forget is the kind of the last step for operators of Helm. This step deletes the release Secrets.
const Forget StepKind = "forget"

// The kinds of steps of a plan for returning to OLM or Helm, in addition to Stop, Detach and Start.
const (
	Suspend   StepKind = "suspend"   // keep GitOps tools from applying the tree
	HandBack  StepKind = "hand-back" // restore objects that the tree changed
	Subscribe StepKind = "subscribe" // create the Subscriptions
	Approve   StepKind = "approve"   // approve InstallPlans, or wait for OLM
	Withdraw  StepKind = "withdraw"  // delete objects that the tree added
	Unguard   StepKind = "unguard"   // remove the annotations that prevent pruning
	Records   StepKind = "records"   // create Helm's records again
	Resume    StepKind = "resume"    // resume HelmReleases of Flux
)

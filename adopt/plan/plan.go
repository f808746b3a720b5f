// Package plan says, step by step, how operators are taken over from OLM: a file
// that people review and commit, and that `quayside adopt run` follows to the
// letter.
//
// It is pure: what adopt.Inspect found, a snapshot of the cluster and what the
// lock renders to go in, a [Plan] comes out. What a step means for a cluster, as
// commands of kubectl and as the rights that it takes, is told here too.
package plan

import "github.com/quayside/quayside/internal/kobj"

// Plan is how a cluster's operators leave OLM. Each step is done, with its
// checks, before the next begins.
type Plan struct {
	APIVersion string     `json:"apiVersion" form:"required const=quayside.dev/v1alpha1" doc:"quayside.dev/v1alpha1"`
	Kind       string     `json:"kind" form:"required const=AdoptionPlan" doc:"AdoptionPlan"`
	Cluster    string     `json:"cluster,omitempty" doc:"The cluster of quayside.yaml whose objects are applied. Absent where there is one only."`
	ClusterUID string     `json:"clusterUID" form:"required" doc:"UID of the Namespace kube-system: the plan is for no other cluster."`
	Mode       Mode       `json:"mode" form:"required enum=stopped|live" doc:"stopped: OLM's controllers are stopped while it forgets an operator; live: they run, and what is lost by that is told."`
	Lock       string     `json:"lock" form:"required" doc:"Digest of the lock that is rendered."`
	Tree       string     `json:"tree" form:"required" doc:"Digest of what the lock renders to for the cluster."`
	Manager    string     `json:"manager" form:"required" doc:"Field manager of what is applied: that of the tool which applies the tree from then on."`
	OLM        []Workload `json:"olm" doc:"OLM's controllers, which are stopped and started again."`
	Operators  []Operator `json:"operators" doc:"By namespace and package."`
	Left       []Left     `json:"left" doc:"What the plan does not do, and why."`
	Steps      []Step     `json:"steps" doc:"In order."`
}

// Mode is what becomes of OLM's controllers meanwhile.
type Mode string

// The modes.
const (
	Stopped Mode = "stopped" // mode A
	Live    Mode = "live"    // mode B
)

// Workload is a Deployment with the number of its replicas.
type Workload struct {
	Object   kobj.Ref `json:"object"`
	UID      string   `json:"uid"`
	Replicas int64    `json:"replicas"`
}

// Operator is one that the plan takes over.
type Operator struct {
	Namespace    string   `json:"namespace"`
	Package      string   `json:"package"`
	CSV          string   `json:"csv" doc:"Its ClusterServiceVersion; of one that OLM has forgotten, its bundle."`
	Forgotten    bool     `json:"forgotten,omitempty" doc:"OLM has forgotten it, and the lock keeps nothing of OLM's: what its objects still have of OLM's goes."`
	Restarts     []string `json:"restarts,omitempty" doc:"Deployments whose pods restart, which the tree changes."`
	Losses       []string `json:"losses,omitempty" doc:"What is lost, where OLM's controllers run."`
	Certificates string   `json:"certificates,omitempty" doc:"The day on which OLM's certificates end (2028-07-01), which nobody renews."`
}

// Left is an operator or a namespace that the plan leaves to OLM.
type Left struct {
	Namespace string   `json:"namespace"`
	Package   string   `json:"package,omitempty"`
	Reasons   []string `json:"reasons"`
}

// Step is done as a whole before the next begins.
type Step struct {
	Number    int      `json:"number" doc:"From 1."`
	Name      Name     `json:"name" form:"required enum=guard|prepare|stop|backup|detach|tree|start|fields|clean-up|certificates|uninstall|suspend|hand-back|subscribe|approve|withdraw|unguard"`
	Namespace string   `json:"namespace,omitempty" doc:"The namespace of the operators that it is about. Absent: the cluster."`
	Title     string   `json:"title" doc:"What it does, for a person."`
	Manual    string   `json:"manual,omitempty" doc:"What a person does, who then says that it is done; nothing is written."`
	Before    []Check  `json:"before,omitempty" doc:"What must hold, or nothing of the step is done."`
	Actions   []Action `json:"actions,omitempty" doc:"In order."`
	After     []Check  `json:"after,omitempty" doc:"What must hold, or the next step does not begin."`
}

// Name says what sort of step it is.
type Name string

// The sorts of steps, in the order in which they come for a namespace.
const (
	Guard        Name = "guard"        // keep GitOps tools from pruning what leaves the tree
	Prepare      Name = "prepare"      // apply what has a new name
	Stop         Name = "stop"         // stop OLM's controllers
	Backup       Name = "backup"       // write OLM's objects, and what will be changed, to files
	Detach       Name = "detach"       // make OLM forget the operators
	Tree         Name = "tree"         // apply the rest
	Start        Name = "start"        // start OLM's controllers again
	Fields       Name = "fields"       // take over the fields that OLM wrote
	CleanUp      Name = "clean-up"     // delete what OLM left
	Certificates Name = "certificates" // what to do before OLM's certificates end
	Uninstall    Name = "uninstall"    // what to do about OLM itself
)

// The sorts of steps on the way back to OLM, beside stop, detach and start.
const (
	Suspend   Name = "suspend"   // keep GitOps tools from applying the tree
	HandBack  Name = "hand-back" // make what the tree changed as it was
	Subscribe Name = "subscribe" // create what OLM installs by
	Approve   Name = "approve"   // approve what OLM installs
	Withdraw  Name = "withdraw"  // delete what the tree brought
	Unguard   Name = "unguard"   // remove what keeps GitOps tools from pruning
)

// Action is one change of one object, or reading it to keep it.
type Action struct {
	Do     Verb     `json:"do" form:"required enum=annotate|apply|backup|create|delete|orphan|restore|scale|take-over|unfinalize|unlabel"`
	Object kobj.Ref `json:"object" form:"required"`
	UID    string   `json:"uid,omitempty" doc:"The object must have it. Absent: there is no such object yet."`

	Set       map[string]string `json:"set,omitempty" doc:"annotate: annotations to set; apply: those of the guard that it keeps in place of the tree's."`
	Unset     []string          `json:"unset,omitempty" doc:"annotate and unfinalize: annotations to remove; unlabel: labels."`
	Force     bool              `json:"force,omitempty" doc:"apply: take fields from other managers, OLM's among them."`
	From      int64             `json:"from,omitempty" doc:"scale: replicas before."`
	To        int64             `json:"to,omitempty" doc:"scale: replicas afterwards."`
	Finalizer string            `json:"finalizer,omitempty" doc:"unfinalize: the finalizer to remove."`
}

// Applied returns what an action applies of an object of the tree, which stays as it is.
func (a Action) Applied(rendered kobj.Object) kobj.Object {
	for key, value := range a.Set {
		rendered = kobj.With(rendered, value, "metadata", "annotations", key)
	}
	return rendered
}

// Verb says what an action does.
type Verb string

// The verbs of actions.
const (
	Annotate   Verb = "annotate"   // set and remove annotations, by a merge patch
	Apply      Verb = "apply"      // server-side, as the tree has the object
	Keep       Verb = "backup"     // read the object and write it to a file
	Create     Verb = "create"     // as it was written to a file, but for what the API server sets
	Delete     Verb = "delete"     // with what it owns
	Orphan     Verb = "orphan"     // delete, and let what it owns stay
	Restore    Verb = "restore"    // make it as it was written to a file, as far as the plan's manager changed it
	Scale      Verb = "scale"      // set spec.replicas
	TakeOver   Verb = "take-over"  // make the fields of OLM's managers those of the plan's
	Unfinalize Verb = "unfinalize" // remove a finalizer and annotations by a patch that tests the UID
	Unlabel    Verb = "unlabel"    // remove labels, by a merge patch
)

// Check is something that must hold of objects. Checks of what must be as it was
// compare with what verify.Capture found before the first step of the namespace.
type Check struct {
	Check   Condition  `json:"check" form:"required enum=available|conversion|gone|no-owner|no-plan|no-restart|prepared|ready|rights|same-version|stopped|succeeded|uid"`
	Objects []kobj.Ref `json:"objects,omitempty" doc:"What it is about. Absent: all that the namespace's operators have."`
}

// Condition is what a check asks.
type Condition string

// The conditions of checks.
const (
	Succeeded   Condition = "succeeded"    // each ClusterServiceVersion is Succeeded
	NoPlan      Condition = "no-plan"      // no InstallPlan of the namespace is in flight
	IsStopped   Condition = "stopped"      // each Deployment has no replica left
	IsReady     Condition = "ready"        // each Deployment has its replicas
	Gone        Condition = "gone"         // no object is there
	SameUID     Condition = "uid"          // each object of before is there, with its UID
	NoOwner     Condition = "no-owner"     // no object has an ownerReference to a ClusterServiceVersion
	Conversion  Condition = "conversion"   // each definition converts as before
	Available   Condition = "available"    // each APIService that was is available
	Rights      Condition = "rights"       // each ServiceAccount may what it might
	Prepared    Condition = "prepared"     // each ServiceAccount may it by the tree's own roles alone
	NoRestart   Condition = "no-restart"   // no pod restarted that the plan does not name
	SameVersion Condition = "same-version" // each object is as it was planned (UID and generation)
)

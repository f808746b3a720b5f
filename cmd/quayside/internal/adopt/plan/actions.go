package plan

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// Action is one change to one object, or a backup of the object.
type Action struct {
	Do     Verb    `json:"verb" form:"required enum=annotate|apply|backup|create|delete|orphan|restart|restore|resume|scale|suspend|transfer-fields|remove-finalizer|remove-labels|remove-owner"`
	Object k8s.Ref `json:"object" form:"required"`
	UID    string  `json:"uid,omitempty" doc:"UID that the object must have; create: of the deleted object. Absent if the object does not exist yet."`

	Set       map[string]string `json:"set,omitempty" doc:"annotate: annotations to set; apply: guard annotations, which override those of the tree."`
	Unset     []string          `json:"unset,omitempty" doc:"annotate and remove-finalizer: annotations to remove; remove-labels: labels."`
	Force     bool              `json:"force,omitempty" doc:"apply: take fields from other managers, OLM's among them."`
	Managers  []string          `json:"managers,omitempty" doc:"transfer-fields: the previous field managers. Absent: those of OLM."`
	From      int64             `json:"from,omitempty" doc:"scale: replicas before."`
	To        int64             `json:"to,omitempty" doc:"scale: replicas afterwards."`
	Finalizer string            `json:"finalizer,omitempty" doc:"remove-finalizer: the finalizer to remove."`
	Owner     string            `json:"owner,omitempty" doc:"remove-owner: UID of the owner."`
	Index     int64             `json:"index,omitempty" doc:"remove-owner: position in the ownerReferences, from 0."`
}

// Verb is the kind of an action.
type Verb string

// The verbs of actions.
const (
	Annotate       Verb = "annotate"         // set and remove annotations, by a merge patch
	Apply          Verb = "apply"            // apply the tree's object server-side
	Save           Verb = "backup"           // write the object to a backup file
	Create         Verb = "create"           // create the object from its backup, without fields that the API server sets
	Delete         Verb = "delete"           // delete the object with its dependents
	Orphan         Verb = "orphan"           // delete the object without its dependents
	Restore        Verb = "restore"          // restore the fields that the plan's manager changed, from the backup
	RestartPods    Verb = "restart"          // replace the pods of a Deployment
	Scale          Verb = "scale"            // set spec.replicas
	TransferFields Verb = "transfer-fields"  // make the plan's field manager the owner of fields of OLM or Helm
	Unfinalize     Verb = "remove-finalizer" // remove a finalizer and annotations, if the UID is as expected
	Unlabel        Verb = "remove-labels"    // remove labels, by a merge patch
	Disown         Verb = "remove-owner"     // remove an ownerReference, if the UIDs are as expected
	SuspendRelease Verb = "suspend"          // set spec.suspend of a HelmRelease
	ResumeRelease  Verb = "resume"           // unset spec.suspend of a HelmRelease
)

// Outcome is the outcome of an action.
type Outcome string

// The outcomes of actions.
const (
	DidCreate  Outcome = "created"
	DidChange  Outcome = "changed"
	DidDelete  Outcome = "deleted"
	DidNothing Outcome = "unchanged" // the action was done before
	DidSave    Outcome = "saved"     // the object was written to the backup
	ByHand     Outcome = "by-hand"   // a person confirmed it
	Untried    Outcome = "skipped"   // not tried in a dry run, because it needs earlier actions
)

// verb describes one kind of action.
type verb struct {
	steps              []StepKind // kinds of steps that may contain the action
	required, optional []string   // names of the action's fields
	canCreate          bool       // whether the action can create an object
	permissions        []string   // verbs of RBAC, for an existing object
	ofOLM              bool       // whether the object is one of OLM's controllers
	detaches           bool       // whether OLM must be stopped during the action, if the plan stops OLM
	canSkip            bool       // whether a person may skip the action if others deleted or recreated the object
	outcome            Outcome    // outcome, unless the action created the object

	// fault returns the reason why a plan must not contain this action, or "". If fault is nil, every action is
	// allowed.
	fault func(p *Plan, step StepKind, a Action) string
	// shown implements Plan.Shown. If it is nil, the state of an object never shows whether the action is done.
	shown func(p *Plan, a Action, o k8s.Object) (done, known bool)
	// isSettled reports whether the action needs no further request. It returns an error if the action cannot
	// be executed.
	isSettled func(t Attempt) (bool, error)
	// request returns the next request, and whether more requests follow.
	request func(t Attempt) (q Request, more bool)
	// undo returns the action that undoes a started action, or false if there is none. The function may be nil.
	undo func(a Action, done ExecutedAction, before k8s.Object) (Action, bool)
	// kubectl returns the kubectl command for the action. If it is nil, the request determines the command.
	kubectl func(p *Plan, a Action, rendered k8s.Object) string
}

// verbs returns the table of all kinds of actions.
func verbs() map[Verb]verb {
	change, remove := []string{"get", "patch"}, []string{"get", "delete"}
	fromBackup := noKubectl("'quayside adopt revert' restores it from its file below backup/ in the plan's journal")
	return map[Verb]verb{
		Annotate: {
			steps: []StepKind{Guard, Unguard}, optional: []string{"set", "unset"}, permissions: change, canSkip: true, outcome: DidChange,
			fault: annotateFault, shown: hasMetadata, isSettled: isMetadataSettled, request: patchMetadata, undo: undoAnnotate,
		},
		Apply: {
			steps: []StepKind{Prepare, Tree, Fields}, optional: []string{"force", "set"}, canCreate: true, permissions: change, canSkip: true, outcome: DidChange,
			fault: guardFault, shown: isApplied, isSettled: isApplySettled, request: applyObject, undo: undoApply, kubectl: kubectlApply,
		},
		Save: {
			steps: []StepKind{Guard, Backup}, permissions: []string{"get"}, canSkip: true, outcome: DidSave,
			isSettled: isNeverSettled, request: saveObject, kubectl: kubectlSave,
		},
		Create: {
			steps: []StepKind{Subscribe, Records}, canCreate: true, permissions: []string{"get"}, outcome: DidCreate,
			fault: createFault, shown: exists, isSettled: isCreateSettled, request: createObject, kubectl: fromBackup,
		},
		Delete: {
			steps: []StepKind{Detach, CleanUp, Withdraw, Uninstall, Forget}, permissions: remove, outcome: DidDelete,
			fault: deleteFault, shown: isDeleted, isSettled: isDeleteSettled, request: deleteObject, undo: undoDelete,
		},
		Orphan: {
			steps: []StepKind{Detach}, permissions: remove, detaches: true, outcome: DidDelete,
			fault: orphanFault, shown: isDeleted, isSettled: isDeleteSettled, request: orphanDependents, undo: undoOrphan,
		},
		RestartPods: {
			steps: []StepKind{Restart}, permissions: change, ofOLM: true, outcome: DidChange,
			fault: scaleFault, isSettled: isNeverSettled, request: restartPods, kubectl: kubectlRestart,
		},
		Restore: {
			steps: []StepKind{HandBack}, permissions: change, outcome: DidChange,
			isSettled: isRestoreSettled, request: restoreObject, kubectl: fromBackup,
		},
		Scale: {
			steps: []StepKind{Stop, Start}, optional: []string{"from", "to"}, permissions: change, ofOLM: true, outcome: DidChange,
			fault: scaleFault, shown: isScaled, isSettled: isScaleSettled, request: scaleReplicas, undo: undoScale, kubectl: kubectlScale,
		},
		TransferFields: {
			steps: []StepKind{Fields}, optional: []string{"managers"}, permissions: change, canSkip: true, outcome: DidChange,
			fault: transferFault, shown: hasMetadata, isSettled: isTransferSettled, request: transferOwnership, undo: undoTransfer,
			kubectl: noKubectl("kubectl has no command for taking ownership of the previous manager's fields; without this step, the labels of the previous manager stay"),
		},
		Unfinalize: {
			steps: []StepKind{Detach}, required: []string{"finalizer"}, optional: []string{"unset"}, permissions: change, detaches: true, outcome: DidChange,
			fault: unfinalizeFault, shown: hasMetadata, isSettled: isUnfinalizeSettled, request: removeFinalizer,
		},
		Unlabel: {
			steps: []StepKind{Detach, CleanUp}, required: []string{"unset"}, permissions: change, canSkip: true, outcome: DidChange,
			fault: unlabelFault, shown: hasMetadata, isSettled: isMetadataSettled, request: patchMetadata,
		},
		Disown: { // only in plans for OLM v1, whose steps are carried out by hand
			steps: []StepKind{Detach}, required: []string{"owner"}, optional: []string{"index"}, permissions: change, outcome: DidChange,
			shown: hasMetadata, isSettled: isMetadataSettled, request: removeOwner,
		},
		SuspendRelease: {
			steps: []StepKind{Suspend}, permissions: change, outcome: DidChange,
			fault: suspendFault, shown: isSuspended, isSettled: isSuspendSettled, request: suspendRelease, undo: undoSuspend,
		},
		ResumeRelease: {
			steps: []StepKind{Resume}, permissions: change, outcome: DidChange,
			fault: suspendFault, shown: isSuspended, isSettled: isSuspendSettled, request: suspendRelease,
		},
	}
}

// ConcernsOLM reports whether the object of the action is one of OLM's controllers.
func (v Verb) ConcernsOLM() bool { return verbs()[v].ofOLM }

// Detaches reports whether OLM must be stopped during the action. This applies only to plans that stop OLM.
func (v Verb) Detaches() bool { return verbs()[v].detaches }

// Deletes reports whether an action deletes its object.
func (v Verb) Deletes() bool { return verbs()[v].outcome == DidDelete }

// CanSkip reports whether the user may skip the action if others deleted or recreated the object.
func (v Verb) CanSkip() bool { return verbs()[v].canSkip }

// Outcome returns the outcome of the action if its object existed before. Otherwise the outcome is DidCreate.
func (v Verb) Outcome() Outcome { return verbs()[v].outcome }

// Shown reports whether the state of an object shows that an action is done. o is nil if the object does not
// exist. known is false if the state cannot show this, for example because the object was deleted later.
func (p *Plan) Shown(a Action, o k8s.Object) (done, known bool) {
	shown := verbs()[a.Do].shown
	if shown == nil {
		return false, false
	}
	return shown(p, a, o)
}

// IsDone reports whether an existing object already has the changes of an action. The action must change only
// metadata: annotate, remove-labels, remove-finalizer, remove-owner or transfer-fields.
func (a Action) IsDone(o k8s.Object) bool {
	field := "annotations"
	if a.Do == Unlabel {
		field = "labels"
	}
	have := k8s.TextMap(o, "metadata", field)
	for key, value := range a.Set {
		if have[key] != value {
			return false
		}
	}
	switch {
	case slices.ContainsFunc(a.Unset, func(key string) bool { _, there := have[key]; return there }),
		a.Finalizer != "" && slices.Contains(k8s.Texts(o, "metadata", "finalizers"), a.Finalizer),
		a.Owner != "" && slices.ContainsFunc(k8s.Items(o, "metadata", "ownerReferences"), func(by map[string]any) bool { return k8s.Text(by, "uid") == a.Owner }):
		return false
	}
	return a.Do != TransferFields || !slices.ContainsFunc(k8s.Items(o, "metadata", "managedFields"), a.takesFrom)
}

func isGone(a Action, o k8s.Object) bool {
	return o == nil || a.UID != "" && k8s.Text(o, "metadata", "uid") != a.UID
}

func hasMetadata(_ *Plan, a Action, o k8s.Object) (done, known bool) {
	return a.IsDone(o), !isGone(a, o)
}

func isDeleted(_ *Plan, a Action, o k8s.Object) (done, known bool) { return isGone(a, o), true }

func exists(_ *Plan, _ Action, o k8s.Object) (done, known bool) { return o != nil, true }

func isScaled(_ *Plan, a Action, o k8s.Object) (done, known bool) {
	return o != nil && Replicas(o) == a.To, true
}

// isApplied reports whether the plan's manager has applied an object. If the object has no
// managedFields, it checks for a label of the tree instead.
func isApplied(p *Plan, a Action, o k8s.Object) (done, known bool) {
	known = a.UID == "" || !isGone(a, o)
	if len(k8s.Items(o, "metadata", "managedFields")) > 0 {
		return AppliedBy(o, p.Manager), known
	}
	for key := range k8s.TextMap(o, "metadata", "labels") {
		done = done || strings.HasPrefix(key, "quayside.dev/")
	}
	return done, known
}

// Replicas returns the desired number of replicas of a Deployment.
func Replicas(o k8s.Object) int64 {
	if n, ok := k8s.At(o, "spec", "replicas").(int64); ok {
		return n
	}
	return 1 // default of the API server
}

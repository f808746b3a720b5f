package plan

import (
	"cmp"

	"github.com/quayside/quayside/internal/k8s"
)

// Check is a condition on objects. Some conditions compare the objects with the state that verify.Capture
// recorded before the first step of the namespace.
type Check struct {
	Check   Condition `json:"check" form:"required enum=available|conversion|deleted|installed|no-owner|no-install-plan|no-restart|prepared|ready|permissions|same-release|same-version|stopped|succeeded|uid|unused"`
	Objects []k8s.Ref `json:"objects,omitempty" doc:"Scope. Absent: all objects of the namespace's operators."`
}

// Condition names the condition of a check.
type Condition string

// The conditions of checks.
const (
	Succeeded   Condition = "succeeded"       // each ClusterServiceVersion is Succeeded
	Installed   Condition = "installed"       // each ClusterExtension is installed
	NoPlan      Condition = "no-install-plan" // no InstallPlan of the namespace is in flight
	IsStopped   Condition = "stopped"         // each Deployment has no replicas
	IsReady     Condition = "ready"           // each Deployment has all its replicas ready
	Deleted     Condition = "deleted"         // no object exists
	SameUID     Condition = "uid"             // each object that existed before still exists, with the same UID
	NoOwner     Condition = "no-owner"        // no object has an ownerReference to a ClusterServiceVersion
	Conversion  Condition = "conversion"      // the conversion of each CRD is as before
	Available   Condition = "available"       // each APIService that was available before is available
	Permissions Condition = "permissions"     // each ServiceAccount has the same permissions as before
	Prepared    Condition = "prepared"        // the tree's own roles grant all permissions that each ServiceAccount has
	NoRestart   Condition = "no-restart"      // no pod restarted, except those that the plan restarts
	SameVersion Condition = "same-version"    // each object has the UID and generation in the plan
	SameRelease Condition = "same-release"    // Helm has no records of the releases except those that the plan deletes
	IsUnused    Condition = "unused"          // no custom resource of the CRDs exists, except packageserver
)

// condition describes a condition, without its implementation.
type condition struct {
	text          string // description of the fulfilled condition
	seconds       int    // maximum time to wait for it after a step; 0: the default of Seconds
	canSkip       bool   // whether a person may continue although it is not fulfilled
	isWhole       bool   // whether it is about the namespace or cluster, not single objects
	needsEvidence bool   // whether it compares with the state before the first step
}

// conditions returns the table of all conditions.
func conditions() map[Condition]condition {
	return map[Condition]condition{
		Succeeded:   {text: "the ClusterServiceVersions are Succeeded", seconds: 600},
		Installed:   {text: "the ClusterExtensions are installed"},
		NoPlan:      {text: "no InstallPlan is in progress", isWhole: true},
		IsStopped:   {text: "OLM's controllers are stopped", seconds: 180, isWhole: true},
		IsReady:     {text: "the Deployments' pods are ready", seconds: 600, canSkip: true, isWhole: true},
		Deleted:     {text: "the objects to delete are deleted", seconds: 180},
		SameUID:     {text: "every previous object exists, with its UID", canSkip: true},
		NoOwner:     {text: "no object is owned by a removed object of OLM", seconds: 180},
		Conversion:  {text: "custom resources are converted as before", canSkip: true, needsEvidence: true},
		Available:   {text: "aggregated APIs are available", seconds: 60, canSkip: true, needsEvidence: true},
		Permissions: {text: "ServiceAccounts have their previous permissions, and no more", canSkip: true, isWhole: true, needsEvidence: true},
		Prepared:    {text: "the tree's roles grant all permissions of OLM's roles", canSkip: true, isWhole: true},
		NoRestart:   {text: "no pods are replaced unless planned", canSkip: true, needsEvidence: true},
		SameVersion: {text: "every object is as planned"},
		SameRelease: {text: "Helm has not changed the releases", isWhole: true},
		IsUnused:    {text: "no custom resource of the CRDs is left"},
	}
}

// Describe returns a clause for messages that is true if the condition is fulfilled.
func (c Condition) Describe() string { return conditions()[c].text }

// Seconds returns the maximum time in seconds to wait for a condition after a step.
func (c Condition) Seconds() int { return cmp.Or(conditions()[c].seconds, 15) }

// CanSkip reports whether the user may continue although this condition of a step is not fulfilled. The user
// must not continue if OLM would act on the operators, or if the plan no longer matches the cluster.
func (c Condition) CanSkip(step StepKind) bool {
	return conditions()[c].canSkip || c == Deleted && step == CleanUp
}

// IsWhole reports whether a condition is about the whole namespace or cluster, not about the objects of a
// check.
func (c Condition) IsWhole() bool { return conditions()[c].isWhole }

// NeedsEvidence reports whether a condition compares with the state before the first step.
func (c Condition) NeedsEvidence() bool { return conditions()[c].needsEvidence }

package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
)

// Finding is a problem that a check found.
type Finding struct {
	Code      Code    `json:"code" form:"enum=missing|uid|deleting|owner|conversion|unavailable|template|replica-set|pod|permission-lost|permission-gained|permission-missing|phase|in-flight|running|not-ready|exists|not-found|changed" doc:"Problem."`
	Object    k8s.Ref `json:"object,omitzero" doc:"The affected object."`
	Account   string  `json:"account,omitempty" doc:"Subject of the permissions."`
	Namespace string  `json:"namespace,omitempty" doc:"Namespace of the permissions. Absent: the whole cluster."`
	Note      bool    `json:"note,omitempty" doc:"Whether the finding is only informational."`
	Message   string  `json:"message" doc:"Description of the problem."`
}

// Code identifies the kind of a finding.
type Code string

// The kinds of findings.
const (
	Lost              Code = "missing"            // an object no longer exists
	UIDChanged        Code = "uid"                // an object was deleted and recreated
	Deleting          Code = "deleting"           // an object is being deleted
	HasOwner          Code = "owner"              // an object is still owned by a removed object of OLM
	ConversionChanged Code = "conversion"         // the conversion of custom resources changed or is broken
	Unavailable       Code = "unavailable"        // an aggregated API is unavailable
	Template          Code = "template"           // the pod template changed
	Rollout           Code = "replica-set"        // pods were replaced
	PodRestarted      Code = "pod"                // a pod was replaced or restarted
	PermissionLost    Code = "permission-lost"    // a permission was lost
	PermissionGained  Code = "permission-gained"  // a permission was added
	PermissionMissing Code = "permission-missing" // a permission is granted only by OLM's roles
	WrongPhase        Code = "phase"              // a ClusterServiceVersion is not Succeeded
	InFlight          Code = "in-flight"          // OLM is installing
	Running           Code = "running"            // a Deployment has pods
	NotReady          Code = "not-ready"          // a Deployment lacks pods
	StillExists       Code = "exists"             // an object still exists
	NotFound          Code = "not-found"          // an object does not exist
	NotAsPlanned      Code = "changed"            // an object changed since the plan was made
)

// comparison compares the earlier state of operators with their state after a step of the plan.
type comparison struct {
	plan    *plan.Plan
	step    int
	removed removedObjects
}

// compareRule compares the earlier state of an object with its current state, and returns the
// violations. If the object no longer exists, the current state is nil.
type compareRule func(c *comparison, was ObjectState, is *ObjectState) []Finding

// compareEach applies a rule to every object in before, and returns all findings.
func (c *comparison) compareEach(r compareRule, before, after *Evidence) []Finding {
	now := map[k8s.Key]*ObjectState{}
	for i := range after.Objects {
		now[after.Objects[i].Ref.Key()] = &after.Objects[i]
	}
	var out []Finding
	for _, was := range before.Objects {
		out = append(out, r(c, was, now[was.Ref.Key()])...)
	}
	return out
}

func newFindings(code Code, ref k8s.Ref, format string, args ...any) []Finding {
	return []Finding{{Code: code, Object: ref, Message: fmt.Sprintf("%s ", ref.Key()) + fmt.Sprintf(format, args...)}}
}

func checkSameUID(c *comparison, was ObjectState, is *ObjectState) []Finding {
	switch {
	case c.removed.has(was):
		return nil
	case is == nil:
		return newFindings(Lost, was.Ref, "no longer exists")
	case is.UID != was.UID:
		return newFindings(UIDChanged, was.Ref, "was deleted and recreated: UID %s, now %s", was.UID, is.UID)
	case is.Deleting && !was.Deleting:
		return newFindings(Deleting, was.Ref, "is being deleted")
	}
	return nil
}

// affectsDetachedOperators reports whether the current step is for operators that OLM did not manage when the
// plan was made. The certificates of such operators are not issued by OLM.
func (c *comparison) affectsDetachedOperators() bool {
	return slices.ContainsFunc(c.plan.Steps, func(s plan.Step) bool { return s.Number == c.step && hasDetachedOperator(c.plan, s.Namespace) })
}

func checkNoOwner(c *comparison, _ ObjectState, is *ObjectState) []Finding {
	if is == nil {
		return nil
	}
	for _, w := range is.Owners {
		if c.removed.owners[w.UID] {
			return newFindings(HasOwner, is.Ref, "has an ownerReference to %s %s, and is deleted with it", w.Kind, w.Name)
		}
	}
	return nil
}

func checkConversion(c *comparison, was ObjectState, is *ObjectState) []Finding {
	if is == nil || was.Conversion == nil || is.Conversion == nil {
		return nil
	}
	a, b := *was.Conversion, *is.Conversion
	switch {
	case a.Strategy != b.Strategy:
		return newFindings(ConversionChanged, was.Ref, "has another conversion strategy: %s, now %s", a.Strategy, b.Strategy)
	case !a.isPossible() || c.affectsDetachedOperators():
		return nil
	case a.Target != b.Target:
		return newFindings(ConversionChanged, was.Ref, "has another conversion target: %q, now %q", a.Target, b.Target)
	}
	for _, ca := range a.Certificates {
		if !slices.Contains(b.Certificates, ca) {
			return newFindings(ConversionChanged, was.Ref, "no longer trusts the conversion webhook's certificate")
		}
	}
	return nil
}

func checkAvailable(c *comparison, was ObjectState, is *ObjectState) []Finding {
	switch {
	case was.Available == nil || !*was.Available || c.removed.has(was):
		return nil
	case is == nil:
		return newFindings(Unavailable, was.Ref, "no longer exists, so its API is not served")
	case is.Available == nil || !*is.Available:
		return newFindings(Unavailable, was.Ref, "is no longer available")
	}
	return nil
}

func checkNoRestart(c *comparison, was ObjectState, is *ObjectState) []Finding {
	if is == nil || was.Pods == nil || is.Pods == nil || c.mayRestart(was.Ref) {
		return nil
	}
	var out []Finding
	if was.Pods.Template != is.Pods.Template {
		out = append(out, newFindings(Template, was.Ref, "has a different pod template, which is not planned")...)
	}
	if slices.ContainsFunc(is.Pods.ReplicaSets, func(uid string) bool { return !slices.Contains(was.Pods.ReplicaSets, uid) }) {
		return append(out, newFindings(Rollout, was.Ref, "has a new ReplicaSet: its pods restart, although the plan does not restart them")...)
	}
	return append(out, noteReplacedPods(was, is)...)
}

// mayRestart reports whether the plan restarts the pods of a Deployment, and has already applied the
// Deployment.
func (c *comparison) mayRestart(ref k8s.Ref) bool {
	return isRestarted(c.plan, ref) && slices.ContainsFunc(c.plan.Steps, func(s plan.Step) bool {
		return s.Number <= c.step && slices.ContainsFunc(s.Actions, func(a plan.Action) bool { return a.Do == plan.Apply && a.Object.Key() == ref.Key() })
	})
}

// noteReplacedPods returns a note if pods were replaced or restarted while the Deployment is unchanged.
func noteReplacedPods(was ObjectState, is *ObjectState) []Finding {
	if len(is.Pods.Restarts) == 0 {
		return nil
	}
	gone, again := 0, int64(0)
	for uid, n := range was.Pods.Restarts {
		now, there := is.Pods.Restarts[uid]
		if !there {
			gone++
		}
		again += max(0, now-n)
	}
	var parts []string
	if gone > 0 {
		parts = append(parts, fmt.Sprintf("%d of its pods were replaced", gone))
	}
	if again > 0 {
		parts = append(parts, fmt.Sprintf("its containers restarted %d times", again))
	}
	if parts == nil {
		return nil
	}
	out := newFindings(PodRestarted, was.Ref, "is unchanged, but %s", strings.Join(parts, " and "))
	out[0].Note = true
	return out
}

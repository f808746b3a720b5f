package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/kobj"
)

// Finding is something that does not hold.
type Finding struct {
	Code      Code     `json:"code" form:"enum=lost|uid|deleting|owner|conversion|unavailable|template|replica-set|pod|right-lost|right-gained|right-missing|phase|in-flight|running|not-ready|there|not-there|changed" doc:"What is the matter."`
	Object    kobj.Ref `json:"object,omitzero" doc:"The object that it is about."`
	Account   string   `json:"account,omitempty" doc:"Whose rights it is about."`
	Namespace string   `json:"namespace,omitempty" doc:"Where it has them. Absent: in the whole cluster."`
	Note      bool     `json:"note,omitempty" doc:"It is only told: nothing that must hold is broken."`
	Message   string   `json:"message" doc:"What is the matter, in words."`
}

// Code says what is the matter.
type Code string

// What can be the matter.
const (
	Lost         Code = "lost"          // an object is not there any more
	OtherUID     Code = "uid"           // an object was deleted and made again
	Deleting     Code = "deleting"      // an object is about to be deleted
	Owned        Code = "owner"         // an object goes with a ClusterServiceVersion
	Converts     Code = "conversion"    // custom resources are converted otherwise, or not at all
	Unavailable  Code = "unavailable"   // an aggregated API is not served
	Template     Code = "template"      // pods are to be others
	Rollout      Code = "replica-set"   // pods were replaced
	PodRestarted Code = "pod"           // a pod went or restarted
	RightLost    Code = "right-lost"    // somebody may no longer do something
	RightGained  Code = "right-gained"  // somebody may do more
	RightMissing Code = "right-missing" // somebody may do something by OLM's roles alone
	WrongPhase   Code = "phase"         // a ClusterServiceVersion is not Succeeded
	InFlight     Code = "in-flight"     // OLM is at work
	Running      Code = "running"       // a Deployment has pods
	NotReady     Code = "not-ready"     // a Deployment lacks pods
	There        Code = "there"         // an object is still there
	NotThere     Code = "not-there"     // an object is not there
	NotAsPlanned Code = "changed"       // an object is not as it was when the plan was made
)

// Compare returns what a cluster did not keep between two captures of the same
// namespace, in the order of the conditions and then of the objects. What the
// plan's steps up to a number change by intention is no finding.
func Compare(p *plan.Plan, step int, before, after *Evidence) []Finding {
	c := &comparison{plan: p, step: step, gone: gone(p, step)}
	var out []Finding
	for _, rule := range kept() {
		out = append(out, c.each(rule, before, after)...)
	}
	return append(out, c.compareRights(before, after)...)
}

// comparison compares what was with what is.
type comparison struct {
	plan *plan.Plan
	step int
	gone going
}

// rule compares one object; is is nil where it is not there any more.
type rule func(c *comparison, was Object, is *Object) []Finding

// kept are the rules that hold of every object, in the order in which they are
// told.
func kept() []rule { return []rule{sameUID, noOwner, converts, available, noRestart} }

// each applies a rule to every object of before.
func (c *comparison) each(r rule, before, after *Evidence) []Finding {
	now := map[kobj.Key]*Object{}
	for i := range after.Objects {
		now[after.Objects[i].Ref.Key()] = &after.Objects[i]
	}
	var out []Finding
	for _, was := range before.Objects {
		out = append(out, r(c, was, now[was.Ref.Key()])...)
	}
	return out
}

func found(code Code, ref kobj.Ref, format string, args ...any) []Finding {
	return []Finding{{Code: code, Object: ref, Message: fmt.Sprintf("%s ", ref.Key()) + fmt.Sprintf(format, args...)}}
}

func sameUID(c *comparison, was Object, is *Object) []Finding {
	switch {
	case c.gone.has(was):
		return nil
	case is == nil:
		return found(Lost, was.Ref, "is not there any more")
	case is.UID != was.UID:
		return found(OtherUID, was.Ref, "was deleted and made again: its UID was %s and is %s", was.UID, is.UID)
	case is.Deleting && !was.Deleting:
		return found(Deleting, was.Ref, "is being deleted")
	}
	return nil
}

// forgotten reports whether the step is about operators that OLM had forgotten before
// the plan was made, whose certificates others issue from then on.
func (c *comparison) forgotten() bool {
	return slices.ContainsFunc(c.plan.Steps, func(s plan.Step) bool { return s.Number == c.step && forgotten(c.plan, s.Namespace) })
}

func noOwner(c *comparison, _ Object, is *Object) []Finding {
	if is == nil {
		return nil
	}
	for _, w := range is.Owners {
		if c.gone.csvs[w.UID] {
			return found(Owned, is.Ref, "has an ownerReference to ClusterServiceVersion %s, and goes with it", w.Name)
		}
	}
	return nil
}

func converts(c *comparison, was Object, is *Object) []Finding {
	if is == nil || was.Conversion == nil || is.Conversion == nil {
		return nil
	}
	a, b := *was.Conversion, *is.Conversion
	switch {
	case a.Strategy != b.Strategy:
		return found(Converts, was.Ref, "converted by %s, and now by %s", a.Strategy, b.Strategy)
	case !a.works() || c.forgotten():
		return nil
	case a.Target != b.Target:
		return found(Converts, was.Ref, "was converted by %q, and now by %q", a.Target, b.Target)
	}
	for _, ca := range a.Certificates {
		if !slices.Contains(b.Certificates, ca) {
			return found(Converts, was.Ref, "no longer trusts the certificate by which it was converted")
		}
	}
	return nil
}

func available(_ *comparison, was Object, is *Object) []Finding {
	if is == nil || was.Available == nil || is.Available == nil || !*was.Available || *is.Available {
		return nil
	}
	return found(Unavailable, was.Ref, "was available, and is not")
}

func noRestart(c *comparison, was Object, is *Object) []Finding {
	if is == nil || was.Pods == nil || is.Pods == nil || c.mayRestart(was.Ref) {
		return nil
	}
	var out []Finding
	if was.Pods.Template != is.Pods.Template {
		out = append(out, found(Template, was.Ref, "has another pod template, of which the plan does not say it")...)
	}
	if slices.ContainsFunc(is.Pods.ReplicaSets, func(uid string) bool { return !slices.Contains(was.Pods.ReplicaSets, uid) }) {
		return append(out, found(Rollout, was.Ref, "has a new ReplicaSet: its pods restart, of which the plan does not say it")...)
	}
	return append(out, podsLeft(was, is)...)
}

// mayRestart reports whether pods restart as planned: only the tree changes them,
// and only once it is applied.
func (c *comparison) mayRestart(ref kobj.Ref) bool {
	return restarts(c.plan, ref) && slices.ContainsFunc(c.plan.Steps, func(s plan.Step) bool {
		return s.Number <= c.step && slices.ContainsFunc(s.Actions, func(a plan.Action) bool { return a.Do == plan.Apply && a.Object.Key() == ref.Key() })
	})
}

// podsLeft tells of pods that went or restarted by themselves.
func podsLeft(was Object, is *Object) []Finding {
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
	var told []string
	if gone > 0 {
		told = append(told, fmt.Sprintf("%d of its pods were replaced", gone))
	}
	if again > 0 {
		told = append(told, fmt.Sprintf("its containers restarted %d times", again))
	}
	if told == nil {
		return nil
	}
	out := found(PodRestarted, was.Ref, "is as it was, and yet %s", strings.Join(told, " and "))
	out[0].Note = true
	return out
}

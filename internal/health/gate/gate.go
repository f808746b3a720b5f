package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/model"
)

// Pin is a pinned operator to promote to the next environment.
type Pin struct {
	Operator string   // "namespace/package"
	Bundle   string   // digest of its bundle
	Checksum string   // checksum of the pin, for observations without a bundle digest
	Clusters []string // clusters in which the operator is installed
}

// Observation is the state of one operator in one cluster at one time.
type Observation struct {
	Environment    string // environment of the cluster; empty if unknown
	Cluster        string
	Operator       string
	At             time.Time // time of the observation; zero if unknown
	Version        string    // desired version
	Bundle         string    // digest of the desired bundle; empty if unknown
	Checksum       string    // checksum of the desired pin
	Healthy        bool      // whether all objects match the pin and are healthy
	Message        string    // reason if Healthy is false
	Since          time.Time // start of the uninterrupted health; zero if unknown
	Upgradeable    string    // True, False, Unknown; empty if not reported
	UpgradeMessage string
}

// Cause is a reason why an operator is held back.
type Cause string

// The causes, in reporting order.
const (
	NotUpgradeable Cause = "notUpgradeable" // the operator blocks upgrades
	NotObserved    Cause = "notObserved"    // there is no observation
	TooOld         Cause = "tooOld"         // the latest observation is too old
	OtherBundle    Cause = "otherBundle"    // the cluster has another bundle
	Unhealthy      Cause = "unhealthy"      // the bundle matches, but is unhealthy
	NotSoaked      Cause = "notSoaked"      // healthy, but not for long enough
	TooFew         Cause = "tooFew"         // the environment has fewer clusters than required
)

// Reason is a cause and the affected clusters.
type Reason struct {
	Cause    Cause         `json:"cause" form:"enum=notUpgradeable|notObserved|tooOld|otherBundle|unhealthy|notSoaked|tooFew"`
	Clusters []ClusterNote `json:"clusters"` // in the order of Pin.Clusters, followed by clusters without the operator
}

// ClusterNote is the name of a cluster with an explanation.
type ClusterNote struct {
	Name string `json:"name"`
	Note string `json:"note,omitempty"`
}

// Verdict is the decision of the gate on one operator.
type Verdict struct {
	Pass     bool      `json:"pass"`
	Healthy  int       `json:"healthy" doc:"clusters in which it is healthy"`
	Clusters int       `json:"clusters" doc:"number of clusters with the operator"`
	Since    time.Time `json:"-"`                                                                                    // latest time at which a counted cluster became healthy; zero if there is none
	Reasons  []Reason  `json:"causes" doc:"reasons for the clusters that do not count, even if the operator passes"` // in the order of the causes
}

// Judge decides whether observations are sufficient to promote a pin.
//
// seen may contain observations of any operator in any order. For each cluster, the latest
// observation counts, or the worst one if several have the same time. Earlier observations only
// determine how long the cluster has been healthy. Observations after now are ignored.
//
// A cluster counts as healthy if its latest observation is recent enough for the rule, matches the
// pin's bundle, and has been healthy for the soak time. The operator passes if the share and the
// number of healthy clusters are sufficient and no cluster blocks upgrades.
func Judge(rule Rule, pin Pin, seen []Observation, now time.Time) Verdict {
	of := map[string][]Observation{}
	for _, o := range seen {
		if o.Operator == pin.Operator {
			of[o.Cluster] = append(of[o.Cluster], o)
		}
	}
	v := Verdict{Clusters: len(pin.Clusters), Reasons: []Reason{}}
	by := map[Cause][]ClusterNote{}
	for _, name := range pin.Clusters {
		c := judgeCluster(rule, pin, of[name], now)
		if c.refusal != "" {
			by[NotUpgradeable] = append(by[NotUpgradeable], ClusterNote{name, c.refusal})
		}
		if c.cause != "" {
			by[c.cause] = append(by[c.cause], ClusterNote{name, c.note})
			continue
		}
		v.Healthy++
		if c.since.After(v.Since) {
			v.Since = c.since
		}
	}
	v.Pass = v.Healthy >= rule.Clusters && v.Healthy*int(whole) >= int(rule.Healthy)*v.Clusters && len(by[NotUpgradeable]) == 0
	if v.Clusters < rule.Clusters {
		by[TooFew] = newClusters(pin.Clusters)
	}
	for _, cause := range []Cause{NotUpgradeable, NotObserved, TooOld, OtherBundle, Unhealthy, NotSoaked, TooFew} {
		if list, ok := by[cause]; ok {
			v.Reasons = append(v.Reasons, Reason{cause, list})
		}
	}
	return v
}

func newClusters(names []string) []ClusterNote {
	out := make([]ClusterNote, len(names))
	for i, name := range names {
		out[i].Name = name
	}
	return out
}

// clusterResult is the decision of the gate for one cluster.
type clusterResult struct {
	cause   Cause  // reason why the cluster does not count; empty if it does
	note    string // details of the cause
	refusal string // reason why the operator blocks upgrades; empty if it does not
	since   time.Time
}

// judgeCluster returns the result for one cluster. If several observations have the latest time,
// all of them must be healthy.
func judgeCluster(rule Rule, pin Pin, seen []Observation, now time.Time) clusterResult {
	seen = slices.DeleteFunc(slices.Clone(seen), func(o Observation) bool { return o.At.After(now) })
	if len(seen) == 0 {
		return clusterResult{cause: NotObserved}
	}
	worst := func(o Observation) int {
		switch {
		case o.Upgradeable != "" && o.Upgradeable != "True":
			return 3
		case !pin.matches(o):
			return 2
		case !o.Healthy:
			return 1
		default:
			return 0
		}
	}
	slices.SortFunc(seen, func(a, b Observation) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(worst(a), worst(b)), strings.Compare(a.Bundle, b.Bundle), strings.Compare(a.Message, b.Message), a.Since.Compare(b.Since))
	})
	last := seen[len(seen)-1]
	f := clusterResult{refusal: upgradeRefusal(last)}
	for _, o := range seen {
		if o.At.Equal(last.At) && f.cause == "" {
			f.cause, f.note = checkObservation(rule, pin, o, now)
		}
	}
	if f.cause != "" {
		return f
	}
	if f.since = healthySince(rule, pin, seen); last.At.Sub(f.since) < time.Duration(rule.Soak) {
		f.cause, f.note = NotSoaked, "since "+formatTime(f.since)
	}
	return f
}

// upgradeRefusal returns the reason with which the operator blocks upgrades, or "".
func upgradeRefusal(o Observation) string {
	if o.Upgradeable == "" || o.Upgradeable == "True" {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("Upgradeable=%s: %s", inert.Line(o.Upgradeable), inert.Line(o.UpgradeMessage)), ": ")
}

// checkObservation returns the reason why an observation does not count, except for the soak time.
func checkObservation(rule Rule, pin Pin, o Observation, now time.Time) (cause Cause, note string) {
	switch {
	case o.At.IsZero():
		return TooOld, "no observation time"
	case now.Sub(o.At) > time.Duration(rule.Within):
		return TooOld, "at " + formatTime(o.At)
	case !pin.matches(o) && o.Bundle == "":
		return OtherBundle, strings.TrimSpace(inert.Line(o.Version) + " without the digest of its bundle")
	case !pin.matches(o):
		return OtherBundle, strings.TrimSpace(inert.Line(o.Version) + " " + model.Digest(o.Bundle).Short())
	case !o.Healthy:
		return Unhealthy, inert.Line(o.Message)
	}
	return "", ""
}

// matches reports whether the pin's bundle was observed.
func (p Pin) matches(o Observation) bool {
	if o.Bundle == "" || p.Bundle == "" {
		return o.Checksum != "" && o.Checksum == p.Checksum
	}
	return o.Bundle == p.Bundle
}

// healthySince returns the time since which a cluster has been healthy with the pin without
// interruption. seen is sorted, and the last observation is healthy. The time between two
// observations counts if the later one contains its start in Since, or if it is at most
// rule.Within.
func healthySince(rule Rule, pin Pin, seen []Observation) time.Time {
	last := seen[len(seen)-1]
	out, first := last.At, last.At
	for i := len(seen) - 1; i >= 0; i-- {
		o := seen[i]
		if !pin.matches(o) || !o.Healthy {
			if !out.After(o.At) {
				return first // a later observation contradicts Since
			}
			return out
		}
		if i < len(seen)-1 && hasGap(rule, o, seen[i+1]) {
			return out
		}
		first = o.At
		for _, t := range []time.Time{o.At, o.Since} {
			if !t.IsZero() && t.Before(out) {
				out = t
			}
		}
	}
	return out
}

// hasGap reports whether the health between two consecutive observations is unknown.
func hasGap(rule Rule, before, after Observation) bool {
	if after.Since.IsZero() {
		return after.At.Sub(before.At) > time.Duration(rule.Within)
	}
	return after.Since.After(before.At)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

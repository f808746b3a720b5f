package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/sanitize"
)

// Pin is a pinned operator to promote to the next environment.
type Pin struct {
	Environment string   // environment that pins the operator
	Operator    string   // namespace/package
	Bundle      string   // digest of the bundle
	Checksum    string   // checksum of the pin's block, for observations without a bundle digest
	Clusters    []string // clusters that the operator is rendered for
}

// Observation is the state of one operator in one cluster at one time.
type Observation struct {
	Environment    string // environment of the cluster; empty if unknown
	Cluster        string
	ClusterUID     string // of its Namespace kube-system; empty if unknown
	Unsigned       string // reason why its file is not signed as required
	Operator       string
	Absent         bool      // the cluster was observed without the operator
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
	NotUpgradeable    Cause = "notUpgradeable" // the operator blocks upgrades
	NotObserved       Cause = "notObserved"    // there is no observation, or the latest one is without the operator
	Unidentified      Cause = "unidentified"   // the latest observation does not name its cluster
	Duplicate         Cause = "duplicate"      // another cluster has the same UID
	Unsigned          Cause = "unsigned"       // the latest observation is not signed as required
	TooOld            Cause = "tooOld"         // the latest observation is too old
	OtherBundle       Cause = "otherBundle"    // the cluster has another bundle
	Unhealthy         Cause = "unhealthy"      // the bundle matches, but is unhealthy
	NotSoaked         Cause = "notSoaked"      // healthy, but not for long enough
	TooFew            Cause = "tooFew"         // the environment has fewer clusters than required
	NoLongerInstalled Cause = "left"           // the cluster was recently observed with the operator, but no longer gets it
)

// Reason is a cause and the affected clusters.
type Reason struct {
	Cause    Cause         `json:"cause" form:"enum=notUpgradeable|notObserved|unidentified|duplicate|unsigned|tooOld|otherBundle|unhealthy|notSoaked|tooFew|left"`
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
// seen may contain observations of any operator and environment, in any order. For each cluster, the
// latest observation counts, or the worst one if several have the same time. Earlier observations
// only determine how long the cluster has been healthy. Observations dated after now count only if
// they block upgrades.
//
// A cluster counts as healthy if its latest observation is evidence by the rule, matches the pin's
// bundle, and has been healthy for the soak time. The operator passes if the share and the number of
// healthy clusters are sufficient and no cluster blocks upgrades. A cluster that no longer gets the
// operator is listed as a reason; it blocks if the operator was unhealthy or not upgradeable there.
func Judge(rule Criteria, pin Pin, seen []Observation, now time.Time) Verdict {
	byCluster := map[string][]Observation{}
	for _, o := range seen {
		if o.Operator == pin.Operator && (o.Environment == "" || o.Environment == pin.Environment) {
			byCluster[o.Cluster] = append(byCluster[o.Cluster], o)
		}
	}
	v := Verdict{Clusters: len(pin.Clusters), Reasons: []Reason{}}
	byCause := map[Cause][]ClusterNote{}
	names := map[string]string{} // by UID
	for _, name := range pin.Clusters {
		c := judgeCluster(rule, pin, name, byCluster[name], now)
		if c.refusal != "" {
			byCause[NotUpgradeable] = append(byCause[NotUpgradeable], ClusterNote{name, c.refusal})
		}
		if first, known := names[c.uid]; known && c.cause == "" {
			c.cause, c.note = Duplicate, "has the UID of "+first
		}
		if c.uid != "" {
			names[c.uid] = name
		}
		if c.cause != "" {
			byCause[c.cause] = append(byCause[c.cause], ClusterNote{name, c.note})
			continue
		}
		v.Healthy++
		if c.since.After(v.Since) {
			v.Since = c.since
		}
	}
	removed, blocked := judgeRemoved(rule, pin, byCluster, now)
	if len(removed) > 0 {
		byCause[NoLongerInstalled] = removed
	}
	v.Pass = v.Healthy >= rule.Clusters && v.Healthy*int(fullShare) >= int(rule.Healthy)*v.Clusters && len(byCause[NotUpgradeable]) == 0 && !blocked
	if v.Clusters < rule.Clusters {
		byCause[TooFew] = newClusterNotes(pin.Clusters)
	}
	for _, cause := range []Cause{NotUpgradeable, NotObserved, Unidentified, Duplicate, Unsigned, TooOld, OtherBundle, Unhealthy, NotSoaked, TooFew, NoLongerInstalled} {
		if list, ok := byCause[cause]; ok {
			v.Reasons = append(v.Reasons, Reason{cause, list})
		}
	}
	return v
}

// judgeRemoved returns the clusters of the environment that were observed with the operator within
// rule.Within plus rule.Soak and no longer get it, and whether one of them blocks the promotion.
func judgeRemoved(rule Criteria, pin Pin, byCluster map[string][]Observation, now time.Time) (removed []ClusterNote, blocked bool) {
	began := now.Add(-time.Duration(rule.Within + rule.Soak))
	for _, name := range slices.Sorted(maps.Keys(byCluster)) {
		list := slices.DeleteFunc(byCluster[name], func(o Observation) bool {
			return o.Environment == "" || o.Absent || !o.At.IsZero() && o.At.Before(began)
		})
		if slices.Contains(pin.Clusters, name) || len(list) == 0 {
			continue
		}
		c := judgeCluster(rule, pin, name, list, now)
		note := c.refusal
		if note == "" && c.cause == Unhealthy {
			note = "unhealthy: " + c.note
		}
		blocked = blocked || note != ""
		removed = append(removed, ClusterNote{name, note})
	}
	return removed, blocked
}

func newClusterNotes(names []string) []ClusterNote {
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
	uid     string // UID of the cluster; empty if unknown
	since   time.Time
}

// judgeCluster returns the result for one cluster. If several observations have the latest time,
// all of them must be healthy.
func judgeCluster(rule Criteria, pin Pin, name string, seen []Observation, now time.Time) clusterResult {
	problem := func(o Observation) (Cause, string) {
		return rule.Problem(pin.Environment, []string{name}, o, now)
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
	seen = slices.SortedFunc(slices.Values(seen), func(a, b Observation) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(worst(a), worst(b)), strings.Compare(a.Bundle, b.Bundle), strings.Compare(a.Message, b.Message),
			a.Since.Compare(b.Since), strings.Compare(a.ClusterUID, b.ClusterUID), strings.Compare(a.Unsigned, b.Unsigned), strings.Compare(a.Environment, b.Environment))
	})
	f := clusterResult{refusal: upgradeRefusal(seen, problem)}
	seen = slices.DeleteFunc(seen, func(o Observation) bool { return o.At.After(now) })
	if len(seen) == 0 {
		f.cause = NotObserved
		return f
	}
	last := seen[len(seen)-1]
	f.uid = last.ClusterUID
	for _, o := range seen {
		if o.At.Equal(last.At) && f.cause == "" {
			if f.cause, f.note = problem(o); f.cause == "" {
				f.cause, f.note = checkObservation(pin, o)
			}
		}
	}
	if f.cause != "" {
		return f
	}
	seen = slices.DeleteFunc(seen, func(o Observation) bool {
		cause, _ := rule.checkIdentity(pin.Environment, []string{name}, o)
		return cause != "" && pin.matches(o) && o.Healthy
	})
	if f.since = healthySince(rule, pin, seen); last.At.Sub(f.since) < time.Duration(rule.Soak) {
		f.cause, f.note = NotSoaked, "since "+formatTime(f.since)
	}
	return f
}

// upgradeRefusal returns the operator's latest reason to block upgrades, or "". A reason is valid
// until newer evidence of the same cluster reports the operator as upgradeable; an observation
// without the condition is no such evidence. seen is sorted by time.
func upgradeRefusal(seen []Observation, problem func(Observation) (Cause, string)) string {
	isWithdrawn := func(o Observation) bool {
		return !o.At.IsZero() && slices.ContainsFunc(seen, func(later Observation) bool {
			cause, _ := problem(later)
			return cause == "" && later.Upgradeable == "True" && later.At.After(o.At) && (o.ClusterUID == "" || o.ClusterUID == later.ClusterUID)
		})
	}
	for _, o := range slices.Backward(seen) {
		if o.Upgradeable == "" || o.Upgradeable == "True" || isWithdrawn(o) {
			continue
		}
		text := strings.TrimSuffix(fmt.Sprintf("Upgradeable=%s: %s", sanitize.Line(o.Upgradeable), sanitize.Line(o.UpgradeMessage)), ": ")
		if !o.At.Equal(seen[len(seen)-1].At) {
			text += ", observed at " + formatTime(o.At)
		}
		return text
	}
	return ""
}

// Problem returns the reason why an observation is no evidence of the clusters of an environment at
// time now, or "". All commands use it to reject observations.
func (r Criteria) Problem(environment string, clusters []string, o Observation, now time.Time) (cause Cause, note string) {
	switch cause, note = r.checkIdentity(environment, clusters, o); {
	case cause != "":
		return cause, note
	case o.At.IsZero():
		return TooOld, "no observation time"
	case o.At.After(now):
		return NotObserved, "dated in the future: " + formatTime(o.At)
	case now.Sub(o.At) > time.Duration(r.Within):
		return TooOld, "at " + formatTime(o.At)
	}
	return "", ""
}

// checkIdentity is [Criteria.Problem] without the checks of the time.
func (r Criteria) checkIdentity(environment string, clusters []string, o Observation) (cause Cause, note string) {
	var missing []string
	for _, f := range [][3]string{{"environment", o.Environment, environment}, {"cluster", o.Cluster, "any"}, {"UID of kube-system", o.ClusterUID, "any"}} {
		if f[1] == "" && f[2] != "" && r.Identified {
			missing = append(missing, f[0])
		}
	}
	switch {
	case o.Environment != "" && o.Environment != environment:
		return NotObserved, "observed in environment " + sanitize.Line(o.Environment)
	case o.Cluster != "" && !slices.Contains(clusters, o.Cluster):
		return NotObserved, "observed in cluster " + sanitize.Line(o.Cluster)
	case len(missing) > 0:
		return Unidentified, "no " + strings.Join(missing, ", ")
	case r.Signed && o.Unsigned != "":
		return Unsigned, sanitize.Line(o.Unsigned)
	}
	return "", ""
}

// checkObservation returns the reason why a cluster is not healthy according to an observation,
// apart from the soak time, or "".
func checkObservation(pin Pin, o Observation) (cause Cause, note string) {
	switch {
	case o.Absent:
		return NotObserved, "without the operator at " + formatTime(o.At)
	case !pin.matches(o) && o.Bundle == "":
		return OtherBundle, strings.TrimSpace(sanitize.Line(o.Version) + " without the digest of its bundle")
	case !pin.matches(o):
		return OtherBundle, strings.TrimSpace(sanitize.Line(o.Version) + " " + catalog.Digest(o.Bundle).Short())
	case !o.Healthy:
		return Unhealthy, sanitize.Line(o.Message)
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
// observations counts as healthy if Since of the later one is not after the earlier one. If Since
// is unknown, the time must not exceed rule.Within.
func healthySince(rule Criteria, pin Pin, seen []Observation) time.Time {
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
func hasGap(rule Criteria, before, after Observation) bool {
	if before.ClusterUID != after.ClusterUID && before.ClusterUID != "" && after.ClusterUID != "" {
		return true // another cluster of that name
	}
	if after.Since.IsZero() {
		return after.At.Sub(before.At) > time.Duration(rule.Within)
	}
	return after.Since.After(before.At)
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format(time.RFC3339)
}

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

// Pin is a pinned operator that may be promoted to the next environment.
type Pin struct {
	Environment string   // environment whose lock has the pin
	Operator    string   // namespace/package
	Bundle      string   // digest of the bundle
	Checksum    string   // checksum of the pin, for observations without the digest of a bundle
	Clusters    []string // clusters of the environment that get the operator
}

// Observation is the state of one operator in one cluster at one time.
type Observation struct {
	Environment    string // environment that the cluster belongs to; empty if unknown
	Cluster        string
	ClusterUID     string // UID of the Namespace kube-system; empty if unknown
	Unsigned       string // reason why the file is not signed as required; empty if it is
	Operator       string
	Absent         bool      // the cluster was observed without the operator
	At             time.Time // time of the observation; zero if unknown
	Version        string    // desired version
	Bundle         string    // digest of the desired bundle; empty if unknown
	Checksum       string    // checksum of the desired pin
	Healthy        bool      // all objects match the pin and are healthy
	Message        string    // reason if Healthy is false
	Since          time.Time // start of the current period of uninterrupted health; zero if unknown
	Upgradeable    string    // "True", "False" or "Unknown"; empty if not reported
	UpgradeMessage string
}

// Cause is the kind of reason why an operator is not promoted.
type Cause string

// The causes, in the order in which they are reported.
const (
	NotUpgradeable    Cause = "notUpgradeable" // the operator itself blocks upgrades
	NotObserved       Cause = "notObserved"    // no observation, or the operator is missing in the latest one
	Unidentified      Cause = "unidentified"   // the latest observation does not identify its cluster
	Duplicate         Cause = "duplicate"      // another cluster has the same UID
	Unsigned          Cause = "unsigned"       // the latest observation is not signed as required
	TooOld            Cause = "tooOld"         // the latest observation is too old
	OtherBundle       Cause = "otherBundle"    // the cluster has another bundle
	Unhealthy         Cause = "unhealthy"      // the bundle matches, but is unhealthy
	NotSoaked         Cause = "notSoaked"      // healthy, but not yet for the soak time
	TooFew            Cause = "tooFew"         // the environment has fewer clusters than the rule requires
	NoLongerInstalled Cause = "left"           // recently observed with the operator, but the cluster no longer gets it
)

// Reason is a cause, with the clusters that it applies to.
type Reason struct {
	Cause    Cause         `json:"cause" form:"enum=notUpgradeable|notObserved|unidentified|duplicate|unsigned|tooOld|otherBundle|unhealthy|notSoaked|tooFew|left"`
	Clusters []ClusterNote `json:"clusters"` // in the order of Pin.Clusters, then clusters that no longer get the operator
}

// ClusterNote is the name of a cluster, with details of the cause.
type ClusterNote struct {
	Name string `json:"name"`
	Note string `json:"note,omitempty"`
}

// Verdict is the decision whether an operator may be promoted.
type Verdict struct {
	Pass     bool      `json:"pass"`
	Healthy  int       `json:"healthy" doc:"clusters in which it is healthy"`
	Clusters int       `json:"clusters" doc:"number of clusters with the operator"`
	Since    time.Time `json:"-"`                                                                                    // time at which the last of the healthy clusters became healthy; zero if there is none
	Reasons  []Reason  `json:"causes" doc:"reasons for the clusters that do not count, even if the operator passes"` // sorted by cause
}

// Judge decides whether observations allow the promotion of a pin.
//
// seen holds observations of any operators and environments, in any order. For each cluster, the latest
// observation decides. Of several with the same time, the worst decides. Earlier observations only
// determine how long the cluster has been healthy. An observation from the future counts only if it reports
// that the operator blocks upgrades.
//
// A cluster counts as healthy if rule accepts its latest observation, the observation is of the pinned
// bundle, and the operator has been healthy for the soak time. The operator may be promoted if the share
// and the number of healthy clusters are sufficient and it does not block upgrades in any cluster. A
// cluster that no longer gets the operator is listed as a reason. Such a cluster prevents the promotion
// only if the operator was unhealthy there or blocked upgrades.
func Judge(rule Criteria, pin Pin, seen []Observation, now time.Time) Verdict {
	byCluster := map[string][]Observation{}
	for _, o := range seen {
		if o.Operator == pin.Operator && (o.Environment == "" || o.Environment == pin.Environment) {
			byCluster[o.Cluster] = append(byCluster[o.Cluster], o)
		}
	}
	v := Verdict{Clusters: len(pin.Clusters), Reasons: []Reason{}}
	byCause := map[Cause][]ClusterNote{}
	names := map[string]string{} // UID → name of the first cluster with it
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

// judgeRemoved returns the clusters that no longer get the operator, but in which it was observed within the
// last rule.Within plus rule.Soak. blocked reports whether any of these clusters prevents the promotion.
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

// clusterResult is the decision for one cluster.
type clusterResult struct {
	cause   Cause  // reason why the cluster does not count as healthy; empty if it does
	note    string // details of the cause
	refusal string // the operator's reason for blocking upgrades; empty if it does not
	uid     string // UID of the cluster; empty if unknown
	since   time.Time
}

// judgeCluster returns the decision for one cluster. If several observations have the latest time,
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

// upgradeRefusal returns the operator's latest reason for blocking upgrades in a cluster, or "". A reason
// remains valid until a newer accepted observation reports Upgradeable=True. An observation without this
// condition does not end the validity. seen must be sorted by time. problem returns the reason why an
// observation is not accepted.
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

// Problem returns the reason why an observation is not accepted at time now for the given clusters of an
// environment. It returns "" for an accepted observation. All commands use this method.
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

// checkIdentity is [Criteria.Problem] without the checks of the time. It checks the environment, the cluster
// and the signature.
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

// checkObservation returns the reason why an observation does not show a healthy operator, or "". It does not
// check the soak time.
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

// matches reports whether the operator was observed with the bundle of the pin.
func (p Pin) matches(o Observation) bool {
	if o.Bundle == "" || p.Bundle == "" {
		return o.Checksum != "" && o.Checksum == p.Checksum
	}
	return o.Bundle == p.Bundle
}

// healthySince returns the time since which the operator has been healthy with the pinned bundle without
// interruption. seen must be sorted by time, and its last observation must be healthy. Between two
// observations, the operator counts as healthy if the field Since of the later one is at or before the time
// of the earlier one. If Since is unknown, the two observations must not be more than rule.Within apart.
func healthySince(rule Criteria, pin Pin, seen []Observation) time.Time {
	last := seen[len(seen)-1]
	out, first := last.At, last.At
	for i := len(seen) - 1; i >= 0; i-- {
		o := seen[i]
		if !pin.matches(o) || !o.Healthy {
			if !out.After(o.At) {
				return first // the period ends here: a later observation contradicts it
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

// hasGap reports whether the operator may have been unhealthy between two consecutive observations.
func hasGap(rule Criteria, before, after Observation) bool {
	if before.ClusterUID != after.ClusterUID && before.ClusterUID != "" && after.ClusterUID != "" {
		return true // another cluster with the same name
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

package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/inert"
)

// Pin is an operator that another environment is to take over.
type Pin struct {
	Operator string   // namespace/package
	Bundle   string   // digest of its bundle
	Checksum string   // of the pin's block, for observations that do not name the bundle
	Clusters []string // that get it
}

// Observation is what was seen of one operator in one cluster.
type Observation struct {
	Environment    string // that the cluster is of; empty: the file does not say
	Cluster        string
	Operator       string
	At             time.Time // when it was looked at; zero: the file does not say
	Version        string    // that the cluster is to have
	Bundle         string    // digest of the bundle that the cluster is to have; empty: the file does not say
	Checksum       string    // of its pin
	Healthy        bool      // everything is there as that pin says, and healthy
	Message        string    // why not
	Since          time.Time // when it became so, without a break since; zero: the file does not say
	Upgradeable    string    // True, False, Unknown; empty: it says nothing
	UpgradeMessage string
}

// Cause is why an operator is held.
type Cause string

// The causes, in the order in which they are told.
const (
	NotUpgradeable Cause = "notUpgradeable" // it says that it must not be upgraded
	NotObserved    Cause = "notObserved"    // nothing was seen of it
	TooOld         Cause = "tooOld"         // it was last seen too long ago
	OtherBundle    Cause = "otherBundle"    // it is not at the pin
	Unhealthy      Cause = "unhealthy"      // it is at the pin, and not healthy
	NotSoaked      Cause = "notSoaked"      // it is healthy there, for too short a time
	TooFew         Cause = "tooFew"         // the environment has fewer clusters than are asked for
)

// Reason is a cause with the clusters that it holds for.
type Reason struct {
	Cause    Cause     `json:"cause" form:"enum=notUpgradeable|notObserved|tooOld|otherBundle|unhealthy|notSoaked|tooFew"`
	Clusters []Cluster `json:"clusters"` // in the order of the pin's; of those that have not the operator, after them
}

// Cluster is a cluster, and what is to be said of it.
type Cluster struct {
	Name string `json:"name"`
	Note string `json:"note,omitempty"`
}

// Verdict is what the gate says of one operator.
type Verdict struct {
	Pass     bool      `json:"pass"`
	Good     int       `json:"good" doc:"clusters that suffice"`
	Clusters int       `json:"clusters" doc:"that get the operator"`
	Since    time.Time `json:"-"`                                                                // when the last of the good ones became healthy; zero where there is none
	Reasons  []Reason  `json:"causes" doc:"why the others do not, also where that is no matter"` // in the order of the causes
}

// Judge says whether what was seen of a pin is enough. The observations may be of
// anything, in any order, and several of one cluster: the latest counts, the worst
// of those that are equally late, and the ones before it say since when nothing
// has changed. What is dated after now counts as not seen.
//
// A cluster is good where it was last seen within the rule's time, at the pin's
// bundle, healthy, and for long enough. An operator passes where enough clusters
// are good, by share and by number, and none says that it must not be upgraded.
func Judge(rule Rule, pin Pin, seen []Observation, now time.Time) Verdict {
	of := map[string][]Observation{}
	for _, o := range seen {
		if o.Operator == pin.Operator {
			of[o.Cluster] = append(of[o.Cluster], o)
		}
	}
	v := Verdict{Clusters: len(pin.Clusters), Reasons: []Reason{}}
	by := map[Cause][]Cluster{}
	for _, name := range pin.Clusters {
		c := judge(rule, pin, of[name], now)
		if c.refuses != "" {
			by[NotUpgradeable] = append(by[NotUpgradeable], Cluster{name, c.refuses})
		}
		if c.cause != "" {
			by[c.cause] = append(by[c.cause], Cluster{name, c.note})
			continue
		}
		v.Good++
		if c.since.After(v.Since) {
			v.Since = c.since
		}
	}
	v.Pass = v.Good >= rule.Clusters && v.Good*int(whole) >= int(rule.Healthy)*v.Clusters && len(by[NotUpgradeable]) == 0
	if v.Clusters < rule.Clusters {
		by[TooFew] = named(pin.Clusters)
	}
	for _, cause := range []Cause{NotUpgradeable, NotObserved, TooOld, OtherBundle, Unhealthy, NotSoaked, TooFew} {
		if list, ok := by[cause]; ok {
			v.Reasons = append(v.Reasons, Reason{cause, list})
		}
	}
	return v
}

func named(names []string) []Cluster {
	out := make([]Cluster, len(names))
	for i, name := range names {
		out[i].Name = name
	}
	return out
}

// found is what a cluster shows of a pin.
type found struct {
	cause   Cause  // why it is not good; empty: it is
	note    string // to go with the cause
	refuses string // what the operator says against an upgrade; empty: nothing
	since   time.Time
}

// judge returns what the observations of one cluster show of a pin. Of those that
// are equally late, each has to be good.
func judge(rule Rule, pin Pin, seen []Observation, now time.Time) found {
	seen = slices.DeleteFunc(slices.Clone(seen), func(o Observation) bool { return o.At.After(now) })
	if len(seen) == 0 {
		return found{cause: NotObserved}
	}
	worst := func(o Observation) int {
		switch {
		case o.Upgradeable != "" && o.Upgradeable != "True":
			return 3
		case !pin.at(o):
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
	f := found{refuses: refusal(last)}
	for _, o := range seen {
		if o.At.Equal(last.At) && f.cause == "" {
			f.cause, f.note = standing(rule, pin, o, now)
		}
	}
	if f.cause != "" {
		return f
	}
	if f.since = since(rule, pin, seen); last.At.Sub(f.since) < time.Duration(rule.Soak) {
		f.cause, f.note = NotSoaked, "since "+text(f.since)
	}
	return f
}

// refusal returns what an operator says against an upgrade.
func refusal(o Observation) string {
	if o.Upgradeable == "" || o.Upgradeable == "True" {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("Upgradeable=%s: %s", inert.Line(o.Upgradeable), inert.Line(o.UpgradeMessage)), ": ")
}

// standing returns why what was last seen of a cluster is not good, but for the
// time that it has been so.
func standing(rule Rule, pin Pin, o Observation, now time.Time) (cause Cause, note string) {
	switch {
	case o.At.IsZero():
		return TooOld, "it does not say when"
	case now.Sub(o.At) > time.Duration(rule.Within):
		return TooOld, "at " + text(o.At)
	case !pin.at(o) && o.Bundle == "":
		return OtherBundle, strings.TrimSpace(inert.Line(o.Version) + " without the digest of its bundle")
	case !pin.at(o):
		return OtherBundle, strings.TrimSpace(inert.Line(o.Version) + " " + catalog.Digest(o.Bundle).Short())
	case !o.Healthy:
		return Unhealthy, inert.Line(o.Message)
	}
	return "", ""
}

// at reports whether an observation is of the pin's bundle.
func (p Pin) at(o Observation) bool {
	if o.Bundle == "" || p.Bundle == "" {
		return o.Checksum != "" && o.Checksum == p.Checksum
	}
	return o.Bundle == p.Bundle
}

// since returns since when a cluster is healthy at the pin without a break. The
// last of the observations is so; they are sorted. What lies between two of them
// is known where the later one says since when it is so, or where they are no
// further apart than the rule lets one be old.
func since(rule Rule, pin Pin, seen []Observation) time.Time {
	last := seen[len(seen)-1]
	out, first := last.At, last.At
	for i := len(seen) - 1; i >= 0; i-- {
		o := seen[i]
		if !pin.at(o) || !o.Healthy {
			if !out.After(o.At) {
				return first // a later one says that it was otherwise
			}
			return out
		}
		if i < len(seen)-1 && broken(rule, o, seen[i+1]) {
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

// broken reports whether it may have been otherwise between two observations that
// follow each other.
func broken(rule Rule, before, after Observation) bool {
	if after.Since.IsZero() {
		return after.At.Sub(before.At) > time.Duration(rule.Within)
	}
	return after.Since.After(before.At)
}

func text(t time.Time) string { return t.UTC().Format(time.RFC3339) }

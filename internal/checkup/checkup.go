// Package checkup says whether what a lock installs can live on another version of
// Kubernetes or OpenShift, and which upgrades have to come before.
//
// [Judge] is pure: pins, what they say of themselves and what clusters get, to a
// verdict. [Run] asks it about the lock of a workspace, and where something is in
// the way looks for upgrades: each that it names was resolved, rendered and judged
// like the lock itself. Nothing is written.
//
// Start from [Run] and [Report].
package checkup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Target is the version that a cluster is to get; what is empty is not asked about.
type Target struct {
	Kubernetes string `json:"kubernetes,omitempty" doc:"Version of Kubernetes, such as 1.37."`
	OpenShift  string `json:"openshift,omitempty" doc:"Version of OpenShift, such as 4.20."`
}

// String returns "Kubernetes 1.37, OpenShift 4.20".
func (t Target) String() string {
	var parts []string
	if t.Kubernetes != "" {
		parts = append(parts, "Kubernetes "+t.Kubernetes)
	}
	if t.OpenShift != "" {
		parts = append(parts, "OpenShift "+t.OpenShift)
	}
	return strings.Join(parts, ", ")
}

// Problem is one thing that is in the way there, or that a later version makes one.
type Problem struct {
	Rule     string      `json:"rule" doc:"minKubeVersion, olm.maxOpenShiftVersion, or a rule of quayside diff."`
	Blocks   bool        `json:"blocks" doc:"Whether it is in the way. Otherwise a later version makes it so."`
	Operator string      `json:"operator,omitempty" doc:"namespace/package of the pin. Absent for what is the user's own."`
	Object   *diff.Ref   `json:"object,omitempty" doc:"The object. Absent where it is about the pin itself."`
	Message  string      `json:"message" doc:"What is wrong, in one line."`
	Place    *diff.Place `json:"place,omitempty" doc:"Where it stands."`
	Clusters []string    `json:"clusters,omitempty" doc:"Clusters that it holds for. Absent: all that were looked at."`
}

// Verdict is what becomes of an operator there.
type Verdict string

// The verdicts.
const (
	Lives   Verdict = "lives"
	Warned  Verdict = "deprecated" // it lives, and will not on a later version
	Blocked Verdict = "blocked"
)

// Operator is a pin with its verdict.
type Operator struct {
	Operator string  `json:"operator" doc:"namespace/package."`
	Version  string  `json:"version"`
	Verdict  Verdict `json:"verdict" form:"enum=lives|deprecated|blocked" doc:"Whether it can live there: lives, deprecated where a later version will not have what it uses, blocked."`
}

// Judgement is what is said of one lock.
type Judgement struct {
	Lives     bool       `json:"lives" doc:"Whether nothing is in the way."`
	Operators []Operator `json:"operators" doc:"Every pin, by namespace and package."`
	Problems  []Problem  `json:"problems" doc:"What is in the way first, then by operator and object."`
}

// Seen is what some clusters get; no clusters: all of them.
type Seen struct {
	Clusters []string
	Found    []diff.Finding // as diff.Unserved returns them
}

// Judge says of every pin, which are in the order of a lock, whether it can live
// on the target, from what does not fit by its own word, and from what is wrong
// with the objects that clusters get. A version of OpenShift that the lifecycle of a pin
// does not list blocks, too: nobody supports it there.
func Judge(pins []lockfile.Pin, lifecycles func(lockfile.Pin) *lifecycle.Version, target Target, misfits []resolve.Misfit, seen []Seen) Judgement {
	var all []Problem
	for _, m := range misfits {
		all = append(all, Problem{Rule: m.Rule, Blocks: true, Operator: m.Pin.Key(), Message: m.Text, Place: at(m.Pin)})
	}
	for _, p := range pins {
		if said, fits := lifecycles(p).Fits(lifecycle.OpenShift, target.OpenShift); !fits {
			all = append(all, Problem{
				Rule: "lifecycle.platform", Blocks: true, Operator: p.Key(), Place: at(p),
				Message: fmt.Sprintf("version %s is supported on OpenShift %s", lifecycles(p).Name, strings.Join(said, ", ")),
			})
		}
	}
	all = append(all, gathered(seen)...)
	slices.SortStableFunc(all, compare)
	j := Judgement{Lives: true, Operators: []Operator{}, Problems: append([]Problem{}, all...)}
	worst := map[string]Verdict{}
	for _, p := range all {
		switch {
		case p.Blocks:
			worst[p.Operator], j.Lives = Blocked, false
		case worst[p.Operator] == "":
			worst[p.Operator] = Warned
		}
	}
	for _, p := range pins {
		j.Operators = append(j.Operators, Operator{p.Key(), p.VersionText(), cmp.Or(worst[p.Key()], Lives)})
	}
	return j
}

// gathered returns what is found in clusters, each thing once. What is in the way
// in some clusters and only named in others is what it is in the former.
func gathered(seen []Seen) []Problem {
	type key struct {
		rule, operator, message string
		object                  diff.Ref
		place                   diff.Place
	}
	var out []Problem
	index, holds := map[key]int{}, map[int]map[int]bool{} // problem, and what of seen it holds for
	for n, s := range seen {
		for _, f := range s.Found {
			if strings.HasPrefix(f.Rule, "resources.") {
				f.Operator = "" // of the definition, but what is to be changed is the user's
			}
			k, blocks := key{f.Rule, f.Operator, f.Message, f.Object, f.Place}, f.Severity >= diff.High
			i, known := index[k]
			if !known {
				i = len(out)
				index[k] = i
				out = append(out, Problem{Rule: f.Rule, Blocks: blocks, Operator: f.Operator, Object: &f.Object, Message: f.Message, Place: &f.Place})
			}
			if out[i].Blocks && !blocks {
				continue
			}
			if !known || blocks && !out[i].Blocks {
				out[i].Blocks, out[i].Clusters, holds[i] = blocks, nil, map[int]bool{}
			}
			out[i].Clusters = append(out[i].Clusters, s.Clusters...)
			holds[i][n] = true
		}
	}
	for i := range out {
		slices.Sort(out[i].Clusters)
		if out[i].Clusters = slices.Compact(out[i].Clusters); len(holds[i]) == len(seen) {
			out[i].Clusters = nil
		}
	}
	return out
}

// at returns where a pin stands; nil where that is nowhere.
func at(p lockfile.Pin) *diff.Place {
	if p.Pos.File == "" {
		return nil
	}
	return &diff.Place{Path: p.Pos.File, Line: p.Pos.Line, Column: p.Pos.Col}
}

func compare(a, b Problem) int {
	object := func(p Problem) diff.Ref {
		if p.Object == nil {
			return diff.Ref{}
		}
		return *p.Object
	}
	if a.Blocks != b.Blocks {
		if a.Blocks {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(a.Operator, b.Operator), object(a).Compare(object(b)), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Message, b.Message), slices.Compare(a.Clusters, b.Clusters))
}

// blocked returns the pins that something is in the way of, in their order.
func (j Judgement) blocked() []string {
	var out []string
	for _, o := range j.Operators {
		if o.Verdict == Blocked {
			out = append(out, o.Operator)
		}
	}
	return out
}

// own returns what is in the way and of no pin.
func (j Judgement) own() []Problem {
	return slices.DeleteFunc(slices.Clone(j.Problems), func(p Problem) bool {
		return !p.Blocks || slices.ContainsFunc(j.Operators, func(o Operator) bool { return o.Operator == p.Operator })
	})
}

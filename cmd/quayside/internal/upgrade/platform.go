package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Platform contains the target versions of a cluster upgrade. An empty version is not checked.
type Platform struct {
	Kubernetes string `json:"kubernetes,omitempty" doc:"Version of Kubernetes, such as 1.37."`
	OpenShift  string `json:"openshift,omitempty" doc:"Version of OpenShift, such as 4.20."`
}

// String returns "Kubernetes 1.37, OpenShift 4.20".
func (t Platform) String() string {
	var parts []string
	if t.Kubernetes != "" {
		parts = append(parts, "Kubernetes "+t.Kubernetes)
	}
	if t.OpenShift != "" {
		parts = append(parts, "OpenShift "+t.OpenShift)
	}
	return strings.Join(parts, ", ")
}

// Problem is the reason why an operator or object does not support the target platform or a later platform.
type Problem struct {
	Rule     string       `json:"rule" doc:"minKubeVersion, olm.maxOpenShiftVersion, or a rule of quayside diff."`
	Blocks   bool         `json:"blocks" doc:"True if the problem blocks this upgrade, false if it blocks only an upgrade to a later version."`
	Operator string       `json:"operator,omitempty" doc:"namespace/package of the pin. Absent for objects of the user."`
	Object   *diff.Ref    `json:"object,omitempty" doc:"The object. Absent for a problem of the pin itself."`
	Message  string       `json:"message" doc:"Problem, in one line."`
	Place    *diff.Region `json:"location,omitempty" doc:"Location."`
	Clusters []string     `json:"clusters,omitempty" doc:"Affected clusters. Absent: all checked clusters."`
}

// PlatformVerdict is the verdict on an operator for the target platform.
type PlatformVerdict string

// The verdicts.
const (
	PlatformSupported  PlatformVerdict = "supported"
	PlatformDeprecated PlatformVerdict = "deprecated" // supported, but not by a later version of the platform
	PlatformBlocked    PlatformVerdict = "blocked"
)

// OperatorVerdict is a pin with its verdict.
type OperatorVerdict struct {
	Operator string          `json:"operator" doc:"namespace/package."`
	Version  string          `json:"version"`
	Verdict  PlatformVerdict `json:"verdict" form:"enum=supported|deprecated|blocked" doc:"supported, deprecated (a later version lacks an API that it uses) or blocked."`
}

// Judgement contains the verdicts and problems of one lock.
type Judgement struct {
	Supported bool              `json:"supported" doc:"Whether nothing blocks the upgrade."`
	Operators []OperatorVerdict `json:"operators" doc:"Every pin, by namespace and package."`
	Problems  []Problem         `json:"problems" doc:"Blocking entries first, then by operator and object."`
}

// PlatformFinding contains the findings for a group of clusters.
type PlatformFinding struct {
	Clusters []string       // nil: all clusters
	Findings []diff.Finding // from diff.Unserved
}

// JudgePlatform returns a verdict on every pin, in lock order, and the problems. The sources of problems are
// misfits (unmet requirements of bundles), findings about objects, and lifecycles that do not list the
// OpenShift version. lifecycles returns nil for a pin whose lifecycle is unknown.
func JudgePlatform(pins []lockfile.Pin, lifecycles func(lockfile.Pin) *catalog.SupportedVersion, target Platform, misfits []resolve.Incompatibility, findings []PlatformFinding) Judgement {
	var all []Problem
	for _, m := range misfits {
		all = append(all, Problem{Rule: m.Rule, Blocks: true, Operator: m.Pin.Key(), Message: m.Text, Place: pinPlace(m.Pin)})
	}
	for _, p := range pins {
		if versions, fits := lifecycles(p).SupportsPlatform(catalog.OpenShift, target.OpenShift); !fits {
			all = append(all, Problem{
				Rule: "lifecycle.platform", Blocks: true, Operator: p.Key(), Place: pinPlace(p),
				Message: fmt.Sprintf("version %s is supported on OpenShift %s", lifecycles(p).Name, strings.Join(versions, ", ")),
			})
		}
	}
	all = append(all, groupFindings(findings)...)
	slices.SortStableFunc(all, compareProblems)
	j := Judgement{Supported: true, Operators: []OperatorVerdict{}, Problems: append([]Problem{}, all...)}
	worst := map[string]PlatformVerdict{}
	for _, p := range all {
		switch {
		case p.Blocks:
			worst[p.Operator], j.Supported = PlatformBlocked, false
		case worst[p.Operator] == "":
			worst[p.Operator] = PlatformDeprecated
		}
	}
	for _, p := range pins {
		j.Operators = append(j.Operators, OperatorVerdict{p.Key(), p.VersionText(), cmp.Or(worst[p.Key()], PlatformSupported)})
	}
	return j
}

// groupFindings merges equal findings of several clusters into one problem. If the finding is blocking in some
// clusters, the problem lists these clusters, otherwise all clusters with the finding. An empty list means all
// clusters that are checked.
func groupFindings(seen []PlatformFinding) []Problem {
	type key struct {
		rule, operator, message string
		object                  diff.Ref
		place                   diff.Region
	}
	var out []Problem
	index := map[key]int{}          // index in out, by finding
	holds := map[int]map[int]bool{} // key: index in out; value: indexes in seen of the groups of clusters with this problem
	for n, s := range seen {
		for _, f := range s.Findings {
			if strings.HasPrefix(f.Rule, "resources.") {
				f.Operator = "" // the finding is about the CRD of the operator, but the user must change the custom resource
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

// pinPlace returns the position of a pin in the lock, or nil if it is unknown.
func pinPlace(p lockfile.Pin) *diff.Region {
	if p.Pos.File == "" {
		return nil
	}
	return &diff.Region{Path: p.Pos.File, Line: p.Pos.Line, Column: p.Pos.Col}
}

func compareProblems(a, b Problem) int {
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

// blockedOperators returns the blocked operators as namespace/package, in lock order.
func (j Judgement) blockedOperators() []string {
	var out []string
	for _, o := range j.Operators {
		if o.Verdict == PlatformBlocked {
			out = append(out, o.Operator)
		}
	}
	return out
}

// userProblems returns the blocking problems that are about objects of the user.
func (j Judgement) userProblems() []Problem {
	return slices.DeleteFunc(slices.Clone(j.Problems), func(p Problem) bool {
		return !p.Blocks || slices.ContainsFunc(j.Operators, func(o OperatorVerdict) bool { return o.Operator == p.Operator })
	})
}

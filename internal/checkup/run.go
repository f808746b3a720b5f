package checkup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
)

// Report is what is said of the lock of a workspace.
type Report struct {
	Target
	Clusters []string `json:"clusters" doc:"Clusters that were looked at: those that were named, else all. Empty where the workspace has none."`
	Judgement
	Upgrades []Step   `json:"upgrades" doc:"Upgrades after which no operator is blocked, and none of which can be left out. Empty where there are none, or none are needed."`
	Command  string   `json:"command,omitempty" doc:"The command that makes the upgrades."`
	Why      []string `json:"why" doc:"Why no upgrades help, or not alone."`
	Notes    []string `json:"notes" doc:"What could not be looked at."`
}

// Run judges the lock of a workspace for a target, in the clusters of that name or
// in all, and where operators are in the way looks for upgrades to make before.
// These are possible on the version that quayside.yaml gives, for they come first:
// what is in the way moves in as few hops as help, everything else stays that can.
func Run(ctx context.Context, p *project.Project, target Target, clusters []string) (*Report, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	in, err := p.Inputs(ctx, p.ResolveOptions(), true)
	if err != nil {
		return nil, err
	}
	r := &Report{Target: target, Clusters: slices.Clone(clusters), Upgrades: []Step{}, Why: []string{}, Notes: notes(p, target)}
	if len(clusters) == 0 {
		r.Clusters = append([]string{}, p.Clusters()...)
	}
	c := checker{p: p, in: in, target: target, clusters: clusters, lock: lock}
	unknown, err := c.judge(ctx, lock, &r.Judgement)
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		r.Notes = append(r.Notes, "minKubeVersion is not known where the catalog no longer has the version: "+strings.Join(unknown, ", "))
	}
	for _, own := range r.own() {
		r.Why = append(r.Why, fmt.Sprintf("%s is in the way, and no operator's: change it by hand", place(own)))
	}
	if len(r.blocked()) == 0 {
		return r, nil
	}
	return r, c.search(ctx, r)
}

// notes says what the target leaves open, and that it is older than what there is.
func notes(p *project.Project, target Target) []string {
	out := []string{}
	for _, v := range []struct{ target, now, field, unchecked string }{
		{target.Kubernetes, p.Settings.KubernetesVersion, "kubernetesVersion", "minKubeVersion and removed APIs"},
		{target.OpenShift, p.Settings.OpenShiftVersion, "openshiftVersion", ""},
	} {
		to, err1 := semver.ParseTolerant(v.target)
		from, err2 := semver.ParseTolerant(v.now)
		switch {
		case v.target == "" && v.unchecked != "":
			out = append(out, v.unchecked+" are not looked at: --kubernetes is not given")
		case err1 == nil && err2 == nil && to.LT(from):
			out = append(out, fmt.Sprintf("%s is older than %s %s in quayside.yaml: this is a downgrade", v.target, v.field, v.now))
		}
	}
	return out
}

func place(p Problem) string {
	words := p.Object.String()
	if p.Place != nil && p.Place.Path != "" {
		words += " (" + diag.Pos{File: p.Place.Path, Line: p.Place.Line, Col: p.Place.Column}.String() + ")"
	}
	return words
}

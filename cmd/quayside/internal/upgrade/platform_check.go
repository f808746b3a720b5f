package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	comparing "github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
)

// PlatformReport is the result of CheckPlatform.
type PlatformReport struct {
	Platform
	Clusters []string `json:"clusters" doc:"Checked clusters: those in the arguments, by default all. Empty if the workspace has none."`
	Judgement
	Upgrades []PlatformStep `json:"upgrades" doc:"For each blocked operator, the upgrade to the first version that is not blocked, if one can be reached."`
	Command  string         `json:"command,omitempty" doc:"The command that makes the upgrades. Absent if a blocked operator has no upgrade, or if the upgrades exclude each other."`
	Why      []string       `json:"reasons" doc:"Why a blocked operator has no upgrade, and why the upgrades are not sufficient."`
	Notes    []string       `json:"notes" doc:"Checks that were not possible."`

	Messages []comparing.Message `json:"-"` // messages for the user from reading and rendering the lock
}

// CheckPlatform checks whether the lock of a workspace supports a target platform. It checks the
// given clusters, or all clusters if none are given. For each blocked operator, it looks for the
// first version that supports both the target platform and the current platform in quayside.yaml.
func CheckPlatform(ctx context.Context, p *workspace.Project, target Platform, clusters []string) (*PlatformReport, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	pr, err := workspace.ReadProblem(ctx, p, workspace.Request{Options: p.ResolveOptions(), Fresh: true})
	if err != nil {
		return nil, err
	}
	r := &PlatformReport{Platform: target, Clusters: slices.Clone(clusters), Upgrades: []PlatformStep{}, Why: []string{}, Notes: platformNotes(p, target)}
	if len(clusters) == 0 {
		r.Clusters = append([]string{}, p.Settings.ClusterNames()...)
	}
	c := platformChecker{p: p, problem: pr, target: target, clusters: clusters, lock: lock}
	defer func() { r.Messages = c.messages }()
	unknown, err := c.judge(ctx, lock, &r.Judgement)
	if err != nil {
		return r, err
	}
	if len(unknown) > 0 {
		r.Notes = append(r.Notes, "minKubeVersion unknown, because the catalog no longer has the version: "+strings.Join(unknown, ", "))
	}
	for _, own := range r.userProblems() {
		r.Why = append(r.Why, fmt.Sprintf("%s blocks the upgrade and is not managed by quayside: edit it", problemPlace(own)))
	}
	return r, c.addUpgrades(ctx, r)
}

// platformNotes returns a note about the skipped checks if --kubernetes is not set, and a note for each
// downgrade.
func platformNotes(p *workspace.Project, target Platform) []string {
	out := []string{}
	for _, v := range []struct{ target, now, field, unchecked string }{
		{target.Kubernetes, p.Settings.KubernetesVersion, "kubernetesVersion", "minKubeVersion and removed APIs"},
		{target.OpenShift, p.Settings.OpenShiftVersion, "openshiftVersion", ""},
	} {
		to, err1 := semver.ParseTolerant(v.target)
		from, err2 := semver.ParseTolerant(v.now)
		switch {
		case v.target == "" && v.unchecked != "":
			out = append(out, v.unchecked+" are not checked: --kubernetes is not set")
		case err1 == nil && err2 == nil && to.LT(from):
			out = append(out, fmt.Sprintf("%s is older than %s %s in quayside.yaml: this is a downgrade", v.target, v.field, v.now))
		}
	}
	return out
}

func problemPlace(p Problem) string {
	words := p.Object.String()
	if p.Place != nil && p.Place.Path != "" {
		words += " (" + diag.Pos{File: p.Place.Path, Line: p.Place.Line, Col: p.Place.Column}.String() + ")"
	}
	return words
}

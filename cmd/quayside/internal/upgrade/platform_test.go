package upgrade_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/upgrade"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

func newPin(name string, openshift ...string) lockfile.Pin {
	p := lockfile.Pin{Namespace: "ops", Package: name, Version: "1.2.3", Bundle: name + ".v1.2.3", Pos: diag.Pos{File: "quayside.lock", Line: 7, Col: 3}}
	p.Channel = strings.Join(openshift, " ")
	return p
}

// newLifecycle returns the lifecycle of a pin that newPin created. The channel of such a pin lists the
// supported versions of OpenShift.
func newLifecycle(p lockfile.Pin) *catalog.SupportedVersion {
	if p.Channel == "" {
		return nil
	}
	v := &catalog.SupportedVersion{Name: "1.2"}
	for _, o := range strings.Fields(p.Channel) {
		v.Platforms = append(v.Platforms, catalog.SupportedPlatform{Name: catalog.OpenShift, Version: o})
	}
	return v
}

func newFinding(rule string, severity diff.Severity, operator, name string) diff.Finding {
	return diff.Finding{
		Rule: rule, Severity: severity, Operator: operator, Message: rule + " " + name,
		Object: diff.Ref{Version: "v1", Kind: "Thing", Name: name}, Place: diff.Region{Path: name + ".yaml", Line: 1, Column: 1},
	}
}

// formatJudgement formats a judgement as lines: the operators that are not supported, then the
// problems.
func formatJudgement(j upgrade.Judgement) []string {
	out := []string{fmt.Sprint(j.Supported)}
	for _, o := range j.Operators {
		if o.Verdict != upgrade.PlatformSupported {
			out = append(out, o.Operator+" "+o.Version+" "+string(o.Verdict))
		}
	}
	for _, p := range j.Problems {
		line := p.Rule + " " + p.Operator + ": " + p.Message
		if !p.Blocks {
			line = "later: " + line
		}
		if p.Place != nil {
			line += fmt.Sprintf(" at %s:%d", p.Place.Path, p.Place.Line)
		}
		out = append(out, strings.Join(append([]string{line}, p.Clusters...), " @"))
	}
	return out
}

// TestJudgePlatform covers every kind of problem, and findings that are not problems.
func TestJudgePlatform(t *testing.T) {
	a, b := newPin("a"), newPin("b")
	pins := []lockfile.Pin{a, b}
	for _, c := range []struct {
		name    string
		target  upgrade.Platform
		pins    []lockfile.Pin
		misfits []resolve.Incompatibility
		seen    []upgrade.PlatformFinding
		want    []string
	}{
		{name: "nothing", pins: pins, want: []string{"true"}},
		{name: "no pins", want: []string{"true"}},
		{
			name: "minKubeVersion", pins: pins, misfits: []resolve.Incompatibility{{Pin: b, Rule: "minKubeVersion", Text: "needs Kubernetes 1.30.0"}},
			want: []string{"false", "ops/b 1.2.3 blocked", "minKubeVersion ops/b: needs Kubernetes 1.30.0 at quayside.lock:7"},
		},
		{
			name: "maxOpenShiftVersion", pins: pins, misfits: []resolve.Incompatibility{{Pin: a, Rule: "olm.maxOpenShiftVersion", Text: "supports OpenShift up to 4.20"}},
			want: []string{"false", "ops/a 1.2.3 blocked", "olm.maxOpenShiftVersion ops/a: supports OpenShift up to 4.20 at quayside.lock:7"},
		},
		{
			name: "a misfit of nowhere", pins: []lockfile.Pin{{Namespace: "ops", Package: "a", Version: "1.2.3"}},
			misfits: []resolve.Incompatibility{{Pin: lockfile.Pin{Namespace: "ops", Package: "a"}, Rule: "minKubeVersion", Text: "needs Kubernetes 1.30.0"}},
			want:    []string{"false", "ops/a 1.2.3 blocked", "minKubeVersion ops/a: needs Kubernetes 1.30.0"},
		},
		{
			name: "supported elsewhere", target: upgrade.Platform{OpenShift: "4.21"}, pins: []lockfile.Pin{newPin("a", "4.18", "4.20"), b},
			want: []string{"false", "ops/a 1.2.3 blocked", "lifecycle.platform ops/a: version 1.2 is supported on OpenShift 4.18, 4.20 at quayside.lock:7"},
		},
		{name: "supported there", target: upgrade.Platform{OpenShift: "4.20.3"}, pins: []lockfile.Pin{newPin("a", "4.18", "4.20")}, want: []string{"true"}},
		{name: "supported elsewhere, and OpenShift is not asked about", target: upgrade.Platform{Kubernetes: "1.37"}, pins: []lockfile.Pin{newPin("a", "4.18")}, want: []string{"true"}},
		{
			name: "an API that is gone", pins: pins, seen: []upgrade.PlatformFinding{{Findings: []diff.Finding{newFinding("api.removed", diff.High, "ops/a", "x")}}},
			want: []string{"false", "ops/a 1.2.3 blocked", "api.removed ops/a: api.removed x at x.yaml:1"},
		},
		{
			name: "an API that goes", pins: pins, seen: []upgrade.PlatformFinding{{Findings: []diff.Finding{newFinding("api.deprecated", diff.Low, "ops/a", "x")}}},
			want: []string{"true", "ops/a 1.2.3 deprecated", "later: api.deprecated ops/a: api.deprecated x at x.yaml:1"},
		},
		{
			name: "both, the worse first", pins: pins,
			seen: []upgrade.PlatformFinding{{Findings: []diff.Finding{newFinding("api.deprecated", diff.Low, "ops/a", "x"), newFinding("api.removed", diff.High, "ops/a", "y")}}},
			want: []string{"false", "ops/a 1.2.3 blocked", "api.removed ops/a: api.removed y at y.yaml:1", "later: api.deprecated ops/a: api.deprecated x at x.yaml:1"},
		},
		{
			name: "a webhook of the user's own", pins: pins, seen: []upgrade.PlatformFinding{{Findings: []diff.Finding{newFinding("api.removed", diff.High, "", "hook")}}},
			want: []string{"false", "api.removed : api.removed hook at hook.yaml:1"},
		},
		{
			name: "a custom resource is no operator's to change", pins: pins,
			seen: []upgrade.PlatformFinding{{Findings: []diff.Finding{newFinding("resources.rejected", diff.High, "ops/a", "cr")}}},
			want: []string{"false", "resources.rejected : resources.rejected cr at cr.yaml:1"},
		},
		{
			name: "of one cluster", pins: pins,
			seen: []upgrade.PlatformFinding{{Clusters: []string{"c2", "c1"}, Findings: []diff.Finding{newFinding("api.removed", diff.High, "ops/a", "x")}}, {Clusters: []string{"c3"}}},
			want: []string{"false", "ops/a 1.2.3 blocked", "api.removed ops/a: api.removed x at x.yaml:1 @c1 @c2"},
		},
		{
			name: "of all clusters", pins: pins,
			seen: []upgrade.PlatformFinding{
				{Clusters: []string{"c1"}, Findings: []diff.Finding{newFinding("api.removed", diff.High, "ops/a", "x")}},
				{Clusters: []string{"c2"}, Findings: []diff.Finding{newFinding("api.removed", diff.High, "ops/a", "x")}},
			},
			want: []string{"false", "ops/a 1.2.3 blocked", "api.removed ops/a: api.removed x at x.yaml:1"},
		},
		{
			name: "milder in one cluster", pins: pins,
			seen: []upgrade.PlatformFinding{
				{Clusters: []string{"c1"}, Findings: []diff.Finding{newFinding("api.removed", diff.Low, "ops/a", "x")}},
				{Clusters: []string{"c2"}, Findings: []diff.Finding{newFinding("api.removed", diff.High, "ops/a", "x")}},
				{Clusters: []string{"c3"}, Findings: []diff.Finding{newFinding("api.removed", diff.Low, "ops/a", "x")}},
			},
			want: []string{"false", "ops/a 1.2.3 blocked", "api.removed ops/a: api.removed x at x.yaml:1 @c2"},
		},
		{
			name: "milder beside it", pins: pins,
			seen: []upgrade.PlatformFinding{{Findings: []diff.Finding{newFinding("api.removed", diff.Low, "ops/a", "x"), newFinding("api.removed", diff.High, "ops/a", "x")}}},
			want: []string{"false", "ops/a 1.2.3 blocked", "api.removed ops/a: api.removed x at x.yaml:1"},
		},
		{
			name: "twice in one cluster", pins: pins,
			seen: []upgrade.PlatformFinding{
				{Clusters: []string{"c1"}, Findings: []diff.Finding{newFinding("api.removed", diff.High, "ops/a", "x"), newFinding("api.removed", diff.High, "ops/a", "x")}},
				{Clusters: []string{"c2"}},
			},
			want: []string{"false", "ops/a 1.2.3 blocked", "api.removed ops/a: api.removed x at x.yaml:1 @c1"},
		},
		{
			name: "everything at once", target: upgrade.Platform{OpenShift: "4.21"}, pins: []lockfile.Pin{newPin("a", "4.20"), b},
			misfits: []resolve.Incompatibility{{Pin: a, Rule: "minKubeVersion", Text: "needs Kubernetes 1.30.0"}},
			seen:    []upgrade.PlatformFinding{{Findings: []diff.Finding{newFinding("api.deprecated", diff.Low, "ops/b", "x"), newFinding("api.removed", diff.High, "", "mine")}}},
			want: []string{
				"false", "ops/a 1.2.3 blocked", "ops/b 1.2.3 deprecated",
				"api.removed : api.removed mine at mine.yaml:1",
				"lifecycle.platform ops/a: version 1.2 is supported on OpenShift 4.20 at quayside.lock:7",
				"minKubeVersion ops/a: needs Kubernetes 1.30.0 at quayside.lock:7",
				"later: api.deprecated ops/b: api.deprecated x at x.yaml:1",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := upgrade.JudgePlatform(c.pins, newLifecycle, c.target, c.misfits, c.seen)
			if d := cmp.Diff(c.want, formatJudgement(got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if len(got.Operators) != len(c.pins) || got.Operators == nil || got.Problems == nil {
				t.Errorf("want every pin, and lists that are there: %+v", got)
			}
		})
	}
}

// TestJudgePlatformOrder draws findings, and checks that the judgement does not depend on the order of findings
// and clusters. A lock must be supported unless a problem blocks. An operator must be blocked if one of its
// problems blocks.
func TestJudgePlatformOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 26))
	for range 200 {
		pins := []lockfile.Pin{newPin("a"), newPin("b", "4.20"), newPin("c")}
		target := upgrade.Platform{OpenShift: fmt.Sprintf("4.%d", 20+r.IntN(2))}
		var seen []upgrade.PlatformFinding
		for i := range 1 + r.IntN(3) {
			s := upgrade.PlatformFinding{Clusters: []string{fmt.Sprintf("c%d", i)}}
			for range r.IntN(4) {
				rule := []string{"api.removed", "api.deprecated", "resources.rejected"}[r.IntN(3)]
				f := newFinding(rule, []diff.Severity{diff.Low, diff.High}[r.IntN(2)], []string{"", "ops/a", "ops/c"}[r.IntN(3)], string(rune('x'+r.IntN(3))))
				f.Message += fmt.Sprint(" ", f.Severity) // the messages of severities differ
				if !slices.ContainsFunc(s.Findings, func(g diff.Finding) bool { return reflect.DeepEqual(f, g) }) {
					s.Findings = append(s.Findings, f)
				}
			}
			seen = append(seen, s)
		}
		first := upgrade.JudgePlatform(pins, newLifecycle, target, nil, seen)
		blocked := map[string]bool{}
		for _, p := range first.Problems {
			blocked[p.Operator] = blocked[p.Operator] || p.Blocks
		}
		if first.Supported != !slices.ContainsFunc(first.Problems, func(p upgrade.Problem) bool { return p.Blocks }) {
			t.Fatalf("lives: %v with %q", first.Supported, formatJudgement(first))
		}
		for _, o := range first.Operators {
			if (o.Verdict == upgrade.PlatformBlocked) != blocked[o.Operator] {
				t.Fatalf("%s is %s with %q", o.Operator, o.Verdict, formatJudgement(first))
			}
		}
		r.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
		for _, s := range seen {
			r.Shuffle(len(s.Findings), func(i, j int) { s.Findings[i], s.Findings[j] = s.Findings[j], s.Findings[i] })
		}
		if d := cmp.Diff(first, upgrade.JudgePlatform(pins, newLifecycle, target, nil, seen)); d != "" {
			t.Fatalf("in another order: %s", d)
		}
	}
}

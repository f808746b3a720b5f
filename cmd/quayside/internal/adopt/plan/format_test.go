package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
)

// plans generates valid plans.
func plans() *rapid.Generator[*plan.Plan] {
	text := rapid.StringMatching(`[a-zä: {}\[\]"'\n#,-]{1,12}`)
	name := rapid.StringMatching(`[a-z]([a-z0-9.-]{0,8}[a-z0-9])?`)
	label := rapid.StringMatching(`[a-z][a-z0-9]{0,8}`)
	list := func(g *rapid.Generator[string]) *rapid.Generator[[]string] {
		return rapid.Custom(func(t *rapid.T) []string {
			if out := rapid.SliceOfN(g, 0, 3).Draw(t, "list"); len(out) > 0 {
				return out
			}
			return nil
		})
	}
	ref := rapid.Custom(func(t *rapid.T) k8s.Ref {
		return k8s.Ref{
			APIVersion: rapid.SampledFrom([]string{"v1", "apps/v1", "operators.coreos.com/v1alpha1"}).Draw(t, "apiVersion"),
			Kind:       rapid.StringMatching(`[A-Z][a-zA-Z]{0,8}`).Draw(t, "kind"),
			Namespace:  rapid.OneOf(rapid.Just(""), label).Draw(t, "namespace"), Name: rapid.StringMatching(`[a-z:A-Z0-9][a-z:.-]{0,8}`).Draw(t, "name"),
		}
	})
	refs := rapid.Custom(func(t *rapid.T) []k8s.Ref {
		if out := rapid.SliceOfN(ref, 0, 3).Draw(t, "refs"); len(out) > 0 {
			return out
		}
		return nil
	})
	action := rapid.Custom(func(t *rapid.T) plan.Action {
		a := plan.Action{Object: ref.Draw(t, "object"), UID: name.Draw(t, "uid")}
		switch a.Do = rapid.SampledFrom([]plan.Verb{plan.Annotate, plan.Apply, plan.Save, plan.Delete, plan.Orphan, plan.Scale, plan.TransferFields, plan.Unfinalize, plan.Unlabel}).Draw(t, "do"); a.Do { //nolint:exhaustive // the others have no further fields
		case plan.Annotate:
			a.Set = rapid.MapOfN(text, text, 1, 3).Draw(t, "set")
			a.Unset = list(text).Draw(t, "unset")
		case plan.Apply:
			a.Force = rapid.Bool().Draw(t, "force")
			if rapid.Bool().Draw(t, "guarded") {
				a.Set = rapid.MapOfN(text, text, 1, 3).Draw(t, "set")
			}
		case plan.Scale:
			a.From, a.To = rapid.Int64Range(0, 5).Draw(t, "from"), rapid.Int64Range(0, 5).Draw(t, "to")
		case plan.Unfinalize:
			a.Finalizer, a.Unset = text.Draw(t, "finalizer"), list(text).Draw(t, "unset")
		case plan.Unlabel:
			a.Unset = rapid.SliceOfN(text, 1, 3).Draw(t, "unset")
		}
		return a
	})
	checks := rapid.Custom(func(t *rapid.T) []plan.Check {
		var out []plan.Check
		for range rapid.IntRange(0, 2).Draw(t, "checks") {
			out = append(out, plan.Check{Check: rapid.SampledFrom([]plan.Condition{plan.Deleted, plan.SameUID, plan.Prepared}).Draw(t, "check"), Objects: refs.Draw(t, "objects")})
		}
		return out
	})
	return rapid.Custom(func(t *rapid.T) *plan.Plan {
		p := &plan.Plan{
			APIVersion: plan.APIVersion, Kind: plan.Kind, Cluster: rapid.OneOf(rapid.Just(""), text).Draw(t, "cluster"), ClusterUID: text.Draw(t, "uid"),
			Mode: rapid.SampledFrom([]plan.Mode{plan.Stopped, plan.Live}).Draw(t, "mode"), Lock: text.Draw(t, "lock"), Tree: text.Draw(t, "tree"), Manager: text.Draw(t, "manager"),
			OLM: []plan.Workload{}, Operators: []plan.Operator{}, Skipped: []plan.SkippedOperator{}, Steps: []plan.Step{},
		}
		for range rapid.IntRange(0, 2).Draw(t, "operators") {
			p.OLM = append(p.OLM, plan.Workload{Object: ref.Draw(t, "object"), UID: text.Draw(t, "uid"), Replicas: rapid.Int64Range(0, 3).Draw(t, "replicas")})
			p.Operators = append(p.Operators, plan.Operator{Namespace: label.Draw(t, "namespace"), Package: text.Draw(t, "package"), CSV: text.Draw(t, "csv"), Restarts: list(text).Draw(t, "restarts")})
			p.Skipped = append(p.Skipped, plan.SkippedOperator{Namespace: label.Draw(t, "namespace"), Reasons: append([]string{}, list(text).Draw(t, "reasons")...)})
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "steps") {
			s := plan.Step{
				Number: i + 1, Name: rapid.SampledFrom([]plan.StepKind{plan.Guard, plan.CleanUp, plan.Suspend}).Draw(t, "name"), Title: text.Draw(t, "title"),
				Before: checks.Draw(t, "before"), After: checks.Draw(t, "after"),
			}
			if rapid.Bool().Draw(t, "manual") {
				s.Manual = text.Draw(t, "text")
			} else {
				s.Actions = rapid.SliceOfN(action, 1, 4).Draw(t, "actions")
			}
			p.Steps = append(p.Steps, s)
		}
		return p
	})
}

// TestFormatRoundTrip formats random plans and parses them again.
func TestFormatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plans().Draw(t, "plan")
		text := plan.Format(p)
		back, err := plan.Parse("plan.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if d := cmp.Diff(p, back); d != "" {
			t.Fatalf("-written +read:\n%s\n%s", d, text)
		}
	})
}

const written = `apiVersion: quayside.dev/v1alpha1
kind: AdoptionPlan
clusterUID: u
mode: stopped
lock: l
tree: t
manager: m
olm: []
operators: []
skipped: []
steps:
- number: 1
  name: detach
  title: x
  preconditions:
  - check: succeeded
  actions:
  - {verb: remove-finalizer, object: operators.coreos.com/v1alpha1 ClusterServiceVersion a/x.v1, uid: u1, finalizer: f}
  - {verb: orphan, object: operators.coreos.com/v1alpha1 ClusterServiceVersion a/x.v1, uid: u1}
`

// TestPlanFaults checks the message and the position of each fault in a plan.
func TestPlanFaults(t *testing.T) {
	if _, err := plan.Parse("p.yaml", []byte(written)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"kind: AdoptionPlan", "kind: Plan", `p.yaml:2:7: kind: "Plan": must be AdoptionPlan`},
		{"clusterUID: u", "", "p.yaml:1:1: clusterUID: missing"},
		{"mode: stopped", "mode: stoped", `p.yaml:4:7: mode: "stoped": must be one of stopped, live, uninstall (did you mean "stopped"?)`},
		{"mode: stopped", "mod: stopped", `p.yaml:4:1: unknown field "mod" (did you mean "mode"?)`},
		{"number: 1", "number: 2", "p.yaml:12:11: steps[0].number: the step has number 2, expected 1"},
		{"name: detach", "name: detahc", `p.yaml:13:9: steps[0].name: "detahc": must be one of `},
		{"check: succeeded", "check: fine", `p.yaml:16:12: steps[0].preconditions[0].check: "fine": must be one of `},
		{"title: x", "title: x\n  manual: do it", "p.yaml:15:11: steps[0].manual: a step is either manual or has actions, not both"},
		{", finalizer: f", "", "p.yaml:18:5: steps[0].actions[0]: remove-finalizer requires the field finalizer"},
		{"verb: orphan", "to: 1, verb: orphan", "p.yaml:19:10: steps[0].actions[1].to: orphan does not allow to"},
		{"x.v1, uid: u1}", "x.v1}", "p.yaml:19:5: steps[0].actions[1]: orphan requires the field uid"},
		{"verb: orphan", "verb: destroy", `p.yaml:19:12: steps[0].actions[1].verb: "destroy": must be one of `},
		{"a/x.v1, uid: u1}", "a/../x, uid: u1}", `p.yaml:19:28: steps[0].actions[1].object: name "../x" `},
		{"ClusterServiceVersion a/x.v1, uid: u1}", "a/x, uid: u1}", `p.yaml:19:28: "operators.coreos.com/v1alpha1 a/x" is not an object reference`},
		{"v1alpha1 ClusterServiceVersion a/x.v1, uid: u1}", "v1/2 K A_b/x, uid: u1}", `p.yaml:19:28: steps[0].actions[1].object: "operators.coreos.com/v1/2" is not an apiVersion`},
	} {
		at := strings.LastIndex(written, c[0])
		if at < 0 {
			t.Errorf("%q is not in the plan", c[0])
			continue
		}
		_, err := plan.Parse("p.yaml", []byte(written[:at]+c[1]+written[at+len(c[0]):]))
		if err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%q for %q: got %v, want %s", c[1], c[0], err, c[2])
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(written))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := plan.Parse("p.yaml", data)
		if err != nil {
			return
		}
		if _, err := plan.Parse("p.yaml", plan.Format(p)); err != nil {
			t.Errorf("%v\n%s", err, plan.Format(p))
		}
	})
}

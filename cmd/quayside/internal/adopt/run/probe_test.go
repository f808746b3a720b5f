package run_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

const etcdV1, etcdV2 = "etcd.example.com/v1", "etcd.example.com/v2"

// newProbedScene returns a scene with a custom resource. One webhook converts the resource, and another one
// validates its updates.
func newProbedScene(t testing.TB) *scene {
	t.Helper()
	s := newScene(t)
	crd := newUIDObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "etcds.etcd.example.com", "u-crd", map[string]any{"spec": map[string]any{
		"group": "etcd.example.com", "names": map[string]any{"kind": "Etcd", "plural": "etcds"}, "scope": "Namespaced",
		"versions":   []any{map[string]any{"name": "v1", "served": true, "storage": true}, map[string]any{"name": "v2", "served": true, "storage": false}},
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": map[string]any{"url": "https://convert"}}},
	}})
	hook := newUIDObject("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "etcd", "u-hook", map[string]any{"webhooks": []any{map[string]any{
		"rules": []any{map[string]any{"apiGroups": []any{"etcd.example.com"}, "resources": []any{"etcds"}, "operations": []any{"CREATE", "UPDATE"}}},
	}}})
	for i, o := range []k8s.Object{crd, hook, newUIDObject(etcdV1, "Etcd", "team-a", "main", "u-main", nil)} {
		s.cluster.Put(o)
		if i < 2 {
			step := &s.plan.Steps[3]
			step.Actions = append(step.Actions, plan.Action{Do: plan.Save, Object: k8s.RefTo(o), UID: k8s.Text(o, "metadata", "uid")})
		}
	}
	return s
}

// probed runs the plan with probes, and returns the results of the probes by kind.
func (s *scene) probed(t testing.TB, say run.Prompter) map[verify.ProbeKind]verify.ProbeResult {
	t.Helper()
	res, err := s.run(t, func(in *run.Input) {
		in.Watch, in.ProbeInterval, in.Prompter = 5*time.Minute, time.Millisecond, say
	})
	if err != nil {
		t.Fatal(err)
	}
	out := map[verify.ProbeKind]verify.ProbeResult{}
	for _, r := range res.Probes {
		out[r.Kind] = r
	}
	return out
}

// TestProbes runs a plan in which nothing fails. Every kind must be probed, and no probe may fail. The run must
// end when OLM has run for Input.Watch.
func TestProbes(t *testing.T) {
	s := newProbedScene(t)
	begun := s.clock.Now()
	got := s.probed(t, &quiet{})
	for kind, targets := range map[verify.ProbeKind]int{
		verify.ProbePermissions: 1, verify.ProbeWebhooks: 1, verify.ProbeConversion: 2, verify.ProbeAPIs: 1, verify.ProbePods: 1, verify.ProbeObjects: 2,
	} {
		if r := got[kind]; r.Targets != targets || r.Probes < targets || r.Failures != 0 || r.LongestGap != 0 || r.Unprobed != 0 {
			t.Errorf("%+v, want %d targets without failures", r, targets)
		}
	}
	if took := s.clock.Now().Sub(begun); took < 5*time.Minute || took > 8*time.Minute {
		t.Errorf("the run took %s", took)
	}
	if again := s.probed(t, &quiet{}); len(again) != 0 {
		t.Errorf("probes without a step: %v", again)
	}
}

// gapPrompter makes reads of an object fail while it confirms a step.
type gapPrompter struct {
	quiet
	scene *scene
	key   k8s.Key
	down  atomic.Bool
	reads chan bool
}

func (g *gapPrompter) before(c runtest.Call) error {
	if c.Verb != "get" || c.Object.Key() != g.key {
		return nil
	}
	down := g.down.Load()
	select {
	case g.reads <- down:
	default:
	}
	if down {
		return errors.New("no endpoints available")
	}
	return nil
}

func (g *gapPrompter) ConfirmStep(_ context.Context, s plan.Step) (bool, error) {
	if s.Name == plan.Prepare {
		for _, down := range []bool{true, false} {
			g.down.Store(down)
			for <-g.reads != down {
			}
			<-g.reads // the next round: the time of the one before is taken
			_ = g.scene.clock.Sleep(context.Background(), 3*time.Second)
			for range 3 { // full rounds after the change
				<-g.reads
			}
		}
	}
	return true, nil
}

// TestProbesFindGap makes one API fail for three seconds. Only probes of this API may fail.
func TestProbesFindGap(t *testing.T) {
	s := newProbedScene(t)
	say := &gapPrompter{scene: s, key: k8s.Key{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1.etcd.example.com"}, reads: make(chan bool)}
	s.cluster.Before = say.before
	for kind, r := range s.probed(t, say) {
		if isAPI := kind == verify.ProbeAPIs; isAPI != (r.Failures > 0) || r.Failures == r.Probes || isAPI != (r.LongestGap >= 3000) || isAPI != strings.Contains(r.Failure, "no endpoints") {
			t.Errorf("%+v", r)
		}
	}
	j, err := run.OpenJournal(s.files, s.plan)
	if err != nil {
		t.Fatal(err)
	}
	if r := run.NewRecord(s.plan, j, &run.Progress{}); !strings.Contains(string(r.Markdown()), "| apis | 1 |") || len(r.Probes) == 0 {
		t.Errorf("the report lacks the probes:\n%s", r.Markdown())
	}
}

// TestProbesOfWebhooks answers dry-run updates with errors. Only errors of a failed webhook may count as failures.
func TestProbesOfWebhooks(t *testing.T) {
	resource := schema.GroupResource{Group: "etcd.example.com", Resource: "etcds"}
	for name, tc := range map[string]struct {
		err                error
		failures, unprobed bool
	}{
		"ok/denied":       {apierrors.NewForbidden(resource, "main", errors.New(`admission webhook "x" denied the request: no`)), false, false},
		"ok/invalid":      {apierrors.NewBadRequest("invalid"), false, false},
		"ok/forbidden":    {apierrors.NewForbidden(resource, "main", errors.New("no permission")), false, true},
		"ok/side effects": {apierrors.NewBadRequest(`admission webhook "x" does not support dry run`), false, true},
		"error/down":      {apierrors.NewInternalError(errors.New(`failed calling webhook "x"`)), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newProbedScene(t)
			var begun atomic.Bool
			s.cluster.Before = func(c runtest.Call) error {
				switch {
				case c.Writes():
					begun.Store(true)
				case c.DryRun && (begun.Load() || !tc.failures): // an earlier failure is not counted
					return tc.err
				}
				return nil
			}
			r := s.probed(t, &quiet{})[verify.ProbeWebhooks]
			if (r.Failures > 0) != tc.failures || (r.Unprobed == 1) != tc.unprobed || (r.Targets == 1) == tc.unprobed {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestProbesIgnoreEarlierErrors breaks a conversion before the first run. This run must not probe the
// conversion. In a second run, in which steps have already begun, the same error must count as a failure.
func TestProbesIgnoreEarlierErrors(t *testing.T) {
	s := newProbedScene(t)
	s.cluster.Before = func(c runtest.Call) error {
		if c.Verb == "get" && c.Object.APIVersion == etcdV2 {
			return apierrors.NewInternalError(errors.New("conversion webhook failed"))
		}
		return nil
	}
	for _, failed := range []bool{false, true} {
		res, err := s.run(t, func(in *run.Input) {
			in.Watch, in.ProbeInterval, in.CleanUp = time.Minute, time.Millisecond, failed
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res.Probes {
			if isConversion := r.Kind == verify.ProbeConversion; (r.Failures > 0) != (isConversion && failed) || (r.Unprobed == 1) != (isConversion && !failed) {
				t.Errorf("%+v", r)
			}
		}
	}
}

// TestProbesFindReplacement replaces a custom resource and permanently breaks its conversion. The gap must last
// until the end of the run.
func TestProbesFindReplacement(t *testing.T) {
	s := newProbedScene(t)
	var broken atomic.Bool
	probed := make(chan bool)
	s.cluster.Before = func(c runtest.Call) error {
		switch {
		case c.Verb == "get" && c.Object.APIVersion == etcdV2 && broken.Load():
			select {
			case probed <- true:
			default:
			}
			return apierrors.NewInternalError(errors.New("conversion webhook failed"))
		case c.Verb == "delete" && c.Object.Kind == "Subscription":
			broken.Store(true)
			s.cluster.Remove(newRef(etcdV1, "Etcd", "team-a", "main"))
			s.cluster.Put(newUIDObject(etcdV1, "Etcd", "team-a", "main", "u-other", nil))
			<-probed
			<-probed // the next round: the time of the failure is taken
		}
		return nil
	}
	got := s.probed(t, &quiet{})
	if r := got[verify.ProbeObjects]; r.Failures == 0 || !strings.Contains(r.Failure, "was deleted and recreated") {
		t.Errorf("%+v", r)
	}
	if r := got[verify.ProbeConversion]; r.Failures == 0 || r.LongestGap < (5*time.Minute).Milliseconds() || !strings.Contains(r.Failure, "conversion webhook failed") {
		t.Errorf("%+v", r)
	}
}

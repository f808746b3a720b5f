package render

import (
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// TestReporterPod checks for every profile that the pod security level of the reporter's namespace admits the
// reporter's pod. It uses code of the API server.
func TestReporterPod(t *testing.T) {
	lock, opt, open := goldenLock(t, filepath.Join("testdata", "lantern", "own-plain"))
	for _, elect := range []bool{false, true} {
		opt.Reporter = reporterOptions()
		opt.Reporter.LeaderElection = elect
		res, err := All(lock, opt, open)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := res.Tree.Get("reporter/deployment-quayside-reporter.yaml")
		var d appsv1.Deployment
		if err := yaml.UnmarshalStrict(data, &d); err != nil {
			t.Fatal(err)
		}
		eval, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
		if err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template
		for _, r := range eval.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
			if !r.Allowed {
				t.Errorf("%s: %s", r.ForbiddenReason, r.ForbiddenDetail)
			}
		}
		if c := pod.Spec.Containers[0]; !*c.SecurityContext.ReadOnlyRootFilesystem || c.Resources.Limits.Memory().IsZero() || len(pod.Spec.Volumes) > 0 {
			t.Errorf("%+v", c)
		}
		if got := slices.Contains(pod.Spec.Containers[0].Args, "--leader-elect"); got != elect {
			t.Errorf("leader election is %v, want %v", got, elect)
		}
		if _, role := res.Tree.Get("reporter/role-quayside-reporter.yaml"); role != elect {
			t.Errorf("a role for the Lease: %v, want %v", role, elect)
		}
	}
}

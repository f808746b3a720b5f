package k8s

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// The Pod Security levels, from the most to the least permissive.
const (
	Privileged = "privileged"
	Baseline   = "baseline"
	Restricted = "restricted"
)

// RejectsPodLevel reports whether a namespace that enforces one level rejects a pod that needs
// another. An unknown level rejects nothing.
func RejectsPodLevel(need, enforced string) bool {
	levels := []string{Privileged, Baseline, Restricted}
	a, b := slices.Index(levels, need), slices.Index(levels, enforced)
	return a >= 0 && b >= 0 && a < b
}

// PodSecurityLevel returns the strictest Pod Security level that allows the pod, and the sorted reasons
// why the next stricter level does not allow it. It returns an error if spec is not a pod spec.
func PodSecurityLevel(meta, spec map[string]any) (level string, why []string, err error) {
	violations, err := evaluatePod(meta, spec)
	if err != nil {
		return "", nil, err
	}
	for _, l := range []string{Restricted, Baseline} {
		faults := violations(l, "")
		if len(faults) == 0 {
			return l, why, nil
		}
		why = faults
	}
	return Privileged, why, nil
}

// PodSecurityViolations returns the reasons why a level does not allow a pod, sorted. version is the version
// of the policy, such as "v1.34". As in the API server, an invalid version means the
// latest, and an invalid level means restricted. It returns an error if spec is not a pod spec.
func PodSecurityViolations(meta, spec map[string]any, level, version string) ([]string, error) {
	violations, err := evaluatePod(meta, spec)
	if err != nil {
		return nil, err
	}
	return violations(level, version), nil
}

// evaluatePod returns a function that returns, sorted, the reasons why a level does not allow the pod.
func evaluatePod(meta, spec map[string]any) (violations func(level, version string) []string, err error) {
	var m metav1.ObjectMeta
	var s corev1.PodSpec
	if err := decodeInto(meta, &m); err != nil {
		return nil, fmt.Errorf("pod metadata: %w", err)
	}
	if err := decodeInto(spec, &s); err != nil {
		return nil, fmt.Errorf("pod spec: %w", err)
	}
	eval, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	return func(level, version string) []string {
		at, err := api.ParseVersion(version)
		if err != nil {
			at = api.LatestVersion()
		}
		var out []string
		for _, r := range eval.EvaluatePod(api.LevelVersion{Level: api.Level(level), Version: at}, &m, &s) {
			if !r.Allowed {
				out = append(out, r.ForbiddenReason)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}, err
}

func decodeInto(from map[string]any, to any) error {
	if from == nil {
		return nil
	}
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

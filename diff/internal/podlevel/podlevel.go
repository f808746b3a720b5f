// Package podlevel says which Pod Security level a pod needs, by the API
// server's own checks.
//
// Start from [Needed].
package podlevel

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// The three levels, as namespaces are labelled, weakest demand on pods first.
const (
	Privileged = "privileged"
	Baseline   = "baseline"
	Restricted = "restricted"
)

// Weaker reports whether a pod that needs level need is refused where enforced
// is enforced. Words that are no level refuse nothing.
func Weaker(need, enforced string) bool {
	levels := []string{Privileged, Baseline, Restricted}
	a, b := slices.Index(levels, need), slices.Index(levels, enforced)
	return a >= 0 && b >= 0 && a < b
}

// Needed returns the strictest level that allows the pod, and what the next
// stricter one would forbid, sorted. The error says that spec is no pod spec.
func Needed(meta, spec map[string]any) (level string, why []string, err error) {
	var m metav1.ObjectMeta
	var s corev1.PodSpec
	if err := into(meta, &m); err != nil {
		return "", nil, fmt.Errorf("pod metadata: %w", err)
	}
	if err := into(spec, &s); err != nil {
		return "", nil, fmt.Errorf("pod spec: %w", err)
	}
	eval, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return "", nil, err
	}
	for _, l := range []api.Level{api.LevelRestricted, api.LevelBaseline} {
		faults := forbidden(eval, l, &m, &s)
		if len(faults) == 0 {
			return string(l), why, nil
		}
		why = faults
	}
	return Privileged, why, nil
}

func forbidden(eval policy.Evaluator, l api.Level, m *metav1.ObjectMeta, s *corev1.PodSpec) []string {
	var out []string
	for _, r := range eval.EvaluatePod(api.LevelVersion{Level: l, Version: api.LatestVersion()}, m, s) {
		if !r.Allowed {
			out = append(out, r.ForbiddenReason)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func into(from map[string]any, to any) error {
	if from == nil {
		return nil
	}
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

package k8s

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Selector is a decoded metav1.LabelSelector.
type Selector struct {
	MatchLabels      map[string]string
	MatchExpressions []SelectorRequirement
}

// SelectorRequirement is a decoded metav1.LabelSelectorRequirement.
type SelectorRequirement struct {
	Key      string
	Operator string // In, NotIn, Exists, DoesNotExist
	Values   []string
}

// Empty reports whether the selector has no requirements. Such a selector matches everything.
func (s *Selector) Empty() bool {
	return s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// Matches reports whether labels meet all requirements of the selector. A nil or empty selector matches
// everything.
func (s *Selector) Matches(have map[string]string) bool {
	if s.Empty() {
		return true
	}
	typed := metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, r := range s.MatchExpressions {
		typed.MatchExpressions = append(typed.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values,
		})
	}
	got, err := metav1.LabelSelectorAsSelector(&typed)
	return err == nil && got.Matches(labels.Set(have))
}

// SelectorOf parses a label selector. It returns false if fields is nil or if the API server would
// reject the selector. An empty selector matches everything.
func SelectorOf(fields map[string]any) (labels.Selector, bool) {
	if fields == nil {
		return nil, false
	}
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &typed); err != nil {
		return nil, false
	}
	got, err := metav1.LabelSelectorAsSelector(&typed)
	return got, err == nil
}

// PodSelectorOf returns the pod selector of a workload. It returns false if the workload has no pod selector,
// or if the selector matches everything.
func PodSelectorOf(workload map[string]any) (labels.Selector, bool) {
	got, ok := SelectorOf(Map(workload, "spec", "selector"))
	return got, ok && !got.Empty()
}

package subscription

import "slices"

// Matches reports whether labels satisfy every requirement of the selector. A
// nil or empty selector matches everything.
func (s *LabelSelector) Matches(labels map[string]string) bool {
	if s == nil {
		return true
	}
	for k, want := range s.MatchLabels {
		if got, ok := labels[k]; !ok || got != want {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		if !e.matches(labels) {
			return false
		}
	}
	return true
}

// matches follows metav1: NotIn holds for an absent key.
func (e LabelExpression) matches(labels map[string]string) bool {
	got, ok := labels[e.Key]
	switch e.Operator {
	case "In":
		return ok && slices.Contains(e.Values, got)
	case "NotIn":
		return !ok || !slices.Contains(e.Values, got)
	case "Exists":
		return ok
	case "DoesNotExist":
		return !ok
	}
	return false
}

// Empty reports whether the selector demands nothing.
func (s *LabelSelector) Empty() bool {
	return s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

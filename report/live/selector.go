package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// PodSelector returns the label selector by which a workload finds its pods, as
// a list takes it; false where it has none that can be said so.
func PodSelector(workload map[string]any) (string, bool) {
	spec, _ := workload["spec"].(map[string]any)
	selector, _ := spec["selector"].(map[string]any)
	labels, _ := selector["matchLabels"].(map[string]any)
	var terms []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value, ok := labels[name].(string)
		if !ok {
			return "", false
		}
		terms = append(terms, name+"="+value)
	}
	expressions, _ := selector["matchExpressions"].([]any)
	for _, e := range expressions {
		e, _ := e.(map[string]any)
		term, ok := expression(e)
		if !ok {
			return "", false
		}
		terms = append(terms, term)
	}
	return strings.Join(terms, ","), len(terms) > 0
}

func expression(e map[string]any) (string, bool) {
	key, _ := e["key"].(string)
	list, _ := e["values"].([]any)
	var values []string
	for _, v := range list {
		values = append(values, fmt.Sprint(v))
	}
	in := "(" + strings.Join(values, ",") + ")"
	switch e["operator"] {
	case "In":
		return key + " in " + in, true
	case "NotIn":
		return key + " notin " + in, true
	case "Exists":
		return key, true
	case "DoesNotExist":
		return "!" + key, true
	default:
		return "", false
	}
}

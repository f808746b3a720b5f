package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/boxset"
	"github.com/quayside/quayside/internal/k8s"
)

// requestBoxes returns the requests that the rules of a webhook match, regardless of its selectors. With
// match policy Equivalent, a rule for one version of a resource matches the requests for all its versions.
func requestBoxes(h map[string]any) []boxset.Box {
	var out []boxset.Box
	for _, r := range k8s.Items(h, "rules") {
		box := boxset.Box{
			"group": patternValues(k8s.Texts(r, "apiGroups")), "version": patternValues(k8s.Texts(r, "apiVersions")),
			"operation": closedValues(k8s.Texts(r, "operations"), "CREATE", "UPDATE", "DELETE", "CONNECT"),
			"scope":     closedValues([]string{cmp.Or(k8s.Text(r, "scope"), "*")}, "Cluster", "Namespaced"),
		}
		if cmp.Or(k8s.Text(h, "matchPolicy"), "Equivalent") == "Equivalent" && !box["version"].Empty() {
			box["version"] = boxset.Except()
		}
		resources := map[string][]string{} // by subresource
		for _, pattern := range k8s.Texts(r, "resources") {
			resource, sub, _ := strings.Cut(pattern, "/")
			resources[sub] = append(resources[sub], resource)
		}
		for _, sub := range sortedKeys(resources) {
			if one := box.And(boxset.Box{"resource": patternValues(resources[sub]), "subresource": patternValues([]string{sub})}); !one.Empty() {
				out = append(out, one)
			}
		}
	}
	return out
}

// patternValues returns the values that a list of names matches. "*" matches every name.
func patternValues(list []string) boxset.Values {
	if slices.Contains(list, "*") {
		return boxset.Except()
	}
	return boxset.Of(list...)
}

// closedValues is patternValues for a field whose only possible values are those in all.
func closedValues(list []string, all ...string) boxset.Values {
	if slices.Contains(list, "*") {
		list = append(slices.Clone(list), all...)
	}
	return boxset.Of(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "*" })...)
}

// maxShownRequests is the maximum number of requests that are formatted for display.
const maxShownRequests = 1000

// formatRequests formats requests as "create pods", without duplicates. Requests on kinds of Kubernetes
// come first. Values that are not limited are "*".
func formatRequests(boxes []boxset.Box) []string {
	var vital, others []string
	for _, box := range boxes {
		for _, group := range shownValues(box, "group") {
			for _, resource := range shownValues(box, "resource") {
				for _, sub := range shownValues(box, "subresource") {
					for _, operation := range shownValues(box, "operation") {
						to := &others
						if isVitalGroup(group) {
							to = &vital
						}
						if len(*to) < maxShownRequests {
							name := strings.TrimSuffix(resource+"/"+sub, "/")
							*to = append(*to, strings.ToLower(operation)+" "+k8s.Key{Group: group, Kind: name}.GroupKind())
						}
					}
				}
			}
		}
	}
	slices.Sort(vital)
	slices.Sort(others)
	return append(slices.Compact(vital), slices.Compact(others)...)
}

func shownValues(box boxset.Box, dimension string) []string {
	list, except := box.In(dimension).List()
	switch {
	case except && dimension == "subresource" && slices.Contains(list, ""):
		return []string{"*"}
	case except && dimension == "subresource":
		return []string{""}
	case except:
		return []string{"*"}
	}
	return list
}

// isVitalGroup reports whether the cluster needs the objects of an API group to run.
func isVitalGroup(group string) bool {
	return slices.Contains([]string{"*", "", "apps", "batch", "coordination.k8s.io", "rbac.authorization.k8s.io"}, group)
}

// vitalRequests returns the requests on API groups that the cluster needs to run.
func vitalRequests(boxes []boxset.Box) []boxset.Box {
	var out []boxset.Box
	for _, box := range boxes {
		if list, except := box.In("group").List(); except || slices.ContainsFunc(list, isVitalGroup) {
			out = append(out, box)
		}
	}
	return out
}

// labelBox returns the labels that a label selector matches, as a box. A dimension is a label key with a
// prefix. A missing label has the value absentLabel. A missing or empty selector matches everything.
func labelBox(prefix string, selector map[string]any) boxset.Box {
	box := boxset.Box{}
	limit := func(key string, v boxset.Values) { box[prefix+key] = box.In(prefix + key).And(v) }
	for key, value := range k8s.Map(selector, "matchLabels") {
		text, _ := value.(string)
		limit(key, boxset.Of(text))
	}
	for _, r := range k8s.Items(selector, "matchExpressions") {
		key, values := k8s.Text(r, "key"), k8s.Texts(r, "values")
		switch k8s.Text(r, "operator") {
		case "In":
			limit(key, boxset.Of(values...))
		case "NotIn":
			limit(key, boxset.Except(values...))
		case "Exists":
			limit(key, boxset.Except(absentLabel))
		case "DoesNotExist":
			limit(key, boxset.Of(absentLabel))
		}
	}
	return box
}

// absentLabel stands for a label that an object does not have. No label has this value.
const absentLabel = "(absent)"

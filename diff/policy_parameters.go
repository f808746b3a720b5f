package diff

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/internal/k8s"
)

// isPolicyGroup reports whether an API group contains admission policies and their bindings. The policies take
// parameters or read ConfigMaps.
func isPolicyGroup(group string) bool {
	return slices.ContainsFunc([]string{"admissionregistration.k8s.io", "kyverno.io", "gatekeeper.sh", "kubewarden.io"}, func(of string) bool { return inGroup(group, of) })
}

// isPolicyParameter reports whether an object is, before or after the change, a parameter of an admission policy. If
// the policy is built-in, takesParameter decides. For other policies, a parameter is a ConfigMap that they name.
func (c *comparison) isPolicyParameter(o *Object) bool {
	return slices.ContainsFunc([]*view{c.before, c.after}, func(v *view) bool {
		return slices.ContainsFunc(v.policies, func(policy *Object) bool {
			key := policy.Key()
			switch {
			case key.Is("ValidatingAdmissionPolicy.admissionregistration.k8s.io", "MutatingAdmissionPolicy.admissionregistration.k8s.io"):
				return takesParameter(v, policy, o)
			case o.Key().Is("ConfigMap"):
				return namesConfigMap(policy, o.Key())
			}
			return false
		})
	})
}

// takesParameter reports whether, in a state, a binding of a built-in policy selects an object as parameter. If
// no binding refers to parameters, every object of the parameter kind and the policy's operator is a parameter.
func takesParameter(v *view, policy, o *Object) bool {
	group, _, grouped := strings.Cut(k8s.Text(policy.Content, "spec", "paramKind", "apiVersion"), "/")
	if !grouped {
		group = ""
	}
	if key := o.Key(); key.Group != group || key.Kind != k8s.Text(policy.Content, "spec", "paramKind", "kind") {
		return false
	}
	bound := false
	for _, b := range v.policies {
		key := b.Key()
		if key.Group != policy.Key().Group || key.Kind != policy.Key().Kind+"Binding" || k8s.Text(b.Content, "spec", "policyName") != policy.Key().Name {
			continue
		}
		ref := k8s.Map(b.Content, "spec", "paramRef")
		bound = bound || ref != nil
		if ns := k8s.Text(ref, "namespace"); ref == nil || ns != "" && ns != o.Key().Namespace {
			continue
		}
		if name := k8s.Text(ref, "name"); name != "" && name != o.Key().Name {
			continue
		}
		if selector, ok := k8s.SelectorOf(k8s.Map(ref, "selector")); !ok || selector.Matches(labels.Set(k8s.TextMap(o.Content, "metadata", "labels"))) {
			return true
		}
	}
	return !bound && policy.Operator == o.Operator
}

// namesConfigMap reports whether a field configMap or configMapRef of a policy names a ConfigMap.
func namesConfigMap(policy *Object, configMap k8s.Key) bool {
	found := false
	forEachField(policy.Content, "", func(_, name string, v any) {
		if name == "configMap" || name == "configMapRef" {
			ref := asMap(v)
			ns := k8s.Text(ref, "namespace")
			found = found || k8s.Text(ref, "name") == configMap.Name && (ns == "" || ns == configMap.Namespace)
		}
	})
	return found
}

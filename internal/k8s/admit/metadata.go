package admit

import (
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/quayside/quayside/internal/k8s"
)

// Metadata returns the faults in the metadata of an object and of its pod template, sorted: names,
// labels, annotations and other fields that all kinds have. It returns nil if the metadata is
// valid.
func Metadata(o k8s.Object) []Fault {
	faults := validateMetadata(k8s.Map(o, "metadata"), nameValidator(o), field.NewPath("metadata"))
	if template := k8s.Map(o, "spec", "template", "metadata"); template != nil && (o.Group() == "apps" || o.Group() == "batch") {
		unnamed := k8s.With(template, "template", "name")
		faults = append(faults, validateMetadata(unnamed, validation.NameIsDNSSubdomain, field.NewPath("spec", "template", "metadata"))...)
	}
	return sortFaults(faults)
}

// Rules returns the faults in the rules of a Role or ClusterRole, sorted. The checks equal ValidatePolicyRule
// in k8s.io/kubernetes/pkg/apis/rbac/validation. For valid rules and for other kinds, Rules returns nil.
func Rules(o k8s.Object) []Fault {
	if o.Group() != "rbac.authorization.k8s.io" {
		return nil
	}
	var faults field.ErrorList
	for i, rule := range k8s.Items(o, "rules") {
		at := field.NewPath("rules").Index(i)
		has := func(name string) bool { return len(k8s.Texts(rule, name)) > 0 }
		need := func(name, msg string) {
			if !has(name) {
				faults = append(faults, field.Required(at.Child(name), msg))
			}
		}
		need("verbs", "verbs must contain at least one value")
		switch {
		case !has("nonResourceURLs"):
			need("apiGroups", "resource rules must supply at least one api group")
			need("resources", "resource rules must supply at least one resource")
		case o.Kind() == "Role":
			faults = append(faults, field.Forbidden(at.Child("nonResourceURLs"), "namespaced rules cannot apply to non-resource URLs"))
		case has("apiGroups") || has("resources") || has("resourceNames"):
			faults = append(faults, field.Forbidden(at.Child("nonResourceURLs"), "rules cannot apply to both regular resources and non-resource URLs"))
		}
	}
	return sortFaults(faults)
}

func validateMetadata(fields map[string]any, name validation.ValidateNameFunc, at *field.Path) field.ErrorList {
	var meta metav1.ObjectMeta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &meta); err != nil {
		return field.ErrorList{field.Invalid(at, "", err.Error())}
	}
	return validation.ValidateObjectMeta(&meta, meta.Namespace != "", name, at)
}

// nameValidator returns the function that validates names of the kind of o.
func nameValidator(o k8s.Object) validation.ValidateNameFunc {
	switch {
	case o.Group() == "rbac.authorization.k8s.io":
		return func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	case o.Is("", "Service"), o.Is("", "Namespace"):
		return validation.NameIsDNSLabel
	default:
		return validation.NameIsDNSSubdomain
	}
}

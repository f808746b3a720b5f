package admit

import (
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/quayside/quayside/internal/k8s"
)

// Metadata returns the faults in the metadata of an object and of its pod
// template: names, labels, annotations and other fields that all kinds share.
// They are sorted; nil means valid.
func Metadata(o k8s.Object) []Fault {
	faults := validateMetadata(k8s.Map(o, "metadata"), nameValidator(o), field.NewPath("metadata"))
	if template := k8s.Map(o, "spec", "template", "metadata"); template != nil && (o.Group() == "apps" || o.Group() == "batch") {
		unnamed := k8s.With(template, "template", "name")
		faults = append(faults, validateMetadata(unnamed, validation.NameIsDNSSubdomain, field.NewPath("spec", "template", "metadata"))...)
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

// nameValidator returns the validation of names of the object's kind.
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

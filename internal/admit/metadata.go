package admit

import (
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/quayside/quayside/internal/kobj"
)

// Metadata returns what the API server refuses in the metadata of an object,
// and of the pods that it is a template of: names, labels, annotations and what
// else all kinds have in common; sorted, nil where nothing is wrong.
func Metadata(o kobj.Object) []Fault {
	faults := metadata(kobj.Map(o, "metadata"), nameOf(o), field.NewPath("metadata"))
	if template := kobj.Map(o, "spec", "template", "metadata"); template != nil && (o.Group() == "apps" || o.Group() == "batch") {
		unnamed := kobj.With(template, "template", "name")
		faults = append(faults, metadata(unnamed, validation.NameIsDNSSubdomain, field.NewPath("spec", "template", "metadata"))...)
	}
	return inWords(faults)
}

func metadata(fields map[string]any, name validation.ValidateNameFunc, at *field.Path) field.ErrorList {
	var meta metav1.ObjectMeta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &meta); err != nil {
		return field.ErrorList{field.Invalid(at, "", err.Error())}
	}
	return validation.ValidateObjectMeta(&meta, meta.Namespace != "", name, at)
}

// nameOf returns what a name of the object's kind must be.
func nameOf(o kobj.Object) validation.ValidateNameFunc {
	switch {
	case o.Group() == "rbac.authorization.k8s.io":
		return func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	case o.Is("", "Service"), o.Is("", "Namespace"):
		return validation.NameIsDNSLabel
	default:
		return validation.NameIsDNSSubdomain
	}
}

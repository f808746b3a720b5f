package admit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/quayside/quayside/internal/k8s"
)

// decodeDefinition decodes a CRD and sets the same defaults as the API server.
func decodeDefinition(crd map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := json.Marshal(crd)
	if err != nil {
		return nil, err
	}
	var ext apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(data, &ext); err != nil {
		return nil, fmt.Errorf("decoding the CRD: %w", err)
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&ext)
	return &ext, nil
}

// CheckCRD simulates a request to create a CRD (apiextensions.k8s.io/v1). It returns the reasons
// why the API server rejects it, sorted by field, or nil.
func CheckCRD(crd map[string]any) []Fault {
	if validateDefinition(trimDefinition(crd)) == nil {
		return nil
	}
	return validateDefinition(crd)
}

// repeatedRules returns a fault for each rule that a schema has twice: server-side apply identifies rules by their
// text. It does not compare rules below items and additionalProperties, whose schemas have no type in its API.
func repeatedRules(crd map[string]any) field.ErrorList {
	var out field.ErrorList
	var visit func(at *field.Path, v any)
	visit = func(at *field.Path, v any) {
		schema, _ := v.(map[string]any)
		seen := map[string]bool{}
		for i, r := range k8s.Items(schema, "x-kubernetes-validations") {
			rule := k8s.Text(r, "rule")
			if seen[rule] {
				out = append(out, field.Duplicate(at.Child("x-kubernetes-validations").Index(i).Child("rule"), rule))
			}
			seen[rule] = true
		}
		properties, _ := k8s.At(schema, "properties").(map[string]any)
		for name, p := range properties {
			visit(at.Child("properties").Child(name), p)
		}
	}
	for i, v := range k8s.Items(crd, "spec", "versions") {
		visit(field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema"), k8s.At(v, "schema", "openAPIV3Schema"))
	}
	return out
}

// validateDefinition does the work of CheckCRD, without the faster check of a trimmed CRD.
func validateDefinition(crd map[string]any) []Fault {
	ext, err := decodeDefinition(crd)
	if err != nil {
		return []Fault{{Message: err.Error()}}
	}
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(ext, &internal, nil); err != nil {
		return []Fault{{Message: err.Error()}}
	}
	internal.Status = apiextensions.CustomResourceDefinitionStatus{}
	for _, v := range internal.Spec.Versions {
		if v.Storage {
			internal.Status.StoredVersions = []string{v.Name}
			break
		}
	}
	faults := append(validation.ValidateCustomResourceDefinition(context.Background(), &internal), repeatedRules(crd)...)
	faults = slices.DeleteFunc(faults, func(f *field.Error) bool { return strings.HasPrefix(f.Field, "status.") }) // the status is derived from spec, so its faults are repetitions
	for _, f := range faults {
		f.Field = fieldInV1(f.Field)
	}
	return sortFaults(faults)
}

// fieldInV1 converts a field path of the internal CRD type to the path of the same field in v1.
func fieldInV1(at string) string {
	for own, v1 := range map[string]string{
		"spec.validation.":                         "spec.versions[0].schema.",
		"spec.subresources":                        "spec.versions[0].subresources",
		"spec.additionalPrinterColumns":            "spec.versions[0].additionalPrinterColumns",
		"spec.selectableFields":                    "spec.versions[0].selectableFields",
		"spec.conversion.webhookClientConfig":      "spec.conversion.webhook.clientConfig",
		"spec.conversion.conversionReviewVersions": "spec.conversion.webhook.conversionReviewVersions",
	} {
		if rest, ok := strings.CutPrefix(at, own); ok {
			return v1 + rest
		}
	}
	return at
}

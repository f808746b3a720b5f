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
)

// decoded reads a definition, as decoded from JSON, with the defaults of the
// API server.
func decoded(crd map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := json.Marshal(crd)
	if err != nil {
		return nil, err
	}
	var ext apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(data, &ext); err != nil {
		return nil, fmt.Errorf("reading the definition: %w", err)
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&ext)
	return &ext, nil
}

// Define does what a create of a definition (apiextensions.k8s.io/v1) does, and
// returns why it is refused, sorted by field; nil where it is taken.
func Define(crd map[string]any) []Fault {
	if refused(gist(crd)) == nil {
		return nil
	}
	return refused(crd)
}

// refused is Define without a short way.
func refused(crd map[string]any) []Fault {
	ext, err := decoded(crd)
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
	faults := validation.ValidateCustomResourceDefinition(context.Background(), &internal)
	faults = slices.DeleteFunc(faults, func(f *field.Error) bool { return strings.HasPrefix(f.Field, "status.") }) // it follows from spec
	for _, f := range faults {
		f.Field = inV1(f.Field)
	}
	return inWords(faults)
}

// inV1 returns a field of the API server's own form of a definition as v1 has
// it. What all versions have in common stands once in that form.
func inV1(at string) string {
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

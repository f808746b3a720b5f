package bundle

import (
	"strings"
	"testing"
)

// TestImages checks that Validate rejects invalid image references: a container runtime would reject them, too.
func TestImages(t *testing.T) {
	image := func(spec string) map[string]string {
		return map[string]string{"manifests/csv.yaml": strings.Replace(csv, "containers: []", spec, 1)}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string // part of the fault; empty: valid
	}{
		"image":       {image("containers: [{name: a, image: quay.io/a}, {name: b, image: 'oci://quay.io/a'}]"), `containers[1].image: "oci://quay.io/a" is not an image reference`},
		"image first": {image("initContainers: [{name: a, image: Quay.io/A/b}]"), "initContainers[0].image"},
	} {
		b, err := Load(newBundleDir(c.files))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := Validate(b); (err != nil) != (c.want != "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "manifests/")) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestConventions checks bundles that OLM installs but operator-framework's validators reject. Each bundle must
// cause one warning, with the right file.
func TestConventions(t *testing.T) {
	annotated := func(text string) string {
		return strings.Replace(csv, "metadata: {name: lamp.v1.0.0}", "metadata: {name: lamp.v1.0.0, annotations: {"+text+"}}", 1)
	}
	in := func(text string) map[string]string { return map[string]string{"manifests/csv.yaml": text} }
	const crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: beams.lamp.io}, spec: {group: lamp.io, names: {plural: beams, kind: Beam}, versions: [{name: v1}, {name: v2}]}}"
	owned := strings.Replace(csv, "  version: 1.0.0\n", "  version: 1.0.0\n  customresourcedefinitions: {owned: [{name: beams.lamp.io, version: v1, kind: Beam}]}\n", 1)
	example := func(apiVersion string) string {
		return strings.Replace(owned, "name: lamp.v1.0.0", `name: lamp.v1.0.0, annotations: {alm-examples: '[{"apiVersion": "`+apiVersion+`", "kind": "Beam"}]'}`, 1)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string // the warning; empty: none
	}{
		"nothing":                {nil, ""},
		"long name":              {in(strings.ReplaceAll(csv, "lamp.v1.0.0", strings.Repeat("lamp", 16)+".v1.0.0")), "csv.yaml: metadata.name: "},
		"related image":          {in(strings.Replace(csv, "  version: 1.0.0\n", "  version: 1.0.0\n  relatedImages: [{name: a, image: quay.io/a/b}, {name: b, image: 'oci://quay.io/a'}]\n", 1)), `csv.yaml: spec.relatedImages[1].image: "oci://quay.io/a" is not an image reference`},
		"service account":        {map[string]string{"manifests/csv.yaml": strings.Replace(csv, "      deployments:", "      permissions: [{serviceAccountName: lamp, rules: []}]\n      deployments:", 1), "manifests/sa.yaml": "{apiVersion: v1, kind: ServiceAccount, metadata: {name: lamp}}"}, "sa.yaml: ServiceAccount lamp is also generated from the CSV's permissions"},
		"other service account":  {map[string]string{"manifests/sa.yaml": "{apiVersion: v1, kind: ServiceAccount, metadata: {name: lamp}}"}, ""},
		"not owned":              {map[string]string{"manifests/csv.yaml": owned, "manifests/crd.yaml": crd}, "crd.yaml: CustomResourceDefinition beams.lamp.io: the CSV does not own version v2"},
		"spelling":               {in(annotated("olm.skiprange: '>=1.0.0'")), `"olm.skiprange" is a misspelling of "olm.skipRange"`},
		"range":                  {in(annotated("olm.skipRange: ^1")), "invalid olm.skipRange: "},
		"properties":             {in(annotated("olm.properties: '[]'")), "should be in metadata/properties.yaml"},
		"no examples":            {in(annotated("alm-examples: '{'")), "alm-examples is not a list"},
		"example":                {in(example("lamp.io/v1")), ""},
		"example of another API": {in(example("lamp.io/v2")), "alm-examples has a lamp.io/v2 Beam, which the CSV does not own"},
	} {
		b, err := Load(newBundleDir(c.files))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := Conventions(b)
		if (len(got) == 0) != (c.want == "") || len(got) > 1 || len(got) == 1 && (!strings.Contains(got[0].String(), c.want) || !strings.HasPrefix(got[0].String(), "manifests/")) {
			t.Errorf("%s: got %v, want %q", name, got, c.want)
		}
	}
}

package render

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestRefused checks the warnings about custom resources that a CRD of the same bundle rejects.
func TestRefused(t *testing.T) {
	fsys := newBundle("x", "1.0.0", "v1",
		"apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: good}\nspec: {size: 3}\n",
		"apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: huge}\nspec: {size: 30}\n",
		"apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: odd}\nspec: {size: 3, colour: red, form: {a: 1}, x: 1, z: 2}\n",
		"apiVersion: x.io/v2\nkind: Thing\nmetadata: {name: early}\nspec: {size: 3}\n",
		"apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: elsewhere}\nspec: {odd: true}\n")
	fsys["manifests/crd.yaml"] = &fstest.MapFile{Data: []byte(`kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
metadata: {name: things.x.io}
spec:
  group: x.io
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties: {size: {type: integer, default: 1, maximum: 9}}
`)}
	res, err := renderBundles(map[string]fstest.MapFS{"ns/x": fsys}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range res.Warnings {
		if w.Code == "custom-resource-refused" {
			got = append(got, w.Pos.String()+": "+strings.TrimPrefix(w.Msg, "ns/x: the API server will reject "))
		}
	}
	want := []string{
		`x.v1.0.0/manifests/x1.yaml: Thing.x.io ns/huge, because it is invalid according to its CustomResourceDefinition: spec.size: Invalid value: 30: spec.size in body should be less than or equal to 9`,
		`x.v1.0.0/manifests/x2.yaml: Thing.x.io ns/odd, because it is invalid according to its CustomResourceDefinition: spec.colour: unknown field; spec.form: unknown field; spec.x: unknown field; and 1 more`,
		`x.v1.0.0/manifests/x3.yaml: Thing.x.io ns/early, because it is invalid according to its CustomResourceDefinition: the CRD does not serve version "v2"`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	refused := map[string]bool{}
	for _, r := range res.Objects {
		if r.Refused != "" {
			refused[r.Object.Name()] = true
		}
	}
	if d := cmp.Diff(map[string]bool{"huge": true, "odd": true, "early": true}, refused); d != "" {
		t.Errorf("marked as refused, -want +got:\n%s", d)
	}
}

package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnservedDefinitions checks that invalid CRDs that render did not validate are reported once, at
// the line of the fault.
func TestUnservedDefinitions(t *testing.T) {
	good := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.demo.io}
spec:
  group: demo.io
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 1}}}
`
	bad := strings.Replace(good, "default: 1", "default: big", 1)
	widget := "apiVersion: demo.io/v1\nkind: Widget\nmetadata: {name: a, namespace: ns}\nspec: {size: 2}\n"
	const field = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].default"
	for _, c := range []struct {
		name, operator, text, resource string
		overlaid                       bool
		want                           []string
	}{
		{name: "the user's own, valid", text: good},
		{name: "the user's own, invalid", text: bad, want: []string{"resources.schema-invalid high mine.yaml:16: " + field}},
		{name: "of a bundle, validated by render", operator: "ops/demo", text: bad},
		{name: "of a bundle, changed by an overlay", operator: "ops/demo", text: bad, overlaid: true, want: []string{"resources.schema-invalid high mine.yaml:16: " + field}},
		{name: "with a custom resource", text: bad, resource: widget, want: []string{"resources.schema-invalid high mine.yaml:16: " + field}},
		{name: "with a removed API version", text: strings.Replace(bad, "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", 1), want: []string{"api.removed high mine.yaml:1: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := State{Objects: parsed(t, c.operator, "mine.yaml", c.text)}
			if c.overlaid {
				s.Objects[0].sources = []File{{Path: "mine.yaml", Data: []byte(c.text)}}
			}
			if c.resource != "" {
				s.Resources = parsed(t, "", "widget.yaml", c.resource)
			}
			found, err := Unserved(s, "1.37")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				at := ""
				if strings.HasPrefix(f.Message, field) {
					at = field
				}
				got = append(got, fmt.Sprintf("%s %s %s:%d: %s", f.Rule, f.Severity, f.Place.Path, f.Place.Line, at))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s\n%+v", d, found)
			}
		})
	}
}

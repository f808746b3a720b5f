package admit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ApprovalAnnotation is the annotation that v1 requires for CRDs in API groups of the Kubernetes
// community, such as "keda.k8s.io". Its value is the URL of the approval, or "unapproved,
// <reason>".
const ApprovalAnnotation = v1beta1.KubeAPIApprovedAnnotation

// NeedsApproval reports whether CRDs of an API group need ApprovalAnnotation.
func NeedsApproval(group string) bool { return apihelpers.IsProtectedCommunityGroup(group) }

// Upgrade converts the spec of a CRD from v1beta1 to v1. Fields that v1beta1 declares once for all versions are copied
// into each version. Upgrade makes schemas structural if that does not change their meaning. It keeps the setting that
// preserves unknown fields. Parts that the API server also rejects in v1beta1 remain unchanged.
//
// omitted lists the omitted fields, in order: those without an equivalent in v1, and the schema of
// metadata except for its names. The error lists fields of a wrong type, and everything that a
// structural schema cannot express. spec is not modified.
func Upgrade(spec map[string]any) (out map[string]any, omitted []string, err error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, nil, err
	}
	var old v1beta1.CustomResourceDefinitionSpec
	if err := utiljson.Unmarshal(data, &old); err != nil {
		return nil, nil, err
	}
	known, err := toPlainJSON(old)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range listDefaulted("spec", known, spec) {
		if hasMeaning(v.Value) {
			omitted = append(omitted, v.Field)
		}
	}
	names, conversion := old.Names, old.Conversion
	whole := v1beta1.CustomResourceDefinition{Spec: old}
	v1beta1.SetObjectDefaults_CustomResourceDefinition(&whole)
	if old = whole.Spec; conversion == nil {
		old.Conversion = nil
	}
	old.Names = names // v1 has the same defaults for names
	var hub apiextensions.CustomResourceDefinitionSpec
	if err := v1beta1.Convert_v1beta1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec(&old, &hub, nil); err != nil {
		return nil, nil, err
	}
	restricted, err := makeStructural(&hub)
	if err != nil {
		return nil, nil, err
	}
	omitted = append(omitted, restricted...)
	var current apiextensionsv1.CustomResourceDefinitionSpec
	if err := apiextensionsv1.Convert_apiextensions_CustomResourceDefinitionSpec_To_v1_CustomResourceDefinitionSpec(&hub, &current, nil); err != nil {
		return nil, nil, err
	}
	out, err = toPlainJSON(current)
	return out, omitted, err
}

// hasMeaning reports whether a value is neither the zero value nor an empty list or map.
func hasMeaning(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Map, reflect.Slice:
		return r.Len() > 0
	default:
		return !r.IsZero()
	}
}

// makeStructural gives each version its own structural schema, and its own copies of shared fields.
// It returns the omitted fields.
func makeStructural(spec *apiextensions.CustomResourceDefinitionSpec) (omitted []string, err error) {
	s := structurer{keepUnknown: *spec.PreserveUnknownFields}
	for i := range spec.Versions {
		v := &spec.Versions[i]
		v.Schema = cmp.Or(v.Schema, spec.Validation.DeepCopy(), &apiextensions.CustomResourceValidation{})
		v.Schema.OpenAPIV3Schema = cmp.Or(v.Schema.OpenAPIV3Schema, &schemaProps{})
		v.Subresources = cmp.Or(v.Subresources, spec.Subresources)
		if len(v.AdditionalPrinterColumns) == 0 {
			v.AdditionalPrinterColumns = spec.AdditionalPrinterColumns
		}
		if s.convertRoot(v.Schema.OpenAPIV3Schema) {
			omitted = append(omitted, fmt.Sprintf("properties.metadata of the schema of version %s", v.Name))
		}
	}
	spec.Validation, spec.Subresources, spec.AdditionalPrinterColumns, spec.PreserveUnknownFields = nil, nil, nil, nil
	if len(s.errs) > 0 {
		return nil, errors.New(strings.Join(s.errs, "; "))
	}
	return omitted, nil
}

type schemaProps = apiextensions.JSONSchemaProps

// structurer converts schemas to structural schemas, in place.
type structurer struct {
	keepUnknown bool     // preserve unknown fields
	errs        []string // messages about schemas that cannot be converted, without duplicates
}

func (c *structurer) addFault(at, what string) {
	text := fmt.Sprintf("%s: %s inside anyOf, oneOf, allOf or not, which a structural schema does not allow", at, what)
	if !slices.Contains(c.errs, text) { // versions can share a schema
		c.errs = append(c.errs, text)
	}
}

// anySchema returns a schema that accepts any value.
func (c *structurer) anySchema() schemaProps {
	yes := true
	return schemaProps{XPreserveUnknownFields: &yes, Nullable: c.keepUnknown}
}

// anyItems returns the schema of list items that may be any values.
func (c *structurer) anyItems() *apiextensions.JSONSchemaPropsOrArray {
	any := c.anySchema()
	return &apiextensions.JSONSchemaPropsOrArray{Schema: &any}
}

// convertRoot converts the schema of a whole object. restricted is true if the schema restricts
// metadata in a way that v1 does not allow.
func (c *structurer) convertRoot(s *schemaProps) (restricted bool) {
	s.Type = cmp.Or(s.Type, "object")
	for _, name := range []string{"apiVersion", "kind"} {
		if p, ok := s.Properties[name]; ok && p.Type == "" {
			p.Type = "string"
			s.Properties[name] = p
		}
	}
	meta, described := s.Properties["metadata"]
	delete(s.Properties, "metadata")
	c.convertNode(s, "")
	if !described {
		return false
	}
	names := map[string]schemaProps{}
	for _, name := range []string{"name", "generateName"} {
		if p, ok := meta.Properties[name]; ok {
			c.convertNode(&p, "metadata."+name)
			names[name] = p
			delete(meta.Properties, name)
		}
	}
	s.Properties["metadata"] = schemaProps{Type: "object", Properties: names}
	for _, p := range meta.Properties {
		restricted = restricted || !reflect.DeepEqual(p, schemaProps{Type: p.Type, Description: p.Description})
	}
	return restricted || len(meta.Required) > 0
}

// convertNode converts the schema of the field at a path, including the schemas below it.
func (c *structurer) convertNode(s *schemaProps, at string) {
	c.convertJunctors(s, at)
	yes, extra := true, s.AdditionalProperties
	if extra != nil && extra.Allows && extra.Schema == nil { // with additionalProperties: true, v1 would keep the field, but prune its content
		s.XPreserveUnknownFields, s.AdditionalProperties, extra = &yes, nil, nil
	}
	switch {
	case s.XIntOrString:
		s.XPreserveUnknownFields = nil
	case s.Type == "":
		s.XPreserveUnknownFields = &yes
	case s.Type == "array" && s.Items == nil:
		s.Items = c.anyItems()
	case s.Type == "object" && c.keepUnknown && extra == nil:
		s.XPreserveUnknownFields = &yes
	}
	for name, p := range s.Properties {
		c.convertNode(&p, strings.TrimPrefix(at+"."+name, "."))
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		c.convertNode(s.Items.Schema, at+"[*]")
	}
	if extra != nil && extra.Schema != nil {
		c.convertNode(extra.Schema, at+".*")
	}
}

// convertJunctors moves parts out of the junctors "anyOf", "oneOf", "allOf" and "not" of a schema. It moves
// those parts that a structural schema must have outside of junctors, unless the move changes the meaning. A
// schema without a type becomes nullable, because it accepts null.
func (c *structurer) convertJunctors(s *schemaProps, at string) {
	s.Nullable = s.Nullable || c.keepUnknown && s.Type == ""
	for _, list := range []*[]schemaProps{&s.AnyOf, &s.OneOf} {
		if s.Type == "" && intOrString(*list) {
			*list, s.XIntOrString = nil, true
			s.AnyOf = []schemaProps{{Type: "integer"}, {Type: "string"}}
		}
	}
	if s.XIntOrString {
		return
	}
	s.AnyOf, s.OneOf = dropImpossibleTypes(s.AnyOf), dropImpossibleTypes(s.OneOf)
	for _, list := range []*[]schemaProps{&s.AnyOf, &s.OneOf, &s.AllOf} {
		if len(*list) == 1 {
			only := (*list)[0]
			*list = nil
			if only.Enum != nil || !reflect.DeepEqual(*s, schemaProps{Description: s.Description, Title: s.Title, Nullable: s.Nullable}) {
				*list = []schemaProps{only}
				continue
			}
			only.Description, only.Title, only.Nullable = cmp.Or(s.Description, only.Description), cmp.Or(s.Title, only.Title), s.Nullable
			*s = only
			c.convertJunctors(s, at)
			return
		}
	}
	s.Type = cmp.Or(s.Type, commonType(s.AnyOf), commonType(s.OneOf))
	for _, b := range listBranches(s) {
		c.reduceBranch(b, s, at, false)
	}
}

// dropImpossibleTypes removes alternatives with an unknown type, because no value matches them. If
// all alternatives have an unknown type, it removes none.
func dropImpossibleTypes(list []schemaProps) []schemaProps {
	types := []string{"", "array", "boolean", "integer", "number", "object", "string"}
	out := slices.DeleteFunc(slices.Clone(list), func(b schemaProps) bool { return !slices.Contains(types, b.Type) })
	if len(out) == 0 {
		return list
	}
	return out
}

// intOrString reports whether the alternatives are exactly "integer" and "string".
func intOrString(list []schemaProps) bool {
	types := map[string]bool{}
	for _, b := range list {
		if !reflect.DeepEqual(b, schemaProps{Type: b.Type, Description: b.Description, Title: b.Title}) {
			return false
		}
		types[b.Type] = true
	}
	return len(list) == 2 && types["integer"] && types["string"]
}

// commonType returns the type that all alternatives have, or "" if they differ.
func commonType(list []schemaProps) string {
	if len(list) == 0 || slices.ContainsFunc(list, func(b schemaProps) bool { return b.Type != list[0].Type }) {
		return ""
	}
	return list[0].Type
}

// listBranches returns the schemas in the fields "anyOf", "oneOf", "allOf" and "not" of s.
func listBranches(s *schemaProps) []*schemaProps {
	var out []*schemaProps
	for _, list := range [][]schemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			out = append(out, &list[i])
		}
	}
	if s.Not != nil {
		out = append(out, s.Not)
	}
	return out
}

// reduceBranch reduces b, a schema in "anyOf", "oneOf", "allOf" or "not" of outer. It removes from b the
// descriptions and everything that outer also requires. It declares in outer each field that b restricts.
// within means that outer is itself in such a field of another schema.
func (c *structurer) reduceBranch(b, outer *schemaProps, at string, within bool) {
	b.Title, b.Description, b.Default, b.Example, b.ExternalDocs = "", "", nil, nil, nil
	if b.Type == outer.Type && !(within && outer.Nullable) {
		b.Type = ""
	}
	switch {
	case b.Type != "":
		c.addFault(at, "type "+b.Type)
		return
	case b.AdditionalProperties != nil:
		c.addFault(at, "additionalProperties")
		return
	}
	b.Nullable = false
	for name, p := range b.Properties {
		there, ok := outer.Properties[name]
		switch extra := outer.AdditionalProperties; {
		case !ok && extra != nil && (!extra.Allows || extra.Schema != nil):
			c.addFault(at, "a field in a map with additionalProperties")
			continue
		case !ok:
			there = c.anySchema()
		}
		c.reduceBranch(&p, &there, strings.TrimPrefix(at+"."+name, "."), true)
		b.Properties[name] = p
		if outer.Properties == nil {
			outer.Properties = map[string]schemaProps{}
		}
		outer.Properties[name] = there
	}
	if b.Items != nil && b.Items.Schema != nil {
		if outer.Items == nil {
			outer.Items = c.anyItems()
		}
		if outer.Items.Schema != nil {
			c.reduceBranch(b.Items.Schema, outer.Items.Schema, at+"[*]", true)
		}
	}
	for _, nested := range listBranches(b) {
		c.reduceBranch(nested, outer, at, within)
	}
}

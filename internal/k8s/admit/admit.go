// Package admit simulates what the API server does with a new custom resource: pruning, defaulting,
// and validation by schema, list types and CEL rules.
//
// It is the only package that imports the API server's code for CRDs. Its arguments and results are
// plain values.
//
// Start from [Open] and [Kind.Write].
package admit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/quayside/quayside/internal/k8s"
)

// Kind is a parsed CRD. It simulates requests for the custom resources of the CRD.
type Kind struct {
	versions map[string]version
	status   map[string]bool // names of the versions with a status subresource
	storage  string          // name of the storage version
	stored   version         // the storage version, whether served or not
	converts bool            // a conversion webhook converts between versions
	budget   *Budget
}

// Converts reports whether a conversion webhook converts objects of this version for storage. The
// result of such a conversion is not known here.
func (k *Kind) Converts(apiVersion string) bool { return k.converts && apiVersion != k.storage }

// version is a version of the CRD that is served or stored.
type version struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	cel        *cel.Validator
	preserve   bool
}

// WriteResult is the result of writing one object. Fields are paths in the notation of the API
// server, such as "spec.listeners[0].port".
type WriteResult struct {
	Rejected  []Fault  // reasons why the object is rejected; empty if it is admitted
	Dropped   []string // unknown fields, which the API server drops; sorted
	Defaulted []Value  // fields that get a default, sorted; for an added object, only the field that contains it
	Unchecked bool     // the CEL rules were not evaluated, because the budget was used up
}

// Fault is one reason why an object is rejected.
type Fault struct{ Field, Message string }

func (f Fault) compare(g Fault) int {
	return cmp.Or(strings.Compare(f.Field, g.Field), strings.Compare(f.Message, g.Message))
}

// Value is a field and its value.
type Value struct {
	Field string
	Value any
}

// Limits of the API server for the CEL cost of one rule and of one object (apiserver/pkg/apis/cel),
// and the limit of quayside for all objects together.
const (
	perCallLimit = 1_000_000
	costBudget   = 10_000_000
	runBudget    = 10 * costBudget
)

// Budget is the remaining CEL cost for the rules of all CRDs in a run. It is not safe for
// concurrent use.
type Budget struct{ remaining int64 }

// NewBudget returns an unused budget.
func NewBudget() *Budget { return &Budget{remaining: runBudget} }

// Open parses a CRD (apiextensions.k8s.io/v1) that was decoded from JSON. Versions that are neither
// served nor stored are ignored. The error names a version whose schema the API server would
// reject. [Kind.Write] takes the cost of CEL rules from the budget b.
func Open(crd map[string]any, b *Budget) (*Kind, error) {
	ext, err := decodeDefinition(crd)
	if err != nil {
		return nil, err
	}
	k := &Kind{versions: map[string]version{}, status: map[string]bool{}, budget: b}
	k.converts = ext.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	for i := range ext.Spec.Versions {
		v := &ext.Spec.Versions[i]
		if !v.Served && !v.Storage {
			continue
		}
		one, err := openVersion(v)
		if err != nil {
			return nil, fmt.Errorf("version %s: %w", v.Name, err)
		}
		one.preserve = one.preserve || ext.Spec.PreserveUnknownFields
		if v.Storage {
			k.storage, k.stored = v.Name, one
		}
		if v.Served {
			k.versions[v.Name] = one
			k.status[v.Name] = v.Subresources != nil && v.Subresources.Status != nil
		}
	}
	return k, nil
}

func openVersion(v *apiextensionsv1.CustomResourceDefinitionVersion) (version, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return version{preserve: true}, nil
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		return version{}, err
	}
	s, err := schema.NewStructural(&internal)
	if err != nil {
		return version{}, err
	}
	if faults := schema.ValidateStructural(nil, s); len(faults) > 0 {
		return version{}, faults.ToAggregate()
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return version{}, err
	}
	return version{structural: s, validator: validator, cel: cel.NewValidator(s, true, perCallLimit)}, nil
}

// ErrNotServed means that the CRD does not serve the version of the object.
var ErrNotServed = errors.New("version is not served")

// Write simulates a request to create object, which is not modified. It returns ErrNotServed, or an
// error if the object cannot be converted to JSON.
func (k *Kind) Write(apiVersion string, object map[string]any) (WriteResult, error) {
	v, ok := k.versions[apiVersion]
	if !ok {
		return WriteResult{}, ErrNotServed
	}
	obj, err := toPlainJSON(object)
	if err != nil {
		return WriteResult{}, err
	}
	if k.status[apiVersion] {
		delete(obj, "status") // the API server ignores the status in a create request
	}
	var out WriteResult
	if v.structural == nil {
		return out, nil
	}
	if !v.preserve {
		out.Dropped = v.prune(obj)
		defaulting.PruneNonNullableNullsWithoutDefaults(obj, v.structural)
	}
	before := runtime.DeepCopyJSON(obj)
	defaulting.Default(obj, v.structural)
	out.Defaulted = listDefaulted("", before, obj)
	out.Rejected, out.Unchecked = v.validate(obj, k.budget)
	if apiVersion != k.storage && !k.converts {
		// Without a conversion webhook, only apiVersion changes between versions.
		out.Dropped = append(out.Dropped, k.stored.prune(before)...) // defaults are no settings
	}
	slices.Sort(out.Dropped)
	out.Dropped = slices.Compact(out.Dropped)
	return out, nil
}

// Refusals returns the reasons why the API server would reject an object in server-side apply: first the faults
// of Write, then the fields that the schema lacks, which server-side apply also rejects. Refusals returns nil
// if k is nil, or if Write fails.
func (k *Kind) Refusals(o k8s.Object) []string {
	if k == nil {
		return nil
	}
	_, version, _ := strings.Cut(o.APIVersion(), "/")
	res, err := k.Write(version, o)
	if errors.Is(err, ErrNotServed) {
		return []string{fmt.Sprintf("the CRD does not serve version %q", version)}
	}
	if err != nil {
		return nil
	}
	for _, field := range res.Dropped {
		res.Rejected = append(res.Rejected, Fault{field, "unknown field"})
	}
	var out []string
	for _, f := range res.Rejected {
		out = append(out, strings.TrimPrefix(f.Field+": "+f.Message, ": "))
	}
	return out
}

// prune removes the fields that the version does not define from obj, and returns their paths.
func (v version) prune(obj map[string]any) []string {
	if v.preserve || v.structural == nil {
		return nil
	}
	return pruning.PruneWithOptions(obj, v.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// toPlainJSON converts an object, a map or a struct, to the types that the code of the API server
// expects.
func toPlainJSON(object any) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, utiljson.Unmarshal(data, &out)
}

// validate runs the checks of the API server in the same order. CEL rules are evaluated only if all
// other checks pass. The second result is true if CEL rules were skipped because the budget is used up.
func (v version) validate(obj map[string]any, b *Budget) ([]Fault, bool) {
	ctx := context.Background()
	faults := validation.ValidateCustomResource(nil, obj, v.validator)
	faults = append(faults, objectmeta.Validate(ctx, nil, obj, v.structural, false)...)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, v.structural, obj)...)
	if v.cel == nil || len(faults) > 0 {
		return sortFaults(faults), false
	}
	if b.remaining <= 0 {
		return nil, true
	}
	found, left := v.cel.Validate(ctx, nil, v.structural, obj, nil, costBudget)
	b.remaining -= costBudget - max(left, 0)
	return sortFaults(found), false
}

// sortFaults returns faults sorted by field. Values that are structs, such as whole schemas, are
// omitted from the messages.
func sortFaults(faults field.ErrorList) []Fault {
	var out []Fault
	for _, f := range faults {
		if of := reflect.TypeOf(f.BadValue); of != nil && (of.Kind() == reflect.Struct || of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct) {
			f.BadValue = field.OmitValueType{}
		}
		name := f.Field
		if name == "<nil>" {
			name = ""
		}
		out = append(out, Fault{Field: name, Message: f.ErrorBody()})
	}
	slices.SortFunc(out, Fault.compare)
	return slices.Compact(out)
}

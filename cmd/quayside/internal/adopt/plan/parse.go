package plan

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Parse parses a plan file. The error is a diag.List of all faults, with their positions.
func Parse(file string, data []byte) (*Plan, error) {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{Depth: 10})
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, diag.List{diag.Errorf(diag.Pos{File: file}, "expected one YAML document, got %d", len(docs))}
	}
	var p Plan
	var errs diag.List
	if !yamlnode.CheckHeader(file, docs[0], APIVersion, Kind, &errs) {
		return nil, errs
	}
	errs.Add(diag.Pos{File: file}, yamlnode.Decode(file, docs[0], &p))
	v := validator{yamlnode.Checker{Fields: yamlnode.Positions(file, docs[0]), Whole: yamlnode.At(file, docs[0]), Faults: &errs}}
	v.checkFields("", reflect.ValueOf(p))
	for i, s := range p.Steps {
		v.checkStep("steps["+strconv.Itoa(i)+"]", i, s)
	}
	if len(errs) > yamlnode.MaxFaults {
		errs = errs[:yamlnode.MaxFaults]
		errs.Addf(diag.Pos{File: file}, "more than %d faults: the rest is omitted", yamlnode.MaxFaults)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return &p, nil
}

// validator checks a decoded plan.
type validator struct{ yamlnode.Checker }

// checkFields checks the fields of a struct and of nested structs by the rules of the schema.
func (v validator) checkFields(at string, s reflect.Value) {
	for _, f := range yamlnode.Fields(s.Type()) {
		field, value := strings.TrimPrefix(at+"."+f.Name, "."), s.FieldByIndex(f.Index)
		if r, ok := value.Interface().(k8s.Ref); ok {
			if v.Require(field, r.Name) {
				v.checkRef(field, r)
			}
			continue
		}
		switch value.Kind() { //nolint:exhaustive // other kinds have no rules
		case reflect.String:
			v.checkText(field, f, value.String())
		case reflect.Slice:
			v.checkItems(field, value)
		}
	}
}

func (v validator) checkItems(field string, list reflect.Value) {
	for i := range list.Len() {
		at := diag.Item(field, i)
		switch item := list.Index(i).Interface().(type) {
		case k8s.Ref:
			v.checkRef(at, item)
		case string:
		default:
			v.checkFields(at, list.Index(i))
		}
	}
}

// checkText checks the form of a string field.
func (v validator) checkText(field string, f reflect.StructField, value string) {
	if yamlnode.Required(f) && !v.Require(field, value) || value == "" {
		return
	}
	for _, rule := range strings.Fields(f.Tag.Get("form")) {
		switch key, arg, _ := strings.Cut(rule, "="); key {
		case "enum":
			v.Enum(field, value, strings.Split(arg, "|")...)
		case "const":
			if value != arg {
				v.Addf(field, "%q: must be %s", value, arg)
			}
		}
	}
	if f.Name == "namespace" {
		v.Label(field, value)
	}
}

// checkRef checks the parts of an object reference.
func (v validator) checkRef(field string, r k8s.Ref) {
	var faults []string
	group, version, named := strings.Cut(r.APIVersion, "/")
	if !named {
		group, version = "core", group
	}
	if !yamlnode.IsDNS1123Subdomain(group) || !yamlnode.IsDNS1123Label(version) {
		faults = append(faults, strconv.Quote(r.APIVersion)+" is not an apiVersion")
	}
	if bad := k8s.LabelFault(strings.ToLower(r.Kind)); bad != "" {
		faults = append(faults, "kind "+bad)
	}
	if bad := content.IsPathSegmentName(r.Name); len(bad) > 0 {
		faults = append(faults, "name "+strconv.Quote(r.Name)+" "+bad[0])
	}
	if len(faults) > 0 {
		v.Addf(field, "%s", strings.Join(faults, "; "))
	}
	if r.Namespace != "" {
		v.Label(field, r.Namespace)
	}
}

// checkStep checks the number of a step, and which fields of its actions are set.
func (v validator) checkStep(at string, i int, s Step) {
	if s.Number != i+1 {
		v.Addf(at+".number", "the step has number %d, expected %d", s.Number, i+1)
	}
	if s.Manual != "" && len(s.Actions) > 0 {
		v.Addf(at+".manual", "a step is either manual or has actions, not both")
	}
	for j, a := range s.Actions {
		here := at + ".actions[" + strconv.Itoa(j) + "]"
		desc, known := verbs()[a.Do]
		if !known {
			continue
		}
		for _, f := range yamlnode.Fields(reflect.TypeOf(a)) {
			isSet := !reflect.ValueOf(a).FieldByIndex(f.Index).IsZero()
			switch {
			case slices.Contains([]string{"verb", "object", "uid"}, f.Name), slices.Contains(desc.optional, f.Name):
			case isSet && !slices.Contains(desc.required, f.Name):
				v.Addf(here+"."+f.Name, "%s does not allow %s", a.Do, f.Name)
			case !isSet && slices.Contains(desc.required, f.Name):
				v.Addf(here, "%s requires the field %s", a.Do, f.Name)
			}
		}
		if a.UID == "" && !desc.canCreate {
			v.Addf(here, "%s requires the field uid", a.Do)
		}
	}
}

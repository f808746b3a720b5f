package plan

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Parse reads a plan. Every fault is found, with its place: the error is a
// diag.List.
func Parse(file string, data []byte) (*Plan, error) {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{Depth: 10})
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, diag.List{diag.Errorf(diag.Pos{File: file}, "want one document, got %d", len(docs))}
	}
	var p Plan
	var errs diag.List
	if !yamlnode.Header(file, docs[0], APIVersion, Kind, &errs) {
		return nil, errs
	}
	errs.Add(diag.Pos{File: file}, yamlnode.Decode(file, docs[0], &p))
	v := validator{yamlnode.Checker{Fields: yamlnode.Positions(file, docs[0]), Whole: yamlnode.At(file, docs[0]), Faults: &errs}}
	v.forms("", reflect.ValueOf(p))
	for i, s := range p.Steps {
		v.step("steps["+strconv.Itoa(i)+"]", i, s)
	}
	if len(errs) > yamlnode.MaxFaults {
		errs = errs[:yamlnode.MaxFaults]
		errs.Addf(diag.Pos{File: file}, "more than %d faults: the rest is left out", yamlnode.MaxFaults)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return &p, nil
}

// validator finds what is wrong with a plan that could be decoded.
type validator struct{ yamlnode.Checker }

// forms holds the fields of a struct, and of all below, to the rules that the
// schema is made of.
func (v validator) forms(at string, s reflect.Value) {
	for _, f := range yamlnode.Fields(s.Type()) {
		field, value := strings.TrimPrefix(at+"."+f.Name, "."), s.FieldByIndex(f.Index)
		if r, ok := value.Interface().(kobj.Ref); ok {
			if v.Given(field, r.Name) {
				v.ref(field, r)
			}
			continue
		}
		switch value.Kind() { //nolint:exhaustive // the rest has no rules
		case reflect.String:
			v.word(field, f, value.String())
		case reflect.Slice:
			v.items(field, value)
		}
	}
}

// items holds the items of a list to their rules.
func (v validator) items(field string, list reflect.Value) {
	for i := range list.Len() {
		at := field + "[" + strconv.Itoa(i) + "]"
		switch item := list.Index(i).Interface().(type) {
		case kobj.Ref:
			v.ref(at, item)
		case string:
		default:
			v.forms(at, list.Index(i))
		}
	}
}

// word holds a field that is a string to its form.
func (v validator) word(field string, f reflect.StructField, value string) {
	if yamlnode.Required(f) && !v.Given(field, value) || value == "" {
		return
	}
	for _, rule := range strings.Fields(f.Tag.Get("form")) {
		switch key, arg, _ := strings.Cut(rule, "="); key {
		case "enum":
			v.Enum(field, value, strings.Split(arg, "|")...)
		case "const":
			if value != arg {
				v.Addf(field, "%q is not %s", value, arg)
			}
		}
	}
	if f.Name == "namespace" {
		v.Label(field, value)
	}
}

// ref refuses what can be part of no address of an object.
func (v validator) ref(field string, r kobj.Ref) {
	var faults []string
	group, version, named := strings.Cut(r.APIVersion, "/")
	if !named {
		group, version = "core", group
	}
	if !yamlnode.IsDNS1123Subdomain(group) || !yamlnode.IsDNS1123Label(version) {
		faults = append(faults, strconv.Quote(r.APIVersion)+" is no apiVersion")
	}
	if bad := kinds.LabelFault(strings.ToLower(r.Kind)); bad != "" {
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

// step holds a step to its place, and its actions to what each verb takes.
func (v validator) step(at string, i int, s Step) {
	if s.Number != i+1 {
		v.Addf(at+".number", "%d, and it is the step behind %d", s.Number, i)
	}
	if s.Manual != "" && len(s.Actions) > 0 {
		v.Addf(at+".manual", "a person does it, or the actions do: not both")
	}
	for j, a := range s.Actions {
		here := at + ".actions[" + strconv.Itoa(j) + "]"
		line, known := verbOf(a.Do)
		if !known {
			continue
		}
		for _, f := range yamlnode.Fields(reflect.TypeOf(a)) {
			said := !reflect.ValueOf(a).FieldByIndex(f.Index).IsZero()
			switch {
			case slices.Contains([]string{"do", "object", "uid"}, f.Name), slices.Contains(line.may, f.Name):
			case said && !slices.Contains(line.needs, f.Name):
				v.Addf(here+"."+f.Name, "%s takes no %s", a.Do, f.Name)
			case !said && slices.Contains(line.needs, f.Name):
				v.Addf(here, "%s needs %s", a.Do, f.Name)
			}
		}
		if a.UID == "" && !line.makes {
			v.Addf(here, "%s needs a uid", a.Do)
		}
	}
}

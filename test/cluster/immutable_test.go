package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/openapi"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
)

// fieldTable is a document of testdata/immutable.yaml.
type fieldTable struct {
	Object map[string]any
	When   map[string]any   // a condition on the object before the change, that this table is about
	Fields map[string][]any // values to try
	Skip   map[string]string
}

// unprobedKinds are kinds whose objects are not kept in Git, or for whose changes there are other diff rules.
var unprobedKinds = map[string]string{
	"Binding": "a request", "Event": "a record", "Event.events.k8s.io": "a record", "Node": "written by the kubelet",
	"Pod": "created by a workload", "ControllerRevision.apps": "written by a controller",
	"CertificateSigningRequest.certificates.k8s.io": "a request",
	"CustomResourceDefinition.apiextensions.k8s.io": "the rules of CRDs",
	"CSINode.storage.k8s.io":                        "written by the kubelet",
	"CSIStorageCapacity.storage.k8s.io":             "written by a controller",
	"VolumeAttachment.storage.k8s.io":               "written by a controller",
	"IPAddress.networking.k8s.io":                   "written by the API server",
	"ServiceCIDR.networking.k8s.io":                 "the addresses of a cluster",
	"ResourceSlice.resource.k8s.io":                 "written by a driver",
}

// TestImmutable changes each field of each kind on the API server, and compares the refused changes with
// diff/immutable.txt. A change is refused if the server accepts the new value in a new object, but not in an
// update of an existing object.
func TestImmutable(t *testing.T) {
	t.Parallel()
	cluster := harness.Start(t, harness.Options{APIOnly: true, NoWebhooks: true})
	p := fieldProbe{t: t, ctx: within(t, 5*time.Minute), cluster: cluster, applier: applier(t, cluster), rows: map[string]string{}}
	text, err := os.ReadFile(filepath.Join("testdata", "immutable.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]map[string]bool{} // kind → fields
	for _, doc := range strings.Split(string(text), "\n---\n") {
		p.doc = doc
		table := p.table()
		o := unstructured.Unstructured{Object: table.Object}
		kind := strings.TrimPrefix(o.GroupVersionKind().GroupKind().String(), ".")
		if listed[kind] == nil {
			listed[kind] = map[string]bool{}
		}
		for field := range table.Skip {
			listed[kind][field] = true
		}
		for _, field := range slices.Sorted(maps.Keys(table.Fields)) {
			listed[kind][field] = true
			p.probe(kind, field, len(table.Fields[field]), table.When)
		}
	}
	checkFieldsListed(t, cluster, listed)
	rows := slices.Sorted(maps.Values(p.rows))
	got := strings.Join(rows, "")
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "..", "..", "diff", "immutable.txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("-file +API server (-update writes it)\n%s", d)
	}
}

// fieldProbe tries changes of fields.
type fieldProbe struct {
	t       *testing.T
	ctx     context.Context
	cluster *harness.Cluster
	applier *harness.Applier
	doc     string
	names   int
	rows    map[string]string // lines, by kind, field and condition
}

// table decodes the current document, with a new name for its object.
func (p *fieldProbe) table() (table fieldTable) {
	p.t.Helper()
	p.names++
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(p.doc, "NAME", fmt.Sprintf("p%d", p.names))), &table); err != nil {
		p.t.Fatalf("%v\n%s", err, p.doc)
	}
	return table
}

// absent stands for the absence of a field, in place of the number of a value.
const absent = -1

// object returns an object whose field has the value with this number. A non-nil like determines its name.
func (p *fieldProbe) object(field string, value int, like *unstructured.Unstructured) *unstructured.Unstructured {
	table := p.table()
	o := &unstructured.Unstructured{Object: table.Object}
	path := strings.Split(field, ".")
	if value == absent {
		unstructured.RemoveNestedField(o.Object, path...)
	} else if err := unstructured.SetNestedField(o.Object, integers(table.Fields[field][value]), path...); err != nil {
		p.t.Fatal(err)
	}
	namespaced, err := p.applier.Namespaced(p.ctx, o)
	if err != nil {
		p.t.Fatal(err)
	}
	if namespaced {
		o.SetNamespace("default")
	}
	if like != nil {
		text, err := json.Marshal(o)
		if err != nil {
			p.t.Fatal(err)
		}
		old := fmt.Sprintf("p%d", p.names)
		o = &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), old, probeName(like))), o); err != nil {
			p.t.Fatal(err)
		}
	}
	return o
}

// probeName returns the part of an object's name that was inserted in place of NAME.
func probeName(o *unstructured.Unstructured) string {
	for part := range strings.SplitSeq(o.GetName(), ".") {
		if strings.HasPrefix(part, "p") {
			return part
		}
	}
	return o.GetName()
}

// integers converts the numbers in decoded YAML to the number types of unstructured objects.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}

// create returns a new stored object, or nil if the API server refuses it.
func (p *fieldProbe) create(field string, value int) *unstructured.Unstructured {
	p.t.Helper()
	o := p.object(field, value, nil)
	done, err := p.applier.Apply(p.ctx, []*unstructured.Unstructured{o})
	if err != nil {
		if !apierrors.IsInvalid(err) || value != absent {
			p.t.Errorf("%s: value %d: %v", field, value, err)
		}
		return nil
	}
	return done[0].Object
}

// delete deletes an object, so that its addresses and ports are free.
func (p *fieldProbe) delete(o *unstructured.Unstructured) {
	if o == nil {
		return
	}
	if err := p.applier.Delete(p.ctx, o); err != nil {
		p.t.Error(err)
	}
}

// probe tries all changes of a field from one of its values to another, and also adds and removes the field.
func (p *fieldProbe) probe(kind, field string, values int, when map[string]any) {
	refused := map[string]map[string][]bool{} // by change and new value
	states := make([]int, 0, values+1)
	for i := range values {
		states = append(states, i)
	}
	column := p.absentColumn(field)
	if column != "required" {
		states = append(states, absent)
	}
	for _, from := range states {
		for _, to := range states {
			if from == to {
				continue
			}
			after := p.create(field, to)
			p.delete(after)
			applied, before := p.object(field, from, nil), p.create(field, from)
			if before == nil || after == nil || same(before, after, field) || !matches(applied.Object, when) {
				p.delete(before)
				continue
			}
			_, err := p.applier.Apply(p.ctx, []*unstructured.Unstructured{p.object(field, to, before)})
			if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
				p.t.Errorf("%s %s: %v", kind, field, err)
			}
			p.delete(before)
			change := "changed"
			switch {
			case from == absent:
				change = "added"
			case to == absent:
				change = "removed"
			}
			if refused[change] == nil {
				refused[change] = map[string][]bool{}
			}
			value, _, _ := unstructured.NestedFieldNoCopy(after.Object, strings.Split(field, ".")...)
			refused[change][fmt.Sprint(value)] = append(refused[change][fmt.Sprint(value)], err != nil)
			if err != nil {
				p.t.Logf("%s %s: %d to %d: %v", kind, field, from, to, err)
			}
		}
	}
	words := p.words(kind, field, refused)
	if len(words) == 0 {
		return
	}
	condition := "always"
	if when != nil {
		text, err := json.Marshal(when)
		if err != nil {
			p.t.Fatal(err)
		}
		condition = string(text)
	}
	key := strings.Join([]string{kind, field, condition}, " ")
	if column == "required" && strings.Contains(p.rows[key], "\tabsent") {
		return
	}
	p.rows[key] = strings.Join([]string{kind, field, condition, strings.Join(words, ","), column}, "\t") + "\n"
}

// words returns "changed" if every new value is refused, otherwise "changed:VALUE" for each refused new value.
func (p *fieldProbe) words(kind, field string, refused map[string]map[string][]bool) (out []string) {
	for _, change := range slices.Sorted(maps.Keys(refused)) {
		var values []string
		accepted := false
		for _, value := range slices.Sorted(maps.Keys(refused[change])) {
			switch outcomes := refused[change][value]; {
			case !slices.Contains(outcomes, true):
				accepted = true
			case slices.Contains(outcomes, false):
				p.t.Errorf("%s %s: whether it can be %s to %s depends on the old value", kind, field, change, value)
			default:
				values = append(values, change+":"+value)
			}
		}
		switch {
		case len(values) > 0 && !accepted:
			out = append(out, change)
		default:
			out = append(out, values...)
		}
	}
	return out
}

// matches reports whether an object has the values of a pattern. In a pattern, {} matches any mapping, and nil
// matches a missing field.
func matches(object, pattern map[string]any) bool {
	for name, want := range pattern {
		value, found := object[name]
		switch want := want.(type) {
		case nil:
			if found {
				return false
			}
		case map[string]any:
			below, _ := value.(map[string]any)
			if len(want) == 0 && below == nil || !matches(below, want) {
				return false
			}
		default:
			if !reflect.DeepEqual(value, want) {
				return false
			}
		}
	}
	return true
}

// absentColumn returns the result of creating two objects without the field: "required" if they are refused,
// "absent" if the field remains absent, "allocated" if their values differ, otherwise the default value as JSON.
func (p *fieldProbe) absentColumn(field string) string {
	first, second := p.create(field, absent), p.create(field, absent)
	p.delete(first)
	p.delete(second)
	if first == nil || second == nil {
		return "required"
	}
	path := strings.Split(field, ".")
	a, ok, _ := unstructured.NestedFieldNoCopy(first.Object, path...)
	b, _, _ := unstructured.NestedFieldNoCopy(second.Object, path...)
	switch {
	case !ok:
		return "absent"
	case !reflect.DeepEqual(a, b):
		return "allocated"
	}
	text, err := json.Marshal(a)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

func same(a, b *unstructured.Unstructured, field string) bool {
	path := strings.Split(field, ".")
	x, _, _ := unstructured.NestedFieldNoCopy(a.Object, path...)
	y, _, _ := unstructured.NestedFieldNoCopy(b.Object, path...)
	return reflect.DeepEqual(x, y)
}

// checkFieldsListed checks that listed contains each kind that the API server stores, and each field of these
// kinds.
func checkFieldsListed(t *testing.T, cluster *harness.Cluster, listed map[string]map[string]bool) {
	t.Helper()
	discovery := client(t, cluster).Discovery()
	_, lists, err := discovery.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	schemas := openapi.NewClient(client(t, cluster).RESTClient())
	paths, err := schemas.Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		for _, r := range list.APIResources {
			kind := r.Kind
			group, _, ok := strings.Cut(list.GroupVersion, "/")
			if ok {
				kind += "." + group
			}
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "update") || strings.Contains(list.GroupVersion, "alpha") || unprobedKinds[kind] != "" {
				continue
			}
			if listed[kind] == nil {
				t.Errorf("testdata/immutable.yaml lacks %s", kind)
				continue
			}
			path := "apis/" + list.GroupVersion
			if !ok {
				path = "api/" + list.GroupVersion
			}
			text, err := paths[path].Schema("application/json")
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range schemaFields(t, text, r, list.GroupVersion) {
				if !listed[kind][field] {
					t.Errorf("testdata/immutable.yaml lacks %s of %s", field, kind)
				}
			}
		}
	}
}

// schemaFields returns the top-level fields of a kind, and the fields in its spec.
func schemaFields(t *testing.T, text []byte, r metav1.APIResource, version string) []string {
	t.Helper()
	var doc struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	type reference struct {
		Ref string `json:"$ref"`
	}
	type shape struct {
		reference
		AllOf      []reference
		Properties map[string]json.RawMessage
		Kinds      []struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
	}
	decode := func(raw json.RawMessage) (s shape) {
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		if len(s.AllOf) == 1 {
			s.reference = s.AllOf[0]
		}
		return s
	}
	var out []string
	for _, raw := range doc.Components.Schemas {
		s := decode(raw)
		if len(s.Kinds) != 1 || s.Kinds[0].Kind != r.Kind || strings.TrimPrefix(s.Kinds[0].Group+"/"+s.Kinds[0].Version, "/") != version {
			continue
		}
		for name, property := range s.Properties {
			switch name {
			case "apiVersion", "kind", "metadata", "status":
			case "spec":
				ref := decode(property).Ref
				for below := range decode(doc.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]).Properties {
					out = append(out, "spec."+below)
				}
			default:
				out = append(out, name)
			}
		}
	}
	if len(out) == 0 {
		t.Errorf("no schema of %s", r.Kind)
	}
	slices.Sort(out)
	return out
}

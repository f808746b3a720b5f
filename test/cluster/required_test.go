package cluster_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
)

// requiredSometimes lists fields that the API server demands only for certain values of other fields, or only
// in certain kinds. Removing a field does not show such conditions.
var requiredSometimes = map[string]string{
	"autoscaling/v2 HorizontalPodAutoscaler spec.metrics[].pods.target.averageValue":           "of metrics of pods",
	"autoscaling/v2 HorizontalPodAutoscaler spec.metrics[].resource.target.averageUtilization": "of this type",
	"flowcontrol.apiserver.k8s.io/v1 FlowSchema spec.rules[].resourceRules[].namespaces":       "unless clusterScope is set",
	"v1 Service spec.ports":                                              "unless the Service is headless or an ExternalName",
	"v1 Service spec.ports[].name":                                       "if there are several ports",
	"rbac.authorization.k8s.io/v1 Role rules[].apiGroups":                "of resources",
	"rbac.authorization.k8s.io/v1 Role rules[].resources":                "of resources",
	"batch/v1 Job spec.template.spec.restartPolicy":                      "in Jobs alone",
	"batch/v1 CronJob spec.jobTemplate.spec.template.spec.restartPolicy": "in Jobs alone",
}

// TestRequired removes each field of the objects in testdata/required.yaml in turn. It compares the fields that
// the API server demands with internal/k8s/admit/required.txt.
func TestRequired(t *testing.T) {
	t.Parallel() // has its own servers
	cluster := harness.Start(t, harness.Options{APIOnly: true, NoWebhooks: true})
	text, err := os.ReadFile(filepath.Join("testdata", "required.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	live, rows := applier(t, cluster), map[string]string{} // + or -, by field
	for _, doc := range strings.Split(string(text), "\n---\n") {
		r := requiredProbe{t, live, strings.ReplaceAll(doc, "NAME", "probe"), rows}
		r.probe()
	}
	var lines []string
	for field, sign := range rows {
		lines = append(lines, sign+" "+field+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "..", "..", "internal", "k8s", "admit", "required.txt")
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.SplitAfter(strings.TrimSuffix(string(want), "\n"), "\n"), strings.SplitAfter(strings.TrimSuffix(strings.Join(lines, ""), "\n"), "\n")); d != "" {
		t.Errorf("-file +API server (-update writes it)\n%s", d)
	}
}

// requiredProbe removes fields of an object.
type requiredProbe struct {
	t    *testing.T
	live *harness.Applier
	doc  string
	rows map[string]string
}

func (r requiredProbe) probe() {
	r.t.Helper()
	if missing := r.missingWithout(); missing != nil {
		r.t.Fatalf("the object is incomplete: %v\n%s", missing, r.doc)
	}
	o := r.object()
	for _, field := range fieldsOf("", o.Object) {
		if strings.HasPrefix(field, "metadata") || field == "kind" || field == "apiVersion" {
			continue
		}
		row := o.GetAPIVersion() + " " + o.GetKind() + " " + regexp.MustCompile(`\[\d+\]`).ReplaceAllString(field, "[]")
		missing := r.missingWithout(field)
		if missing != nil && !missing[field] {
			continue // refused for another reason
		}
		always := missing[field] && requiredSometimes[row] == ""
		parent := field[:strings.LastIndex("."+field, ".")]
		for _, other := range fieldsOf("", o.Object) {
			if always && other != field && other[:strings.LastIndex("."+other, ".")] == parent && other != "kind" && other != "apiVersion" {
				always = r.missingWithout(field, other)[field]
			}
		}
		if sign := map[bool]string{true: "+", false: "-"}[always]; r.rows[row] != "-" {
			r.rows[row] = sign
		}
	}
	for row := range r.rows { // fields that only some items of a list have
		if field, own := strings.CutPrefix(row, o.GetAPIVersion()+" "+o.GetKind()+" "); own && lacksField(o.Object, strings.Split(field, ".")) {
			r.rows[row] = "-"
		}
	}
}

// lacksField reports whether the field at a path, such as "ports[]", "name", is missing in v or in any item of
// a list.
func lacksField(v any, path []string) bool {
	m, isMap := v.(map[string]any)
	if !isMap || len(path) == 0 {
		return false
	}
	name, isList := strings.CutSuffix(path[0], "[]")
	next, has := m[name]
	if len(path) == 1 {
		return !has
	}
	if !isList {
		return has && lacksField(next, path[1:])
	}
	list, _ := next.([]any)
	return slices.ContainsFunc(list, func(item any) bool { return lacksField(item, path[1:]) })
}

func (r requiredProbe) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(r.doc), &o.Object); err != nil {
		r.t.Fatal(err)
	}
	return o
}

// missingWithout removes these fields from the object, and returns the fields that the API server then demands.
// The field "" stands for any other error.
func (r requiredProbe) missingWithout(fields ...string) map[string]bool {
	r.t.Helper()
	o := r.object()
	for _, field := range fields {
		removeField(o.Object, strings.Split(field, "."))
	}
	namespaced, err := r.live.Namespaced(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	if namespaced {
		o.SetNamespace("default")
	}
	err = r.live.TryCreate(r.t.Context(), o)
	if err == nil {
		return nil
	}
	out := map[string]bool{}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Type == metav1.CauseTypeFieldValueRequired {
				out[cause.Field] = true
			}
		}
	}
	if len(out) == 0 {
		out[""] = true
	}
	return out
}

// fieldsOf returns the paths of all fields of a value, such as "spec.containers[0].name", sorted.
func fieldsOf(at string, v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			field := strings.TrimPrefix(at+"."+key, ".")
			if !strings.ContainsAny(key, "./") { // a key of a map
				out = append(append(out, field), fieldsOf(field, v[key])...)
			}
		}
	case []any:
		for i := range v {
			out = append(out, fieldsOf(fmt.Sprintf("%s[%d]", at, i), v[i])...)
		}
	}
	return out
}

// removeField removes the field at a path, such as "spec", "containers[0]", "name".
func removeField(m map[string]any, path []string) {
	if len(path) == 1 {
		delete(m, path[0])
		return
	}
	name, index, isList := strings.Cut(strings.TrimSuffix(path[0], "]"), "[")
	var i int
	_, _ = fmt.Sscan(index, &i)
	switch next := m[name].(type) {
	case map[string]any:
		removeField(next, path[1:])
	case []any:
		if item, isMap := next[i].(map[string]any); isList && isMap {
			removeField(item, path[1:])
		}
	}
}

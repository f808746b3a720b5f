package health

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
)

// goldenObjects returns the objects in testdata/health as JSON.
func goldenObjects(tb testing.TB) [][]byte {
	tb.Helper()
	files, err := filepath.Glob("testdata/health/*.yaml")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no objects: %v", err)
	}
	var out [][]byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		if data, err = yaml.YAMLToJSON(data); err != nil {
			tb.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

// decodeObject returns a new object on each call, so that the test detects modifications of arguments.
func decodeObject(t *rapid.T, data []byte) map[string]any {
	var o map[string]any
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// drawn is an installation with its observations.
type drawn struct {
	spec v1alpha1.InstallationSpec
	got  []v1alpha1.Observed
	pods []map[string]any
}

func draw(t *rapid.T, shapes [][]byte) drawn {
	var d drawn
	for i := range rapid.IntRange(0, 12).Draw(t, "objects") {
		o := decodeObject(t, rapid.SampledFrom(shapes).Draw(t, "shape"))
		ref := v1alpha1.ObjectReference{
			APIVersion: k8s.Text(o, "apiVersion"), Kind: k8s.Text(o, "kind"), Namespace: "n", Name: fmt.Sprint("o", i),
			Version: rapid.SampledFrom([]string{"", "0.9.4"}).Draw(t, "version"),
		}
		if rapid.Bool().Draw(t, "labelled") {
			set(o, "0.9.4", "metadata", "labels", v1alpha1.LabelVersion)
		}
		if ref.Kind == "Deployment" && rapid.Bool().Draw(t, "images") {
			image := rapid.SampledFrom([]string{"x@" + digestA, "x@" + digestB, "x:1"}).Draw(t, "image")
			ref.Images = []v1alpha1.ContainerImage{{Container: "c", Image: image}}
			set(o, []any{map[string]any{"name": "c", "image": image}}, "spec", "template", "spec", "containers")
			set(o, map[string]any{"app": ref.Name}, "spec", "selector", "matchLabels")
			d.pods = append(d.pods, map[string]any{
				"metadata": map[string]any{"namespace": "n", "labels": map[string]any{"app": ref.Name}},
				"status":   map[string]any{"containerStatuses": []any{map[string]any{"name": "c", "imageID": "x@" + digestA}}},
			})
		}
		d.spec.Objects = append(d.spec.Objects, ref)
		seen := v1alpha1.Observed{Ref: ref, Object: o}
		switch rapid.IntRange(0, 9).Draw(t, "reading") {
		case 0:
			seen.Object = nil
		case 1:
			seen.Object, seen.Reason = nil, rapid.SampledFrom([]string{v1alpha1.ReasonForbidden, v1alpha1.ReasonNoKind, v1alpha1.ReasonError}).Draw(t, "reason")
		case 2:
			continue
		}
		d.got = append(d.got, seen)
	}
	return d
}

// TestJudgeProperties draws installations. It checks that the order of observations has no effect, that Judge
// does not modify its arguments, and that the result is stable.
func TestJudgeProperties(t *testing.T) {
	all := goldenObjects(t)
	rapid.Check(t, func(rt *rapid.T) {
		d := draw(rt, all)
		before := jsonOf(t, []any{d.spec, d.got, d.pods})
		first := Judge(d.spec, 3, v1alpha1.InstallationStatus{}, d.got, d.pods, noon())
		if string(before) != string(jsonOf(t, []any{d.spec, d.got, d.pods})) {
			rt.Error("an argument was modified")
		}
		checkStatus(t, first)
		shuffled := rapid.Permutation(d.got).Draw(rt, "order")
		pods := slices.Clone(d.pods)
		slices.Reverse(pods)
		again := Judge(d.spec, 3, first, shuffled, pods, noon().Add(time.Second))
		if string(jsonOf(t, first)) != string(jsonOf(t, again)) {
			rt.Errorf("in another order, a second later:\n%s\n%s", jsonOf(t, first), jsonOf(t, again))
		}
	})
}

// FuzzCompute evaluates arbitrary objects.
func FuzzCompute(f *testing.F) {
	for _, data := range goldenObjects(f) {
		f.Add(data)
	}
	for _, data := range []string{
		`{"kind":"Pod","apiVersion":"v1","status":{"phase":1,"containerStatuses":[1,{"state":{"waiting":[]}}],"conditions":[[],{"type":{}}]}}`,
		`{"kind":"Deployment","apiVersion":"apps/v1","metadata":[],"spec":"x","status":{"conditions":[1]}}`,
		`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"labels":[]},"spec":{"selector":{"matchLabels":{"a":{}},"matchExpressions":[{"values":[{}]}]},"template":{"spec":{"containers":[{"name":1,"image":{}}]}}}}`,
		`{"kind":{},"apiVersion":[],"metadata":{"deletionTimestamp":7},"status":{"observedGeneration":1e300}}`,
		`{"kind":"ValidatingWebhookConfiguration","apiVersion":"admissionregistration.k8s.io/v1","webhooks":[{"clientConfig":7},{"name":[],"clientConfig":{"service":{}}}]}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o map[string]any
		if json.Unmarshal(data, &o) != nil {
			return
		}
		h := Compute(o, noon())
		if severityRank(h.Status) < 0 || len(h.Message) > maxMessage {
			t.Errorf("%+v", h)
		}
		if again := Compute(o, noon()); again != h {
			t.Errorf("%+v, and then %+v", h, again)
		}
		ref := v1alpha1.ObjectReference{
			APIVersion: k8s.Text(o, "apiVersion"), Kind: k8s.Text(o, "kind"), Name: "x", Version: "1",
			Images: []v1alpha1.ContainerImage{{Container: "c", Image: "x@" + digestA}},
		}
		spec := v1alpha1.InstallationSpec{OperatorCondition: "x", Objects: []v1alpha1.ObjectReference{ref}}
		got := []v1alpha1.Observed{{Ref: ref, Object: o}, {Ref: ref, Object: map[string]any{}}}
		checkStatus(t, Judge(spec, 1, v1alpha1.InstallationStatus{}, got, []map[string]any{o, nil}, noon()))
		ObservedVersions(spec, got)
	})
}

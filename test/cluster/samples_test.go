package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/test/cluster/harness"
)

// finding mirrors a finding in the output of `quayside diff -o json`.
type finding struct {
	Rule, Severity, Field, Message string
	OtherFields                    []string // with the same change
	Object                         struct{ Group, Kind, Namespace, Name string }
}

type findings []finding

// diff returns the findings of `quayside diff`. The command may report a violated policy.
func (q quayside) diff(t *testing.T, args ...string) findings {
	t.Helper()
	stdout, stderr, code := q.run(t, append([]string{"diff", "--offline", "--exit-zero", "-o", "json"}, args...)...)
	if code != 0 && code != 4 {
		t.Fatalf("quayside diff %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	var report struct{ Findings findings }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	return report.Findings
}

func (l findings) withRule(rule string) findings {
	return slices.DeleteFunc(slices.Clone(l), func(f finding) bool { return f.Rule != rule })
}

// forObject returns the findings for an object.
func (l findings) forObject(o *unstructured.Unstructured) findings {
	return slices.DeleteFunc(slices.Clone(l), func(f finding) bool {
		return f.Object.Group != o.GroupVersionKind().Group || f.Object.Kind != o.GetKind() ||
			f.Object.Namespace != o.GetNamespace() || f.Object.Name != o.GetName()
	})
}

// rejectionRules returns the diff rules that report changes which the API server rejects.
func rejectionRules() []string {
	return []string{
		"api.removed", "crd.kind-changed", "crd.scope-changed", "crd.stored-version-removed",
		"immutable.field-changed", "resources.schema-invalid",
	}
}

// breakingRules returns the diff rules that report custom resources which can no longer be applied unchanged.
func breakingRules() []string {
	return []string{"resources.rejected", "resources.field-dropped", "resources.version-not-served"}
}

// sample is a sample custom resource of an operator.
type sample struct {
	object *unstructured.Unstructured
	made   *unstructured.Unstructured // as created in the cluster; nil if it was rejected
	judged bool                       // a CRD existed, so it was validated
	valid  bool                       // it is valid according to the CRD
}

// samples returns the samples in the ClusterServiceVersion in dir.
func samples(t *testing.T, dir string) []*sample {
	t.Helper()
	var list []*sample
	for _, o := range manifests(t, dir) {
		text := o.GetAnnotations()["alm-examples"]
		if o.GetKind() != "ClusterServiceVersion" || text == "" {
			continue
		}
		var examples []map[string]any
		if err := yaml.Unmarshal([]byte(text), &examples); err != nil {
			t.Fatal(err)
		}
		for _, e := range examples {
			list = append(list, &sample{object: &unstructured.Unstructured{Object: e}})
		}
	}
	return list
}

// createSamples creates the samples in the cluster and in the repository. It omits samples that are not in the
// storage version, because conversion requires a running operator.
func (l *life) createSamples(ctx context.Context, t *testing.T) {
	t.Helper()
	l.data = slices.DeleteFunc(l.data, func(s *sample) bool {
		crd := l.definition(s.object)
		return crd == nil || storageVersion(crd) != s.object.GroupVersionKind().Version
	})
	made := 0
	for i, s := range l.data {
		if scope, _, _ := unstructured.NestedString(l.definition(s.object).Object, "spec", "scope"); scope == "Namespaced" {
			s.object.SetNamespace(l.pkg)
		}
		text, err := yaml.Marshal(s.object.Object)
		if err != nil {
			t.Fatal(err)
		}
		l.write(t, fmt.Sprintf("uses/%02d-%s.yaml", i, strings.ToLower(s.object.GetKind())), string(text))
		if refusal := l.refusal(ctx, t, s); refusal != nil {
			t.Logf("the sample %s is invalid according to its CRD: %v", harness.Name(s.object), refusal)
		} else {
			s.valid = true
		}
		s.judged = true
		s.made, err = l.applier.Create(ctx, s.object)
		if apierrors.IsInvalid(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		made++
	}
	if made == 0 {
		t.Errorf("none of %d samples could be created", len(l.data))
	}
}

// definition returns the rendered CRD of the object's kind, or nil.
func (l *life) definition(o *unstructured.Unstructured) *unstructured.Unstructured {
	for _, crd := range only(l.applied, isCRD) {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		if group == o.GroupVersionKind().Group && kind == o.GetKind() {
			return crd
		}
	}
	return nil
}

// checkRemovals checks that the diff reported exactly the CRDs and Namespaces that this step
// removed.
func (l *life) checkRemovals(t *testing.T, said findings, before []*unstructured.Unstructured) {
	t.Helper()
	went := only(l.unpruned, func(o *unstructured.Unstructured) bool { return !slices.Contains(names(before), harness.Name(o)) })
	for _, o := range went {
		if len(said.forObject(o).withRule("data.crd-removed"))+len(said.forObject(o).withRule("data.namespace-removed")) == 0 {
			t.Errorf("diff does not report the removal of %s", harness.Name(o))
		}
	}
	if got := len(said.withRule("data.crd-removed")) + len(said.withRule("data.namespace-removed")); got != len(went) {
		t.Errorf("diff reports the removal of %d CRDs and Namespaces, want %v", got, names(went))
	}
}

// compareSamples checks that every custom resource still exists, is served and is complete, and that diff's
// findings for the resource agree with the API server.
func (l *life) compareSamples(ctx context.Context, t *testing.T, said findings) {
	t.Helper()
	for _, s := range l.data {
		crd := l.definition(s.object)
		if s.made != nil {
			l.checkSurvival(ctx, t, s, said)
		}
		was, judged := s.valid, s.judged
		s.judged = crd != nil
		if crd == nil {
			if len(said.withRule("data.crd-removed")) > 0 && len(said.forObject(s.object).withRule("data.resource-orphaned")) == 0 {
				t.Errorf("diff does not report that the CRD of %s is removed", harness.Name(s.object))
			}
			continue
		}
		refusal := l.refusal(ctx, t, s)
		s.valid = refusal == nil
		about := said.forObject(s.object)
		breaks := slices.ContainsFunc(about, func(f finding) bool { return slices.Contains(breakingRules(), f.Rule) })
		if judged && was && !s.valid && breaks {
			l.broken++
		}
		switch {
		case !judged:
		case was && !s.valid && !breaks:
			t.Errorf("diff does not report that %s is rejected now: %v", harness.Name(s.object), refusal)
		case was && s.valid && breaks:
			t.Errorf("the API server accepts %s, but diff reports: %+v", harness.Name(s.object), about)
		case !was && !s.valid && apierrors.IsInvalid(refusal) && len(about.withRule("resources.already-rejected")) == 0:
			t.Errorf("diff does not report that %s is still rejected: %v; it reports: %+v", harness.Name(s.object), refusal, about)
		}
	}
}

// refusal returns the API server's reason for rejecting a copy of the sample with a new name, or nil.
func (l *life) refusal(ctx context.Context, t *testing.T, s *sample) error {
	t.Helper()
	again := s.object.DeepCopy()
	again.SetName(again.GetName() + "-again")
	err := l.applier.TryCreate(ctx, again)
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Fatal(err)
	}
	return err
}

// checkSurvival checks that the object has the same UID and all its fields. It also checks that the object is
// valid, unless diff has warned about its CRD.
func (l *life) checkSurvival(ctx context.Context, t *testing.T, s *sample, said findings) {
	t.Helper()
	live, err := l.applier.Get(ctx, s.object)
	if err != nil {
		t.Errorf("a custom resource is lost: %v", err)
		return
	}
	if live.GetUID() != s.made.GetUID() {
		t.Errorf("%s was recreated", harness.Name(live))
	}
	if lost := missingField(s.made.Object["spec"], live.Object["spec"], "spec"); lost != "" && len(said.forObject(s.object).withRule("resources.field-dropped")) == 0 {
		t.Errorf("diff does not report that %s lost %s", harness.Name(live), lost)
	}
	crd := l.definition(s.object)
	if crd == nil {
		return
	}
	var warned []string
	for _, f := range said.forObject(crd) {
		if f.Severity == "high" || f.Severity == "critical" {
			warned = append(warned, f.Rule+" "+f.Field)
		}
	}
	err = l.applier.TryUpdate(ctx, live)
	switch {
	case err != nil && len(warned) == 0:
		t.Errorf("diff reports no finding, but the stored object is rejected: %v", err)
	case len(warned) > 0:
		t.Logf("%s: diff reports %q; writing the stored object: %v", harness.Name(live), warned, err)
	}
}

// missingField returns the first field of want that is not in got with the same value, or "". Lists
// are compared as one value.
func missingField(want, got any, at string) string {
	fields, ok := want.(map[string]any)
	if !ok {
		if reflect.DeepEqual(normalizeNumbers(want), normalizeNumbers(got)) {
			return ""
		}
		return at
	}
	have, ok := got.(map[string]any)
	if !ok {
		return at
	}
	for key, value := range fields {
		if lost := missingField(value, have[key], at+"."+key); lost != "" {
			return lost
		}
	}
	return ""
}

// normalizeNumbers returns v with the number types that a JSON decoder uses.
func normalizeNumbers(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		return v
	}
	return out
}

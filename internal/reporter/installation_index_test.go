package reporter

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/api/v1alpha1"
)

// installation returns an Installation that lists the given objects, each as kind and name.
func installation(name string, generation int64, objects ...[2]string) *v1alpha1.Installation {
	in := &v1alpha1.Installation{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Generation: generation, UID: types.UID("uid-" + name), ResourceVersion: fmt.Sprint(generation),
	}}
	in.Spec.Package, in.Spec.Version = name, "1.0.0"
	for _, o := range objects {
		in.Spec.Objects = append(in.Spec.Objects, v1alpha1.ObjectReference{APIVersion: "v1", Kind: o[0], Namespace: "ns", Name: o[1]})
	}
	return in
}

func kindsOf(kinds []schema.GroupVersionKind) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.Kind)
	}
	return out
}

func namesOf(names []types.NamespacedName) []string {
	var out []string
	for _, n := range names {
		out = append(out, n.Name)
	}
	return out
}

func TestInstallationIndex(t *testing.T) {
	r := newInstallationIndex()
	shared, own := [2]string{"ConfigMap", "shared"}, [2]string{"Secret", "own"}
	who := func(o [2]string) []string {
		kind := schema.GroupVersionKind{Version: "v1", Kind: o[0]}
		return namesOf(r.expecting(kind, types.NamespacedName{Namespace: "ns", Name: o[1]}))
	}
	want := func(step string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", step, d)
		}
	}
	a, first := r.update(installation("a", 1, shared, own, own))
	want("kinds of the first", kindsOf(first.added), []string{"ConfigMap", "Secret"})
	want("a new one has no other spec", first.spec, false)
	_, _ = r.update(installation("b", 1, shared))
	want("both expect it", who(shared), []string{"a", "b"})
	want("one expects it, though it is named twice", who(own), []string{"a"})
	want("of a kind", namesOf(r.expectingKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})), []string{"a", "b"})

	again, same := r.update(installation("a", 1, shared, own, own))
	want("the same generation turns nothing", []any{again == a, len(same.added), len(same.removed), same.spec}, []any{true, 0, 0, false})
	_, turned := r.update(installation("a", 2, shared, [2]string{"Service", "new"}))
	want("kinds that came", kindsOf(turned.added), []string{"Service"})
	want("kinds that went", kindsOf(turned.removed), []string{"Secret"})
	want("another spec", turned.spec, true)
	want("nobody expects it", who(own), []string(nil))

	other := installation("a", 1, shared)
	other.UID = "another"
	_, replaced := r.update(other)
	want("of the one of that name before", kindsOf(replaced.removed), []string{"ConfigMap", "Service"})
	want("of the new one", kindsOf(replaced.added), []string{"ConfigMap"})

	want("of one that goes", kindsOf(r.remove(types.NamespacedName{Namespace: "ns", Name: "a"})), []string{"ConfigMap"})
	want("the other one is left", who(shared), []string{"b"})
	r.remove(types.NamespacedName{Namespace: "ns", Name: "b"})
	want("nothing is left", r.size(), 0)
	want("of one that is missing", len(r.remove(types.NamespacedName{Namespace: "ns", Name: "b"})), 0)
}

package kube

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/report/v1alpha1"
)

func kindOf(o v1alpha1.ObjectReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

func nameOf(o v1alpha1.ObjectReference) types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// roster knows the Installations that are there and who expects what. Its
// methods may be called from any goroutine.
type roster struct {
	mu      sync.Mutex
	members map[types.NamespacedName]*member
}

// member is one Installation. What is not set here is touched by nobody but
// the worker that has the Installation in hand.
type member struct {
	name       types.NamespacedName
	generation int64 // of the spec that was taken in; -1: none yet
	uid        types.UID
	objects    []v1alpha1.ObjectReference // shared with the cache
	kinds      []schema.GroupVersionKind  // of objects, sorted

	pods    podsSeen
	written *written // the status that was written last, until the cache has it
}

func newRoster() *roster {
	return &roster{members: map[types.NamespacedName]*member{}}
}

// turn is how an Installation differs from what was noted of it.
type turn struct {
	more, fewer []schema.GroupVersionKind // kinds that it expects now and did not before, and the reverse
	spec        bool                      // it was known, and its spec is another
}

// note takes in an Installation as it is now.
func (r *roster) note(in *v1alpha1.Installation) (*member, turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := types.NamespacedName{Namespace: in.Namespace, Name: in.Name}
	var t turn
	m := r.members[name]
	if m == nil || m.uid != in.UID {
		t.fewer = r.drop(m)
		m = &member{name: name, uid: in.UID, generation: -1}
		r.members[name] = m
	}
	if m.generation == in.Generation {
		m.objects = in.Spec.Objects // the same, and the cache holds no others any longer
		return m, t
	}
	t.spec = m.generation >= 0
	before := m.kinds
	m.generation, m.objects, m.kinds = in.Generation, in.Spec.Objects, kindsIn(in.Spec.Objects)
	t.more, t.fewer = without(m.kinds, before), append(t.fewer, without(before, m.kinds)...)
	return m, t
}

// forget drops an Installation that is gone and returns the kinds that it
// expected.
func (r *roster) forget(name types.NamespacedName) []schema.GroupVersionKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drop(r.members[name])
}

// who returns the Installations that expect an object, sorted. Nothing keeps
// note of that: an object turns now and then, and they are some hundreds.
func (r *roster) who(kind schema.GroupVersionKind, object types.NamespacedName) []types.NamespacedName {
	return r.those(func(m *member) bool {
		return slices.Contains(m.kinds, kind) && slices.ContainsFunc(m.objects, func(o v1alpha1.ObjectReference) bool {
			return o.Name == object.Name && o.Namespace == object.Namespace && kindOf(o) == kind
		})
	})
}

// whoKind returns the Installations that expect objects of a kind, sorted.
func (r *roster) whoKind(kind schema.GroupVersionKind) []types.NamespacedName {
	return r.those(func(m *member) bool { return slices.Contains(m.kinds, kind) })
}

func (r *roster) those(expect func(*member) bool) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []types.NamespacedName
	for name, m := range r.members {
		if expect(m) {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, byName)
	return out
}

// byName orders by namespace, then name.
func byName(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// size returns how many Installations are known.
func (r *roster) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.members)
}

func (r *roster) drop(m *member) []schema.GroupVersionKind {
	if m == nil {
		return nil
	}
	delete(r.members, m.name)
	return m.kinds
}

// kindsIn returns the kinds of objects, sorted, each once.
func kindsIn(objects []v1alpha1.ObjectReference) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, o := range objects {
		if kind := kindOf(o); !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// without returns the kinds of a that b has not.
func without(a, b []schema.GroupVersionKind) []schema.GroupVersionKind {
	return slices.DeleteFunc(slices.Clone(a), func(k schema.GroupVersionKind) bool { return slices.Contains(b, k) })
}

package reporter

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/api/v1alpha1"
)

func kindOf(o v1alpha1.ObjectReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

func nameOf(o v1alpha1.ObjectReference) types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// installationIndex contains the existing Installations and the objects that they list. It is safe
// for concurrent use.
type installationIndex struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
}

// entry is one Installation. Only the worker that reconciles the Installation uses the fields pods
// and written.
type entry struct {
	name       types.NamespacedName
	generation int64 // generation of the spec that was last passed to update; -1 before
	uid        types.UID
	objects    []v1alpha1.ObjectReference // spec.objects, shared with the cache
	kinds      []schema.GroupVersionKind  // kinds of objects, sorted

	pods    podCache
	written *pendingStatus // latest written status; nil once the cache has it
}

func newInstallationIndex() *installationIndex {
	return &installationIndex{entries: map[types.NamespacedName]*entry{}}
}

// specChange is the difference between the recorded spec of an Installation and its current spec.
type specChange struct {
	added, removed []schema.GroupVersionKind // kinds that are newly listed, and kinds that are no longer listed
	spec           bool                      // whether the spec of a known Installation changed
}

// update records the current spec of an Installation, and returns its entry and the changes.
func (r *installationIndex) update(in *v1alpha1.Installation) (*entry, specChange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := types.NamespacedName{Namespace: in.Namespace, Name: in.Name}
	var t specChange
	m := r.entries[name]
	if m == nil || m.uid != in.UID {
		t.removed = r.drop(m)
		m = &entry{name: name, uid: in.UID, generation: -1}
		r.entries[name] = m
	}
	if m.generation == in.Generation {
		m.objects = in.Spec.Objects // equal content, but the cache no longer holds the previous slice
		return m, t
	}
	t.spec = m.generation >= 0
	before := m.kinds
	m.generation, m.objects, m.kinds = in.Generation, in.Spec.Objects, kindsIn(in.Spec.Objects)
	t.added, t.removed = subtractKinds(m.kinds, before), append(t.removed, subtractKinds(before, m.kinds)...)
	return m, t
}

// remove removes an Installation, and returns the kinds that it listed.
func (r *installationIndex) remove(name types.NamespacedName) []schema.GroupVersionKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drop(r.entries[name])
}

// expecting returns the Installations that list an object, sorted. It searches all Installations: there are at
// most some hundred, and changes are rare.
func (r *installationIndex) expecting(kind schema.GroupVersionKind, object types.NamespacedName) []types.NamespacedName {
	return r.filter(func(m *entry) bool {
		return slices.Contains(m.kinds, kind) && slices.ContainsFunc(m.objects, func(o v1alpha1.ObjectReference) bool {
			return o.Name == object.Name && o.Namespace == object.Namespace && kindOf(o) == kind
		})
	})
}

// expectingKind returns the Installations that list objects of a kind, sorted.
func (r *installationIndex) expectingKind(kind schema.GroupVersionKind) []types.NamespacedName {
	return r.filter(func(m *entry) bool { return slices.Contains(m.kinds, kind) })
}

func (r *installationIndex) filter(expect func(*entry) bool) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []types.NamespacedName
	for name, m := range r.entries {
		if expect(m) {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, byName)
	return out
}

// byName compares names for sorting by namespace, then name.
func byName(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// size returns the number of Installations.
func (r *installationIndex) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.entries)
}

func (r *installationIndex) drop(m *entry) []schema.GroupVersionKind {
	if m == nil {
		return nil
	}
	delete(r.entries, m.name)
	return m.kinds
}

// kindsIn returns the kinds of objects, sorted and unique.
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

// subtractKinds returns the kinds in a that are not in b.
func subtractKinds(a, b []schema.GroupVersionKind) []schema.GroupVersionKind {
	return slices.DeleteFunc(slices.Clone(a), func(k schema.GroupVersionKind) bool { return slices.Contains(b, k) })
}

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
	by      map[schema.GroupVersionKind]map[types.NamespacedName]*claim
}

// claim is a list of the Installations that expect an object, which is never
// modified. Nearly every object is expected by one, whose list all of its
// objects share.
type claim struct {
	by   *member
	also *claim
}

// without returns the list without m.
func (c *claim) without(m *member) *claim {
	switch {
	case c == nil:
		return nil
	case c.by == m:
		return c.also
	case c.also == nil:
		return c
	}
	return &claim{by: c.by, also: c.also.without(m)}
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
	return &roster{
		members: map[types.NamespacedName]*member{},
		by:      map[schema.GroupVersionKind]map[types.NamespacedName]*claim{},
	}
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
	r.unlink(m)
	m.generation, m.objects = in.Generation, in.Spec.Objects
	r.link(m)
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

// who returns the Installations that expect an object.
func (r *roster) who(kind schema.GroupVersionKind, object types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []types.NamespacedName
	for c := r.by[kind][object]; c != nil; c = c.also {
		out = append(out, c.by.name)
	}
	return out
}

// whoKind returns the Installations that expect objects of a kind, sorted.
func (r *roster) whoKind(kind schema.GroupVersionKind) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []types.NamespacedName
	for name, m := range r.members {
		if slices.Contains(m.kinds, kind) {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
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
	r.unlink(m)
	delete(r.members, m.name)
	return m.kinds
}

func (r *roster) link(m *member) {
	m.kinds = nil
	alone := &claim{by: m}
	for _, o := range m.objects {
		kind, name := kindOf(o), nameOf(o)
		names := r.by[kind]
		if names == nil {
			names = map[types.NamespacedName]*claim{}
			r.by[kind] = names
		}
		if others := names[name].without(m); others != nil {
			names[name] = &claim{by: m, also: others}
		} else {
			names[name] = alone
		}
		if !slices.Contains(m.kinds, kind) {
			m.kinds = append(m.kinds, kind)
		}
	}
	slices.SortFunc(m.kinds, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
}

func (r *roster) unlink(m *member) {
	for _, o := range m.objects {
		kind, name := kindOf(o), nameOf(o)
		if others := r.by[kind][name].without(m); others != nil {
			r.by[kind][name] = others
			continue
		}
		delete(r.by[kind], name)
		if len(r.by[kind]) == 0 {
			delete(r.by, kind)
		}
	}
}

// without returns the kinds of a that b has not.
func without(a, b []schema.GroupVersionKind) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, k := range a {
		if !slices.Contains(b, k) {
			out = append(out, k)
		}
	}
	return out
}

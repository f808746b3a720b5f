package diff

import (
	"bytes"
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
)

// State is one side of a comparison: what a revision renders to, and what else
// of Kubernetes lies in the repository. Compare does not modify it.
type State struct {
	Name              string             // as the user would name it: "HEAD~1:quayside.lock"
	KubernetesVersion string             // target: "1.34"; empty means unknown, and checks that need it are left out
	OpenShiftVersion  string             // target: "4.20"; likewise
	Pins              []lockfile.Pin     // any order
	Leaving           []lockfile.Leaving // what is left of operators that others follow; any order
	Objects           []Object           // rendered; any order
	Resources         []Object           // the user's own objects in the repository: custom resources, Namespaces; any order
	Skipped           []string           // files of the repository that do not parse and were left out
	KeepsDefinitions  bool               // what applies it tracks no definitions, and so prunes none: Argo CD
	ByOperator        bool               // an engine applies each operator by itself, and uninstalls only those that are leaving
	Dropped           []string           // operators that are pinned, but not for the cluster whose state this is
}

// Object is one Kubernetes object and the file it stands in.
type Object struct {
	Operator string         // "namespace/package" of the pin it belongs to; empty where no pin owns it
	Path     string         // "rendered/operators/…/deployment-etcd.yaml", slash-separated
	Document int            // index of the YAML document in the file
	Raw      []byte         // the whole file, for line numbers; nil where there is none
	Content  map[string]any // as decoded from JSON: string, bool, int64, float64, []any, map[string]any, nil

	ref     Ref    // by Content, where it was read from files
	sources []File // what an overlay makes of it stands in some of these

	cut bool // Content ends before the versions of a definition whose file is the same on both sides; see Whole
}

// Ref names an object of a cluster.
type Ref struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Ref returns the object's name in the cluster.
func (o *Object) Ref() Ref {
	if !o.ref.IsZero() {
		return o.ref
	}
	return refOf(o.Content)
}

func refOf(content map[string]any) Ref {
	group, version := splitAPIVersion(kobj.Text(content, "apiVersion"))
	return Ref{
		Group: group, Version: version, Kind: kobj.Text(content, "kind"),
		Namespace: kobj.Text(content, "metadata", "namespace"), Name: kobj.Text(content, "metadata", "name"),
	}
}

// Key returns the identity of the object across versions of its API.
func (o *Object) Key() kobj.Key { return o.Ref().key() }

// Simple reports whether kustomize takes the objects of one file as they stand
// there, and the file holds nothing else: a list is taken apart, and an object that
// is marked as local is left out.
func Simple(file []Object) bool {
	if len(file) == 0 || bytes.Contains(file[0].Raw, []byte("local-config")) {
		return false
	}
	markers := bytes.Count(file[0].Raw, []byte("\n---"))
	if markers != len(file)-1 || markers != bytes.Count(file[0].Raw, []byte("\n---\n")) {
		return false
	}
	return !slices.ContainsFunc(file, func(o Object) bool {
		return strings.HasSuffix(o.Ref().Kind, "List") && o.Content["items"] != nil
	})
}

// Keep returns the state with the pins of those operators alone that keep reports
// true for; the others are Dropped.
func (s State) Keep(keep func(operator string) bool) State {
	pins := s.Pins
	s.Pins, s.Dropped = nil, nil
	for _, p := range pins {
		if keep(p.Key()) {
			s.Pins = append(s.Pins, p)
		} else {
			s.Dropped = append(s.Dropped, p.Key())
		}
	}
	s.Leaving = slices.DeleteFunc(slices.Clone(s.Leaving), func(l lockfile.Leaving) bool { return !keep(l.Key()) })
	return s
}

// IsZero reports whether r names nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// String returns "Kind namespace/name", without the parts that are empty.
func (r Ref) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + r.Name
	}
	return strings.TrimSpace(r.Kind + " " + name)
}

// Compare orders by kind, group, namespace, name, version.
func (r Ref) Compare(s Ref) int {
	return cmp.Or(strings.Compare(r.Kind, s.Kind), strings.Compare(r.Group, s.Group),
		strings.Compare(r.Namespace, s.Namespace), strings.Compare(r.Name, s.Name), strings.Compare(r.Version, s.Version))
}

// is reports whether r is of one of these "Kind.group" kinds; the core group is
// written as "Kind" alone.
func (r Ref) is(kinds ...string) bool {
	return slices.Contains(kinds, groupKind(r.Group, r.Kind))
}

func groupKind(group, kind string) string {
	if group == "" {
		return kind
	}
	return kind + "." + group
}

func splitAPIVersion(s string) (group, version string) {
	if group, version, ok := strings.Cut(s, "/"); ok {
		return group, version
	}
	return "", s
}

// key is the identity of an object across versions of its API.
func (r Ref) key() kobj.Key {
	return kobj.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// view is a state, indexed.
type view struct {
	State
	byKey map[kobj.Key]*Object
	order []*Object // by Ref
	crds  map[kobj.Key]*Object
}

// newView indexes s. Two different objects with one identity are an error that
// names both files and the state.
func newView(s State) (*view, error) {
	v := &view{State: s, byKey: make(map[kobj.Key]*Object, len(s.Objects)), crds: map[kobj.Key]*Object{}}
	var faults diag.List
	for i := range s.Objects {
		o := &s.Objects[i]
		ref := o.Ref()
		if ref.Kind == "" || ref.Version == "" {
			faults.Addf(diag.Pos{File: o.Path}, "%s: no apiVersion or kind", s.Name)
			continue
		}
		if other, dup := v.byKey[ref.key()]; dup {
			if !(bytes.Equal(other.Raw, o.Raw) && other.Document == o.Document) && !reflect.DeepEqual(other.Whole(), o.Whole()) {
				faults.Addf(diag.Pos{File: o.Path}, "%s: %s stands in %s too, with another content", s.Name, ref, other.Path)
			}
			continue
		}
		v.byKey[ref.key()] = o
		v.order = append(v.order, o)
		if ref.is(crdKind) {
			v.crds[o.serves()] = o
		}
	}
	slices.SortFunc(v.order, func(a, b *Object) int { return a.Ref().Compare(b.Ref()) })
	return v, faults.Err()
}

// serves returns the identity that objects of a definition share.
func (o *Object) serves() kobj.Key {
	crd := kinds.Define(o.Content)
	return kobj.Key{Group: crd.Group, Kind: crd.Kind}
}

// Whole returns Content; of a definition of which only the head was read, since
// the other side has the same file, all of it, decoded anew each time.
func (o *Object) Whole() map[string]any {
	if !o.cut {
		return o.Content
	}
	got, err := read(File{Path: o.Path, Data: o.Raw}, nil)
	if err != nil || len(got) != 1 {
		return nil // the other side holds the same bytes, and nothing reads them either
	}
	return got[0].Content
}

// uncut returns o, or a copy with the whole Content where o has only the head: of
// a definition in a file that is the same on both sides, a cluster may get
// something else all the same, or none.
func (o *Object) uncut() *Object {
	if o == nil || !o.cut {
		return o
	}
	out := *o
	out.Content, out.cut = o.Whole(), false
	return &out
}

// namespace returns the Namespace object of that name, rendered or the user's
// own; nil where neither holds one.
func (v *view) namespace(name string) *Object {
	if o := v.byKey[kobj.Key{Kind: "Namespace", Name: name}]; o != nil {
		return o
	}
	for i := range v.Resources {
		if o := &v.Resources[i]; o.Ref().is("Namespace") && o.Ref().Name == name {
			return o
		}
	}
	return nil
}

// of returns the objects of a kind, whatever their version: the user's own in the
// repository, then what the cluster gets.
func (v *view) of(kind kobj.Key) []*Object {
	var out []*Object
	add := func(o *Object) {
		if ref := o.Ref(); ref.Group == kind.Group && ref.Kind == kind.Kind {
			out = append(out, o)
		}
	}
	for i := range v.Resources {
		add(&v.Resources[i])
	}
	for _, o := range v.order {
		add(o)
	}
	return out
}

// operator returns the pin of "namespace/package".
func (v *view) pin(operator string) (lockfile.Pin, bool) {
	i := slices.IndexFunc(v.Pins, func(p lockfile.Pin) bool { return p.Key() == operator })
	if i < 0 {
		return lockfile.Pin{}, false
	}
	return v.Pins[i], true
}

// leftBehind reports whether an operator of before stays in the clusters though after does
// not render it: its Application or Kustomization goes without deleting what it applied.
func leftBehind(before, after *view, operator string) bool {
	_, pinned := before.pin(operator)
	return pinned && before.ByOperator && !slices.ContainsFunc(after.Leaving, func(l lockfile.Leaving) bool { return l.Key() == operator })
}

// leaves returns what is left of "namespace/package", if another operator follows
// it. One that is being uninstalled has nothing left in the tree.
func (v *view) leaves(operator string) (lockfile.Leaving, bool) {
	i := slices.IndexFunc(v.Leaving, func(l lockfile.Leaving) bool { return l.Key() == operator && l.ReplacedBy != "" })
	if i < 0 {
		return lockfile.Leaving{}, false
	}
	return v.Leaving[i], true
}

// pair is one identity on both sides; one of them may be nil.
type pair struct{ before, after *Object }

// object returns the side that stands now, or that stood.
func (p pair) object() *Object {
	if p.after != nil {
		return p.after
	}
	return p.before
}

// both reports whether the object stands on both sides.
func (p pair) both() bool { return p.before != nil && p.after != nil }

// pairs returns every object that was added, removed or changed, by Ref.
func pairs(before, after *view) []pair {
	var out []pair
	for _, o := range after.order {
		old := before.byKey[o.Ref().key()]
		if old == nil || !same(old, o) {
			out = append(out, pair{old.uncut(), o.uncut()})
		}
	}
	for _, o := range before.order {
		if after.byKey[o.Ref().key()] == nil {
			out = append(out, pair{o.uncut(), nil})
		}
	}
	slices.SortStableFunc(out, func(a, b pair) int { return a.object().Ref().Compare(b.object().Ref()) })
	return out
}

// same reports whether two objects are equal but for the labels and
// annotations that name the version of the operator.
func same(a, b *Object) bool {
	if a.Raw != nil && a.Document == b.Document && bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	return reflect.DeepEqual(plain(a.Whole()), plain(b.Whole()))
}

// plain returns content without quayside's own labels and annotations.
func plain(content map[string]any) map[string]any {
	meta := kobj.Map(content, "metadata")
	if meta == nil {
		return content
	}
	out, m := maps.Clone(content), maps.Clone(meta)
	for _, name := range []string{"labels", "annotations"} {
		rest := maps.Clone(kobj.Map(meta, name))
		maps.DeleteFunc(rest, func(k string, _ any) bool { return strings.HasPrefix(k, "quayside.dev/") })
		if m[name] = rest; len(rest) == 0 {
			delete(m, name)
		}
	}
	out["metadata"] = m
	return out
}

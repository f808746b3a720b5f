package diff

import (
	"bytes"
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// State is one side of a comparison: the rendered objects of a revision, and the other
// Kubernetes objects of the repository. Compare does not modify it.
type State struct {
	Name              string             // as users name it: "HEAD~1:quayside.lock"
	KubernetesVersion string             // target: "1.34"; empty means unknown, and checks that need it are skipped
	OpenShiftVersion  string             // target: "4.20"; likewise
	Pins              []lockfile.Pin     // any order
	Leaving           []lockfile.Leaving // operators with a successor, or being uninstalled; any order
	Objects           []Object           // rendered; any order
	Resources         []Object           // the user's own objects in the repository: custom resources, Namespaces; any order
	Skipped           []string           // files of the repository that do not parse
	KeepsDefinitions  bool               // the engine tracks no CRDs, and so prunes none
	ByOperator        bool               // an engine applies each operator by itself, and uninstalls only those that are leaving
	Dropped           []string           // operators that are pinned, but not for the cluster of this state
}

// Object is one Kubernetes object and its file.
type Object struct {
	Operator string         // "namespace/package" of its pin; empty if no pin owns it
	Path     string         // "rendered/operators/…/deployment-etcd.yaml", slash-separated
	Document int            // index of the YAML document in the file
	Raw      []byte         // the whole file, for line numbers; nil if there is none
	Content  map[string]any // as decoded from JSON: string, bool, int64, float64, []any, map[string]any, nil

	key     k8s.Key // of Content, if parsed from files
	sources []File  // files that may contain the overlay's changes of it

	Follows bool // an engine's object whose directory of the tree is added or removed with it

	cut bool // Content ends before the versions of a CRD whose file is the same on both sides; see Whole
}

// Ref identifies an object of a cluster, with the version of its API, for readers.
type Ref struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Key returns the identity of the object across versions of its API.
func (o *Object) Key() k8s.Key {
	if o.key == (k8s.Key{}) {
		return k8s.Object(o.Content).Key()
	}
	return o.key
}

// version returns the version of the object's apiVersion.
func (o *Object) version() string {
	apiVersion := k8s.Text(o.Content, "apiVersion")
	return apiVersion[strings.Index(apiVersion, "/")+1:]
}

// Ref returns the reference of the object for reports.
func (o *Object) Ref() Ref {
	k := o.Key()
	return Ref{Group: k.Group, Version: o.version(), Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}
}

// Simple reports whether kustomize loads the objects of one file unchanged, and the file
// contains nothing else: kustomize splits lists, and omits objects that are marked as
// local.
func Simple(file []Object) bool {
	if len(file) == 0 || bytes.Contains(file[0].Raw, []byte("local-config")) {
		return false
	}
	markers := bytes.Count(file[0].Raw, []byte("\n---"))
	if markers != len(file)-1 || markers != bytes.Count(file[0].Raw, []byte("\n---\n")) {
		return false
	}
	return !slices.ContainsFunc(file, func(o Object) bool {
		return strings.HasSuffix(o.Key().Kind, "List") && o.Content["items"] != nil
	})
}

// Keep returns the state with only the pins of operators that keep accepts. The others are
// added to Dropped.
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

// IsZero reports whether r is empty.
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

// view is an indexed state.
type view struct {
	State
	byKey map[k8s.Key]*Object
	order []*Object // sorted by Key
	crds  map[k8s.Key]*Object
}

// newView indexes s. It is an error if different objects have the same identity; the error
// names both files and the state.
func newView(s State) (*view, error) {
	v := &view{State: s, byKey: make(map[k8s.Key]*Object, len(s.Objects)), crds: map[k8s.Key]*Object{}}
	var faults diag.List
	for i := range s.Objects {
		o := &s.Objects[i]
		key := o.Key()
		if key.Kind == "" || o.version() == "" {
			faults.Addf(diag.Pos{File: o.Path}, "%s: no apiVersion or kind", s.Name)
			continue
		}
		if other, dup := v.byKey[key]; dup {
			if !(bytes.Equal(other.Raw, o.Raw) && other.Document == o.Document) && !reflect.DeepEqual(other.Whole(), o.Whole()) {
				faults.Addf(diag.Pos{File: o.Path}, "%s: %s is also in %s, with different content", s.Name, o.Ref(), other.Path)
			}
			continue
		}
		v.byKey[key] = o
		v.order = append(v.order, o)
		if key.Is(crdKind) {
			v.crds[o.serves()] = o
		}
	}
	slices.SortFunc(v.order, func(a, b *Object) int { return a.Key().Compare(b.Key()) })
	return v, faults.Err()
}

// serves returns the group and kind of a CRD's objects.
func (o *Object) serves() k8s.Key {
	crd := k8s.ParseCRD(o.Content)
	return k8s.Key{Group: crd.Group, Kind: crd.Kind}
}

// Whole returns the complete Content. It parses a CRD again, on each call, if only its
// head was parsed because the other side has the same file.
func (o *Object) Whole() map[string]any {
	if !o.cut {
		return o.Content
	}
	got, err := read(File{Path: o.Path, Data: o.Raw}, nil)
	if err != nil || len(got) != 1 {
		return nil // the other side has the same bytes, which do not parse there either
	}
	return got[0].Content
}

// uncut returns o, or a copy with the complete Content if o has only the head. A cluster
// may get another object, or none, although the file is the same on both sides.
func (o *Object) uncut() *Object {
	if o == nil || !o.cut {
		return o
	}
	out := *o
	out.Content, out.cut = o.Whole(), false
	return &out
}

// namespace returns the Namespace object of that name, rendered or the user's own; nil if
// there is neither.
func (v *view) namespace(name string) *Object {
	if o := v.byKey[k8s.Key{Kind: "Namespace", Name: name}]; o != nil {
		return o
	}
	for i := range v.Resources {
		if o := &v.Resources[i]; o.Key().Is("Namespace") && o.Key().Name == name {
			return o
		}
	}
	return nil
}

// of returns the objects of a kind in any version: the user's own in the repository, then
// those of the rendered state.
func (v *view) of(kind k8s.Key) []*Object {
	var out []*Object
	add := func(o *Object) {
		if ref := o.Key(); ref.Group == kind.Group && ref.Kind == kind.Kind {
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

// pin returns the pin of "namespace/package".
func (v *view) pin(operator string) (lockfile.Pin, bool) {
	i := slices.IndexFunc(v.Pins, func(p lockfile.Pin) bool { return p.Key() == operator })
	if i < 0 {
		return lockfile.Pin{}, false
	}
	return v.Pins[i], true
}

// leftBehind reports whether an operator of before stays in the clusters although after
// does not render it: its Application or Kustomization is removed without deleting its
// objects.
func leftBehind(before, after *view, operator string) bool {
	_, pinned := before.pin(operator)
	return pinned && before.ByOperator && !slices.ContainsFunc(after.Leaving, func(l lockfile.Leaving) bool { return l.Key() == operator })
}

// leaves returns the leaving block of "namespace/package" if another operator replaces it.
// An operator that is being uninstalled has no objects left in the tree.
func (v *view) leaves(operator string) (lockfile.Leaving, bool) {
	i := slices.IndexFunc(v.Leaving, func(l lockfile.Leaving) bool { return l.Key() == operator && l.ReplacedBy != "" })
	if i < 0 {
		return lockfile.Leaving{}, false
	}
	return v.Leaving[i], true
}

// pair is an object on both sides; one of them may be nil.
type pair struct{ before, after *Object }

// object returns the object after, or the object before if it was removed.
func (p pair) object() *Object {
	if p.after != nil {
		return p.after
	}
	return p.before
}

// both reports whether the object exists on both sides.
func (p pair) both() bool { return p.before != nil && p.after != nil }

// pairObjects returns every object that was added, removed or changed, by Key.
func pairObjects(before, after *view) []pair {
	var out []pair
	for _, o := range after.order {
		old := before.byKey[o.Key()]
		if old == nil || !isSameObject(old, o) {
			out = append(out, pair{old.uncut(), o.uncut()})
		}
	}
	for _, o := range before.order {
		if after.byKey[o.Key()] == nil {
			out = append(out, pair{o.uncut(), nil})
		}
	}
	slices.SortStableFunc(out, func(a, b pair) int { return a.object().Key().Compare(b.object().Key()) })
	return out
}

// isSameObject reports whether two objects are equal except for their version label.
func isSameObject(a, b *Object) bool {
	if a.Raw != nil && a.Document == b.Document && bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	return reflect.DeepEqual(plainContent(a.Whole()), plainContent(b.Whole()))
}

// plainContent returns content without quayside's version label and annotation.
func plainContent(content map[string]any) map[string]any {
	meta := k8s.Map(content, "metadata")
	if meta == nil {
		return content
	}
	out, m := maps.Clone(content), maps.Clone(meta)
	for _, name := range []string{"labels", "annotations"} {
		rest := maps.Clone(k8s.Map(meta, name))
		delete(rest, k8s.LabelVersion)
		if m[name] = rest; len(rest) == 0 {
			delete(m, name)
		}
	}
	out["metadata"] = m
	return out
}

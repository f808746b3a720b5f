package diff

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/lockfile"
)

// State is one side of a comparison: the rendered objects of a revision, and the user's own objects
// in the repository. Compare does not modify it.
type State struct {
	Name              string               // name for users, such as "HEAD~1:quayside.lock"
	KubernetesVersion string               // version of the target clusters, such as "1.34"; if empty, checks that need it are skipped
	OpenShiftVersion  string               // version of the target clusters, such as "4.20"; if empty, checks that need it are skipped
	Pins              []lockfile.Pin       // in any order
	Leaving           []lockfile.Leaving   // operators that have a successor or are being uninstalled; in any order
	Objects           []Object             // rendered objects; in any order
	Resources         []Object             // the user's own Namespaces and custom resources in the repository; in any order
	Skipped           []string             // paths of invalid files in the repository, which were not compared
	KeepsDefinitions  bool                 // the GitOps tool does not track CRDs and never prunes them
	ByOperator        bool                 // the GitOps tool applies each operator separately, and uninstalls only operators in Leaving
	Dropped           []string             // operators that are pinned for other clusters only
	Recreate          []profile.Recreation // objects that upgrades recreate, by the settings
	Declared          []string             // namespaces in which quayside itself renders objects, by the settings
}

// Object is a Kubernetes object, with the file that it was parsed from.
type Object struct {
	Operator string         // "namespace/package" of its pin; empty if it belongs to no operator
	Path     string         // slash-separated, such as "rendered/operators/…/deployment-etcd.yaml"
	Document int            // index of the document in the file
	Raw      []byte         // content of the file, for finding line numbers; nil if there is no file
	Content  map[string]any // values have the types string, bool, int64, float64, []any, map[string]any, and nil

	key     k8s.Key // key of the object if it was parsed from a file, otherwise zero
	sources []File  // files of an overlay that may have changed the object

	Follows bool // whether the object configures a GitOps tool, so that it is added and removed together with the directory that it applies

	applied map[string]any // Content before the conversion to the normal form; nil without a conversion

	headOnly bool // Content lacks the versions of a CRD, because the file is equal on both sides; see Whole
}

// Ref identifies an object, including its API version, in reports.
type Ref struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Key identifies the object, without its API version.
func (o *Object) Key() k8s.Key {
	if o.key == (k8s.Key{}) {
		return k8s.Object(o.Content).Key()
	}
	return o.key
}

// version returns the version in apiVersion, without the group.
func (o *Object) version() string {
	apiVersion := k8s.Text(o.Content, "apiVersion")
	return apiVersion[strings.Index(apiVersion, "/")+1:]
}

// Ref returns the reference to the object for reports.
func (o *Object) Ref() Ref {
	k := o.Key()
	return Ref{Group: k.Group, Version: o.version(), Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}
}

// Simple reports whether kustomize loads the objects of a file unchanged. It returns false if the
// file contains a List, which kustomize splits, an object with the annotation local-config, which
// kustomize omits, or a document that is not an object.
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

// Keep returns a copy of s with only the operators for which keep returns true. Other pinned
// operators are listed in Dropped.
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

// IsZero reports whether r is the zero value.
func (r Ref) IsZero() bool { return r == Ref{} }

// String returns "Kind namespace/name", without empty parts.
func (r Ref) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + r.Name
	}
	return strings.TrimSpace(r.Kind + " " + name)
}

// Compare orders references by kind, group, namespace, name and version.
func (r Ref) Compare(s Ref) int {
	return cmp.Or(strings.Compare(r.Kind, s.Kind), strings.Compare(r.Group, s.Group),
		strings.Compare(r.Namespace, s.Namespace), strings.Compare(r.Name, s.Name), strings.Compare(r.Version, s.Version))
}

// view is a state with indexes for look-ups.
type view struct {
	State
	byKey map[k8s.Key]*Object
	order []*Object // rendered objects, sorted by Key
	crds  map[k8s.Key]*Object

	owners map[k8s.Key]string // operators by the group and kind that they own

	policies         []*Object         // admission policies and their bindings
	engineNamespaces map[string]bool   // namespaces with objects that configure a GitOps tool and belong to no operator
	versions         map[string]string // versions by operator, if the state has no pins

	names map[string][]ownedName // see ownedNames
}

// newView returns s with its indexes. It returns an error for two different objects with the same
// key.
func newView(s State) (*view, error) {
	s.Objects = withNamespaces(s.Objects)
	v := &view{State: s, byKey: make(map[k8s.Key]*Object, len(s.Objects)), crds: map[k8s.Key]*Object{}, engineNamespaces: map[string]bool{}}
	var faults diag.List
	for i := range s.Objects {
		o := &s.Objects[i]
		key := o.Key()
		if key.Kind == "" || o.version() == "" {
			faults.Addf(diag.Pos{File: o.Path}, "%s: apiVersion or kind is missing", s.Name)
			continue
		}
		if other, dup := v.byKey[key]; dup {
			if !(bytes.Equal(other.Raw, o.Raw) && other.Document == o.Document) && !equalValues(other.Whole(), o.Whole()) {
				faults.Addf(diag.Pos{File: o.Path}, "%s: %s is also in %s, with different content", s.Name, o.Ref(), other.Path)
			}
			continue
		}
		v.byKey[key] = o
		v.order = append(v.order, o)
		if key.Is(crdKind) {
			v.crds[o.definedKind()] = o
		}
		if isPolicyGroup(key.Group) {
			v.policies = append(v.policies, o)
		}
		if o.Operator == "" && key.Namespace != "" && isDeliveryGroup(key.Group) {
			v.engineNamespaces[key.Namespace] = true
		}
	}
	slices.SortFunc(v.order, func(a, b *Object) int { return a.Key().Compare(b.Key()) })
	v.versions, v.owners = v.treeVersions(), v.kindOwners()
	return v, faults.Err()
}

// withNamespaces replaces the operator "package" of an object by "namespace/package" if another object has such an
// operator. This is needed for CRDs in a state without a lock: a CRD has no label for the namespace of its operator,
// and there are no pins to look it up. If several namespaces have the package, the first namespace is used.
func withNamespaces(objects []Object) []Object {
	full := map[string]string{}
	for i := range objects {
		operator := objects[i].Operator
		if _, pkg, ok := strings.Cut(operator, "/"); ok && (full[pkg] == "" || operator < full[pkg]) {
			full[pkg] = operator
		}
	}
	out, cloned := objects, false
	for i := range objects {
		operator := full[objects[i].Operator]
		if operator == "" {
			continue
		}
		if !cloned {
			out, cloned = slices.Clone(objects), true
		}
		out[i].Operator = operator
	}
	return out
}

// definedKind returns the group and kind that a CRD defines.
func (o *Object) definedKind() k8s.Key {
	crd := k8s.ParseCRD(o.Content)
	return k8s.Key{Group: crd.Group, Kind: crd.Kind}
}

// Whole returns the complete content of the object. If only the head of a CRD was parsed, each call
// parses the file.
func (o *Object) Whole() map[string]any {
	if !o.headOnly {
		return o.Content
	}
	got, err := parseObjects(File{Path: o.Path, Data: o.Raw}, nil)
	if err != nil || len(got) != 1 {
		return nil // parsing the equal file on the other side returns the error
	}
	return got[0].Content
}

// withWholeContent returns o with its complete content; o itself is not modified. The complete
// content is needed if overlays change the object, although its file is equal on both sides.
func (o *Object) withWholeContent() *Object {
	if o == nil || !o.headOnly {
		return o
	}
	out := *o
	out.Content, out.headOnly = o.Whole(), false
	return &out
}

// namespace returns the Namespace with this name, rendered or the user's own, or nil if there is
// none.
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

// objectsOf returns the objects of a kind in any version: first the user's own, then the rendered
// ones.
func (v *view) objectsOf(kind k8s.Key) []*Object {
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

// pin returns the pin of an operator ("namespace/package"), and whether there is one.
func (v *view) pin(operator string) (lockfile.Pin, bool) {
	i := slices.IndexFunc(v.Pins, func(p lockfile.Pin) bool { return p.Key() == operator })
	if i < 0 {
		return lockfile.Pin{}, false
	}
	return v.Pins[i], true
}

// isLeftBehind reports whether an operator that is missing in the new state stays in the clusters. This happens
// if its Application or Kustomization is deleted without deleting the objects that it applied.
func isLeftBehind(before, after *view, operator string) bool {
	_, pinned := before.pin(operator)
	_, leaves := after.leaving(operator)
	return pinned && before.ByOperator && !leaves && !after.hasOperator(operator)
}

// replacedOperator returns the entry of an operator ("namespace/package") in Leaving, if the operator has a
// successor. It returns false for an operator that is being uninstalled.
func (v *view) replacedOperator(operator string) (lockfile.Leaving, bool) {
	l, ok := v.leaving(operator)
	return l, ok && l.ReplacedBy != ""
}

// pair is an object before and after the change. One of them may be nil.
type pair struct{ before, after *Object }

// object returns the object after the change, or the object before if it is removed.
func (p pair) object() *Object {
	if p.after != nil {
		return p.after
	}
	return p.before
}

// onBothSides reports whether the object exists before and after the change.
func (p pair) onBothSides() bool { return p.before != nil && p.after != nil }

// pairObjects returns all added, removed and changed objects, sorted by Key.
func pairObjects(before, after *view) []pair {
	var out []pair
	for _, o := range after.order {
		old := before.byKey[o.Key()]
		if old == nil || !isSameObject(before, after, old, o) {
			out = append(out, pair{old.withWholeContent(), o.withWholeContent()})
		}
	}
	for _, o := range before.order {
		if after.byKey[o.Key()] == nil {
			out = append(out, pair{o.withWholeContent(), nil})
		}
	}
	slices.SortStableFunc(out, func(a, b pair) int { return a.object().Key().Compare(b.object().Key()) })
	return out
}

// normalPairs returns the pairs of pairObjects that still differ in their normal form (see
// [admit.Types.Normal]). It replaces the objects in the pairs and in both views by their normal form.
func normalPairs(before, after *view, types *admit.Types) []pair {
	var out []pair
	for _, p := range pairObjects(before, after) {
		p.before, p.after = before.normalize(p.before, types), after.normalize(p.after, types)
		if !p.onBothSides() || !isSameObject(before, after, p.before, p.after) {
			out = append(out, p)
		}
	}
	return out
}

// normalize returns o with its content in the normal form, and replaces o by the result in the indexes of v. o
// may be nil.
func (v *view) normalize(o *Object, types *admit.Types) *Object {
	if o == nil {
		return nil
	}
	out := *o
	out.Content, out.applied = types.Normal(k8s.Object(o.Content)), o.Content
	key := o.Key()
	if i, found := slices.BinarySearchFunc(v.order, key, func(o *Object, k k8s.Key) int { return o.Key().Compare(k) }); found {
		v.order[i] = &out
	}
	v.byKey[key] = &out
	if key.Is(crdKind) {
		v.crds[o.definedKind()] = &out
	}
	return &out
}

// isSameObject reports whether two objects are equal, apart from operator versions that quayside writes on
// them.
func isSameObject(before, after *view, a, b *Object) bool {
	if a.Raw != nil && a.Document == b.Document && bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	return equalValues(before.plainContent(a), after.plainContent(b))
}

// plainContent returns the content of an object without the label and the annotation for the operator version,
// if they have the values that quayside writes.
func (v *view) plainContent(o *Object) map[string]any {
	content := o.Whole()
	meta := k8s.Map(content, "metadata")
	if meta == nil {
		return content
	}
	out, m := maps.Clone(content), maps.Clone(meta)
	for _, name := range []string{"labels", "annotations"} {
		rest := maps.Clone(k8s.Map(meta, name))
		if v.writesVersion(o, formatValue(rest[k8s.LabelVersion])) {
			delete(rest, k8s.LabelVersion)
		}
		if m[name] = rest; len(rest) == 0 {
			delete(m, name)
		}
	}
	out["metadata"] = m
	return out
}

// writesVersion reports whether quayside writes this version on an object, as a label or an annotation. On a
// Deployment, it writes the operator's version. On a CRD, it may write the version of any operator of the
// package.
func (v *view) writesVersion(o *Object, version string) bool {
	isCRD := o.Key().Is(crdKind)
	if version == "" || !isCRD && !o.Key().Is("Deployment.apps") {
		return false
	}
	matches := func(operator, is string) bool {
		own := operator == o.Operator || isCRD && path.Base(operator) == path.Base(o.Operator)
		return own && (is == version || k8s.LabelValue(is) == version)
	}
	for operator, is := range v.versions {
		if matches(operator, is) {
			return true
		}
	}
	return slices.ContainsFunc(v.Pins, func(p lockfile.Pin) bool { return matches(p.Key(), p.Version) }) ||
		slices.ContainsFunc(v.Leaving, func(l lockfile.Leaving) bool { return matches(l.Key(), l.Version) }) ||
		slices.Contains([]string{"quayside", "quayside-reporter"}, path.Base(o.Operator)) && version == v1alpha1.Version
}

// leaving returns the entry of an operator ("namespace/package") in Leaving, and whether there is one.
func (v *view) leaving(operator string) (lockfile.Leaving, bool) {
	i := slices.IndexFunc(v.Leaving, func(l lockfile.Leaving) bool { return l.Key() == operator })
	if i < 0 {
		return lockfile.Leaving{}, false
	}
	return v.Leaving[i], true
}

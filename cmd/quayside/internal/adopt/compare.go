package adopt

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
)

// Field is a difference between an object in the cluster and the same object in the tree. Path identifies list
// items by name: "spec.template.spec.containers[manager].env[A].value".
type Field struct {
	Path string         `json:"path" doc:"Path of the field in the object."`
	Kind DifferenceKind `json:"kind" form:"enum=changed|cluster-only|tree-only|order" doc:"changed: different values; cluster-only: only in the cluster; tree-only: only in the tree; order: the same items in another order."`
}

// DifferenceKind is the kind of difference of a field.
type DifferenceKind string

// The kinds of differences.
const (
	OtherValue DifferenceKind = "changed"
	OnlyLive   DifferenceKind = "cluster-only"
	OnlyOurs   DifferenceKind = "tree-only"
	Order      DifferenceKind = "order"
)

// compare returns the differing fields of two objects, by path.
func compare(live, ours k8s.Object) []Field {
	var out []Field
	CompareValues("", map[string]any(live), map[string]any(ours), func(f Field, _, _ any) { out = append(out, f) })
	return out
}

// reportFunc receives a differing field and its two values. A missing value is nil.
type reportFunc = func(f Field, live, ours any)

// CompareValues reports the differences between two values. at is the path of their field.
func CompareValues(at string, live, ours any, report reportFunc) {
	a, aIsMap := live.(map[string]any)
	b, bIsMap := ours.(map[string]any)
	if aIsMap && bIsMap {
		compareMaps(at, a, b, report)
		return
	}
	x, xIsList := live.([]any)
	y, yIsList := ours.([]any)
	switch {
	case xIsList && yIsList:
		compareLists(at, x, y, report)
	case !k8s.Equal(live, ours):
		report(Field{at, OtherValue}, live, ours)
	}
}

func compareMaps(at string, live, ours map[string]any, report reportFunc) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(live)), maps.Keys(ours))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		here := key
		if at != "" {
			here = at + "." + key
		}
		compareMember(here, live, ours, key, report)
	}
}

// compareMember compares the values of one key in two mappings.
func compareMember(at string, live, ours map[string]any, key string, report reportFunc) {
	a, there := live[key]
	b, wanted := ours[key]
	_, liveIsMap := a.(map[string]any)
	_, oursIsMap := b.(map[string]any)
	switch {
	case isComparedByKey(at) && (liveIsMap || oursIsMap):
		CompareValues(at, toMapping(a), toMapping(b), report)
	case !wanted:
		report(Field{at, OnlyLive}, a, nil)
	case !there:
		report(Field{at, OnlyOurs}, nil, b)
	default:
		CompareValues(at, a, b, report)
	}
}

// isComparedByKey reports whether the mapping at a path is compared key by key even if one of the two objects
// lacks the mapping. For other paths, a missing mapping is one difference.
func isComparedByKey(at string) bool {
	return strings.HasSuffix(at, "metadata.labels") || strings.HasSuffix(at, "metadata.annotations")
}

func toMapping(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func compareLists(at string, live, ours []any, report reportFunc) {
	a, names := namedItems(live)
	b, wanted := namedItems(ours)
	switch {
	case isPlainList(live) || isPlainList(ours):
		if !k8s.Equal(live, ours) {
			report(Field{at, OtherValue}, live, ours)
		}
		return
	case a == nil || b == nil:
		compareItems(at, live, ours, report)
		return
	}
	for _, name := range mergeNames(names, wanted) {
		compareMember(at+"["+name+"]", a, b, name, report)
	}
	common := func(list []string, other map[string]any) []string {
		return slices.DeleteFunc(slices.Clone(list), func(name string) bool { _, ok := other[name]; return !ok })
	}
	if !slices.Equal(common(names, b), common(wanted, a)) {
		report(Field{at, Order}, live, ours)
	}
}

// isPlainList reports whether a list has an item that is not a mapping.
func isPlainList(list []any) bool {
	return slices.ContainsFunc(list, func(v any) bool { _, ok := v.(map[string]any); return !ok })
}

// compareItems compares two lists by index.
func compareItems(at string, live, ours []any, report reportFunc) {
	for i := range max(len(live), len(ours)) {
		here := diag.Item(at, i)
		switch {
		case i >= len(ours):
			report(Field{here, OnlyLive}, live[i], nil)
		case i >= len(live):
			report(Field{here, OnlyOurs}, nil, ours[i])
		default:
			CompareValues(here, live[i], ours[i], report)
		}
	}
}

// namedItems returns the items of a list in a map by name, and the names in list order. Both results are nil if
// an item has no name, or if two items have the same name.
func namedItems(list []any) (map[string]any, []string) {
	out := map[string]any{}
	var names []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		name := k8s.Text(m, "name")
		if _, twice := out[name]; twice || name == "" {
			return nil, nil
		}
		out[name], names = item, append(names, name)
	}
	return out, names
}

// mergeNames returns the names in a, followed by the names that only b has.
func mergeNames(a, b []string) []string {
	out := slices.Clone(a)
	for _, name := range b {
		if !slices.Contains(a, name) {
			out = append(out, name)
		}
	}
	return out
}

// comparer compares objects of the cluster with objects of the tree.
type comparer struct{ types *admit.Types }

// comparison is the result of comparing a live object with a rendered one.
type comparison struct {
	fields []Field
	err    error
}

// compareAll compares live objects with the same objects of the tree, in parallel. It returns the comparisons
// in the same order. The comparison of an object that the tree lacks is empty.
func (x *inspector) compareAll(live []*snapshot.LiveObject) []comparison {
	out := make([]comparison, len(live))
	var next atomic.Int64
	var work sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			c := comparer{admit.NewTypes()}
			for i := int(next.Add(1)) - 1; i < len(live); i = int(next.Add(1)) - 1 {
				if r, wanted := x.ours[live[i].Key]; wanted {
					out[i].fields, out[i].err = c.compareFields(live[i].Body(), r.Object)
				}
			}
		})
	}
	work.Wait()
	return out
}

// compareFields returns the fields that differ between a live and a rendered object. It converts
// both to the form that the API server stores, and ignores fields that only the API server sets.
func (c comparer) compareFields(live, ours k8s.Object) ([]Field, error) {
	live, ours = withoutEqualFields(withoutSecretData(live), withoutSecretData(ours))
	a, err := c.types.Stored(live)
	if err != nil {
		return nil, err
	}
	b, err := c.types.Stored(ours)
	if err != nil {
		return nil, err
	}
	out := compare(withoutAssigned(a, b), withoutAssigned(b, b))
	return slices.DeleteFunc(out, func(f Field) bool {
		return ours.Is("", "Service") && f.Kind == OnlyLive && strings.HasSuffix(f.Path, ".nodePort")
	}), nil
}

// withoutSecretData removes the contents of a Secret, because snapshots do not include them. It returns other
// objects unchanged.
func withoutSecretData(o k8s.Object) k8s.Object {
	if o.Is("", "Secret") {
		o = k8s.Without(k8s.Without(o, "data"), "stringData")
	}
	return o
}

// withoutEqualFields returns both objects without equal top-level fields. It also removes the versions of CRDs
// if all versions are equal. This saves time, because the conversion to the stored form is slow. The removed
// fields do not affect the stored form of the other fields.
func withoutEqualFields(live, ours k8s.Object) (a, b k8s.Object) {
	a, b = live, ours
	if k8s.IsCRD(ours) {
		x, y := k8s.List(live, "spec", "versions"), k8s.List(ours, "spec", "versions")
		if slices.EqualFunc(x, y, k8s.Equal) {
			a, b = k8s.Without(a, "spec", "versions"), k8s.Without(b, "spec", "versions")
		}
	}
	for field, v := range ours {
		if slices.Contains([]string{"apiVersion", "kind", "metadata", "aggregationRule"}, field) {
			continue // needed for the conversion, or changed by controllers
		}
		if w, there := live[field]; there && k8s.Equal(v, w) {
			a, b = k8s.Without(a, field), k8s.Without(b, field)
		}
	}
	return a, b
}

// withoutAssigned returns o without the fields that the API server sets. A field that users may set, too, is
// removed only if ours does not set it.
func withoutAssigned(o, ours k8s.Object) k8s.Object {
	for _, field := range []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		o = k8s.Without(o, "metadata", field)
	}
	if k8s.At(ours, "aggregationRule") != nil {
		o = k8s.Without(o, "rules")
	}
	for _, at := range assignedFields(ours.Key()) {
		if k8s.At(ours, at...) == nil {
			o = k8s.Without(o, at...)
		}
	}
	return o
}

// assignedFields returns the fields of a kind that the API server or a controller sets if the manifest does
// not.
func assignedFields(key k8s.Key) [][]string {
	switch key.Group + "/" + key.Kind {
	case "/Service":
		return [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "ipFamilies"}, {"spec", "ipFamilyPolicy"}, {"spec", "healthCheckNodePort"}}
	case "/ServiceAccount":
		return [][]string{{"secrets"}, {"imagePullSecrets"}}
	case "/Namespace":
		return [][]string{{"spec", "finalizers"}, {"metadata", "labels", "kubernetes.io/metadata.name"}}
	case "apps/Deployment":
		return [][]string{{"metadata", "annotations", "deployment.kubernetes.io/revision"}}
	}
	return nil
}

// Differences compares a live object with after, its intended state. It returns the differing fields, sorted by
// path, without fields that only the API server sets.
func Differences(live, after k8s.Object) []Field {
	return compare(withoutAssigned(live, after), withoutAssigned(after, after))
}

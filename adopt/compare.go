package adopt

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/kobj"
)

// Field is one in which a live object and the one that takes its place differ.
// Items of lists that have names are told by them:
// "spec.template.spec.containers[manager].env[A].value".
type Field struct {
	Path string `json:"path" doc:"Where in the object."`
	How  How    `json:"how" form:"enum=differs|live|ours|order" doc:"differs: the values do; live: only the cluster has it; ours: only the tree has it; order: the same items in another order."`
}

// How says in what way a field differs.
type How string

// The ways in which a field differs.
const (
	Differs  How = "differs"
	OnlyLive How = "live"
	OnlyOurs How = "ours"
	Order    How = "order"
)

// compare returns in which fields two objects differ, by path.
func compare(live, ours kobj.Object) []Field {
	var out []Field
	walk(&out, "", map[string]any(live), map[string]any(ours))
	return out
}

func walk(out *[]Field, at string, live, ours any) {
	a, aIsMap := live.(map[string]any)
	b, bIsMap := ours.(map[string]any)
	if aIsMap && bIsMap {
		walkMaps(out, at, a, b)
		return
	}
	x, xIsList := live.([]any)
	y, yIsList := ours.([]any)
	switch {
	case xIsList && yIsList:
		walkLists(out, at, x, y)
	case !kobj.Equal(live, ours):
		*out = append(*out, Field{at, Differs})
	}
}

func walkMaps(out *[]Field, at string, live, ours map[string]any) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(live)), maps.Keys(ours))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		here := key
		if at != "" {
			here = at + "." + key
		}
		member(out, here, live, ours, key)
	}
}

// member compares what two mappings have of one key.
func member(out *[]Field, at string, live, ours map[string]any, key string) {
	a, there := live[key]
	b, wanted := ours[key]
	_, below := a.(map[string]any)
	_, above := b.(map[string]any)
	switch {
	case byKey(at) && (below || above):
		walk(out, at, mapping(a), mapping(b))
	case !wanted:
		*out = append(*out, Field{at, OnlyLive})
	case !there:
		*out = append(*out, Field{at, OnlyOurs})
	default:
		walk(out, at, a, b)
	}
}

// byKey reports whether what lies at a path is told key by key, though one side
// may have none.
func byKey(at string) bool {
	return strings.HasSuffix(at, "metadata.labels") || strings.HasSuffix(at, "metadata.annotations")
}

func mapping(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func walkLists(out *[]Field, at string, live, ours []any) {
	a, names := named(live)
	b, wanted := named(ours)
	switch {
	case plain(live) || plain(ours):
		if !kobj.Equal(live, ours) {
			*out = append(*out, Field{at, Differs})
		}
		return
	case a == nil || b == nil:
		walkItems(out, at, live, ours)
		return
	}
	for _, name := range union(names, wanted) {
		member(out, at+"["+name+"]", a, b, name)
	}
	common := func(list []string, other map[string]any) []string {
		return slices.DeleteFunc(slices.Clone(list), func(name string) bool { _, ok := other[name]; return !ok })
	}
	if !slices.Equal(common(names, b), common(wanted, a)) {
		*out = append(*out, Field{at, Order})
	}
}

// plain reports whether something in a list is no mapping.
func plain(list []any) bool {
	return slices.ContainsFunc(list, func(v any) bool { _, ok := v.(map[string]any); return !ok })
}

// walkItems compares lists item by item.
func walkItems(out *[]Field, at string, live, ours []any) {
	for i := range max(len(live), len(ours)) {
		here := at + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= len(ours):
			*out = append(*out, Field{here, OnlyLive})
		case i >= len(live):
			*out = append(*out, Field{here, OnlyOurs})
		default:
			walk(out, here, live[i], ours[i])
		}
	}
}

// named returns the items of a list by their names, and the names in order; nil
// where not every item has a name of its own.
func named(list []any) (map[string]any, []string) {
	out := map[string]any{}
	var names []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		name := kobj.Text(m, "name")
		if _, twice := out[name]; twice || name == "" {
			return nil, nil
		}
		out[name], names = item, append(names, name)
	}
	return out, names
}

// union returns the names of both lists, those of the first one first.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, name := range b {
		if !slices.Contains(a, name) {
			out = append(out, name)
		}
	}
	return out
}

// comparer compares live objects with rendered ones.
type comparer struct{ types *admit.Types }

// compared is in which fields a live object and a rendered one differ, or why that
// cannot be told.
type compared struct {
	fields []Field
	err    error
}

// compareAll returns for each live object what the tree makes of it, nothing where
// it does not have it. It runs on all processors.
func (x *inspector) compareAll(live []*snapshot.Object) []compared {
	out := make([]compared, len(live))
	var next atomic.Int64
	var work sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			c := comparer{admit.NewTypes()}
			for i := int(next.Add(1)) - 1; i < len(live); i = int(next.Add(1)) - 1 {
				if r, wanted := x.ours[live[i].Key]; wanted {
					out[i].fields, out[i].err = c.fields(live[i].Body(), r.Object)
				}
			}
		})
	}
	work.Wait()
	return out
}

// fields returns in which fields a live object differs from the rendered one,
// both as the API server stores them, without what it alone writes.
func (c comparer) fields(live, ours kobj.Object) ([]Field, error) {
	live, ours = alike(notRead(live), notRead(ours))
	a, err := c.types.Stored(live)
	if err != nil {
		return nil, err
	}
	b, err := c.types.Stored(ours)
	if err != nil {
		return nil, err
	}
	out := compare(cleared(a, b), cleared(b, b))
	return slices.DeleteFunc(out, func(f Field) bool {
		return ours.Is("", "Service") && f.How == OnlyLive && strings.HasSuffix(f.Path, ".nodePort")
	}), nil
}

// notRead are the contents of Secrets, of which a snapshot has none.
func notRead(o kobj.Object) kobj.Object {
	if o.Is("", "Secret") {
		o = kobj.Without(kobj.Without(o, "data"), "stringData")
	}
	return o
}

// alike returns both objects without the fields at their top that are the same, and
// the versions of a definition: to bring those into the form that is stored takes
// long, and no other field's form depends on them.
func alike(live, ours kobj.Object) (a, b kobj.Object) {
	a, b = live, ours
	if kobj.IsCRD(ours) {
		x, y := kobj.List(live, "spec", "versions"), kobj.List(ours, "spec", "versions")
		if slices.EqualFunc(x, y, kobj.Equal) {
			a, b = kobj.Without(a, "spec", "versions"), kobj.Without(b, "spec", "versions")
		}
	}
	for field, v := range ours {
		if slices.Contains([]string{"apiVersion", "kind", "metadata", "aggregationRule"}, field) {
			continue // what tells of which type the object is, and what is the controllers'
		}
		if w, there := live[field]; there && kobj.Equal(v, w) {
			a, b = kobj.Without(a, field), kobj.Without(b, field)
		}
	}
	return a, b
}

// cleared returns an object without what the API server writes into it, as far as
// ours does not say it.
func cleared(o, ours kobj.Object) kobj.Object {
	for _, field := range []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		o = kobj.Without(o, "metadata", field)
	}
	if kobj.At(ours, "aggregationRule") != nil {
		o = kobj.Without(o, "rules")
	}
	for _, at := range assigned(ours.Key()) {
		if kobj.At(ours, at...) == nil {
			o = kobj.Without(o, at...)
		}
	}
	return o
}

// assigned returns the fields of a kind that others than who writes an object
// fill in.
func assigned(key kobj.Key) [][]string {
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

// Differences returns in which fields a live object and what becomes of it differ,
// by path, without what the API server alone writes.
func Differences(live, after kobj.Object) []Field {
	return compare(cleared(live, after), cleared(after, after))
}

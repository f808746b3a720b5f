package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
)

func objectRules() []Rule {
	return []Rule{
		{"objects.changed", Info, "other fields changed", "no rule of its own speaks of these fields"},
		{"objects.reserved-name", High, "object under a name of the cluster's own", "the object takes the place of one that the cluster makes and relies on: whoever is bound to that role, or talks to that API, gets what the bundle says"},
		{"objects.exposed", Medium, "Service reachable from outside", "a load balancer, a node port or an external address leads into the cluster"},
	}
}

// compareObjects reports what no other rule speaks of, field by field, so that
// nothing that differs is passed over in silence.
func compareObjects(c *comparison) {
	other := append(append(rbacKinds(), webhookKinds()...), crdKind)
	other = slices.DeleteFunc(other, func(k string) bool { return k == "ServiceAccount" })
	for _, p := range c.changed {
		if p.after == nil {
			continue
		}
		c.reserved(p.after)
		if p.after.Ref().is(other...) {
			continue
		}
		c.exposed(p)
		if p.before == nil {
			continue
		}
		var d fieldDiff
		d.compare("", plain(p.before.Content), plain(p.after.Content))
		_, spec, _ := podTemplate(p.after.Content)
		d.drop(spec != nil, p.after.Ref().Kind == "Secret")
		if len(d.changes) == 0 {
			continue
		}
		c.add("objects.changed", p.after, Finding{
			Before: d.show(func(ch change) string { return ch.before }), After: d.show(func(ch change) string { return ch.after }),
			Message: fmt.Sprintf("%s: %s", plural(len(d.changes), "field changed", "fields changed"), some(d.fields(), 6)), steps: fieldSteps(d.changes[0].field),
		})
	}
}

// reserved reports an object under a name of the cluster's own. A Namespace that
// operators are installed in has its name from the user.
func (c *comparison) reserved(o *Object) {
	name := o.Ref().Name
	chosen := o.Ref().is("Namespace") && kobj.Text(o.Content, "metadata", "labels", kobj.LabelNamespace) == name
	if !chosen && kinds.Reserved(o.Content) {
		c.add("objects.reserved-name", o, Finding{
			Field: "metadata.name", After: name, Message: fmt.Sprintf("%s is a name of the cluster's own", name), steps: path("metadata", "name"),
		})
	}
}

func (c *comparison) exposed(p pair) {
	if !p.after.Ref().is("Service") {
		return
	}
	var was map[string]any
	if p.before != nil {
		was = p.before.Content
	}
	a, b := kobj.Text(was, "spec", "type"), kobj.Text(p.after.Content, "spec", "type")
	if b != a && (b == "LoadBalancer" || b == "NodePort") {
		c.add("objects.exposed", p.after, Finding{Field: "spec.type", Before: a, After: b, Message: "Service is of type " + b, steps: path("spec", "type")})
	}
	for _, ip := range kobj.Texts(p.after.Content, "spec", "externalIPs") {
		if !slices.Contains(kobj.Texts(was, "spec", "externalIPs"), ip) {
			c.add("objects.exposed", p.after, Finding{Field: "spec.externalIPs", After: ip, Message: "Service answers at " + ip, steps: path("spec", "externalIPs")})
		}
	}
}

// fieldDiff collects the topmost fields that differ.
type fieldDiff struct{ changes []change }

type change struct{ field, before, after string }

func (d *fieldDiff) compare(at string, a, b any) {
	if reflect.DeepEqual(a, b) || len(d.changes) >= maxChanges {
		return
	}
	x, ok1 := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	if ok1 && ok2 {
		for _, name := range union(x, y) {
			d.compare(strings.TrimPrefix(at+"."+name, "."), x[name], y[name])
		}
		return
	}
	l, ok1 := a.([]any)
	m, ok2 := b.([]any)
	if ok1 && ok2 && named(l) && named(m) {
		d.lists(at, l, m)
		return
	}
	d.changes = append(d.changes, change{at, show(a), show(b)})
}

const maxChanges = 1000

// named reports whether every element has a name of its own.
func named(list []any) bool {
	seen := map[string]bool{}
	for _, e := range list {
		name := kobj.Text(asMap(e), "name")
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// lists compares element by element, by name.
func (d *fieldDiff) lists(at string, l, m []any) {
	index := func(list []any) map[string]any {
		out := map[string]any{}
		for _, e := range list {
			out[kobj.Text(asMap(e), "name")] = e
		}
		return out
	}
	x, y := index(l), index(m)
	for _, name := range union(x, y) {
		d.compare(at+"["+name+"]", x[name], y[name])
	}
}

// drop removes fields that other rules speak of, and those that only repeat
// the version of the operator. What a Secret holds is never shown.
func (d *fieldDiff) drop(pods, secret bool) {
	told := []string{".image", ".env", ".args", ".command", ".resources", "spec.replicas", ".serviceAccountName", ".priorityClassName"}
	d.changes = slices.DeleteFunc(d.changes, func(ch change) bool {
		if strings.HasSuffix(ch.field, "app.kubernetes.io/version") || strings.HasSuffix(ch.field, "helm.sh/chart") || strings.HasPrefix(ch.field, "status") {
			return true
		}
		return pods && slices.ContainsFunc(told, func(t string) bool { return within(ch.field, t) })
	})
	for i := range d.changes {
		if secret && !strings.HasPrefix(d.changes[i].field, "metadata") {
			d.changes[i].before, d.changes[i].after = "", ""
		}
	}
}

// within reports whether field is the field told, or lies below it.
func within(field, told string) bool {
	i := strings.Index(field, told)
	if i < 0 {
		return false
	}
	rest := field[i+len(told):]
	return rest == "" || rest[0] == '.' || rest[0] == '['
}

func (d *fieldDiff) fields() []string {
	out := make([]string, len(d.changes))
	for i, ch := range d.changes {
		out[i] = ch.field
	}
	return out
}

// show joins one side of the first changes.
func (d *fieldDiff) show(side func(change) string) string {
	var out []string
	for i, ch := range d.changes {
		if i == 8 {
			out = append(out, strconv.Itoa(len(d.changes)-i)+" more")
			break
		}
		if s := side(ch); s != "" {
			out = append(out, ch.field+"="+inert.Cut(s, 120))
		}
	}
	return strings.Join(out, " ")
}

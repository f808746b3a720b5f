package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/k8s"
)

func objectRules() []Rule {
	return []Rule{
		{"objects.changed", Info, "other fields changed", "no specific rule covers these fields"},
		{"objects.reserved-name", High, "object replaces a built-in object of the cluster", "the object replaces one that the cluster itself creates and relies on: its users get the bundle's content"},
		{"objects.exposed", Medium, "Service reachable from outside", "a load balancer, node port or external address exposes it outside the cluster"},
	}
}

// compareObjects reports the changes that no other rule covers, field by field, so no
// change stays unreported.
func compareObjects(c *comparison) {
	other := append(append(rbacKinds(), webhookKinds()...), crdKind)
	other = slices.DeleteFunc(other, func(k string) bool { return k == "ServiceAccount" })
	for _, p := range c.changed {
		if p.after == nil {
			continue
		}
		c.reserved(p.after)
		if p.after.Key().Is(other...) {
			continue
		}
		c.exposed(p)
		if p.before == nil {
			continue
		}
		var d fieldDiff
		d.compare("", plainContent(p.before.Content), plainContent(p.after.Content))
		_, spec, _ := podTemplate(p.after.Content)
		d.drop(spec != nil, p.after.Key().Kind == "Secret")
		if len(d.changes) == 0 {
			continue
		}
		c.add("objects.changed", p.after, Finding{
			Before: d.show(func(ch change) string { return ch.before }), After: d.show(func(ch change) string { return ch.after }),
			Message: fmt.Sprintf("%s: %s", pluralize(len(d.changes), "field changed", "fields changed"), diag.Some(d.fields(), 6)), steps: fieldSteps(d.changes[0].field),
		})
	}
}

// reserved reports an object with a name that is reserved for the cluster. The exception
// is a Namespace of operators, which the user named.
func (c *comparison) reserved(o *Object) {
	name := o.Key().Name
	chosen := o.Key().Is("Namespace") && k8s.Text(o.Content, "metadata", "labels", k8s.LabelNamespace) == name
	if !chosen && k8s.Reserved(o.Content) {
		c.add("objects.reserved-name", o, Finding{
			Field: "metadata.name", After: name, Message: fmt.Sprintf("%s is a built-in object of the cluster", name), steps: stepPath("metadata", "name"),
		})
	}
}

func (c *comparison) exposed(p pair) {
	if !p.after.Key().Is("Service") {
		return
	}
	var was map[string]any
	if p.before != nil {
		was = p.before.Content
	}
	a, b := k8s.Text(was, "spec", "type"), k8s.Text(p.after.Content, "spec", "type")
	if b != a && (b == "LoadBalancer" || b == "NodePort") {
		c.add("objects.exposed", p.after, Finding{Field: "spec.type", Before: a, After: b, Message: "Service is of type " + b, steps: stepPath("spec", "type")})
	}
	for _, ip := range k8s.Texts(p.after.Content, "spec", "externalIPs") {
		if !slices.Contains(k8s.Texts(was, "spec", "externalIPs"), ip) {
			c.add("objects.exposed", p.after, Finding{Field: "spec.externalIPs", After: ip, Message: "Service is reachable at " + ip, steps: stepPath("spec", "externalIPs")})
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
	if ok1 && ok2 && isNamedList(l) && isNamedList(m) {
		d.lists(at, l, m)
		return
	}
	d.changes = append(d.changes, change{at, formatValue(a), formatValue(b)})
}

const maxChanges = 1000

// isNamedList reports whether every element has a unique name.
func isNamedList(list []any) bool {
	seen := map[string]bool{}
	for _, e := range list {
		name := k8s.Text(asMap(e), "name")
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// lists compares the elements of two lists by name.
func (d *fieldDiff) lists(at string, l, m []any) {
	index := func(list []any) map[string]any {
		out := map[string]any{}
		for _, e := range list {
			out[k8s.Text(asMap(e), "name")] = e
		}
		return out
	}
	x, y := index(l), index(m)
	for _, name := range union(x, y) {
		d.compare(at+"["+name+"]", x[name], y[name])
	}
}

// drop removes fields that other rules cover, fields that only repeat the version of the
// operator, and the status. It hides the content of a Secret.
func (d *fieldDiff) drop(pods, secret bool) {
	told := []string{".image", ".env", ".args", ".command", ".resources", "spec.replicas", ".serviceAccountName", ".priorityClassName"}
	d.changes = slices.DeleteFunc(d.changes, func(ch change) bool {
		if strings.HasSuffix(ch.field, "app.kubernetes.io/version") || strings.HasSuffix(ch.field, "helm.sh/chart") || strings.HasPrefix(ch.field, "status") {
			return true
		}
		return pods && slices.ContainsFunc(told, func(t string) bool { return isWithinField(ch.field, t) })
	})
	for i := range d.changes {
		if secret && !strings.HasPrefix(d.changes[i].field, "metadata") {
			d.changes[i].before, d.changes[i].after = "", ""
		}
	}
}

// isWithinField reports whether the path field contains the path told, followed by its end
// or by another segment.
func isWithinField(field, told string) bool {
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

// show formats one side of the first changes.
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

package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
)

func webhookRules() []Rule {
	return []Rule{
		{"webhook.added", Medium, "admission webhook added", "writes of these kinds now go through the operator first"},
		{"webhook.removed", Low, "admission webhook removed", "what it checked or filled in is no longer checked or filled in"},
		{"webhook.wide", High, "webhook that can stop the cluster", "with failurePolicy Fail and no selector, a webhook on core kinds stops every such write while the operator is down, the operator's own restart included"},
		{"webhook.failure-policy", High, "failure policy turned to Fail", "while the operator is down or slow, every write of these kinds is refused"},
		{"webhook.failure-policy-loosened", Medium, "failure policy turned to Ignore", "while the operator is down, what it would refuse or fill in passes"},
		{"webhook.rules-widened", Medium, "webhook sees more", "writes that did not depend on the operator now do"},
		{"webhook.rules-narrowed", Info, "webhook sees less", "some writes are no longer checked or filled in"},
		{"webhook.selector-lost", High, "webhook selector gone", "the webhook applies to objects or namespaces that were spared, system namespaces perhaps included"},
		{"webhook.selector-changed", Medium, "webhook selector changed", "the webhook applies to other objects or namespaces than before"},
		{"webhook.selector-added", Info, "webhook selector added", "the webhook spares objects or namespaces that it saw before"},
		{"webhook.conditions-lost", Medium, "match conditions removed or changed", "the webhook is called for requests that were spared"},
		{"webhook.timeout", Low, "webhook timeout changed", "writes may wait longer, or fail earlier, when the operator is slow"},
		{"webhook.side-effects", Low, "side effects or match policy changed", "dry runs and requests at other versions are treated differently"},
	}
}

func webhookKinds() []string {
	return []string{"ValidatingWebhookConfiguration.admissionregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io"}
}

func compareWebhooks(c *comparison) {
	c.each(func(p pair) {
		var old, now []map[string]any
		if p.before != nil {
			old = kobj.Items(p.before.Content, "webhooks")
		}
		if p.after != nil {
			now = kobj.Items(p.after.Content, "webhooks")
		}
		find := func(list []map[string]any, name string) map[string]any {
			i := slices.IndexFunc(list, func(m map[string]any) bool { return kobj.Text(m, "name") == name })
			if i < 0 {
				return nil
			}
			return list[i]
		}
		for _, h := range now {
			d := webhookDiff{c: c, p: p, name: kobj.Text(h, "name"), old: find(old, kobj.Text(h, "name")), now: h}
			if d.old == nil {
				d.added()
				continue
			}
			d.changed()
		}
		for _, h := range old {
			if find(now, kobj.Text(h, "name")) == nil {
				c.add("webhook.removed", p.object(), Finding{
					Field: kobj.Text(h, "name"), Before: show(seen(h)), Message: fmt.Sprintf("webhook %s is removed", kobj.Text(h, "name")), steps: path("webhooks"),
				})
			}
		}
	}, webhookKinds()...)
}

// webhookDiff is one webhook of a configuration.
type webhookDiff struct {
	c        *comparison
	p        pair
	name     string
	old, now map[string]any
}

func (d webhookDiff) add(rule string, f Finding, field string) {
	f.Field = strings.TrimSpace(d.name + " " + field)
	f.steps = []step{{key: "webhooks"}, {by: "name", key: d.name}}
	if field != "" {
		f.steps = append(f.steps, step{key: field})
	}
	d.c.add(rule, d.p.after, f)
}

func (d webhookDiff) added() {
	f := Finding{After: show(seen(d.now)), Message: fmt.Sprintf("webhook sees %s, failure policy %s", some(seen(d.now), 4), failurePolicy(d.now))}
	d.add("webhook.added", f, "")
	if danger := coreWrites(d.now); failurePolicy(d.now) == "Fail" && everything(d.now, "namespaceSelector") && everything(d.now, "objectSelector") && len(danger) > 0 {
		f.Message = fmt.Sprintf("while the operator is down, every request of these fails: %s", some(danger, 4))
		d.add("webhook.wide", f, "rules")
	}
}

func failurePolicy(h map[string]any) string { return cmp.Or(kobj.Text(h, "failurePolicy"), "Fail") }

// everything reports whether a selector is absent or empty.
func everything(h map[string]any, selector string) bool {
	s := kobj.Map(h, selector)
	return len(kobj.Map(s, "matchLabels")) == 0 && len(kobj.Items(s, "matchExpressions")) == 0
}

// watched is one combination that a rule of a webhook names.
type watched struct{ group, version, resource, operation, scope string }

func (w watched) String() string {
	return strings.ToLower(w.operation) + " " + groupKind(w.group, w.resource)
}

func (w watched) covers(o watched) bool {
	matches := func(have, want string) bool { return have == "*" || have == want }
	return matches(w.group, o.group) && matches(w.version, o.version) && matches(w.operation, o.operation) && matches(w.scope, o.scope) &&
		(matches(w.resource, o.resource) || w.resource == "*/*")
}

// watch multiplies the rules of a webhook out.
func watch(h map[string]any) []watched {
	var out []watched
	for _, r := range kobj.Items(h, "rules") {
		for _, g := range kobj.Texts(r, "apiGroups") {
			for _, v := range kobj.Texts(r, "apiVersions") {
				for _, res := range kobj.Texts(r, "resources") {
					for _, op := range kobj.Texts(r, "operations") {
						if out = append(out, watched{g, v, res, op, cmp.Or(kobj.Text(r, "scope"), "*")}); len(out) > maxWatched {
							return out
						}
					}
				}
			}
		}
	}
	return out
}

const maxWatched = 10_000

// seen says in words what a webhook sees.
func seen(h map[string]any) []string { return distinct(watch(h)) }

func distinct(list []watched) []string {
	var out []string
	for _, w := range list {
		if !slices.Contains(out, w.String()) {
			out = append(out, w.String())
		}
	}
	return out
}

// coreWrites returns what a webhook sees of the kinds that a cluster needs to live.
func coreWrites(h map[string]any) []string {
	vital := func(w watched) bool {
		switch w.group {
		case "*":
			return true
		case "", "apps", "batch", "coordination.k8s.io", "rbac.authorization.k8s.io":
			return true
		}
		return false
	}
	var out []watched
	for _, w := range watch(h) {
		if vital(w) {
			out = append(out, w)
		}
	}
	return distinct(out)
}

func (d webhookDiff) changed() {
	if a, b := failurePolicy(d.old), failurePolicy(d.now); a != b {
		rule := "webhook.failure-policy"
		if b == "Ignore" {
			rule = "webhook.failure-policy-loosened"
		}
		d.add(rule, Finding{Before: a, After: b, Message: fmt.Sprintf("failure policy is %s, was %s", b, a)}, "failurePolicy")
	}
	d.rules()
	for _, s := range []string{"namespaceSelector", "objectSelector"} {
		d.selector(s)
	}
	if a, b := d.old["matchConditions"], d.now["matchConditions"]; a != nil && !reflect.DeepEqual(a, b) {
		d.add("webhook.conditions-lost", Finding{Before: show(a), After: show(b), Message: "match conditions changed"}, "matchConditions")
	}
	d.implied("webhook.timeout", "timeoutSeconds", int64(10))
	d.implied("webhook.side-effects", "sideEffects", nil)
	d.implied("webhook.side-effects", "matchPolicy", "Equivalent")
	d.implied("webhook.side-effects", "reinvocationPolicy", "Never")
}

// implied compares a field that the API server fills in.
func (d webhookDiff) implied(rule, field string, instead any) {
	value := func(h map[string]any) any {
		if v, ok := h[field]; ok {
			return v
		}
		return instead
	}
	if a, b := value(d.old), value(d.now); !reflect.DeepEqual(a, b) {
		d.add(rule, Finding{Before: show(a), After: show(b), Message: fmt.Sprintf("%s is %s, was %s", field, show(b), show(a))}, field)
	}
}

func (d webhookDiff) rules() {
	uncovered := func(by, of []watched) []string {
		var out []watched
		for _, w := range of {
			if !slices.ContainsFunc(by, func(have watched) bool { return have.covers(w) }) {
				out = append(out, w)
			}
		}
		return distinct(out)
	}
	old, now := watch(d.old), watch(d.now)
	if more := uncovered(old, now); len(more) > 0 {
		d.add("webhook.rules-widened", Finding{Before: show(seen(d.old)), After: show(seen(d.now)), Message: "sees " + some(more, 5) + " too"}, "rules")
	}
	if less := uncovered(now, old); len(less) > 0 {
		d.add("webhook.rules-narrowed", Finding{Before: show(seen(d.old)), After: show(seen(d.now)), Message: "no longer sees " + some(less, 5)}, "rules")
	}
}

func (d webhookDiff) selector(name string) {
	a, b := d.old[name], d.now[name]
	was, is := everything(d.old, name), everything(d.now, name)
	f := Finding{Before: show(a), After: show(b)}
	switch {
	case was && is || reflect.DeepEqual(a, b):
	case is:
		f.Message = name + " is gone: the webhook sees everything"
		d.add("webhook.selector-lost", f, name)
	case was:
		f.Message = name + " limits what the webhook sees"
		d.add("webhook.selector-added", f, name)
	default:
		f.Message = name + " changed"
		d.add("webhook.selector-changed", f, name)
	}
}

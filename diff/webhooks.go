package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

func webhookRules() []RuleInfo {
	return []RuleInfo{
		{"webhook.added", High, "admission webhook added", "writes of these kinds now call the operator first, which can read, change or refuse them"},
		{"webhook.removed", High, "admission webhook removed", "objects are no longer validated or defaulted by the webhook"},
		{"webhook.wide", High, "webhook that can stop the cluster", "with failurePolicy Fail and no selector, a webhook on core kinds blocks every such write while the operator is down, including the operator's own restart"},
		{"webhook.failure-policy", High, "failure policy turned to Fail", "while the operator is down or slow, every write of these kinds is refused"},
		{"webhook.failure-policy-loosened", High, "failure policy turned to Ignore", "while the operator is down, objects pass without validation or defaults"},
		{"webhook.rules-widened", Medium, "webhook covers more requests", "more writes depend on the operator"},
		{"webhook.rules-narrowed", Info, "webhook covers fewer requests", "some writes are no longer validated or defaulted"},
		{"webhook.selector-lost", High, "webhook selector removed", "the webhook covers objects or namespaces that were excluded, perhaps including system namespaces"},
		{"webhook.selector-changed", Medium, "webhook selector changed", "the webhook covers different objects or namespaces"},
		{"webhook.selector-added", Info, "webhook selector added", "the webhook excludes objects or namespaces that it covered"},
		{"webhook.conditions-changed", High, "match conditions added, removed or changed", "the webhook is called for other requests: objects may pass without validation, or depend on the operator"},
		{"webhook.timeout", Low, "webhook timeout changed", "writes may wait longer, or fail earlier, when the operator is slow"},
		{"webhook.side-effects", Low, "side effects or match policy changed", "dry runs and requests at other versions are treated differently"},
	}
}

func webhookKinds() []string {
	return []string{"ValidatingWebhookConfiguration.admissionregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io"}
}

// compareWebhooks reports changes of admission webhooks.
func compareWebhooks(c *comparison) {
	c.each(func(p pair) {
		var old, now []map[string]any
		if p.before != nil {
			old = k8s.Items(p.before.Content, "webhooks")
		}
		if p.after != nil {
			now = k8s.Items(p.after.Content, "webhooks")
		}
		find := func(list []map[string]any, name string) map[string]any {
			i := slices.IndexFunc(list, func(m map[string]any) bool { return k8s.Text(m, "name") == name })
			if i < 0 {
				return nil
			}
			return list[i]
		}
		for _, h := range now {
			d := webhookDiff{c: c, p: p, name: k8s.Text(h, "name"), old: find(old, k8s.Text(h, "name")), now: h}
			if d.old == nil {
				d.reportAdded()
				continue
			}
			d.compare()
		}
		for _, h := range old {
			if find(now, k8s.Text(h, "name")) == nil {
				limit := High
				if p.after == nil && !c.after.hasOperator(p.before.Operator) {
					limit = Low
				}
				c.add("webhook.removed", p.object(), Finding{
					Field: k8s.Text(h, "name"), Before: formatValue(formatRequests(h)), Message: fmt.Sprintf("webhook %s removed", k8s.Text(h, "name")), path: fieldAt("webhooks"),
					explains: removedWebhook(p, k8s.Text(h, "name")),
				}, limit)
			}
		}
	}, webhookKinds()...)
}

// webhookDiff compares a webhook before and after. old is nil if the webhook is added.
type webhookDiff struct {
	c        *comparison
	p        pair
	name     string
	old, now map[string]any
}

func (d webhookDiff) add(rule string, f Finding, field string, capped ...Severity) {
	f.Field = strings.TrimSpace(d.name + " " + field)
	f.path = webhookAt(d.name)
	if field != "" {
		f.path = f.path.field(field)
	}
	d.c.add(rule, d.p.after, f, capped...)
}

// isOwn reports whether the webhook calls a Service of its own operator, and only for API groups of
// the operator's CRDs.
func (d webhookDiff) isOwn() bool {
	return d.c.isOwnService(d.p.after, k8s.Map(d.now, "clientConfig")) && !slices.ContainsFunc(requestPatterns(d.now), func(w requestPattern) bool {
		return !slices.ContainsFunc(d.c.after.order, func(crd *Object) bool {
			return crd.Key().Is(crdKind) && crd.Operator == d.p.after.Operator && k8s.ParseCRD(crd.Content).Group == w.group
		})
	})
}

// removedWebhook returns the field paths that a finding about a removed webhook covers.
func removedWebhook(p pair, name string) []fieldPath {
	if p.after == nil {
		return wholeObject()
	}
	return []fieldPath{webhookAt(name)}
}

// reportAdded reports an added webhook, and whether it can block all writes in the cluster.
func (d webhookDiff) reportAdded() {
	f := Finding{After: formatValue(formatRequests(d.now)), Message: fmt.Sprintf("webhook covers %s, failure policy %s", diag.Some(formatRequests(d.now), 4), failurePolicy(d.now))}
	if d.p.before == nil {
		f.explains = wholeObject()
	}
	limit := High
	if d.isOwn() {
		limit = Medium
	}
	d.add("webhook.added", f, "", limit)
	if danger := vitalRequests(d.now); failurePolicy(d.now) == "Fail" && matchesEverything(d.now, "namespaceSelector") && matchesEverything(d.now, "objectSelector") && len(danger) > 0 {
		f.Message = fmt.Sprintf("while the operator is down, all these requests fail: %s", diag.Some(danger, 4))
		d.add("webhook.wide", f, "rules")
	}
}

func failurePolicy(h map[string]any) string { return cmp.Or(k8s.Text(h, "failurePolicy"), "Fail") }

// matchesEverything reports whether a selector of webhook h is missing or empty.
func matchesEverything(h map[string]any, selector string) bool {
	s := k8s.Map(h, selector)
	return len(k8s.Map(s, "matchLabels")) == 0 && len(k8s.Items(s, "matchExpressions")) == 0
}

// requestPattern is one combination of values in a webhook rule. "*" matches any value.
type requestPattern struct{ group, version, resource, operation, scope string }

func (w requestPattern) String() string {
	return strings.ToLower(w.operation) + " " + k8s.Key{Group: w.group, Kind: w.resource}.GroupKind()
}

// covers reports whether w matches all requests that o matches.
func (w requestPattern) covers(o requestPattern) bool {
	matches := func(have, want string) bool { return have == "*" || have == want }
	return matches(w.group, o.group) && matches(w.version, o.version) && matches(w.operation, o.operation) && matches(w.scope, o.scope) &&
		(matches(w.resource, o.resource) || w.resource == "*/*")
}

// requestPatterns returns all combinations of values in the rules of a webhook, at most
// maxRequestPatterns.
func requestPatterns(h map[string]any) []requestPattern {
	var out []requestPattern
	for _, r := range k8s.Items(h, "rules") {
		for _, g := range k8s.Texts(r, "apiGroups") {
			for _, v := range k8s.Texts(r, "apiVersions") {
				for _, res := range k8s.Texts(r, "resources") {
					for _, op := range k8s.Texts(r, "operations") {
						if out = append(out, requestPattern{g, v, res, op, cmp.Or(k8s.Text(r, "scope"), "*")}); len(out) > maxRequestPatterns {
							return out
						}
					}
				}
			}
		}
	}
	return out
}

const maxRequestPatterns = 10_000

// formatRequests formats the requests that a webhook receives for display, without duplicates.
func formatRequests(h map[string]any) []string { return formatPatterns(requestPatterns(h)) }

// formatPatterns formats combinations for display, without duplicates.
func formatPatterns(list []requestPattern) []string {
	var out []string
	for _, w := range list {
		if !slices.Contains(out, w.String()) {
			out = append(out, w.String())
		}
	}
	return out
}

// vitalRequests formats the requests of a webhook for API groups that the cluster needs to run.
func vitalRequests(h map[string]any) []string {
	vital := func(w requestPattern) bool {
		switch w.group {
		case "*":
			return true
		case "", "apps", "batch", "coordination.k8s.io", "rbac.authorization.k8s.io":
			return true
		}
		return false
	}
	var out []requestPattern
	for _, w := range requestPatterns(h) {
		if vital(w) {
			out = append(out, w)
		}
	}
	return formatPatterns(out)
}

// compare compares a webhook that exists before and after.
func (d webhookDiff) compare() {
	if a, b := failurePolicy(d.old), failurePolicy(d.now); a != b {
		rule := "webhook.failure-policy"
		if b == "Ignore" {
			rule = "webhook.failure-policy-loosened"
		}
		d.add(rule, Finding{Before: a, After: b, Message: fmt.Sprintf("failure policy is %s, was %s", b, a)}, "failurePolicy")
	}
	d.compareRules()
	for _, s := range []string{"namespaceSelector", "objectSelector"} {
		d.compareSelector(s)
	}
	if a, b := d.old["matchConditions"], d.now["matchConditions"]; !reflect.DeepEqual(a, b) {
		d.add("webhook.conditions-changed", Finding{Before: formatValue(a), After: formatValue(b), Message: "match conditions changed"}, "matchConditions")
	}
	d.compareDefaulted("webhook.timeout", "timeoutSeconds", int64(10))
	d.compareDefaulted("webhook.side-effects", "sideEffects", nil)
	d.compareDefaulted("webhook.side-effects", "matchPolicy", "Equivalent")
	d.compareDefaulted("webhook.side-effects", "reinvocationPolicy", "Never")
}

// compareDefaulted compares a field. A missing field counts as defaultValue, the default of the API
// server.
func (d webhookDiff) compareDefaulted(rule, field string, defaultValue any) {
	value := func(h map[string]any) any {
		if v, ok := h[field]; ok {
			return v
		}
		return defaultValue
	}
	if a, b := value(d.old), value(d.now); !reflect.DeepEqual(a, b) {
		d.add(rule, Finding{Before: formatValue(a), After: formatValue(b), Message: fmt.Sprintf("%s is %s, was %s", field, formatValue(b), formatValue(a))}, field)
	}
}

// compareRules compares the requests that the webhook receives.
func (d webhookDiff) compareRules() {
	uncovered := func(by, of []requestPattern) []string {
		var out []requestPattern
		for _, w := range of {
			if !slices.ContainsFunc(by, func(have requestPattern) bool { return have.covers(w) }) {
				out = append(out, w)
			}
		}
		return formatPatterns(out)
	}
	format := func(list []requestPattern) string {
		var out []string
		for _, w := range list {
			text := w.String() + "/" + w.version
			if w.scope != "*" {
				text += " " + w.scope
			}
			out = append(out, text)
		}
		return formatValue(slices.Compact(slices.Sorted(slices.Values(out))))
	}
	old, now := requestPatterns(d.old), requestPatterns(d.now)
	if more := uncovered(old, now); len(more) > 0 {
		d.add("webhook.rules-widened", Finding{Before: format(old), After: format(now), Message: "also covers " + diag.Some(more, 5)}, "rules")
	}
	if less := uncovered(now, old); len(less) > 0 {
		d.add("webhook.rules-narrowed", Finding{Before: format(old), After: format(now), Message: "no longer covers " + diag.Some(less, 5)}, "rules")
	}
}

func (d webhookDiff) compareSelector(name string) {
	a, b := d.old[name], d.now[name]
	was, is := matchesEverything(d.old, name), matchesEverything(d.now, name)
	f := Finding{Before: formatValue(a), After: formatValue(b)}
	switch {
	case was && is || reflect.DeepEqual(a, b):
	case is:
		f.Message = name + " removed: the webhook covers everything"
		d.add("webhook.selector-lost", f, name)
	case was:
		f.Message = name + " restricts the webhook's scope"
		d.add("webhook.selector-added", f, name)
	default:
		f.Message = name + " changed"
		d.add("webhook.selector-changed", f, name)
	}
}

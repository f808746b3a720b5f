package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/boxset"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

func webhookRules() []RuleInfo {
	return []RuleInfo{
		{"webhook.added", High, "admission webhook added", "the API server now sends writes of these kinds to the operator, which can read, change or refuse the writes"},
		{"webhook.removed", High, "admission webhook removed", "objects are no longer validated or defaulted by the webhook"},
		{"webhook.wide", High, "webhook that can stop the cluster", "with failurePolicy Fail and no selector, a webhook on core kinds blocks every such write while the operator is down, including the operator's own restart"},
		{"webhook.failure-policy", High, "failure policy turned to Fail", "while the operator is down or slow, every write of these kinds is refused"},
		{"webhook.failure-policy-loosened", High, "failure policy turned to Ignore", "while the operator is down, objects pass without validation or defaults"},
		{"webhook.rules-widened", High, "webhook covers more requests", "writes of these kinds now call the operator, which can read, change or refuse them"},
		{"webhook.rules-narrowed", High, "webhook covers fewer requests", "some writes are no longer validated or defaulted"},
		{"webhook.selector-lost", High, "webhook selector removed", "the webhook covers objects or namespaces that were excluded, perhaps including system namespaces"},
		{"webhook.selector-changed", High, "webhook selector changed", "the webhook covers different objects or namespaces"},
		{"webhook.selector-added", Medium, "webhook selector restricted", "the webhook excludes objects or namespaces that it covered"},
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
					Field: k8s.Text(h, "name"), Before: formatValue(formatRequests(requestBoxes(h))), Message: fmt.Sprintf("webhook %s removed", k8s.Text(h, "name")), path: fieldAt("webhooks"),
					explains: removedWebhook(p, k8s.Text(h, "name")),
				}, limit)
			}
		}
	}, webhookKinds()...)
}

// webhookDiff compares a webhook before and after the change. old is nil if the webhook is added.
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

// limit returns the highest severity for findings about requests that the webhook receives. It is medium if the
// webhook calls a Service of its own operator and ownsRequests accepts the API groups of all requests.
// Otherwise it is high.
func (d webhookDiff) limit(requests []boxset.Box) Severity {
	if !d.c.isOwnService(d.p.after, k8s.Map(d.now, "clientConfig")) {
		return High
	}
	for _, box := range requests {
		groups, except := box.In("group").List()
		if except || slices.ContainsFunc(groups, func(group string) bool { return !d.c.ownsRequests(d.p.after.Operator, group) }) {
			return High
		}
	}
	return Medium
}

// ownsRequests reports whether the new state has CRDs in an API group, and all of them belong to the operator.
// It returns false if a kind of the group is in the table of powers.
func (c *comparison) ownsRequests(operator, group string) bool {
	own := false
	for kind := range c.after.crds {
		if kind.Group == group {
			p, _ := c.powerOf(kind)
			if p.rule != "" || !c.ownsGroup(operator, group, kind.Kind) {
				return false
			}
			own = true
		}
	}
	return own
}

// removedWebhook returns the field paths that a finding about a removed webhook covers.
func removedWebhook(p pair, name string) []fieldPath {
	if p.after == nil {
		return wholeObject()
	}
	return []fieldPath{webhookAt(name)}
}

// reportAdded reports an added webhook, and calls checkWide for it.
func (d webhookDiff) reportAdded() {
	requests := requestBoxes(d.now)
	f := Finding{After: formatValue(formatRequests(requests)), Message: fmt.Sprintf("webhook covers %s, failure policy %s", diag.Some(formatRequests(requests), 4), failurePolicy(d.now))}
	if d.p.before == nil {
		f.explains = wholeObject()
	}
	d.add("webhook.added", f, "", d.limit(requests))
	d.checkWide(requests)
}

// checkWide adds a finding if the webhook blocks vital requests (see vitalRequests) while its operator is down.
func (d webhookDiff) checkWide(requests []boxset.Box) {
	if danger := vitalRequests(requests); failurePolicy(d.now) == "Fail" && matchesEverything(d.now, "namespaceSelector") && matchesEverything(d.now, "objectSelector") && len(danger) > 0 {
		shown := formatRequests(danger)
		d.add("webhook.wide", Finding{After: formatValue(shown), Message: "while the operator is down, all these requests fail: " + diag.Some(shown, 4)}, "rules")
	}
}

func failurePolicy(h map[string]any) string { return cmp.Or(k8s.Text(h, "failurePolicy"), "Fail") }

// matchesEverything reports whether a selector of webhook h is missing or empty.
func matchesEverything(h map[string]any, selector string) bool {
	s := k8s.Map(h, selector)
	return len(k8s.Map(s, "matchLabels")) == 0 && len(k8s.Items(s, "matchExpressions")) == 0
}

// compare compares a webhook that exists before and after the change.
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

// compareRules compares the requests that the webhook receives. Newly covered requests are rated like the
// requests of an added webhook.
func (d webhookDiff) compareRules() {
	old, now := requestBoxes(d.old), requestBoxes(d.now)
	more, err1 := boxset.Minus(now, old)
	less, err2 := boxset.Minus(old, now)
	before, after := formatRules(d.old), formatRules(d.now)
	if err := cmp.Or(err1, err2); err != nil {
		d.add("webhook.rules-widened", Finding{Before: before, After: after, Message: "rules changed: " + err.Error()}, "rules")
		return
	}
	if len(more) > 0 {
		d.add("webhook.rules-widened", Finding{Before: before, After: after, Message: "also covers " + diag.Some(formatRequests(more), 5)}, "rules", d.limit(more))
		d.checkWide(more)
	}
	if len(less) > 0 {
		limit := Medium
		if len(now) == 0 {
			limit = High // like a removed webhook
		}
		d.add("webhook.rules-narrowed", Finding{Before: before, After: after, Message: "no longer covers " + diag.Some(formatRequests(less), 5)}, "rules", limit)
	}
}

// formatRules formats the rules of a webhook for display.
func formatRules(h map[string]any) string {
	var out []string
	for _, r := range k8s.Items(h, "rules") {
		versions := strings.Join(k8s.Texts(r, "apiVersions"), ",")
		for _, text := range formatRequests(requestBoxes(map[string]any{"rules": []any{r}})) {
			text += "/" + versions
			if scope := cmp.Or(k8s.Text(r, "scope"), "*"); scope != "*" {
				text += " " + scope
			}
			if out = append(out, text); len(out) > maxShownRequests {
				return formatValue(out)
			}
		}
	}
	return formatValue(slices.Compact(slices.Sorted(slices.Values(out))))
}

// compareSelector compares the labels that a selector matches.
func (d webhookDiff) compareSelector(name string) {
	a, b := d.old[name], d.now[name]
	old, now := []boxset.Box{labelBox("", k8s.Map(d.old, name))}, []boxset.Box{labelBox("", k8s.Map(d.now, name))}
	more, err1 := boxset.Minus(now, old)
	less, err2 := boxset.Minus(old, now)
	f := Finding{Before: formatValue(a), After: formatValue(b)}
	limit := d.limit(requestBoxes(d.now))
	switch err := cmp.Or(err1, err2); {
	case err != nil:
		f.Message = name + " changed: " + err.Error()
		d.add("webhook.selector-changed", f, name)
	case len(more) == 0 && len(less) == 0:
	case matchesEverything(d.now, name):
		f.Message = name + " removed: the webhook covers everything"
		d.add("webhook.selector-lost", f, name)
	case len(more) == 0:
		f.Message = name + " restricts the webhook's scope"
		d.add("webhook.selector-added", f, name)
	default:
		f.Message = name + " changed: the webhook covers other objects"
		d.add("webhook.selector-changed", f, name, limit)
	}
}

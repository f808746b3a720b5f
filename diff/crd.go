package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
)

const crdKind = "CustomResourceDefinition.apiextensions.k8s.io"

// crdDiff compares one definition that stands on both sides.
type crdDiff struct {
	c        *comparison
	old, now *Object
}

func compareCRDs(c *comparison) {
	c.each(func(p pair) {
		if !p.both() {
			return
		}
		d := crdDiff{c, p.before, p.after}
		d.names()
		d.versions()
		d.conversion()
		if kobj.True(d.old.Content, "spec", "preserveUnknownFields") && !kobj.True(d.now.Content, "spec", "preserveUnknownFields") {
			d.add("crd.preserve-changed", Finding{
				Field: "spec.preserveUnknownFields", Before: "true", After: "false",
				Message: "unknown fields are no longer kept", steps: path("spec", "preserveUnknownFields"),
			})
		}
	}, crdKind)
}

func (d crdDiff) add(rule string, f Finding, capped ...Severity) { d.c.add(rule, d.now, f, capped...) }

// names compares what the resource is called; group and plural are its identity.
func (d crdDiff) names() {
	one := func(rule string, where ...string) {
		a, b := kobj.At(d.old.Content, where...), kobj.At(d.now.Content, where...)
		if !reflect.DeepEqual(a, b) {
			d.add(rule, Finding{
				Field: strings.Join(where, "."), Before: show(a), After: show(b),
				Message: fmt.Sprintf("%s changed from %s to %s", where[len(where)-1], quoted(a), quoted(b)), steps: path(where...),
			})
		}
	}
	one("crd.scope-changed", "spec", "scope")
	one("crd.kind-changed", "spec", "names", "kind")
	// What the API server fills in where the manifest is silent is no change.
	kind := kobj.Text(d.now.Content, "spec", "names", "kind")
	for name, implied := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
		a, b := kobj.Text(d.old.Content, "spec", "names", name), kobj.Text(d.now.Content, "spec", "names", name)
		if cmp.Or(a, implied) != cmp.Or(b, implied) {
			one("crd.names-changed", "spec", "names", name)
		}
	}
	for _, name := range []string{"shortNames", "categories"} {
		a, b := kobj.Texts(d.old.Content, "spec", "names", name), kobj.Texts(d.now.Content, "spec", "names", name)
		if slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) }) {
			one("crd.names-changed", "spec", "names", name)
		}
	}
}

// quoted returns v in words for a message.
func quoted(v any) string {
	if v == nil {
		return "nothing"
	}
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", inert.Cut(s, 80))
	}
	return inert.Cut(show(v), 80)
}

// conversion compares how versions become each other.
func (d crdDiff) conversion() {
	a, b := strategy(d.old.Content), strategy(d.now.Content)
	if a == b {
		d.converter()
		return
	}
	f := Finding{
		Field: "spec.conversion.strategy", Before: a, After: b, steps: path("spec", "conversion"),
		Message: fmt.Sprintf("conversion strategy changed from %s to %s", a, b),
	}
	if b == "Webhook" {
		d.add("crd.conversion-changed", f, Low)
		return
	}
	f.Message += ": fields that only one version knows are dropped on the way to the other"
	d.add("crd.conversion-changed", f)
}

// converter compares where conversion requests go. The bundle of certificates
// is filled in by a controller and says nothing.
func (d crdDiff) converter() {
	where := func(crd map[string]any) string {
		config := kobj.Map(crd, "spec", "conversion", "webhook", "clientConfig")
		return cmp.Or(kobj.Text(config, "url"), show(kobj.At(config, "service")))
	}
	if a, b := where(d.old.Content), where(d.now.Content); a != b {
		d.add("crd.conversion-changed", Finding{
			Field: "spec.conversion.webhook", Before: a, After: b, steps: path("spec", "conversion", "webhook"),
			Message: "conversion requests go elsewhere",
		}, Low)
	}
}

func strategy(crd map[string]any) string {
	return cmp.Or(kobj.Text(crd, "spec", "conversion", "strategy"), "None")
}

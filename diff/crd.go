package diff

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
)

const crdKind = "CustomResourceDefinition.apiextensions.k8s.io"

// crdDiff compares a CRD before and after the change.
type crdDiff struct {
	c        *comparison
	old, now *Object
}

// compareCRDs reports changes of CRDs that exist before and after the change.
func compareCRDs(c *comparison) {
	c.each(func(p pair) {
		if !p.onBothSides() {
			return
		}
		d := crdDiff{c, p.before, p.after}
		d.compareNames()
		d.compareVersions()
		d.compareConversion()
		if k8s.True(d.old.Content, "spec", "preserveUnknownFields") && !k8s.True(d.now.Content, "spec", "preserveUnknownFields") {
			d.add("crd.preserve-changed", Finding{
				Field: "spec.preserveUnknownFields", Before: "true", After: "false",
				Message: "unknown fields are pruned", path: fieldAt("spec", "preserveUnknownFields"),
			})
		}
	}, crdKind)
}

func (d crdDiff) add(rule string, f Finding, capped ...Severity) { d.c.add(rule, d.now, f, capped...) }

// compareNames compares spec.scope and spec.names. Group and plural cannot differ, because they
// identify the CRD.
func (d crdDiff) compareNames() {
	compareField := func(rule string, where ...string) {
		a, b := k8s.At(d.old.Content, where...), k8s.At(d.now.Content, where...)
		if !equalValues(a, b) {
			d.add(rule, Finding{
				Field: strings.Join(where, "."), Before: formatValue(a), After: formatValue(b),
				Message: fmt.Sprintf("%s changed from %s to %s", where[len(where)-1], quoteValue(a), quoteValue(b)), path: fieldAt(where...),
			})
		}
	}
	compareField("crd.scope-changed", "spec", "scope")
	compareField("crd.kind-changed", "spec", "names", "kind")
	// Adding or removing a name that has its default value is no change.
	kind := k8s.Text(d.now.Content, "spec", "names", "kind")
	for name, implied := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
		a, b := k8s.Text(d.old.Content, "spec", "names", name), k8s.Text(d.now.Content, "spec", "names", name)
		if cmp.Or(a, implied) != cmp.Or(b, implied) {
			compareField("crd.names-changed", "spec", "names", name)
		}
	}
	for _, name := range []string{"shortNames", "categories"} {
		a, b := k8s.Texts(d.old.Content, "spec", "names", name), k8s.Texts(d.now.Content, "spec", "names", name)
		if slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) }) {
			compareField("crd.names-changed", "spec", "names", name)
		}
	}
}

// quoteValue formats the first 80 bytes of v for a message.
func quoteValue(v any) string {
	if v == nil {
		return "nothing"
	}
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", sanitize.Truncate(s, 80))
	}
	return sanitize.Truncate(formatValue(v), 80)
}

func (d crdDiff) compareConversion() {
	a, b := conversionStrategy(d.old.Content), conversionStrategy(d.now.Content)
	if a == b {
		return // compareObjects compares the other fields
	}
	f := Finding{
		Field: "spec.conversion.strategy", Before: a, After: b, path: fieldAt("spec", "conversion"), explains: []fieldPath{fieldAt("spec", "conversion", "strategy")},
		Message: fmt.Sprintf("conversion strategy changed from %s to %s", a, b),
	}
	if b == "Webhook" {
		d.add("crd.conversion-changed", f, Low)
		return
	}
	f.Message += ": fields that only one version has are dropped during conversion"
	d.add("crd.conversion-changed", f)
}

func conversionStrategy(crd map[string]any) string {
	return cmp.Or(k8s.Text(crd, "spec", "conversion", "strategy"), "None")
}

// parseHead parses the fields before spec.versions, in a file with a single CRD in quayside's format. It
// returns false for any other file. This saves time: about nine tenths of a tree are CRDs, and most of them are
// the same before and after the change.
func parseHead(f File, pins []lockfile.Pin) (o Object, ok bool) {
	beginning, _, found := bytes.Cut(f.Data, []byte("\n  versions:\n"))
	if !found || !bytes.Contains(beginning, []byte("kind: CustomResourceDefinition\n")) ||
		bytes.Contains(f.Data, []byte("\n---")) || bytes.Contains(f.Data, []byte("\n...")) {
		return Object{}, false
	}
	got, err := parseObjects(File{Path: f.Path, Data: beginning}, pins)
	if err != nil || len(got) != 1 {
		return Object{}, false
	}
	o = got[0]
	o.Raw, o.headOnly = f.Data, true
	serves := o.definedKind()
	return o, o.Key().Is(crdKind) && serves.Group != "" && serves.Kind != ""
}

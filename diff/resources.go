package diff

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/sanitize"
)

func resourceRules() []RuleInfo {
	return []RuleInfo{
		{"resources.rejected", High, "custom resource in the repository is refused", "the next sync or apply of this file fails"},
		{"resources.already-rejected", Low, "custom resource in the repository is still refused", "it could not be applied before the upgrade either"},
		{"resources.version-not-served", High, "custom resource in the repository uses an unserved version", "the next sync or apply of this file fails until its apiVersion is changed"},
		{"resources.field-dropped", High, "field of a custom resource in the repository is pruned", "the API server silently prunes fields that are not in the schema: the setting loses its effect"},
		{"resources.field-defaulted", Low, "custom resource in the repository gets another default", "the meaning of the object changes without an edit"},
		{"resources.schema-invalid", High, "schema refused by the API server", "the CRD cannot be applied"},
	}
}

// compareResources simulates writing each custom resource to the API server, with the CRDs before and after the
// change, and reports different results. A resource is skipped if neither it nor its CRD changed.
func compareResources(c *comparison) {
	kinds := crdCache{byCRD: map[*Object]parsedCRD{}, budget: admit.NewBudget()}
	old := map[k8s.Key]*Object{}
	for i := range c.before.Resources {
		o := &c.before.Resources[i]
		old[o.Key()] = o
	}
	for _, o := range customResources(c.after) {
		key := o.Key()
		kind := k8s.Key{Group: key.Group, Kind: key.Kind}
		crd := c.after.crds[kind]
		if crd == nil {
			continue // rule data.crd-removed reports the removed CRD
		}
		was := c.before.crds[kind]
		sameKind := was != nil && isSameObject(c.before, c.after, was, crd)
		previous := old[key]
		if previous == nil {
			previous = c.before.byKey[key]
		}
		if sameKind && previous != nil && isSameObject(c.before, c.after, previous, o) {
			continue
		}
		d := resourceDiff{c: c, previous: previous, resource: o, crd: crd}
		d.now, d.err = kinds.parse(crd)
		if was != nil {
			d.old, _ = kinds.parse(was)
		}
		d.compare()
	}
}

// customResources returns the custom resources in the state, of operators and of the user. It omits custom
// resources whose CRD is not in the state.
func customResources(v *view) []*Object {
	var out []*Object
	for i := range v.Resources {
		out = append(out, &v.Resources[i])
	}
	out = append(out, v.order...)
	return slices.DeleteFunc(out, func(o *Object) bool {
		ref := o.Key()
		return ref.Kind == "" || v.crds[k8s.Key{Group: ref.Group, Kind: ref.Kind}] == nil
	})
}

// crdCache caches parsed CRDs.
type crdCache struct {
	byCRD  map[*Object]parsedCRD
	budget *admit.Budget
}

// parsedCRD is a parsed CRD, or the error of parsing it.
type parsedCRD struct {
	kind *admit.Kind
	err  error
}

func (k crdCache) parse(crd *Object) (*admit.Kind, error) {
	if got, ok := k.byCRD[crd]; ok {
		return got.kind, got.err
	}
	kind, err := admit.Open(crd.Whole(), k.budget)
	k.byCRD[crd] = parsedCRD{kind, err}
	return kind, err
}

// resourceDiff compares one custom resource before and after the change.
type resourceDiff struct {
	c                  *comparison
	previous, resource *Object // previous is nil if the resource is added
	crd                *Object
	old, now           *admit.Kind // the CRD before and after; old is nil if the CRD is added or was invalid
	err                error
}

func (d resourceDiff) add(rule string, f Finding) {
	f.Operator = cmp.Or(d.resource.Operator, d.crd.Operator)
	f.path, f.explains = parseFieldPath(f.Field), noField()
	d.c.add(rule, d.resource, f)
}

// compare simulates writing the resource before and after the change, and reports different results.
func (d resourceDiff) compare() {
	if d.err != nil {
		d.c.add("resources.schema-invalid", d.crd, Finding{Message: d.err.Error(), path: fieldAt("spec", "versions"), explains: noField()})
		return
	}
	version := d.resource.version()
	var before admit.WriteResult
	hadBefore := false
	if d.old != nil && d.previous != nil {
		got, err := d.old.Write(d.previous.version(), d.previous.Content)
		before, hadBefore = got, err == nil
	}
	after, err := d.now.Write(version, d.resource.Content)
	if errors.Is(err, admit.ErrNotServed) {
		if hadBefore || d.old == nil || d.previous == nil {
			d.add("resources.version-not-served", Finding{
				Field: "apiVersion", Before: version, After: diag.Some(k8s.ParseCRD(d.crd.Whole()).Served(), 8),
				Message: fmt.Sprintf("version %s is not served; served: %s", version, diag.Some(k8s.ParseCRD(d.crd.Whole()).Served(), 8)),
			})
		}
		return
	}
	if err != nil {
		d.c.note("%s in %s was not checked: %v", d.resource.Ref(), d.resource.Path, err)
		return
	}
	if d.now.Converts(version) {
		d.c.note("%s in %s was checked as %s only: its conversion webhook was not called", d.resource.Ref(), d.resource.Path, version)
	}
	if before.Unchecked || after.Unchecked {
		d.c.note("%s in %s was not checked against the x-kubernetes-validations of its CRD: evaluating all rules takes too long", d.resource.Ref(), d.resource.Path)
	}
	d.compareRejected(before, after)
	d.compareDropped(before, after)
	if hadBefore {
		d.compareDefaulted(before, after)
	}
}

// compareRejected reports the errors for which the API server rejects the resource.
func (d resourceDiff) compareRejected(before, after admit.WriteResult) {
	for _, f := range after.Rejected {
		rule := "resources.rejected"
		if slices.Contains(before.Rejected, f) {
			rule = "resources.already-rejected"
		}
		d.add(rule, Finding{Field: f.Field, Before: formatValue(valueAt(d.resource.Content, f.Field)), Message: sanitize.TruncateLine(f.Message, 300)})
	}
}

// compareDropped reports the fields that the API server prunes only after the change.
func (d resourceDiff) compareDropped(before, after admit.WriteResult) {
	for _, name := range after.Dropped {
		if !slices.Contains(before.Dropped, name) {
			d.add("resources.field-dropped", Finding{
				Field: name, Before: formatValue(valueAt(d.resource.Content, name)), Message: fmt.Sprintf("%s is not in the schema and is pruned", name),
			})
		}
	}
}

// compareDefaulted reports changed defaults of fields that the resource does not set.
func (d resourceDiff) compareDefaulted(before, after admit.WriteResult) {
	had := map[string]admit.Value{}
	for _, v := range before.Defaulted {
		had[v.Field] = v
	}
	for _, v := range after.Defaulted {
		was, ok := had[v.Field]
		delete(had, v.Field)
		if ok && formatValue(was.Value) == formatValue(v.Value) {
			continue
		}
		f := Finding{Field: v.Field, After: formatValue(v.Value), Message: fmt.Sprintf("%s defaults to %s", v.Field, quoteValue(v.Value))}
		if ok {
			f.Before = formatValue(was.Value)
			f.Message += ", was " + quoteValue(was.Value)
		}
		d.add("resources.field-defaulted", f)
	}
	for _, name := range sortedKeys(had) {
		d.add("resources.field-defaulted", Finding{
			Field: name, Before: formatValue(had[name].Value), Message: fmt.Sprintf("%s no longer defaults to %s", name, quoteValue(had[name].Value)),
		})
	}
}

// parseFieldPath parses a field path in an error of the API server, such as "spec.a[0].b" or
// "spec.labels[app]".
func parseFieldPath(field string) fieldPath {
	var out fieldPath
	for field != "" {
		i := strings.IndexAny(field, ".[")
		switch {
		case i < 0:
			return append(out, step{key: field})
		case field[i] == '.':
			if i > 0 {
				out = append(out, step{key: field[:i]})
			}
			field = field[i+1:]
		default:
			if i > 0 {
				out = append(out, step{key: field[:i]})
			}
			end := strings.IndexByte(field[i:], ']')
			if end < 0 {
				return out
			}
			index := field[i+1 : i+end]
			if strings.Trim(index, "0123456789") == "" {
				out = append(out, step{key: index, by: "#"})
			} else {
				out = append(out, step{key: strings.Trim(index, `"`)})
			}
			field = field[i+end+1:]
		}
	}
	return out
}

// valueAt returns the value at a field path in the notation of the API server (see parseFieldPath),
// or nil if it is missing.
func valueAt(content map[string]any, field string) any {
	var v any = content
	for _, s := range parseFieldPath(field) {
		switch x := v.(type) {
		case map[string]any:
			v = x[s.key]
		case []any:
			i := 0
			if _, err := fmt.Sscanf(s.key, "%d", &i); err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

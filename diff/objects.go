package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/k8s"
)

func objectRules() []Rule {
	return []Rule{
		{"objects.added", Critical, "object added", "no specific rule covers the object; its kind decides the severity"},
		{"objects.changed", Critical, "other fields changed", "no specific rule covers these fields; the kind and the field decide the severity"},
		{"objects.removed", High, "object removed", "no specific rule covers the removal; the kind decides the severity"},
		{"objects.reserved-name", High, "object replaces a built-in object of the cluster", "the object replaces one that the cluster itself creates and relies on: its users get the bundle's content"},
		{"objects.exposed", Medium, "Service reachable from outside", "a load balancer, node port or external address exposes it outside the cluster"},
	}
}

// compareObjects reports the changes that no other rule covers, so that no change stays
// unreported. It runs after all other checks.
func compareObjects(c *comparison) {
	r := residue{c: c, at: map[string]int{}}
	for _, p := range c.changed {
		if p.after != nil {
			c.reserved(p.after)
			c.exposed(p)
		}
		switch {
		case p.before == nil && !c.covered(p.after, nil):
			severity, why := c.whenAdded(p.after)
			r.object("objects.added", p.after, severity, strings.TrimSuffix(p.after.Key().Kind+" added: "+why, ": "))
		case p.after == nil && !c.covered(p.before, nil):
			r.object("objects.removed", p.before, c.whenRemoved(p.before), p.before.Key().Kind+" removed")
		case p.both():
			r.fields(p, c.unexplained(p))
		}
	}
	for _, f := range r.found {
		if len(f.spots) > 1 {
			f.Message += atPlaces(len(f.spots))
		} else {
			f.spots = nil
		}
		c.add(f.Rule, f.where, f, f.Severity)
	}
}

// residue collects the changes that no other rule covers. The same change of several objects
// of a kind is one finding.
type residue struct {
	c     *comparison
	found []Finding
	at    map[string]int
}

func (r *residue) add(o *Object, f Finding, key ...any) {
	k := fmt.Sprintf("%q", append(key, o.Operator, o.Key().GroupKind(), f.Rule, f.Severity, f.Message, f.Before, f.After))
	f.where = o
	s := spot{Object: o.Ref(), Field: f.Field, Place: Place{Path: o.Path, Removed: r.c.gone(o)}, where: o, steps: f.steps}
	i, known := r.at[k]
	if !known {
		i = len(r.found)
		r.at[k] = i
		r.found = append(r.found, f)
	}
	r.found[i].spots = append(r.found[i].spots, s)
}

func (r *residue) object(rule string, o *Object, severity Severity, message string) {
	r.add(o, Finding{Rule: rule, Severity: severity, Message: message, covers: wholeObject()})
}

// fields adds one finding for each change of medium severity or worse, and one for all others
// of the object.
func (r *residue) fields(p pair, changes []change) {
	var mild []change
	secret := p.after.Key().Is("Secret")
	for _, ch := range changes {
		severity := High
		if len(ch.path) > 0 {
			severity = r.c.whenChanged(p, ch)
		}
		if severity < Medium {
			mild = append(mild, ch)
			continue
		}
		field := formatPath(ch.path)
		f := Finding{Rule: "objects.changed", Severity: severity, Field: field, Message: formatKeys(ch.path) + " changed", steps: ch.path}
		f.Before, f.After = ch.show(secret)
		r.add(p.after, f, formatKeys(ch.path))
	}
	if len(changes) >= maxChanges {
		r.add(p.after, Finding{Rule: "objects.changed", Severity: High, Message: fmt.Sprintf("more than %d fields changed: not all are listed", maxChanges)})
	}
	if len(mild) == 0 {
		return
	}
	f := Finding{Rule: "objects.changed", Severity: Info, steps: mild[0].path}
	for _, ch := range mild {
		f.Severity = max(f.Severity, r.c.whenChanged(p, ch))
	}
	f.Before, f.After = showChanges(mild, secret)
	f.Message = fmt.Sprintf("%s: %s", pluralize(len(mild), "field changed", "fields changed"), diag.Some(fieldNames(mild), 6))
	r.add(p.after, f)
}

// formatKeys formats a field like formatPath, but with [] for every element of a list.
func formatKeys(path []step) string {
	plain := slices.Clone(path)
	for i := range plain {
		if plain[i].by != "" && plain[i].by != "*" {
			plain[i].key = ""
		}
	}
	return formatPath(plain)
}

func fieldNames(changes []change) []string {
	var out []string
	for _, ch := range changes {
		out = append(out, formatPath(ch.path))
	}
	return out
}

// show formats both values; those of a Secret only below metadata.
func (ch change) show(secret bool) (before, after string) {
	if secret && ch.path[0].key != "metadata" {
		return "", ""
	}
	return formatBoth(ch.before, ch.after)
}

// showChanges formats both sides of the first changes.
func showChanges(changes []change, secret bool) (before, after string) {
	var was, is []string
	for i, ch := range changes {
		if i == 8 {
			was, is = append(was, strconv.Itoa(len(changes)-i)+" more"), append(is, strconv.Itoa(len(changes)-i)+" more")
			break
		}
		a, b := ch.show(secret)
		if a != "" {
			was = append(was, formatPath(ch.path)+"="+inert.Cut(a, 120))
		}
		if b != "" {
			is = append(is, formatPath(ch.path)+"="+inert.Cut(b, 120))
		}
	}
	return strings.Join(was, " "), strings.Join(is, " ")
}

// reserved reports an object with a name that is reserved for the cluster. The exception
// is a Namespace of operators, which the user named.
func (c *comparison) reserved(o *Object) {
	name := o.Key().Name
	chosen := o.Key().Is("Namespace") && k8s.Text(o.Content, "metadata", "labels", k8s.LabelNamespace) == name
	if !chosen && k8s.IsReserved(o.Content) {
		c.add("objects.reserved-name", o, Finding{
			Field: "metadata.name", After: name, Message: fmt.Sprintf("%s is a built-in object of the cluster", name), steps: stepPath("metadata", "name"), covers: nothing(),
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
			c.add("objects.exposed", p.after, Finding{Field: "spec.externalIPs", After: ip, Message: "Service is reachable at " + ip, steps: stepPath("spec", "externalIPs"), covers: nothing()})
		}
	}
}

package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
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

// compareObjects reports all changes that no other rule reports. It must run after all other
// checks.
func compareObjects(c *comparison) {
	r := otherChanges{c: c, at: map[string]int{}}
	for _, p := range c.changed {
		if p.after != nil {
			c.checkReservedName(p.after)
			c.checkExposure(p)
		}
		switch {
		case p.before == nil && !c.isCovered(p.after, nil):
			severity, why := c.addedSeverity(p.after)
			r.addObject("objects.added", p.after, severity, strings.TrimSuffix(p.after.Key().Kind+" added: "+why, ": "))
		case p.after == nil && !c.isCovered(p.before, nil):
			r.addObject("objects.removed", p.before, c.removedSeverity(p.before), p.before.Key().Kind+" removed")
		case p.onBothSides():
			r.addFields(p, c.unexplainedChanges(p))
		}
	}
	for _, f := range r.found {
		if len(f.locations) > 1 {
			f.Message += formatLocationCount(len(f.locations))
		} else {
			f.locations = nil
		}
		c.add(f.Rule, f.where, f, f.Severity)
	}
}

// otherChanges collects the changes that no other rule reports. Equal changes of several objects of
// a kind become one finding.
type otherChanges struct {
	c     *comparison
	found []Finding
	at    map[string]int
}

// add adds a finding about o, or a location if a finding with the same key exists.
func (r *otherChanges) add(o *Object, f Finding, key ...any) {
	k := fmt.Sprintf("%q", append(key, o.Operator, o.Key().GroupKind(), f.Rule, f.Severity, f.Message, f.Before, f.After))
	f.where = o
	s := location{Object: o.Ref(), Field: f.Field, Place: Region{Path: o.Path, Removed: r.c.isBefore(o)}, where: o, steps: f.steps}
	i, known := r.at[k]
	if !known {
		i = len(r.found)
		r.at[k] = i
		r.found = append(r.found, f)
	}
	r.found[i].locations = append(r.found[i].locations, s)
}

// addObject adds a finding about an added or removed object.
func (r *otherChanges) addObject(rule string, o *Object, severity Severity, message string) {
	r.add(o, Finding{Rule: rule, Severity: severity, Message: message, covers: allFields()})
}

// addFields adds a finding for each change of at least medium severity, and one finding for all
// other changes of the object.
func (r *otherChanges) addFields(p pair, changes []change) {
	var minor []change
	secret := p.after.Key().Is("Secret")
	for _, ch := range changes {
		severity := High
		if len(ch.path) > 0 {
			severity = r.c.changedSeverity(p, ch)
		}
		if severity < Medium {
			minor = append(minor, ch)
			continue
		}
		field := formatPath(ch.path)
		f := Finding{Rule: "objects.changed", Severity: severity, Field: field, Message: formatKeys(ch.path) + " changed", steps: ch.path}
		f.Before, f.After = ch.format(secret)
		r.add(p.after, f, formatKeys(ch.path))
	}
	if len(changes) >= maxChanges {
		r.add(p.after, Finding{Rule: "objects.changed", Severity: High, Message: fmt.Sprintf("more than %d fields changed: not all are listed", maxChanges)})
	}
	if len(minor) == 0 {
		return
	}
	f := Finding{Rule: "objects.changed", Severity: Info, steps: minor[0].path}
	for _, ch := range minor {
		f.Severity = max(f.Severity, r.c.changedSeverity(p, ch))
	}
	f.Before, f.After = formatChanges(minor, secret)
	f.Message = fmt.Sprintf("%s: %s", pluralize(len(minor), "field changed", "fields changed"), diag.Some(fieldNames(minor), 6))
	r.add(p.after, f)
}

// formatKeys formats a path like formatPath, but without the keys of list elements.
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

// format formats both values. It returns "" for the content of a Secret outside of metadata.
func (ch change) format(secret bool) (before, after string) {
	if secret && ch.path[0].key != "metadata" {
		return "", ""
	}
	return formatBoth(ch.before, ch.after)
}

// formatChanges formats the values of up to eight changes.
func formatChanges(changes []change, secret bool) (before, after string) {
	var was, is []string
	for i, ch := range changes {
		if i == 8 {
			was, is = append(was, strconv.Itoa(len(changes)-i)+" more"), append(is, strconv.Itoa(len(changes)-i)+" more")
			break
		}
		a, b := ch.format(secret)
		if a != "" {
			was = append(was, formatPath(ch.path)+"="+sanitize.Truncate(a, 120))
		}
		if b != "" {
			is = append(is, formatPath(ch.path)+"="+sanitize.Truncate(b, 120))
		}
	}
	return strings.Join(was, " "), strings.Join(is, " ")
}

// checkReservedName reports an object with a name that is reserved for the cluster. It allows the
// install namespaces of operators, because the user declared them.
func (c *comparison) checkReservedName(o *Object) {
	name := o.Key().Name
	isInstallNamespace := o.Key().Is("Namespace") && k8s.Text(o.Content, "metadata", "labels", k8s.LabelNamespace) == name
	if !isInstallNamespace && k8s.IsReserved(o.Content) {
		c.add("objects.reserved-name", o, Finding{
			Field: "metadata.name", After: name, Message: fmt.Sprintf("%s is a built-in object of the cluster", name), steps: stepPath("metadata", "name"), covers: noFields(),
		})
	}
}

// checkExposure reports a Service that becomes reachable from outside of the cluster.
func (c *comparison) checkExposure(p pair) {
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
			c.add("objects.exposed", p.after, Finding{Field: "spec.externalIPs", After: ip, Message: "Service is reachable at " + ip, steps: stepPath("spec", "externalIPs"), covers: noFields()})
		}
	}
}

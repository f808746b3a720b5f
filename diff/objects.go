package diff

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

func objectRules() []RuleInfo {
	return []RuleInfo{
		{"objects.added", Critical, "object added", "no specific rule covers the object; its kind decides the severity"},
		{"objects.changed", Critical, "other fields changed", "no specific rule covers these fields; the kind and the field decide the severity"},
		{"objects.removed", High, "object removed", "no specific rule covers the removal; the kind decides the severity"},
		{"objects.reserved-name", High, "object replaces a built-in object of the cluster", "the cluster itself creates an object with this name and relies on it: with this change, it gets the content from the bundle"},
		{"objects.exposed", High, "Service reachable from outside", "a load balancer, node port or external address exposes it outside the cluster; an external address also takes the traffic of pods to that address"},
		{"objects.foreign-name", High, "object with the name of another operator", "what the other operator runs may use the object as its own"},
		{"objects.foreign-reference", Medium, "object of another operator referred to", "the object scales, exposes, configures or reads objects of the other operator"},
		{"objects.foreign-namespace", High, "object in a namespace of others", "such objects may configure, replace or impersonate the workloads of the namespace"},
	}
}

// compareObjects reports all changes that no other rule has reported. It must run after all other
// checks.
func compareObjects(c *comparison) {
	r := otherChanges{c: c, at: map[string]int{}}
	for _, p := range c.changed {
		if p.after != nil {
			c.checkReservedName(p.after)
			c.checkExposure(p)
			r.checkNamespace(p)
			r.checkName(p)
			r.checkReferences(p)
			r.checkContent(p)
		}
		switch {
		case p.before == nil:
			r.addAdded(p)
		case p.after == nil && !c.claimed.cover(p.before, nil):
			r.addObject("objects.removed", p.before, c.removedSeverity(p.before), p.before.Key().Kind+" removed")
		case p.onBothSides():
			r.addFields(p, c.unexplainedChanges(p))
		}
	}
	r.report()
}

// otherChanges collects findings. The same change of several objects of a kind becomes one finding.
type otherChanges struct {
	c         *comparison
	found     []Finding
	locations [][]Finding // locations of each finding
	at        map[string]int
}

// add adds a finding about o. If there is already a finding with the same key, it adds f as another
// location.
func (r *otherChanges) add(o *Object, f Finding, key ...any) {
	k := fmt.Sprintf("%q", append(key, o.Operator, o.Key().GroupKind(), f.Rule, f.Severity, f.Message, f.Before, f.After))
	f.where = o
	s := Finding{Object: o.Ref(), Field: f.Field, After: f.After, Place: Region{Path: o.Path, Removed: r.c.isBefore(o)}, where: o, path: f.path}
	i, known := r.at[k]
	if !known {
		i = len(r.found)
		r.at[k] = i
		r.found, r.locations = append(r.found, f), append(r.locations, nil)
	}
	r.locations[i] = append(r.locations[i], s)
}

// report adds the collected findings to the comparison.
func (r *otherChanges) report() {
	for i, f := range r.found {
		if n := len(r.locations[i]); n > 1 {
			f.Message += formatLocationCount(n)
			f.detail = repeats{locations: r.locations[i]}
		}
		r.c.add(f.Rule, f.where, f, f.Severity)
	}
}

// addObject adds a finding about an added or removed object.
func (r *otherChanges) addObject(rule string, o *Object, severity Severity, message string) {
	r.add(o, Finding{Rule: rule, Severity: severity, Message: message, explains: wholeObject()})
}

// addAdded reports an added object. Its fields are rated like added fields of an existing object, even if
// there is a finding about the whole object.
func (r *otherChanges) addAdded(p pair) {
	severity := r.c.addedSeverity(p.after)
	if !p.after.Follows {
		secret := p.after.Key().Is("Secret")
		for _, ch := range r.c.addedFields(p.after) {
			if s := r.c.changedSeverity(p, ch); s >= Medium && s > severity {
				f := Finding{Rule: "objects.added", Severity: s, Field: ch.path.String(), Message: fmt.Sprintf("%s added with %s", p.after.Key().Kind, ch.path.pattern()), path: ch.path}
				_, f.After = ch.format(secret)
				r.add(p.after, f, ch.path.pattern())
			}
		}
	}
	if content, _ := r.c.contentSeverity(p.after); content == Off && !r.c.claimed.cover(p.after, nil) {
		r.addObject("objects.added", p.after, severity, p.after.Key().Kind+" added")
	}
}

// checkNamespace reports an object that an operator adds to a namespace of others, or changes in a
// system namespace.
func (r *otherChanges) checkNamespace(p pair) {
	o := p.after
	namespace := o.Key().Namespace
	sameContent := p.before != nil && reflect.DeepEqual(k8s.Without(o.Content, "metadata"), k8s.Without(p.before.Content, "metadata"))
	if namespace == "" || p.before != nil && (sameContent || !r.c.isSystemNamespace(namespace)) || o.Follows || r.c.ownsNamespace(o.Operator, namespace) {
		return
	}
	f := Finding{Rule: "objects.foreign-namespace", Severity: High, Field: "metadata.namespace", After: namespace, path: fieldAt("metadata", "namespace"), explains: noField()}
	f.Message = fmt.Sprintf("namespace %s belongs neither to this operator nor to its declarations", namespace)
	if o.Operator == "" {
		f.Message = fmt.Sprintf("namespace %s belongs to no operator and no declaration", namespace)
	}
	r.add(o, f, p.before == nil)
}

// checkName reports an object that an operator adds with a name that belongs to another operator.
func (r *otherChanges) checkName(p pair) {
	o := p.after
	key := o.Key()
	if p.before != nil || o.Operator == "" || key.Namespace == "" || o.Follows || key.Group == k8s.RBACGroup {
		return
	}
	owner := referencesOf(r.c, key)
	if owner == "" || r.c.isOperator(owner, o.Operator) {
		if owner = r.c.prefixOwner(o.Operator, key.Namespace, key.Name); owner == "" || r.c.isOperator(owner, o.Operator) {
			return
		}
	}
	r.add(o, Finding{Rule: "objects.foreign-name", Severity: High, Field: "metadata.name", After: key.Name, Message: "the name belongs to " + owner, path: fieldAt("metadata", "name"), explains: noField()})
}

// checkReferences reports new references from an object to accounts of other operators, and to other objects
// of these operators by kind and name. Other rules report references in pods and bindings.
func (r *otherChanges) checkReferences(p pair) {
	o := p.after
	if o.Operator == "" || o.Follows || o.Key().Group == k8s.RBACGroup || o.Key().Is(crdKind) {
		return
	}
	was, is := map[k8s.Key][]string{}, foreignReferences(r.c, o)
	if p.before != nil {
		was = foreignReferences(r.c, p.before)
	}
	for _, key := range slices.SortedFunc(maps.Keys(is), k8s.Key.Compare) {
		if was[key] != nil {
			continue
		}
		f := Finding{Rule: "objects.foreign-reference", Severity: Medium, After: key.String(), Message: fmt.Sprintf("refers to %s of another operator", key), path: fieldPathOf(o.Content, is[key]), explains: noField()}
		if key.Is("ServiceAccount") {
			f.Rule, f.Severity, f.Message = "pods.account-changed", High, "uses ServiceAccount "+key.Name+" of "+strings.Join(r.c.accountOwners(o.Operator, key.Namespace, key.Name), " and ")
		}
		f.Field = f.path.String()
		r.add(o, f)
	}
}

// checkContent reports an object whose content newly gives somebody power.
func (r *otherChanges) checkContent(p pair) {
	severity, why := r.c.contentSeverity(p.after)
	if severity == Off || p.after.Follows {
		return
	}
	rule, verb, explains := "objects.added", "added", wholeObject()
	if p.before != nil {
		if was, text := r.c.contentSeverity(p.before); was >= severity && text == why {
			return
		}
		rule, verb, explains = "objects.changed", "changed", noField()
	}
	r.add(p.after, Finding{Rule: rule, Severity: severity, Message: fmt.Sprintf("%s %s: %s", p.after.Key().Kind, verb, why), explains: explains})
}

// addFields adds one finding for each change of medium or higher severity, and one finding for all
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
		field := ch.path.String()
		f := Finding{Rule: "objects.changed", Severity: severity, Field: field, Message: ch.path.pattern() + " changed", path: ch.path}
		f.Before, f.After = ch.format(secret)
		r.add(p.after, f, ch.path.pattern())
	}
	if len(changes) >= maxChanges {
		r.add(p.after, Finding{Rule: "objects.changed", Severity: High, Message: fmt.Sprintf("more than %d fields changed: not all are listed", maxChanges)})
	}
	if len(minor) == 0 {
		return
	}
	f := Finding{Rule: "objects.changed", Severity: Info, path: minor[0].path}
	for _, ch := range minor {
		f.Severity = max(f.Severity, r.c.changedSeverity(p, ch))
	}
	f.Before, f.After = formatChanges(minor, secret)
	f.Message = fmt.Sprintf("%s: %s", pluralize(len(minor), "field changed", "fields changed"), strings.Join(fieldNames(minor), ", "))
	r.add(p.after, f)
}

func fieldNames(changes []change) []string {
	var out []string
	for _, ch := range changes {
		out = append(out, ch.path.String())
	}
	return out
}

// format returns the values before and after the change for display. secret means that the object is a Secret.
// For fields of a Secret outside of metadata, it returns "".
func (ch change) format(secret bool) (before, after string) {
	if secret && ch.path.key(0) != "metadata" {
		return "", ""
	}
	return formatValue(ch.before), formatValue(ch.after)
}

// formatChanges formats changes as one text with the old values and one text with the new values.
func formatChanges(changes []change, secret bool) (before, after string) {
	var was, is []string
	for _, ch := range changes {
		a, b := ch.format(secret)
		if a != "" {
			was = append(was, ch.path.String()+"="+a)
		}
		if b != "" {
			is = append(is, ch.path.String()+"="+b)
		}
	}
	return strings.Join(was, " "), strings.Join(is, " ")
}

// checkReservedName reports an object that has the name of a built-in object of the cluster. The
// install namespaces of operators are allowed, because the user declared them.
func (c *comparison) checkReservedName(o *Object) {
	name := o.Key().Name
	isInstallNamespace := o.Key().Is("Namespace") && k8s.Text(o.Content, "metadata", "labels", k8s.LabelNamespace) == name
	if !isInstallNamespace && k8s.IsReserved(o.Content) {
		c.add("objects.reserved-name", o, Finding{
			Field: "metadata.name", After: name, Message: fmt.Sprintf("%s is a built-in object of the cluster", name), path: fieldAt("metadata", "name"), explains: noField(),
		})
	}
}

// checkExposure reports a Service that becomes reachable from outside the cluster.
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
		c.add("objects.exposed", p.after, Finding{Field: "spec.type", Before: a, After: b, Message: "Service is of type " + b, path: fieldAt("spec", "type")}, Medium)
	}
	if ip := k8s.Text(p.after.Content, "spec", "clusterIP"); p.before == nil && ip != "" && ip != "None" {
		c.add("objects.exposed", p.after, Finding{Field: "spec.clusterIP", After: ip, Message: "Service takes the address " + ip, path: fieldAt("spec", "clusterIP"), explains: noField()}, Medium)
	}
	for _, ip := range k8s.Texts(p.after.Content, "spec", "externalIPs") {
		if !slices.Contains(k8s.Texts(was, "spec", "externalIPs"), ip) {
			c.add("objects.exposed", p.after, Finding{Field: "spec.externalIPs", After: ip, Message: "Service is reachable at " + ip, path: fieldAt("spec", "externalIPs"), explains: noField()})
		}
	}
}

package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// MetadataObeyed is the rule about annotations and labels that control other programs.
const MetadataObeyed = "metadata.obeyed"

func metadataRules() []RuleInfo {
	return []RuleInfo{
		{MetadataObeyed, Critical, "annotation or label on which another program acts", "its author controls the program, which may run code, grant permissions, or delete the object"},
	}
}

// instanceLabel is the label by which Argo CD may track the objects of an Application.
const instanceLabel = "app.kubernetes.io/instance"

// compareMetadata reports added, changed and removed annotations and labels that control a program in
// metadataTable. It searches added and changed objects at any depth. It also reports owner references.
func compareMetadata(c *comparison) {
	r := otherChanges{c: c, at: map[string]int{}}
	for _, p := range c.changed {
		if p.after == nil {
			continue
		}
		c.compareOwners(&r, p)
		before := map[string]metadataMap{}
		if p.before != nil {
			before = metadataMaps(p.before)
		}
		after := metadataMaps(p.after)
		for _, at := range unionKeys(before, after) {
			was, is := before[at].entries, after[at].entries
			for _, key := range unionKeys(was, is) {
				a, b := formatValue(was[key]), formatValue(is[key])
				_, had := was[key]
				_, has := is[key]
				if had == has && a == b {
					continue
				}
				m := after[at]
				if m.path == nil {
					m = before[at]
				}
				e := metadataEntry{c, p, m.path.field(key), a, b, has}
				if reader, severity := e.reader(); severity > Info && (severity > Low || !p.after.Follows) {
					f := Finding{Rule: MetadataObeyed, Severity: severity, Field: e.path.String(), Before: a, After: b, path: e.path, Message: e.message(reader)}
					r.add(p.after, f, e.path.pattern())
				}
			}
		}
	}
	r.report()
}

// compareOwners reports owner references that are added or changed.
func (c *comparison) compareOwners(r *otherChanges, p pair) {
	at := fieldAt("metadata", "ownerReferences")
	var was any
	if p.before != nil {
		was = k8s.At(p.before.Content, "metadata", "ownerReferences")
	}
	is := k8s.At(p.after.Content, "metadata", "ownerReferences")
	if list, _ := is.([]any); len(list) == 0 || reflect.DeepEqual(was, is) {
		return
	}
	severity := High
	if (metadataEntry{objects: p, path: at}).holdsData() {
		severity = Critical
	}
	f := Finding{Rule: MetadataObeyed, Severity: severity, Field: at.String(), path: at, Message: "the garbage collector deletes the object if the owner does not exist"}
	f.Before, f.After = formatValue(was), formatValue(is)
	r.add(p.after, f)
}

// metadataMap is a map of annotations or labels in an object.
type metadataMap struct {
	path    fieldPath
	entries map[string]any
}

// metadataMaps returns the maps of annotations and labels in an object. The keys are their paths. The result
// includes the metadata of the object itself and of its templates. It also includes fields such as
// commonAnnotations, which apply to other objects.
func metadataMaps(o *Object) map[string]metadataMap {
	out := map[string]metadataMap{}
	var walk func(at fieldPath, v any)
	walk = func(at fieldPath, v any) {
		switch x := v.(type) {
		case map[string]any:
			for name, e := range x {
				below := at.field(name)
				if m := asMap(e); m != nil && isMetadataField(name) {
					out[below.String()] = metadataMap{below, m}
					continue
				}
				walk(below, e)
			}
		case []any:
			by := elementKey(x, nil)
			for i, e := range x {
				s := step{key: strconv.Itoa(i), by: "#"}
				if by != "" {
					s = step{key: k8s.Text(asMap(e), by), by: by}
				}
				walk(at.with(s), e)
			}
		}
	}
	if o.Key().Is(crdKind) { // the fields of a schema are no metadata
		walk(fieldAt("metadata"), o.Content["metadata"])
	} else {
		walk(nil, o.Content)
	}
	return out
}

// isMetadataField reports whether a field contains annotations or labels. Selectors are not metadata.
func isMetadataField(name string) bool {
	name = strings.ToLower(name)
	return name != "matchlabels" && (strings.HasSuffix(name, "annotations") || strings.HasSuffix(name, "labels"))
}

// metadataEntry is an annotation or label that is added, changed or removed.
type metadataEntry struct {
	c             *comparison
	objects       pair
	path          fieldPath
	before, after string
	isSet         bool // it exists after
}

func (e metadataEntry) key() string { return e.path.last() }

// isOfObject reports whether the entry is in the metadata of the object itself.
func (e metadataEntry) isOfObject() bool { return len(e.path) == 3 && e.path.key(0) == "metadata" }

// message returns the message of the finding about the entry.
func (e metadataEntry) message(reader metadataReader) string {
	what := "annotation"
	if strings.HasSuffix(strings.ToLower(e.path.key(len(e.path)-2)), "labels") {
		what = "label"
	}
	return fmt.Sprintf("%s %s is read by %s: %s", what, e.key(), reader.program, reader.effect)
}

// reader returns the program that the entry controls, and the severity. The severity is Off if the entry
// controls no program or has no effect. An entry has no effect if quayside itself writes its value at this
// place, or if its key belongs to an API group of the operator.
func (e metadataEntry) reader() (metadataReader, Severity) {
	reader, domain, ok := readerOf(e.key())
	if !ok || e.isWritten() || !reader.engine && (e.isOfOwnDomain(domain) || e.isOwnCertificate()) {
		return reader, Off
	}
	if reader.engine && e.holdsData() {
		return reader, Critical
	}
	return reader, reader.severity
}

// readerOf returns the row of metadataTable for a key, and the matching domain in this row. The domain is
// empty if a pattern of the row matches instead. ok is false if there is no row.
func readerOf(key string) (reader metadataReader, domain string, ok bool) {
	key = strings.ToLower(key)
	of, _, _ := strings.Cut(key, "/")
	for _, r := range metadataTable() {
		if i := slices.IndexFunc(strings.Fields(r.domains), func(d string) bool { return isInDomain(of, d) }); i >= 0 {
			return r, strings.Fields(r.domains)[i], true
		}
		if slices.ContainsFunc(strings.Fields(r.keys), func(pattern string) bool { return matchesGlob(pattern, key) }) {
			return r, "", true
		}
	}
	return metadataReader{}, "", false
}

// isInDomain reports whether name is a domain or one of its subdomains.
func isInDomain(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}

// matchesGlob reports whether s matches a pattern in which each "*" stands for any text.
func matchesGlob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for i, part := range parts[1:] {
		if i == len(parts)-2 {
			return strings.HasSuffix(s, part)
		}
		at := strings.Index(s, part)
		if at < 0 {
			return false
		}
		s = s[at+len(part):]
	}
	return s == ""
}

// holdsData reports whether deleting the object loses data. In a template of volume claims, it returns true
// for any entry, because the claims hold data.
func (e metadataEntry) holdsData() bool {
	return e.objects.after.Key().Is("PersistentVolumeClaim", "PersistentVolume", "Namespace", crdKind) || e.path.contains("volumeClaimTemplates")
}

// isWritten reports whether quayside itself writes the value at this place.
func (e metadataEntry) isWritten() bool {
	o := e.objects.after
	if e.key() == instanceLabel { // a new object has no data to lose
		return e.objects.before == nil || !e.isOfObject()
	}
	if !e.isOfObject() {
		return false
	}
	if e.key() == k8s.LabelVersion {
		return e.c.after.writesVersion(o, e.after) && (e.before == "" || e.c.before.writesVersion(o, e.before))
	}
	if e.path.key(1) == "labels" && (e.key() == k8s.LabelPackage || e.key() == k8s.LabelNamespace) {
		shared := o.Key().Is("Namespace", crdKind) // its set of operators may change between one and several
		return e.isSet && (shared || e.objects.before == nil)
	}
	if !e.isSet { // the object is no longer recreated
		old := e.objects.before
		return old != nil && e.c.before.recreates(old) && !e.c.after.recreates(o) &&
			profile.Writes(old.Content, e.key(), e.before, false, true) && !profile.Writes(old.Content, e.key(), e.before, false, false)
	}
	_, leaves := e.c.after.leaving(o.Operator)
	return profile.Writes(o.Content, e.key(), e.after, leaves, e.c.after.recreates(o))
}

// isOfOwnDomain reports whether, before the change, the object's operator owned a kind whose API group is in a domain.
func (e metadataEntry) isOfOwnDomain(domain string) bool {
	operator := e.objects.after.Operator
	for kind, owner := range e.c.before.owners {
		if owner == operator && operator != "" && domain != "" && isInDomain(kind.Group, domain) {
			return true
		}
	}
	return false
}

// isOwnCertificate reports whether the entry injects the CA of a Certificate or Secret of the object's
// operator.
func (e metadataEntry) isOwnCertificate() bool {
	from := map[string]k8s.Key{
		"cert-manager.io/inject-ca-from":        {Group: "cert-manager.io", Kind: "Certificate"},
		"cert-manager.io/inject-ca-from-secret": {Kind: "Secret"},
	}[e.key()]
	from.Namespace, from.Name, _ = strings.Cut(e.after, "/")
	issuer, operator := e.c.after.byKey[from], e.objects.after.Operator
	return from.Kind != "" && issuer != nil && issuer.Operator == operator && operator != ""
}

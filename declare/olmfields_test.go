package declare_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/testing/goldentest"
)

// treatment is the effect of a field in one of OLM's kinds.
type treatment string

const (
	isRead    treatment = "used"      // another value changes the declaration
	isChecked treatment = "validated" // invalid values are rejected; valid ones do not change the declaration
	isPassed  treatment = "ignored"   // all values of the type are accepted and do not change the declaration
	isRefused treatment = "rejected"  // setting it causes an error that names it
)

// olmField is a table row about a field of a CRD, and about all fields below this field that have no row of
// their own.
type olmField struct {
	kind, path string // such as "spec.source" or "spec.selector.matchExpressions[].key"
	is         treatment
	why        string   // explanation for users
	values     []string // two valid values; if empty, they are generated
	wrong      string   // invalid value of a validated field; if empty, it is generated
}

const (
	fieldsOfStatus    = "reported by the cluster"
	fieldsOfPod       = "quayside runs no catalog pod"
	fieldsOfConsole   = "shown in consoles only"
	kindSubscription  = "Subscription"
	kindGroup         = "OperatorGroup"
	kindSource        = "CatalogSource"
	kindExtension     = "ClusterExtension"
	kindClusterSource = "ClusterCatalog"
)

// olmFields returns the treatment of every field of OLM's declarations. The first row with a
// matching prefix applies, so longer prefixes come first.
func olmFields() []olmField {
	return []olmField{
		{kind: kindSubscription, path: "spec.name", is: isRead, why: "the package", values: []string{"p", "q"}},
		{kind: kindSubscription, path: "spec.channel", is: isRead, why: "the channel"},
		{kind: kindSubscription, path: "spec.source", is: isRead, why: "the catalog", values: []string{"hub", "other"}},
		{kind: kindSubscription, path: "spec.sourceNamespace", is: isRead, why: "the catalog's namespace"},
		{kind: kindSubscription, path: "spec.startingCSV", is: isRead, why: "the first version, by its bundle's name"},
		{kind: kindSubscription, path: "spec.installPlanApproval", is: isRead, why: "`Manual`: upgraded only if the command names the operator", values: []string{"Automatic", "Manual"}},
		{kind: kindSubscription, path: "spec.config", is: isRead, why: "rendered into the operator's Deployments; `selector` has no effect, as in OLM"},
		{kind: kindSubscription, path: "status.installedCSV", is: isRead, why: "the installed version, if the lock does not pin the operator"},
		{kind: kindSubscription, path: "status", is: isPassed, why: fieldsOfStatus},

		{kind: kindGroup, path: "spec.targetNamespaces", is: isRead, why: "the namespaces that the operators watch"},
		{kind: kindGroup, path: "spec.selector", is: isRead, why: "the same, by the labels of declared Namespaces"},
		{kind: kindGroup, path: "spec.serviceAccountName", is: isRead, why: "a warning: the permissions are those of the account that applies the tree"},
		{kind: kindGroup, path: "spec.upgradeStrategy", is: isRead, why: "part of the declaration, without effect", values: []string{"Default", "TechPreviewUnsafeFailForward"}},
		{kind: kindGroup, path: "spec.staticProvidedAPIs", is: isPassed, why: "concerns an annotation that only OLM reads"},
		{kind: kindGroup, path: "status", is: isPassed, why: fieldsOfStatus},

		{kind: kindSource, path: "spec.image", is: isRead, why: "the catalog's image"},
		{kind: kindSource, path: "spec.address", is: isRead, why: "reported: only the cluster can reach it; set a `source` in `quayside.yaml`"},
		{kind: kindSource, path: "spec.priority", is: isRead, why: "catalogs with a higher priority are preferred"},
		{kind: kindSource, path: "spec.sourceType", is: isChecked, why: "the other fields determine the type", values: []string{"grpc", "internal"}},
		{kind: kindSource, path: "spec.configMap", is: isPassed, why: "a catalog without an image is reported; set a `source` in `quayside.yaml`"},
		{kind: kindSource, path: "spec.grpcPodConfig", is: isPassed, why: fieldsOfPod},
		{kind: kindSource, path: "spec.updateStrategy", is: isPassed, why: "`resolve` reads the catalog, at the digest in the lock"},
		{kind: kindSource, path: "spec.secrets", is: isPassed, why: "quayside uses your own registry logins"},
		{kind: kindSource, path: "spec.displayName", is: isPassed, why: fieldsOfConsole},
		{kind: kindSource, path: "spec.description", is: isPassed, why: fieldsOfConsole},
		{kind: kindSource, path: "spec.publisher", is: isPassed, why: fieldsOfConsole},
		{kind: kindSource, path: "spec.icon", is: isPassed, why: fieldsOfConsole},
		{kind: kindSource, path: "status", is: isPassed, why: fieldsOfStatus},

		{kind: kindExtension, path: "spec.namespace", is: isRead, why: "the install namespace; if it is missing, see [the rules](declarations.md#where-a-clusterextension-goes)"},
		{kind: kindExtension, path: "spec.serviceAccount", is: isPassed, why: "operator-controller ignores it, too"},
		{kind: kindExtension, path: "spec.source.sourceType", is: isChecked, why: "`Catalog`; quayside also accepts `OCIImage`, with a bundle in `ociImage.ref`", values: []string{"Catalog"}},
		{kind: kindExtension, path: "spec.source.catalog.packageName", is: isRead, why: "the package", values: []string{"p", "q"}},
		{kind: kindExtension, path: "spec.source.catalog.version", is: isRead, why: "a version, or a range of versions", values: []string{"1.x", ">=1.0.0 <2"}},
		{kind: kindExtension, path: "spec.source.catalog.channels", is: isRead, why: "the channels"},
		{kind: kindExtension, path: "spec.source.catalog.selector", is: isRead, why: "selects catalogs by label"},
		{kind: kindExtension, path: "spec.source.catalog.upgradeConstraintPolicy", is: isRead, why: "`SelfCertified`: any version, even without an upgrade edge", values: []string{"CatalogProvided", "SelfCertified"}},
		{kind: kindExtension, path: "spec.install.preflight.crdUpgradeSafety.enforcement", is: isChecked, why: "`quayside diff` reports breaking CRD changes, and `spec.policy` can reject them", values: []string{"None", "Strict"}},
		{kind: kindExtension, path: "spec.progressDeadlineMinutes", is: isChecked, why: "how long the cluster waits", values: []string{"10", "720"}, wrong: "9"},
		{kind: kindExtension, path: "spec.config.configType", is: isChecked, why: "`Inline`", values: []string{"Inline"}},
		{kind: kindExtension, path: "spec.config.inline.watchNamespace", is: isRead, why: "the namespace that the operator watches"},
		{kind: kindExtension, path: "spec.config.inline.deploymentConfig.selector", is: isRefused, why: "OLM v1 rejects it, too"},
		{kind: kindExtension, path: "spec.config.inline.deploymentConfig", is: isRead, why: "rendered into the operator's Deployments"},
		{kind: kindExtension, path: "spec.config.inline", is: isRefused, why: "any other key: registry+v1 bundles have no other settings"},
		{kind: kindExtension, path: "status.install.bundle.name", is: isRead, why: "the installed version, if the lock does not pin the operator"},
		{kind: kindExtension, path: "status", is: isPassed, why: fieldsOfStatus},

		{kind: kindClusterSource, path: "spec.source.type", is: isChecked, why: "`Image`", values: []string{"Image"}},
		{kind: kindClusterSource, path: "spec.source.image.ref", is: isRead, why: "the catalog's image", values: []string{"a:b", "c:d"}},
		{kind: kindClusterSource, path: "spec.source.image.pollIntervalMinutes", is: isChecked, why: "`resolve` reads the catalog, at the digest in the lock", values: []string{"1", "60"}, wrong: "0"},
		{kind: kindClusterSource, path: "spec.priority", is: isRead, why: "catalogs with a higher priority are preferred"},
		{kind: kindClusterSource, path: "spec.availabilityMode", is: isRead, why: "`Unavailable`: the catalog is not used", values: []string{"Available", "Unavailable"}},
		{kind: kindClusterSource, path: "status", is: isPassed, why: fieldsOfStatus},
	}
}

// olmCRDs returns the files with the CRDs of the kinds, relative to the conformance directory, and
// a minimal declaration of each kind.
func olmCRDs() []struct{ file, base string } {
	return []struct{ file, base string }{
		{"v0/subscriptions.crd.yaml", "metadata: {name: a, namespace: ns}\nspec: {name: p, source: hub, sourceNamespace: olm}\n"},
		{"v0/operatorgroups.crd.yaml", "metadata: {name: a, namespace: ns}\nspec: {}\n"},
		{"v0/catalogsources.crd.yaml", "metadata: {name: a, namespace: ns}\nspec: {sourceType: grpc}\n"},
		{"v1-standard/olm.operatorframework.io_clusterextensions.yaml", "metadata: {name: a}\nspec: {namespace: ns, source: {sourceType: Catalog, catalog: {packageName: p}}}\n"},
		{"v1-experimental/olm.operatorframework.io_clusterextensions.yaml", "metadata: {name: a}\nspec: {namespace: ns, source: {sourceType: Catalog, catalog: {packageName: p}}}\n"},
		{"v1-standard/olm.operatorframework.io_clustercatalogs.yaml", "metadata: {name: a}\nspec: {source: {type: Image, image: {ref: \"a:b\"}}}\n"},
		{"v1-experimental/olm.operatorframework.io_clustercatalogs.yaml", "metadata: {name: a}\nspec: {source: {type: Image, image: {ref: \"a:b\"}}}\n"},
	}
}

// TestEveryFieldOfOLM sets each field of OLM's CRDs and checks the treatment in the table: a
// changed declaration, an unchanged one, or an error with the field and its position. It fails for
// a field without a row, and for a row without a field.
func TestEveryFieldOfOLM(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CONFORMANCE")
	if root == "" {
		t.Skip("QUAYSIDE_CONFORMANCE is unset: no CRDs to look at")
	}
	unseen := map[string]bool{}
	for _, f := range olmFields() {
		unseen[f.kind+" "+f.path] = true
	}
	count := map[treatment]int{}
	var config map[string]any // schema of the Subscription's config, which deploymentConfig of a ClusterExtension shares
	for _, crd := range olmCRDs() {
		apiVersion, kind, schema := readCRD(t, filepath.Join(root, "referees", "crds", crd.file))
		if kind == kindSubscription {
			config = schemaAt(schema, "spec", "config")
		}
		if inline := schemaAt(schema, "spec", "config", "inline"); kind == kindExtension && inline != nil {
			inline["properties"] = map[string]any{ // as in operator-controller's schema for the configuration of registry+v1 bundles
				"watchNamespace": map[string]any{"type": "string"}, "deploymentConfig": config, "anythingElse": map[string]any{"type": "string"},
			}
		}
		for _, leaf := range leaves(schema, "") {
			i := slices.IndexFunc(olmFields(), func(f olmField) bool { return f.kind == kind && isBelow(leaf.path, f.path) })
			if i < 0 {
				t.Errorf("%s: %s is in no row of the table", crd.file, leaf.path)
				continue
			}
			row := olmFields()[i]
			delete(unseen, row.kind+" "+row.path)
			count[row.is]++
			p := probe{t: t, head: "apiVersion: " + apiVersion + "\nkind: " + kind + "\n", base: crd.base, schema: schema, leaf: leaf, row: row}
			p.prove()
		}
	}
	for row := range unseen {
		t.Errorf("%s: no CRD has the field", row)
	}
	t.Logf("fields proved, those of both channels twice: %d read, %d checked, %d unused, %d refused", count[isRead], count[isChecked], count[isPassed], count[isRefused])
}

// isBelow reports whether path equals another path, or is below it.
func isBelow(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func readCRD(t *testing.T, file string) (apiVersion, kind string, schema map[string]any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema map[string]map[string]any
			}
		}
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	v := crd.Spec.Versions[0]
	return crd.Spec.Group + "/" + v.Name, crd.Spec.Names.Kind, v.Schema["openAPIV3Schema"]
}

// schemaAt returns the schema of a property below s, or nil if there is none.
func schemaAt(s map[string]any, path ...string) map[string]any {
	for _, name := range path {
		s, _ = mapOf(s["properties"])[name].(map[string]any)
	}
	return s
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// leaf is a field without fields below it.
type leaf struct {
	path   string // such as "spec.env[].name"; "{}" stands for the key of a map
	schema map[string]any
}

// leaves returns the leaf fields of an object, except for apiVersion, kind and metadata.
func leaves(s map[string]any, at string) []leaf {
	switch {
	case s["type"] == "array":
		return leaves(mapOf(s["items"]), at+"[]")
	case s["properties"] != nil:
		var out []leaf
		for _, name := range slices.Sorted(maps.Keys(mapOf(s["properties"]))) {
			if at == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
				continue
			}
			out = append(out, leaves(mapOf(mapOf(s["properties"])[name]), strings.TrimPrefix(at+"."+name, "."))...)
		}
		return out
	}
	return []leaf{{at, s}}
}

// probe is a field to test.
type probe struct {
	t          *testing.T
	head, base string
	schema     map[string]any
	leaf       leaf
	row        olmField
}

func (p probe) prove() {
	values := p.row.values
	exact := isBelow(p.row.path, strings.ReplaceAll(p.leaf.path, "[]", ""))
	if !exact || len(values) == 0 {
		values = samples(p.leaf.schema)
	}
	var sets []*declare.Set
	for _, v := range values {
		text, err := p.with(v)
		set, parsed := declare.Parse("f.yaml", []byte(text))
		switch {
		case err != nil:
			p.t.Fatal(err)
		case p.row.is == isRefused:
			p.refused(text, parsed)
			continue
		case parsed != nil:
			p.t.Errorf("%s %s: %s: %v\n%s", p.row.kind, p.leaf.path, p.row.is, parsed, text)
			return
		}
		sets = append(sets, set)
	}
	if p.row.is == isRefused {
		return
	}
	if text, err := p.without(); err != nil {
		p.t.Fatal(err)
	} else if bare, err := declare.Parse("f.yaml", []byte(text)); err == nil { // skipped if the field is required
		sets = append(sets, bare)
	}
	differ := false
	for _, set := range sets[1:] {
		differ = differ || !cmp.Equal(sets[0], set, cmpopts.IgnoreTypes(diag.Pos{}, diag.Fields{}), cmpopts.EquateEmpty())
	}
	if differ != (p.row.is == isRead) {
		p.t.Errorf("%s %s: %s, but the declaration changed: %v", p.row.kind, p.leaf.path, p.row.is, differ)
	}
	if p.row.is != isChecked {
		return
	}
	wrong := p.row.wrong
	if wrong == "" {
		wrong = "Nothing Known"
	}
	text, err := p.with(wrong)
	if err != nil {
		p.t.Fatal(err)
	}
	_, parsed := declare.Parse("f.yaml", []byte(text))
	p.refused(text, parsed)
}

// refused checks that the error names the field and has its position.
func (p probe) refused(text string, err error) {
	name := p.leaf.path[strings.LastIndexAny(p.leaf.path, ".")+1:]
	if p.row.is == isRefused && strings.HasPrefix(p.leaf.path, p.row.path+".") && len(p.row.path) > len("spec.config.inline") {
		name = p.row.path[strings.LastIndex(p.row.path, ".")+1:]
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "{}"), "[]")
	m := regexp.MustCompile(`^f\.yaml:(\d+):(\d+): .*` + regexp.QuoteMeta(name)).FindStringSubmatch(fmt.Sprint(err))
	if m == nil {
		p.t.Errorf("%s %s: want a refusal that names %q, got %v\n%s", p.row.kind, p.leaf.path, name, err, text)
		return
	}
	line, _ := strconv.Atoi(m[1])
	if lines := strings.Split(text, "\n"); !strings.Contains(strings.Join(lines[max(0, line-2):line], "\n"), name+":") {
		p.t.Errorf("%s %s: the error has line %d, which does not contain %q\n%s", p.row.kind, p.leaf.path, line, name, text)
	}
}

// with returns the declaration with the field set. It also sets all other fields that are then required.
func (p probe) with(value string) (string, error) {
	sample := typed(p.leaf.schema, value)
	if strings.HasSuffix(p.leaf.path, ".metadata") {
		sample = map[string]any{"name": value}
	}
	return p.text(sample)
}

// without returns the declaration without the field.
func (p probe) without() (string, error) { return p.text(gone{}) }

// gone is the value of an absent field.
type gone struct{}

func (p probe) text(value any) (string, error) {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(p.base), &object); err != nil {
		return "", err
	}
	root := fill(p.schema, object, split(p.leaf.path), value)
	var b bytes.Buffer
	b.WriteString(p.head)
	err := yaml.NewEncoder(&b).Encode(root)
	return b.String(), err
}

// split returns the steps of a path. "[]" and "{}" are separate steps.
func split(path string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(path, "[]", ".[]"), func(r rune) bool { return r == '.' })
}

// fill returns v with the value at a path, and with the required fields of all objects on the path. s is the
// schema of v.
func fill(s map[string]any, v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if path[0] == "[]" {
		return []any{fill(mapOf(s["items"]), nil, path[1:], value)}
	}
	m := mapOf(v)
	if m == nil {
		m = map[string]any{}
	}
	props := mapOf(s["properties"])
	m[path[0]] = fill(mapOf(props[path[0]]), m[path[0]], path[1:], value)
	required, _ := s["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, has := m[name]; !has && name != "metadata" && name != "spec" {
			m[name] = exampleOf(mapOf(props[name]))
		}
	}
	if props["key"] != nil && props["operator"] != nil && props["values"] != nil && path[0] != "operator" { // a requirement of a label selector
		m["operator"], m["key"] = "In", cmpOr(m["key"], "k")
		m["values"] = cmpOr(m["values"], []any{"v"})
	}
	if path[0] == "operator" && props["values"] != nil {
		m["key"] = cmpOr(m["key"], "k")
		if m["operator"] == "In" || m["operator"] == "NotIn" {
			m["values"] = []any{"v"}
		}
	}
	if props["configType"] != nil && m["inline"] == nil {
		m["inline"] = map[string]any{"watchNamespace": "w"}
	}
	if m[path[0]] == (gone{}) {
		delete(m, path[0])
	}
	return m
}

func cmpOr(v, other any) any {
	if v != nil {
		return v
	}
	return other
}

// exampleOf returns an example for a schema with the required fields.
func exampleOf(s map[string]any) any {
	switch {
	case s["type"] == "array":
		return []any{exampleOf(mapOf(s["items"]))}
	case s["properties"] != nil:
		m := map[string]any{}
		required, _ := s["required"].([]any)
		for _, r := range required {
			m[r.(string)] = exampleOf(mapOf(mapOf(s["properties"])[r.(string)]))
		}
		return m
	}
	return typed(s, samples(s)[0])
}

// samples returns two different values for a schema.
func samples(s map[string]any) []string {
	if words, ok := s["enum"].([]any); ok {
		out := []string{fmt.Sprint(words[0]), fmt.Sprint(words[len(words)-1])}
		return slices.Compact(out)
	}
	description, _ := s["description"].(string)
	switch {
	case s["additionalProperties"] != nil:
		return samples(mapOf(s["additionalProperties"]))
	case s["type"] == "boolean":
		return []string{"true", "false"}
	case s["type"] == "integer" || s["type"] == "number" || s["x-kubernetes-int-or-string"] == true:
		return []string{"3", "4"}
	case strings.Contains(description, "Valid operators are In, NotIn, Exists and DoesNotExist"):
		return []string{"In", "NotIn"}
	}
	return []string{"one", "two"}
}

// typed converts a value to the type of a schema.
func typed(s map[string]any, value string) any {
	switch n, err := strconv.Atoi(value); {
	case s["type"] == "array":
		return []any{typed(mapOf(s["items"]), value)}
	case s["additionalProperties"] != nil:
		return map[string]any{"k": typed(mapOf(s["additionalProperties"]), value)}
	case s["type"] == "object":
		return map[string]any{value: value}
	case s["type"] == "boolean" && (value == "true" || value == "false"):
		return value == "true"
	case s["type"] != "string" && err == nil:
		return n
	}
	return value
}

// TestGoldenFieldsOfOLMPage generates the documentation page from the table.
func TestGoldenFieldsOfOLMPage(t *testing.T) {
	const file = "../docs/olm-fields.md"
	var b strings.Builder
	b.WriteString(`# Fields of OLM's kinds

This page lists how quayside treats each field of OLM's kinds, for OLM v0 and for the standard and
experimental channels of OLM v1. A field that no CRD has is an error with its position.

| Treatment | Meaning |
| --- | --- |
| used | the value is part of the declaration |
| validated | an invalid value is an error; valid values have no effect |
| ignored | accepted, without effect |
| rejected | an error that names the field |
`)
	kind := ""
	for _, f := range olmFields() {
		if f.kind != kind {
			kind = f.kind
			fmt.Fprintf(&b, "\n## %s\n\n| Field | Treatment | Meaning |\n| --- | --- | --- |\n", kind)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.path, f.is, f.why)
	}
	goldentest.Compare(t, file, []byte(b.String()))
}

package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// widget returns a CRD with one version v1, in which spec.x has schema x.
func widget(x string) string {
	return widgetOf(fmt.Sprintf("{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {x: %s}}}}}}", x))
}

// widgetOf returns a CRD with the given versions.
func widgetOf(versions ...string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.demo.io}\n" +
		"spec:\n  group: demo.io\n  scope: Namespaced\n  names: {kind: Widget, plural: widgets, singular: widget}\n  versions:\n  - " + strings.Join(versions, "\n  - ") + "\n"
}

// versionEntry returns an item of spec.versions.
func versionEntry(name, flags, schema string) string {
	return fmt.Sprintf("{name: %s, %s, schema: {openAPIV3Schema: %s}}", name, flags, schema)
}

// TestFieldRules changes the schema of spec.x. The sources of the expectations are:
//
//	[conv]  Kubernetes API conventions and "Changing the API": compatible changes
//	[val]   apiextensions-apiserver pkg/apiserver/validation and kube-openapi: validation of writes
//	[prune] apiextensions-apiserver schema/pruning: preserved fields
//	[def]   apiextensions-apiserver schema/defaulting: defaults, also on reads
//	[ssa]   Kubernetes documentation, server-side apply, "compatibility across topology changes"
//	[cel]   Kubernetes documentation, CRD validation rules and ratcheting
func TestFieldRules(t *testing.T) {
	cases := []struct {
		name, before, after string
		want                []string
	}{
		{"[conv] description and title say nothing", "{type: string, description: a}", "{type: string, description: b, title: c}", nil},
		{"[conv] type changed", "{type: string}", "{type: integer}", []string{"high crd.type-changed v1 spec.x: string → integer"}},
		{"[val] an integer is a number", "{type: integer}", "{type: number}", []string{"low crd.type-widened v1 spec.x: integer → number"}},
		{"[val] a number need not be an integer", "{type: number}", "{type: integer}", []string{"high crd.type-changed v1 spec.x: number → integer"}},
		{"[val] an integer is an int-or-string", "{type: integer}", "{x-kubernetes-int-or-string: true}", []string{"low crd.type-widened v1 spec.x: integer → integer or string"}},
		{"[val] an int-or-string need not be an integer", "{x-kubernetes-int-or-string: true}", "{type: integer}", []string{"high crd.type-changed v1 spec.x: integer or string → integer"}},
		{"[val] anything includes strings", "{type: string}", "{x-kubernetes-preserve-unknown-fields: true}", []string{"low crd.type-widened v1 spec.x: string → any"}},
		{"[val] a type where anything was allowed", "{x-kubernetes-preserve-unknown-fields: true}", "{type: object}", []string{"high crd.type-changed v1 spec.x: any → object"}},
		{
			"[conv][prune] field removed", "{type: object, properties: {a: {type: string}, b: {type: string}}}", "{type: object, properties: {a: {type: string}}}",
			[]string{"high crd.field-removed v1 spec.x.b: string → -"},
		},
		{
			"[prune] field removed where unknown fields are kept", "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}",
			[]string{"low crd.field-removed v1 spec.x.a: string → -"},
		},
		{
			"[conv] optional field added", "{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string}, b: {type: string}}}",
			[]string{"info crd.fields-added v1: - → spec.x.b"},
		},
		{
			"[conv] field in a list removed", "{type: array, items: {type: object, properties: {a: {type: string}}}}", "{type: array, items: {type: object}}",
			[]string{"high crd.field-removed v1 spec.x[].a: string → -"},
		},
		{
			"[conv] field in a map removed", "{type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}", "{type: object, additionalProperties: {type: object}}",
			[]string{"high crd.field-removed v1 spec.x{}.a: string → -"},
		},
		{
			"[prune] additional properties no longer allowed", "{type: object, additionalProperties: {type: string}}", "{type: object, properties: {a: {type: string}}}",
			[]string{"high crd.map-removed v1 spec.x: any key → -", "info crd.fields-added v1: - → spec.x.a"},
		},
		{
			"[prune] named fields become free keys", "{type: object, properties: {a: {type: string}}}", "{type: object, additionalProperties: {type: string}}",
			[]string{"low crd.field-removed v1 spec.x.a: string → -", "info crd.fields-added v1: - → spec.x{}"},
		},
		{
			"[prune] unknown fields pruned", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}",
			[]string{"high crd.unknown-fields-pruned v1 spec.x: true → false"},
		},
		{
			"[prune] unknown fields preserved", "{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}",
			[]string{"info crd.unknown-fields-kept v1 spec.x: false → true"},
		},
		{
			"[conv] required added", "{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string}}}",
			[]string{"high crd.required-added v1 spec.x.a: optional → required"},
		},
		{
			"[conv] new and required", "{type: object}", "{type: object, required: [a], properties: {a: {type: string}}}",
			[]string{"high crd.required-added v1 spec.x.a: optional → required", "info crd.fields-added v1: - → spec.x.a"},
		},
		{
			"[def] required with a default", "{type: object, properties: {a: {type: string, default: z}}}", "{type: object, required: [a], properties: {a: {type: string, default: z}}}",
			[]string{"low crd.required-defaulted v1 spec.x.a: optional → required"},
		},
		{
			"[conv] no longer required", "{type: object, required: [a], properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string}}}",
			[]string{"info crd.required-removed v1 spec.x.a: required → optional"},
		},
		{"[conv] enum where any string was allowed", "{type: string}", "{type: string, enum: [a]}", []string{`high crd.enum-added v1 spec.x: - → ["a"]`}},
		{"[conv] enum value removed", "{type: string, enum: [a, b]}", "{type: string, enum: [a]}", []string{`high crd.enum-value-removed v1 spec.x: ["a","b"] → ["a"]`}},
		{"[conv] enum value added", "{type: string, enum: [a]}", "{type: string, enum: [a, b]}", []string{`info crd.enum-value-added v1 spec.x: ["a"] → ["a","b"]`}},
		{"[val] enum in another order", "{type: string, enum: [a, b]}", "{type: string, enum: [b, a]}", nil},
		{"[val] enum removed", "{type: string, enum: [a]}", "{type: string}", []string{`info crd.enum-removed v1 spec.x: ["a"] → -`}},
		{"[val] minimum raised", "{type: integer, minimum: 1}", "{type: integer, minimum: 2}", []string{"medium crd.bound-tightened v1 spec.x: 1 → 2"}},
		{"[val] minimum lowered", "{type: integer, minimum: 2}", "{type: integer, minimum: 1}", []string{"info crd.bound-loosened v1 spec.x: 2 → 1"}},
		{"[val] minimum of zero where none was", "{type: integer}", "{type: integer, minimum: 0}", []string{"medium crd.bound-tightened v1 spec.x: - → 0"}},
		{"[val] minLength of zero is no bound", "{type: string}", "{type: string, minLength: 0}", nil},
		{"[val] minLength added", "{type: string}", "{type: string, minLength: 1}", []string{"medium crd.bound-tightened v1 spec.x: - → 1"}},
		{"[val] maximum lowered", "{type: integer, maximum: 9}", "{type: integer, maximum: 8}", []string{"medium crd.bound-tightened v1 spec.x: 9 → 8"}},
		{"[val] maximum removed", "{type: integer, maximum: 9}", "{type: integer}", []string{"info crd.bound-loosened v1 spec.x: 9 → -"}},
		{"[val] maxItems added", "{type: array, items: {type: string}}", "{type: array, maxItems: 4, items: {type: string}}", []string{"medium crd.bound-tightened v1 spec.x: - → 4"}},
		{"[val] maxProperties lowered", "{type: object, maxProperties: 4, additionalProperties: {type: string}}", "{type: object, maxProperties: 3, additionalProperties: {type: string}}", []string{"medium crd.bound-tightened v1 spec.x: 4 → 3"}},
		{"[val] bound made exclusive", "{type: integer, minimum: 1}", "{type: integer, minimum: 1, exclusiveMinimum: true}", []string{"medium crd.bound-tightened v1 spec.x: - → true"}},
		{"[val] bound made inclusive", "{type: integer, maximum: 1, exclusiveMaximum: true}", "{type: integer, maximum: 1}", []string{"info crd.bound-loosened v1 spec.x: true → -"}},
		{"[val] multiples of 4 are multiples of 2", "{type: integer, multipleOf: 4}", "{type: integer, multipleOf: 2}", []string{"info crd.bound-loosened v1 spec.x: 4 → 2"}},
		{"[val] multiples of 2 need not be of 3", "{type: integer, multipleOf: 2}", "{type: integer, multipleOf: 3}", []string{"medium crd.bound-tightened v1 spec.x: 2 → 3"}},
		{"[val] pattern added", "{type: string}", "{type: string, pattern: ^a}", []string{"medium crd.pattern-changed v1 spec.x: - → ^a"}},
		{"[val] pattern changed", "{type: string, pattern: ^a}", "{type: string, pattern: ^b}", []string{"medium crd.pattern-changed v1 spec.x: ^a → ^b"}},
		{"[val] pattern removed", "{type: string, pattern: ^a}", "{type: string}", []string{"info crd.pattern-removed v1 spec.x: ^a → -"}},
		{"[val] format added", "{type: string}", "{type: string, format: date-time}", []string{"medium crd.format-changed v1 spec.x: - → date-time"}},
		{"[val] a format that is not validated", "{type: string}", "{type: string, format: moon-phase}", nil},
		{"[val] int32 fits in int64", "{type: integer, format: int32}", "{type: integer, format: int64}", []string{"info crd.format-removed v1 spec.x: int32 → int64"}},
		{"[val] int64 does not fit in int32", "{type: integer, format: int64}", "{type: integer, format: int32}", []string{"medium crd.format-changed v1 spec.x: int64 → int32"}},
		{"[val] null no longer allowed", "{type: string, nullable: true}", "{type: string}", []string{"medium crd.nullable-removed v1 spec.x: true → -"}},
		{"[val] null allowed", "{type: string}", "{type: string, nullable: true}", []string{"info crd.nullable-added v1 spec.x: - → true"}},
		{"[def] default added", "{type: string}", "{type: string, default: a}", []string{"low crd.default-added v1 spec.x: - → a"}},
		{"[conv] default changed", "{type: integer, default: 1}", "{type: integer, default: 2}", []string{"medium crd.default-changed v1 spec.x: 1 → 2"}},
		{"[conv] default removed", "{type: boolean, default: false}", "{type: boolean}", []string{"medium crd.default-removed v1 spec.x: false → -"}},
		{"[cel] rule added", "{type: integer}", "{type: integer, x-kubernetes-validations: [{rule: self > 0}]}", []string{"medium crd.rule-added v1 spec.x: - → self > 0"}},
		{
			"[cel] rule changed under its message", "{type: integer, x-kubernetes-validations: [{rule: self > 0, message: m}]}", "{type: integer, x-kubernetes-validations: [{rule: self > 1, message: m}]}",
			[]string{"medium crd.rule-changed v1 spec.x: self > 0 → self > 1"},
		},
		{"[cel] rule removed", "{type: integer, x-kubernetes-validations: [{rule: self > 0}]}", "{type: integer}", []string{"info crd.rule-removed v1 spec.x: self > 0 → -"}},
		{"[cel] another message is no change", "{type: integer, x-kubernetes-validations: [{rule: self > 0, message: a}]}", "{type: integer, x-kubernetes-validations: [{rule: self > 0, message: b}]}", nil},
		{
			"[val] oneOf added", "{type: object, properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string}}, oneOf: [{required: [a]}]}",
			[]string{`medium crd.combination-changed v1 spec.x: - → [{"required":["a"]}]`},
		},
		{"[val] not removed", "{type: string, not: {enum: [a]}}", "{type: string}", []string{`info crd.combination-removed v1 spec.x: {"enum":["a"]} → -`}},
		{"[val] anyOf that only spells int-or-string", "{x-kubernetes-int-or-string: true}", "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", nil},
		{
			"[ssa] atomic list becomes a set", "{type: array, items: {type: string}}", "{type: array, x-kubernetes-list-type: set, items: {type: string}}",
			[]string{"medium crd.list-type-changed v1 spec.x: atomic → set"},
		},
		{
			"[ssa] keys of a list changed", "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object}}", "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b], items: {type: object}}",
			[]string{"medium crd.list-type-changed v1 spec.x: map by a → map by b"},
		},
		{"[ssa] map becomes atomic", "{type: object}", "{type: object, x-kubernetes-map-type: atomic}", []string{"low crd.map-type-changed v1 spec.x: granular → atomic"}},
		{
			"[val] embedded resource", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}",
			[]string{"medium crd.embedded-changed v1 spec.x: - → true"},
		},
	}
	if len(cases) < 40 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := lines(compareManifests(t, widget(c.before), widget(c.after)))
			if d := cmp.Diff(append([]string{}, c.want...), got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if got := lines(compareManifests(t, widget(c.after), widget(c.after))); len(got) > 0 {
				t.Errorf("compared with itself: %v", got)
			}
		})
	}
}

// TestDefinitionRules changes the fields of a CRD outside of the schema. [reg] is
// apiextensions-apiserver pkg/apis/apiextensions/validation,
// ValidateCustomResourceDefinitionUpdate; [ver] is the Kubernetes documentation, "Versions in
// CustomResourceDefinitions".
func TestDefinitionRules(t *testing.T) {
	const (
		plain = "{type: object, properties: {spec: {type: object, properties: {x: {type: string}}}}}"
		other = "{type: object, properties: {spec: {type: object, properties: {z: {type: string}}}}}"
		store = "served: true, storage: true"
		serve = "served: true, storage: false"
		idle  = "served: false, storage: false"
	)
	v := versionEntry
	base := widgetOf(v("v1", store, plain))
	replace := func(from, to string) string { return strings.Replace(base, from, to, 1) }
	webhook := "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: ops}}}}\n"
	cases := []struct {
		name, before, after string
		want                []string
	}{
		{"[reg] scope", base, replace("Namespaced", "Cluster"), []string{"critical crd.scope-changed spec.scope: Namespaced → Cluster"}},
		{"[reg] kind", base, replace("kind: Widget,", "kind: Gadget,"), []string{
			"critical crd.kind-changed spec.names.kind: Widget → Gadget", "low crd.names-changed spec.names.listKind: WidgetList → GadgetList",
		}},
		{"[reg] default names made explicit", replace(", singular: widget", ""), replace("singular: widget", "singular: widget, listKind: WidgetList"), nil},
		{"[reg] default singular made explicit", replace(", singular: widget", ""), base, nil},
		{
			"[ver] short name removed", replace("singular: widget", "singular: widget, shortNames: [wi, wd]"), replace("singular: widget", "singular: widget, shortNames: [wi]"),
			[]string{`low crd.names-changed spec.names.shortNames: ["wi","wd"] → ["wi"]`},
		},
		{"[ver] short name added", base, replace("singular: widget", "singular: widget, shortNames: [wi]"), nil},
		{"[ver] storage version removed", widgetOf(v("v1", store, plain)), widgetOf(v("v2", store, plain)), []string{
			"critical crd.stored-version-removed v1: storage version → -", "low crd.storage-version-changed spec.versions: v1 → v2", "info crd.version-added v2: - → storage version",
		}},
		{"[ver] served version removed", widgetOf(v("v1", store, plain), v("v1beta1", serve, plain)), base, []string{"high crd.served-version-removed v1beta1: served → -"}},
		{"[ver] unserved version removed", widgetOf(v("v1", store, plain), v("v1beta1", idle, plain)), base, []string{"low crd.served-version-removed v1beta1: not served → -"}},
		{
			"[ver] in status.storedVersions", widgetOf(v("v1", store, plain), v("v1beta1", idle, plain)) + "status: {storedVersions: [v1beta1, v1]}\n", base,
			[]string{"critical crd.stored-version-removed v1beta1: storage version → -"},
		},
		{
			"[ver] version unserved", widgetOf(v("v1", store, plain), v("v1beta1", serve, plain)), widgetOf(v("v1", store, plain), v("v1beta1", idle, plain)),
			[]string{"high crd.version-unserved v1beta1: served → not served"},
		},
		{"[ver] version deprecated", base, widgetOf(v("v1", store+", deprecated: true", plain)), []string{"low crd.version-deprecated v1: - → deprecated"}},
		{"[ver] equal version added", base, widgetOf(v("v1", store, plain), v("v2", serve, plain)), []string{"info crd.version-added v2: - → served"}},
		{
			"[ver] version that loses fields, unconverted", base, widgetOf(v("v1", store, plain), v("v2", serve, other)),
			[]string{"high crd.version-differs v2: v1 → v2", "info crd.version-added v2: - → served"},
		},
		{
			"[ver] version that loses fields, converted", base, widgetOf(v("v1", store, plain), v("v2", serve, other)) + webhook,
			[]string{`high objects.changed spec.conversion.webhook: - → {"clientConfig":{"service":{"name":"s","namespace":"ops","port":443}},"conversionReviewVersions":["v1"]}`, "low crd.conversion-changed spec.conversion.strategy: None → Webhook", "info crd.version-added v2: - → served"},
		},
		{
			"[ver] conversion by another Service", base + webhook, base + strings.Replace(webhook, "name: s,", "name: z,", 1),
			[]string{`high objects.changed spec.conversion.webhook.clientConfig.service.name: s → z`},
		},
		{"[ver] conversion removed", base + webhook, base, []string{"medium crd.conversion-changed spec.conversion.strategy: Webhook → None"}},
		{"[ver] a version that is neither served nor stored is ignored", widgetOf(v("v1", store, plain), v("v0", idle, plain)), widgetOf(v("v1", store, plain), v("v0", idle, other)), nil},
		{
			"[ver] a stored version still prunes", widgetOf(v("v1", serve, plain), v("v0", "served: false, storage: true", plain)), widgetOf(v("v1", serve, plain), v("v0", "served: false, storage: true", other)),
			[]string{"low crd.field-removed v0 spec.x: string → -", "info crd.fields-added v0: - → spec.z"},
		},
		{"[ver] status no longer a subresource", widgetOf(v("v1", store+", subresources: {status: {}}", plain)), base, []string{"high crd.status-subresource-removed v1 status: subresource → -"}},
		{"[ver] the status subresource is added", base, widgetOf(v("v1", store+", subresources: {status: {}}", plain)), []string{"medium crd.status-subresource-added v1 status: - → subresource"}},
		{
			"[ver] scale removed", widgetOf(v("v1", store+", subresources: {scale: {specReplicasPath: .spec.x}}", plain)), base,
			[]string{`medium crd.scale-subresource-removed v1 scale: {"specReplicasPath":".spec.x"} → -`},
		},
		{"[ver] selectable field removed", widgetOf(v("v1", store+", selectableFields: [{jsonPath: .spec.x}]", plain)), base, []string{"medium crd.selectable-field-removed v1 .spec.x: .spec.x → -"}},
		{"[prune] preserveUnknownFields turned off", base + "  preserveUnknownFields: true\n", base, []string{"high crd.preserve-changed spec.preserveUnknownFields: true → false"}},
		{"printer columns", base, widgetOf(v("v1", store+", additionalPrinterColumns: [{name: X, type: string, jsonPath: .spec.x}]", plain)), nil},
		{
			"status is the operator's own", widgetOf(v("v1", store, "{type: object, properties: {status: {type: object, properties: {a: {type: string}}}}}")), widgetOf(v("v1", store, "{type: object, properties: {status: {type: object}}}")),
			[]string{"low crd.field-removed v1 status.a: string → -"},
		},
		{
			"v1beta1 of the definition, converted as it stands",
			"apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.demo.io}\nspec:\n  group: demo.io\n  scope: Namespaced\n  version: v1\n  names: {kind: Widget, plural: widgets}\n  validation: {openAPIV3Schema: " + plain + "}\n",
			base, nil,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := lines(compareManifests(t, c.before, c.after))
			if d := cmp.Diff(append([]string{}, c.want...), got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestSeverityIsTunable(t *testing.T) {
	a, b := parsed(t, "o/p", "a.yaml", widget("{type: string}")), parsed(t, "o/p", "a.yaml", widget("{type: integer}"))
	r, err := Compare(State{Objects: a}, State{Objects: b}, CompareOptions{Severity: map[string]Severity{"crd.type-changed": Off}})
	if err != nil || len(r.Findings) != 0 {
		t.Errorf("got %v, %v", lines(r), err)
	}
	_, err = Compare(State{}, State{}, CompareOptions{Severity: map[string]Severity{"crd.tpye-changed": Off}})
	if want := `unknown rule "crd.tpye-changed"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRulesAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		family, rest, ok := strings.Cut(r.ID, ".")
		if seen[r.ID] || !ok || family == "" || rest == "" || r.Title == "" || r.Why == "" || !slices.Contains(severities(), r.Severity) {
			t.Errorf("rule %+v", r)
		}
		seen[r.ID] = true
	}
}

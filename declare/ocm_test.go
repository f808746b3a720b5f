package declare_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
)

const policyHead = "apiVersion: policy.open-cluster-management.io/v1beta1\nkind: OperatorPolicy\nmetadata: {name: p}\n"

// TestPolicyEqualsControllerOutput checks that a random policy declares the same as the objects that
// its controller would create.
func TestPolicyEqualsControllerOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
		spec := "source: hub, sourceNamespace: olm, channel: " + pick("channel", "stable", "beta") + pick("start", "", ", startingCSV: a.v1") +
			pick("config", "", ", config: {nodeSelector: {a: b}}", ", config: {env: [{name: A, value: x}]}")
		group := pick("group", "", "targetNamespaces: [b, a]", "selector: {matchLabels: {a: b}}", "serviceAccountName: x", "upgradeStrategy: Default")
		approval := pick("approval", "Automatic", "None")
		policy := policyHead + "spec:\n  severity: high\n  remediationAction: enforce\n  complianceType: musthave\n  upgradeApproval: " + approval +
			"\n  subscription: {name: a, namespace: ops, " + spec + "}\n  operatorGroup: {name: og, " + group + "}\n"
		made := fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ops}\nspec: {name: a, installPlanApproval: %s, %s}\n"+
			"---\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: og, namespace: ops}\nspec: {%s}\n", strings.ReplaceAll(approval, "None", "Manual"), spec, group)
		opts := cmp.Options{
			cmpopts.IgnoreFields(declare.Subscription{}, "Dialect", "Digest"), cmpopts.IgnoreFields(declare.OperatorGroup{}, "Policy"),
			cmpopts.IgnoreTypes(diag.Pos{}, diag.Fields{}),
		}
		if d := cmp.Diff(mustParse(t, made), mustParse(t, policy), opts); d != "" {
			t.Fatalf("%s-controller +policy\n%s", policy, d)
		}
	})
}

func mustParse(t interface{ Fatal(...any) }, text string) *declare.Set {
	set, err := declare.Parse("d.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestPolicyOfPage parses the example in docs/declarations.md.
func TestPolicyOfPage(t *testing.T) {
	page, err := os.ReadFile("../docs/declarations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "\n## Policies\n")
	_, after, _ = strings.Cut(after, "```yaml\n")
	example, _, found := strings.Cut(after, "```\n")
	if !found {
		t.Fatal("the page has no example")
	}
	set := mustParse(t, example)
	want := []declare.Subscription{{
		Dialect: declare.OCM, Name: "etcd", Namespace: "my-etcd", Package: "etcd", Channels: []string{"singlenamespace-alpha"},
		Catalog: &catalog.ID{Namespace: "olm", Name: "quickstart"}, Allowed: []string{"etcdoperator.v0.9.2", "etcdoperator.v0.9.4"}, Approval: declare.Automatic, Policy: declare.CatalogProvided,
	}}
	if d := cmp.Diff(want, set.Subscriptions, cmpopts.IgnoreTypes(diag.Pos{}, diag.Fields{}, catalog.Digest(""))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if len(set.OperatorGroups) != 1 || len(set.Warnings) > 0 {
		t.Errorf("OperatorGroups %v, warnings %v", set.OperatorGroups, set.Warnings)
	}
}

// TestPolicyDefaults checks the defaults of optional fields of a policy, and its list of versions.
func TestPolicyDefaults(t *testing.T) {
	set := mustParse(t, policyHead+"spec:\n  remediationAction: Enforce\n  complianceType: musthave\n  upgradeApproval: Automatic\n"+
		"  versions: ['a.v2, a.v1', ' ', a.v3]\n  subscription: {name: a, namespace: ops, startingCSV: a.v0}\n")
	want := []declare.Subscription{{
		Dialect: declare.OCM, Name: "a", Namespace: "ops", Package: "a", DefaultChannel: true, Allowed: []string{"a.v0", "a.v1", "a.v2", "a.v3"},
		StartingCSV: "a.v0", Approval: declare.Automatic, Policy: declare.CatalogProvided,
	}}
	if d := cmp.Diff(want, set.Subscriptions, cmpopts.IgnoreTypes(diag.Pos{}, diag.Fields{}, catalog.Digest(""))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if len(set.OperatorGroups)+len(set.Warnings) > 0 {
		t.Errorf("OperatorGroups %v, warnings %v", set.OperatorGroups, set.Warnings)
	}
	all := mustParse(t, policyHead+"spec: {complianceType: musthave, upgradeApproval: None, versions: [' , '], subscription: {name: a, namespace: ops, startingCSV: a.v0}}\n")
	if s := all.Subscriptions[0]; s.Allowed != nil {
		t.Errorf("an empty list allows %v", s.Allowed)
	}
}

// TestPolicyTemplates checks that template values are rejected exactly once, at their position, for
// fields of any type.
func TestPolicyTemplates(t *testing.T) {
	const head, spec = policyHead, "spec:\n  complianceType: musthave\n  upgradeApproval: None\n"
	for text, want := range map[string]string{
		head + spec + "  subscription:\n    name: '{{hub .Name hub}}'\n    namespace: '{{ .ManagedClusterName }}'\n": "d.yaml:8:11: spec.subscription.name: hub templates are not supported: use literal values, with one policy per environment\n" +
			"d.yaml:9:16: spec.subscription.namespace: templates are not supported: use literal values, with one policy per environment",
		head + spec + "  subscription: {name: a, namespace: ops, config: '{{ if x }}{}{{ end }}'}\n":                                           "d.yaml:7:51: spec.subscription.config: templates are not supported",
		head + spec + "  subscription: {name: a, namespace: ops, config: {nodeSelector: {'{{ x }}': z}}}\n":                                    "d.yaml:7:67: spec.subscription.config.nodeSelector: templates are not supported",
		head + spec + "  subscription: '{{ x }}'\n":                                                                                            "d.yaml:7:17: spec.subscription: templates are not supported",
		head + spec + "  versions: ['{{ x }}']\n  subscription: {name: a, namespace: ops}\n":                                                   "d.yaml:7:14: spec.versions[0]: templates are not supported",
		head + spec + "  versions: '{{ x | toLiteral }}'\n  subscription: {name: a, namespace: ops}\n":                                         "d.yaml:7:13: spec.versions: templates are not supported",
		head + spec + "  operatorGroup: {name: a, targetNamespaces: '{{ x }}'}\n  subscription: {name: a, namespace: '{{ y }}'}\n":             "d.yaml:7:46: spec.operatorGroup.targetNamespaces: templates are not supported",
		head + spec + "  subscription: {name: a, namespace: ops, channel: 'stable-{{hub x hub}}'}\n":                                           "d.yaml:7:52: spec.subscription.channel: hub templates are not supported",
		strings.Replace(head, "name: p", "name: p, annotations: {x: '{{hub y hub}}'}", 1) + spec + "  subscription: {name: a, namespace: b}\n": "d.yaml:3:38: metadata.annotations.x: hub templates are not supported",
	} {
		_, err := declare.Parse("d.yaml", []byte(text))
		var faults diag.List
		if !errors.As(err, &faults) || !strings.HasPrefix(err.Error(), want) || strings.Count(text, "{{ ")+strings.Count(text, "{{hub") < len(faults) {
			t.Errorf("%s\ngot %v\nwant %s", text, err, want)
		}
	}
	for _, text := range []string{
		strings.Replace(head, "name: p", "name: p, annotations: {x: '{{ y }}'}", 1) + spec + "  subscription: {name: a, namespace: b}\n",
		strings.Replace(head, "name: p", "name: p, annotations: {policy.open-cluster-management.io/disable-templates: 'true'}", 1) + spec +
			"  subscription: {name: a, namespace: b, config: {env: [{name: A, value: '{{ y }}'}]}}\n",
	} {
		mustParse(t, text)
	}
}

// TestPolicyGroups checks that policies in one namespace may only declare equal OperatorGroups.
func TestPolicyGroups(t *testing.T) {
	policy := func(name, group string) string {
		return policyHead + "spec: {complianceType: musthave, upgradeApproval: None, operatorGroup: {" + group + "}, subscription: {name: " + name + ", namespace: ops}}\n---\n"
	}
	const object = "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: og, namespace: ops}\nspec: {targetNamespaces: [a, b]}\n---\n"
	for name, c := range map[string]struct{ text, want string }{
		"the same":               {policy("x", "name: og, targetNamespaces: [a, b]") + policy("z", "name: og, namespace: ops, targetNamespaces: [b, a]"), ""},
		"the same as an object":  {object + policy("x", "name: og, targetNamespaces: [a, b]"), ""},
		"other namespaces":       {policy("x", "name: og") + policy("z", "name: og, targetNamespaces: [a]"), `d.yaml:9:72: OperatorGroup "ops/og" is declared twice, first at d.yaml:4:72`},
		"differs from an object": {policy("x", "name: og") + object, `d.yaml:6:1: OperatorGroup "ops/og" is declared twice, first at d.yaml:4:72`},
		"the same operator":      {policy("x", "name: og") + strings.Replace(policy("x", "name: og"), "None", "Automatic", 1), `d.yaml:6:1: subscription "ops/x" is declared twice, first at d.yaml:1:1`},
	} {
		set, err := declare.Parse("d.yaml", []byte(c.text))
		switch {
		case c.want == "" && err == nil && len(set.OperatorGroups) == 1:
		case err == nil || err.Error() != c.want:
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestPolicyIsOverridden builds a policy with overlays that change its OperatorGroup, and checks
// that the built policy replaces the original one.
func TestPolicyIsOverridden(t *testing.T) {
	fsys := files("-- base/kustomization.yaml --\nresources: [p.yaml]\n-- base/p.yaml --\n" + policyHead + "spec:\n  remediationAction: enforce\n  complianceType: musthave\n  upgradeApproval: None\n" +
		"  operatorGroup: {name: og}\n  subscription: {name: a, namespace: ops}\n" +
		"-- prod/kustomization.yaml --\nresources: [../base]\npatches:\n- target: {kind: OperatorPolicy}\n  patch: |\n    - {op: add, path: /spec/operatorGroup/targetNamespaces, value: [x]}\n" +
		"-- other/kustomization.yaml --\nresources: [p.yaml]\n-- other/p.yaml --\n" + policyHead + "spec:\n  remediationAction: enforce\n  complianceType: musthave\n  upgradeApproval: None\n" +
		"  operatorGroup: {name: og, targetNamespaces: [x]}\n  subscription: {name: b, namespace: ops}\n")
	set, err := declare.LoadFS(fsys, declare.LoadOptions{Paths: paths("base", "prod", "other")})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.OperatorGroups) != 1 || set.OperatorGroups[0].TargetNamespaces[0] != "x" || len(set.Subscriptions) != 2 || set.Subscriptions[0].Pos.File != "base/p.yaml" {
		t.Errorf("got %v and %v", set.Subscriptions, set.OperatorGroups)
	}
}

// TestPublishedPolicies parses published policies, each document separately. Every OperatorPolicy
// is either complete or rejected with a position in its file.
func TestPublishedPolicies(t *testing.T) {
	dir := os.Getenv("QUAYSIDE_CONFORMANCE")
	if dir == "" {
		t.Skip("QUAYSIDE_CONFORMANCE is unset: no published policies to read")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "referees", "operatorpolicy", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no policies in %s: %v", dir, err)
	}
	read, refused := 0, 0
	for _, file := range paths {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq("\n"+string(data), "\n---\n") {
			if !strings.Contains(doc, "apiVersion: policy.open-cluster-management.io/v1beta1\n") {
				continue
			}
			set, err := declare.Parse("d.yaml", []byte(doc))
			var faults diag.List
			switch {
			case err == nil && len(set.Subscriptions) == 1:
				read++
				checkPositions(t, set.Subscriptions[0], doc)
			case errors.As(err, &faults):
				refused++
				t.Logf("%s: %v", filepath.Base(file), err)
				for _, f := range faults {
					if f.Pos.Line == 0 || f.Pos.Line > strings.Count(doc, "\n")+1 || !strings.HasPrefix(f.Msg, "spec.") {
						t.Errorf("%s: %v has no position of a field", file, f)
					}
				}
			default:
				t.Errorf("%s: %v, but neither complete nor rejected", file, set)
			}
		}
	}
	if read < 7 || refused == 0 {
		t.Errorf("%d read, %d refused", read, refused)
	}
}

// checkPositions checks that the positions of s contain its values.
func checkPositions(t *testing.T, s declare.Subscription, doc string) {
	t.Helper()
	lines := strings.Split(doc, "\n")
	for field, want := range map[declare.Field]string{declare.FieldPackage: s.Package, declare.FieldNamespace: s.Namespace, declare.FieldCatalog: s.Catalog.Name} {
		p := s.At(field)
		var got string
		if err := yaml.Unmarshal([]byte(lines[p.Line-1][p.Col-1:]), &got); err != nil || got != want {
			t.Errorf("field %d of %s: %q at %s, want %q", field, s.Key(), got, p, want)
		}
	}
}

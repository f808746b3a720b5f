package declare_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quayside/quayside/declare"
)

type fault struct{ name, in, want string }

// faults returns invalid declarations with the expected message and position.
func faults() []fault {
	v0 := "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ns}\n"
	good := v0 + "spec: {name: a, source: hub, sourceNamespace: olm}\n"
	own := "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ns}\n"
	ext := "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {name: a}\n"
	group := "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: og, namespace: ns}\n"
	return []fault{
		{"v0 unknown field", v0 + "spec: {name: a, source: hub, sourceNamespace: olm, chanel: x}\n", `f.yaml:4:52: unknown field "chanel" in spec (did you mean "channel"?)`},
		{
			"v0 all at once", v0 + "spec:\n  name: A_b\n  channel: 4.10\n  installPlanApproval: manual\n  config: {env: [{name: X, value: 1}], envs: {}}\n",
			"f.yaml:5:3: spec.source: missing\nf.yaml:5:3: spec.sourceNamespace: missing\n" +
				"f.yaml:5:9: spec.name: \"A_b\" is not a Kubernetes name (lower case letters, digits, - and .)\n" +
				"f.yaml:6:12: spec.channel: expected a string, got the number 4.10 (put it in quotes)\n" +
				"f.yaml:7:24: spec.installPlanApproval: \"manual\": must be one of Automatic, Manual (did you mean \"Manual\"?)\n" +
				"f.yaml:8:35: spec.config.env[0].value: expected a string, got the number 1 (put it in quotes)\n" +
				"f.yaml:8:40: unknown field \"envs\" in spec.config (did you mean \"env\"?)",
		},
		{"v0 no spec", v0, "f.yaml:1:1: spec.name: missing\nf.yaml:1:1: spec.source: missing\nf.yaml:1:1: spec.sourceNamespace: missing"},
		{"v0 wrong version", strings.Replace(good, "v1alpha1", "v1", 1), `f.yaml:1:13: unknown apiVersion "operators.coreos.com/v1" for Subscription: must be operators.coreos.com/v1alpha1`},
		{"v0 wrong kind", strings.Replace(good, "Subscription", "Subscriptions", 1), `f.yaml:2:7: unknown kind "Subscriptions" in operators.coreos.com/v1alpha1 (did you mean "Subscription"?)`},
		{"list", "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.Replace(good, "hub", "Hub", 1), "\n", "\n  ") + "\n", `f.yaml:7:27: spec.source: "Hub" is not a Kubernetes name (lower case letters, digits, - and .)`},
		{"list of no list", "apiVersion: v1\nkind: List\nitems: x\n", `f.yaml:3:8: items: expected a list, got "x"`},
		{"own unknown field", own + "spec: {package: p, chanel: x}\n", `f.yaml:4:20: unknown field "chanel" in spec (did you mean "channel"?)`},
		{"own unknown kind", strings.Replace(own, "Subscription", "Install", 1), `f.yaml:2:7: unknown kind "Install" in quayside.dev/v1alpha1`},
		{"own no package", own + "spec: {}\n", `f.yaml:4:7: spec.package: missing`},
		{"own range", own + "spec: {package: p, version: \">=1 <<2\"}\n", `f.yaml:4:29: spec.version: ">=1 <<2" is not a version range such as ">=1.2.0 <2"`},
		{"own number for range", own + "spec: {package: p, version: 1.0}\n", `f.yaml:4:29: spec.version: expected a string, got the number 1.0 (put it in quotes)`},
		{"own catalog", own + "spec: {package: p, catalog: a/b/c}\n", `f.yaml:4:29: spec.catalog: "a/b/c" is not namespace/name`},
		{"own watch", own + "spec: {package: p, watchNamespaces: [a, \"*\"]}\n", `f.yaml:4:41: spec.watchNamespaces[1]: "*" is not a valid namespace name (lower case letters, digits and -, at most 63)`},
		{"own watch none", own + "spec: {package: p, watchNamespaces: []}\n", `f.yaml:4:37: spec.watchNamespaces: empty: list namespaces or "*" for all, or omit the field`},
		{"own approval", own + "spec: {package: p, approval: automatic}\n", `f.yaml:4:30: spec.approval: "automatic": must be one of Automatic, Manual (did you mean "Automatic"?)`},
		{"own bundle and package", own + "spec: {package: p, bundle: \"image:quay.io/x\"}\n", `f.yaml:4:17: spec.package: conflicts with spec.bundle, which is an exact version`},
		{"own bundle", own + "spec: {bundle: quay.io/x}\n", `f.yaml:4:16: spec.bundle: "quay.io/x" is not image:reference, oci:layout or dir:directory`},
		{"own config", own + "spec: {package: p, config: {env: [{value: x}], nodeselector: {}}}\n", "f.yaml:4:35: spec.config.env[0].name: missing\nf.yaml:4:48: unknown field \"nodeselector\" in spec.config (did you mean \"nodeSelector\"?)"},
		{
			"config of Kubernetes' own types", own + `spec: {package: p, config: {
  volumes: [{name: a, configmap: {name: c}}, {name: b, secret: {secretname: s}}, {name: a, emptyDir: {}}, {emptyDir: x}],
  env: [{name: X, valueFrom: {fieldref: {fieldPath: a}}}],
  affinity: {nodeAffinity: {required: {}}, podAffinity: {}, podAntiAffinity: []}}}
`,
			`f.yaml:5:34: unknown field "configmap" in spec.config.volumes[0] (did you mean "configMap"?)
f.yaml:5:77: unknown field "secret.secretname" in spec.config.volumes[1]
f.yaml:5:89: spec.config.volumes[2].name: duplicate volume "a"
f.yaml:5:107: spec.config.volumes[3].name: missing
f.yaml:5:118: spec.config.volumes[3].emptyDir: expected an object, got a string
f.yaml:6:41: unknown field "fieldref" in spec.config.env[0].valueFrom (did you mean "fieldRef"?)
f.yaml:7:39: unknown field "nodeAffinity.required" in spec.config.affinity
f.yaml:7:78: spec.config.affinity.podAntiAffinity: expected an object, got a list`,
		},
		{
			"v1 deploymentConfig", ext + "spec: {namespace: m, source: {sourceType: Catalog, catalog: {packageName: p}}, config: {configType: Inline, inline: {deploymentConfig: {volumes: [{name: v, secretName: s}]}}}}\n",
			`f.yaml:4:169: unknown field "secretName" in spec.config.inline.deploymentConfig.volumes[0]`,
		},
		{
			"v1", ext + "spec: {namespace: X, source: {sourceType: Catalog, catalog: {version: \"x.y\", upgradeConstraintPolicy: None, channels: [A]}}}\n",
			"f.yaml:4:19: spec.namespace: \"X\" is not a valid namespace name (lower case letters, digits and -, at most 63)\n" +
				"f.yaml:4:61: spec.source.catalog.packageName: missing\n" +
				"f.yaml:4:71: spec.source.catalog.version: \"x.y\" is not a version range such as \">=1.2.0 <2\"\n" +
				"f.yaml:4:103: spec.source.catalog.upgradeConstraintPolicy: \"None\": must be one of CatalogProvided, SelfCertified\n" +
				"f.yaml:4:120: spec.source.catalog.channels[0]: \"A\" is not a valid channel name in OLM v1 (lower case letters, digits, - and .)",
		},
		{"v1 no source", ext + "spec: {namespace: m}\n", `f.yaml:4:7: spec.source.sourceType: missing`},
		{
			"v1 config", ext + "spec: {namespace: m, source: {sourceType: Catalog, catalog: {packageName: p}}, config: {configType: Inline, inline: {watchNamespaces: m}}}\n",
			`f.yaml:4:118: unknown field "watchNamespaces" in spec.config.inline (did you mean "watchNamespace"?)`,
		},
		{
			"operator group", group + "spec: {targetNamespace: [a], selector: {matchExpressions: [{key: k, operator: In}]}, upgradeStrategy: Unsafe}\n",
			"f.yaml:4:8: unknown field \"targetNamespace\" in spec (did you mean \"targetNamespaces\"?)\n" +
				"f.yaml:4:60: spec.selector.matchExpressions[0].values: missing: In requires at least one value\n" +
				"f.yaml:4:103: spec.upgradeStrategy: \"Unsafe\": must be one of Default, TechPreviewUnsafeFailForward",
		},
		{
			"catalog source", "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: c, namespace: olm}\nspec: {sourceType: GRPC, priority: high, images: x}\n",
			"f.yaml:4:20: spec.sourceType: \"GRPC\": must be one of grpc, configmap, internal (did you mean \"grpc\"?)\n" +
				"f.yaml:4:36: spec.priority: expected an integer, got \"high\"\n" +
				"f.yaml:4:42: unknown field \"images\" in spec (did you mean \"image\"?)",
		},
		{"cluster catalog", "apiVersion: olm.operatorframework.io/v1\nkind: ClusterCatalog\nmetadata: {name: c}\nspec: {source: {type: Image}}\n", `f.yaml:4:16: spec.source.image.ref: missing`},
		{
			"csv annotation", "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: c, namespace: m, annotations: {operatorframework.io/properties: x}}\n",
			`f.yaml:3:82: metadata.annotations.operatorframework.io/properties: not a JSON object with properties: invalid character 'x' looking for beginning of value`,
		},
		{"twice", good + "---\n" + strings.Replace(good, "source: hub", "channel: beta, source: hub", 1), `f.yaml:6:1: subscription "ns/a" is declared twice, first at f.yaml:1:1`},
		{"twice across dialects", good + "---\n" + own + "spec: {package: a}\n", `f.yaml:6:1: subscription "ns/a" is declared twice, first at f.yaml:1:1`},
		{"group twice", group + "---\n" + group + "spec: {targetNamespaces: [ns]}\n", `f.yaml:5:1: OperatorGroup "ns/og" is declared twice, first at f.yaml:1:1`},
		{"contradiction", good + "---\n" + strings.Replace(own, "name: a", "name: b", 1) + "spec: {package: a, catalog: olm/other}\n", `f.yaml:9:29: package "a" in namespace "ns" is requested with a different catalog at f.yaml:4:25`},
		{
			"contradicting config", strings.Replace(good, "source: hub", "config: {nodeSelector: {a: b}}, source: hub", 1) + "---\n" + strings.Replace(strings.Replace(good, "{name: a, name", "{name: b, name", 1), "source: hub", "config: {nodeSelector: {a: c}}, source: hub", 1),
			`f.yaml:9:25: package "a" in namespace "ns" is requested with a different config at f.yaml:4:25`,
		},
	}
}

func TestErrors(t *testing.T) {
	for _, c := range faults() {
		_, err := declare.Parse("f.yaml", []byte(c.in))
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestLegalPairs(t *testing.T) {
	sub := "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: %s, namespace: ns}\nspec: {name: a, source: %s, sourceNamespace: olm, channel: %s, installPlanApproval: %s}\n---\n"
	for name, in := range map[string]string{
		"same channel":       fmt.Sprintf(sub, "a", "hub", "x", "Automatic") + fmt.Sprintf(sub, "b", "hub", "x", "Automatic"),
		"other channel":      fmt.Sprintf(sub, "a", "hub", "x", "Automatic") + fmt.Sprintf(sub, "b", "hub", "z", "Automatic"),
		"left to resolution": fmt.Sprintf(sub, "a", "hub", "x", "Automatic") + fmt.Sprintf(sub, "b", "other", "z", "Manual"),
	} {
		if _, err := declare.Parse("f.yaml", []byte(in)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIgnoredWithWarning(t *testing.T) {
	state, err := declare.Parse("f.yaml", []byte("apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: c}\n"))
	if err != nil || len(state.CSVs) != 0 || len(state.Warnings) != 1 || state.Warnings[0].Code != "no-state" {
		t.Errorf("a bundle's manifest: %v, %+v", err, state)
	}
	set, err := declare.Parse("f.yaml", []byte("apiVersion: operator.coreos.com/v1alpha1\nkind: Subscription\n---\napiVersion: messaging.knative.dev/v1\nkind: Subscription\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `f.yaml:1:13: Subscription of operator.coreos.com/v1alpha1 is ignored (did you mean "operators.coreos.com/v1alpha1"?)`
	if len(set.Warnings) != 1 || set.Warnings[0].String() != want {
		t.Errorf("got %v\nwant %s", set.Warnings, want)
	}
}

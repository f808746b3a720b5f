package declare_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
)

const threeDialects = `# kept as they are
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: etcd, namespace: my-etcd, labels: {a: b}, uid: 1-2, generation: 3}
spec:
  name: etcd
  source: hub
  sourceNamespace: olm
  channel: stable
  startingCSV: etcd.v1
  installPlanApproval: Manual
  config:
    env: [{name: A, value: "1"}]
    resources: {limits: {cpu: 1, memory: 1Gi}}
    volumes: [{name: v, configMap: {name: c}}]
status: {installedCSV: etcd.v1, currentCSV: etcd.v2, lastUpdated: null, conditions: [{type: X}]}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: argo}
spec:
  namespace: argocd
  serviceAccount: {name: argo}
  source:
    sourceType: Catalog
    catalog:
      packageName: argocd-operator
      version: ">=0.6, <1"
      channels: [beta, alpha]
      selector: {matchLabels: {tier: gold}, matchExpressions: [{key: k, operator: In, values: [v]}]}
      upgradeConstraintPolicy: SelfCertified
  install: {preflight: {crdUpgradeSafety: {enforcement: None}}}
  config: {configType: Inline, inline: {watchNamespace: argocd, deploymentConfig: {nodeSelector: {a: b}}}}
status: {install: {bundle: {name: argocd-operator.v0.6.0, version: 0.6.0}}}
---
apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: prom, namespace: mon}
spec:
  package: prometheus
  version: ~0.56
  catalog: olm/hub
  watchNamespaces: [b, a, b]
  hold: "waits for #12"
---
apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: own, namespace: mon}
spec: {bundle: "dir:bundle/", watchNamespaces: ["*"]}
---
apiVersion: v1
kind: ConfigMap
data: {spec: {anything: goes}}
`

func TestParseDialects(t *testing.T) {
	set, err := declare.Parse("s.yaml", []byte(threeDialects))
	if err != nil {
		t.Fatal(err)
	}
	hub := &catalog.ID{Namespace: "olm", Name: "hub"}
	want := []declare.Subscription{
		{
			Dialect: declare.V1, Name: "argo", Namespace: "argocd", Package: "argocd-operator", Channels: []string{"beta", "alpha"}, Range: ">=0.6, <1",
			Selector: &declare.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}, MatchExpressions: []declare.LabelExpression{{Key: "k", Operator: "In", Values: []string{"v"}}}},
			Approval: declare.Automatic, Policy: declare.SelfCertified, Watch: []string{"argocd"}, Config: []byte(`{"nodeSelector":{"a":"b"}}`),
			InstalledCSV: "argocd-operator.v0.6.0", Pos: diag.Pos{File: "s.yaml", Line: 18, Col: 1},
		},
		{
			Dialect: declare.Quayside, Name: "own", Namespace: "mon", Approval: declare.Automatic, Policy: declare.CatalogProvided,
			WatchAll: true, Bundle: "dir:bundle/", Pos: diag.Pos{File: "s.yaml", Line: 46, Col: 1},
		},
		{
			Dialect: declare.Quayside, Name: "prom", Namespace: "mon", Package: "prometheus", Range: "~0.56", Catalog: hub, Approval: declare.Automatic,
			Policy: declare.CatalogProvided, Hold: "waits for #12", Watch: []string{"a", "b"}, Pos: diag.Pos{File: "s.yaml", Line: 36, Col: 1},
		},
		{
			Dialect: declare.V0, Name: "etcd", Namespace: "my-etcd", Package: "etcd", Channels: []string{"stable"}, Catalog: hub, StartingCSV: "etcd.v1",
			Approval: declare.Manual, Policy: declare.CatalogProvided,
			Config:       []byte(`{"env":[{"name":"A","value":"1"}],"resources":{"limits":{"cpu":1,"memory":"1Gi"}},"volumes":[{"configMap":{"name":"c"},"name":"v"}]}`),
			InstalledCSV: "etcd.v1", Pos: diag.Pos{File: "s.yaml", Line: 2, Col: 1},
		},
	}
	if d := cmp.Diff(want, set.Subscriptions, cmpopts.IgnoreFields(declare.Subscription{}, "Fields", "Digest")); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got, want := set.Subscriptions[3].At(declare.FieldChannel), (diag.Pos{File: "s.yaml", Line: 9, Col: 12}); got != want {
		t.Errorf("position of spec.channel: got %v, want %v", got, want)
	}
}

func TestParseOtherKinds(t *testing.T) {
	set, err := declare.Parse("s.json", []byte(`{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","metadata":{"name":"hub","namespace":"olm"},"spec":{"sourceType":"grpc","image":"quay.io/x/y:latest","priority":-5,"updateStrategy":{"registryPoll":{"interval":"10m"}}}},
{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterCatalog","metadata":{"name":"c","labels":{"tier":"gold"}},"spec":{"source":{"type":"Image","image":{"ref":"quay.io/x/z:1"}},"priority":3,"availabilityMode":"Unavailable"}},
{"apiVersion":"operators.coreos.com/v1","kind":"OperatorGroup","metadata":{"name":"og","namespace":"b","annotations":{"olm.operatorframework.io/exclude-global-namespace-resolution":"true"}},"spec":{"targetNamespaces":["z","a"],"serviceAccountName":"sa"}},
{"apiVersion":"operators.coreos.com/v1alpha2","kind":"OperatorGroup","metadata":{"name":"og","namespace":"c"},"spec":{"selector":{"matchLabels":{"team":"x"}},"upgradeStrategy":"Default"}},
{"apiVersion":"operators.coreos.com/v1","kind":"OperatorGroup","metadata":{"name":"og","namespace":"d"}},
{"apiVersion":"operators.coreos.com/v1","kind":"OperatorGroup","metadata":{"name":"og","namespace":"e"},"spec":{"selector":{},"targetNamespaces":[""]}},
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n1","labels":{"team":"x"}}},
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n0","labels":{"team":"y"}}}
]}`))
	if err != nil {
		t.Fatal(err)
	}
	at := func(line int) diag.Pos { return diag.Pos{File: "s.json", Line: line, Col: 1} }
	sources := []declare.CatalogSource{
		{
			ID: catalog.ID{Name: "c"}, Image: "quay.io/x/z:1", Priority: 3, Disabled: true, Pos: at(3), Content: diag.Pos{File: "s.json", Line: 3, Col: 166},
			Labels: map[string]string{"tier": "gold", "olm.operatorframework.io/metadata.name": "c"},
		},
		{ID: catalog.ID{Namespace: "olm", Name: "hub"}, Image: "quay.io/x/y:latest", Priority: -5, Pos: at(2), Content: diag.Pos{File: "s.json", Line: 2, Col: 150}},
	}
	if d := cmp.Diff(sources, set.CatalogSources); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	groups := []declare.OperatorGroup{
		{Namespace: "b", Name: "og", TargetNamespaces: []string{"a", "z"}, ServiceAccountName: "sa", ExcludeGlobal: true, Pos: at(4)},
		{Namespace: "c", Name: "og", Selector: &declare.LabelSelector{MatchLabels: map[string]string{"team": "x"}}, UpgradeStrategy: "Default", Pos: at(5)},
		{Namespace: "d", Name: "og", Pos: at(6)},
		{Namespace: "e", Name: "og", Pos: at(7)},
	}
	if d := cmp.Diff(groups, set.OperatorGroups, cmpopts.IgnoreFields(declare.OperatorGroup{}, "Fields", "Digest")); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := set.NamespacesMatching(groups[1].Selector); !cmp.Equal(got, []string{"n1"}) {
		t.Errorf("the selector matches %q, want n1", got)
	}
	if got := set.OperatorGroupsIn("b"); len(got) != 1 || got[0].ServiceAccountName != "sa" {
		t.Errorf("got %v in namespace b", got)
	}
}

func TestClusterServiceVersions(t *testing.T) {
	const csv = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: %s, namespace: ops%s}
spec:
  version: 1.2.3
  replaces: a.v1
  customresourcedefinitions:
    owned: [{name: as.example.com, version: v1, kind: A, description: x}]
    required: [{name: bs.other.org, version: v2, kind: B}]
  apiservicedefinitions:
    owned: [{group: api.example.com, version: v1, kind: C, name: cs}]
  install: {strategy: deployment}
status: {phase: Succeeded}
---
`
	const sub = `apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: %s, namespace: ops}
spec: {name: %s, source: hub, sourceNamespace: olm}
status: {installedCSV: a.v2}
---
`
	in := fmt.Sprintf(csv, "a.v2", "") + fmt.Sprintf(sub, "s", "a") +
		fmt.Sprintf(csv, "b.v2", `, annotations: {operatorframework.io/properties: '{"properties":[{"type":"olm.package","value":{"version":"2.0.0","packageName":"b"}}]}'}`) +
		fmt.Sprintf(csv, "c.v2", ", labels: {olm.copiedFrom: other}")
	set, err := declare.Parse("s.yaml", []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	apis := []catalog.Property{
		{Type: "olm.gvk", Value: []byte(`{"group":"example.com","kind":"A","version":"v1"}`)},
		{Type: "olm.gvk", Value: []byte(`{"group":"api.example.com","kind":"C","version":"v1"}`)},
		{Type: "olm.gvk.required", Value: []byte(`{"group":"other.org","kind":"B","version":"v2"}`)},
	}
	pkg := func(name, version string) catalog.Property {
		return catalog.Property{Type: "olm.package", Value: []byte(`{"packageName":"` + name + `","version":"` + version + `"}`)}
	}
	one := func(name string) declare.ClusterServiceVersion {
		return declare.ClusterServiceVersion{Namespace: "ops", Name: name, Version: "1.2.3", Replaces: "a.v1"}
	}
	a, b, c := one("a.v2"), one("b.v2"), one("c.v2")
	a.Properties = append(append([]catalog.Property(nil), apis...), pkg("a", "1.2.3"))
	b.Properties, b.Annotated = []catalog.Property{pkg("b", "2.0.0")}, true
	c.Properties, c.Copied = apis, true
	if d := cmp.Diff([]declare.ClusterServiceVersion{a, b, c}, set.CSVs, cmpopts.IgnoreTypes(diag.Pos{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	two, err := declare.Parse("s.yaml", []byte(in+fmt.Sprintf(sub, "t", "other")))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(apis, two.CSVs[0].Properties); d != "" {
		t.Errorf("the CSV is installed by two packages, so no package is inferred: -want +got\n%s", d)
	}
}

func TestDigest(t *testing.T) {
	digest := func(in string) catalog.Digest {
		set, err := declare.Parse("f", []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		return set.Subscriptions[0].Digest
	}
	head := "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\n"
	base := digest(head + "metadata: {name: a, namespace: b}\nspec: {package: p, config: {nodeSelector: {x: v, z: w}}}\n")
	for name, in := range map[string]string{
		"comments and order": "# x\nspec:\n  config: {nodeSelector: {z: \"w\", x: v}}\n  package: \"p\"\nkind: Subscription\nmetadata: {namespace: b, name: a}\napiVersion: quayside.dev/v1alpha1\n",
		"metadata":           head + "metadata: {name: a, namespace: b, labels: {x: v}, annotations: {a: b}}\nspec: {package: p, config: {nodeSelector: {x: v, z: w}}}\n",
		"default spelt out":  head + "metadata: {name: a, namespace: b}\nspec: {package: p, approval: Automatic, hold: \"\", config: {nodeSelector: {x: v, z: w}}}\n",
	} {
		if got := digest(in); got != base {
			t.Errorf("%s changed the digest", name)
		}
	}
	for name, in := range map[string]string{
		"channel":  "spec: {package: p, channel: c, config: {nodeSelector: {x: v, z: w}}}\n",
		"config":   "spec: {package: p, config: {nodeSelector: {x: v, z: v}}}\n",
		"approval": "spec: {package: p, approval: Manual, config: {nodeSelector: {x: v, z: w}}}\n",
		"hold":     "spec: {package: p, hold: h, config: {nodeSelector: {x: v, z: w}}}\n",
		"version":  "spec: {package: p, version: \"1\", config: {nodeSelector: {x: v, z: w}}}\n",
		"watch":    "spec: {package: p, watchNamespaces: [w], config: {nodeSelector: {x: v, z: w}}}\n",
		"catalog":  "spec: {package: p, catalog: c, config: {nodeSelector: {x: v, z: w}}}\n",
	} {
		if got := digest(head + "metadata: {name: a, namespace: b}\n" + in); got == base {
			t.Errorf("%s did not change the digest", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(threeDialects))
	f.Add([]byte(fmt.Sprintf(applicationHead, `, labels: {quayside.dev/operator: "true"}`) + "spec: {sources: [{repoURL: a.example.com/b, chart: c, targetRevision: 1.x, helm: {values: 'a: 1', valueFiles: [$r/x], parameters: [{name: a, value: b}]}}, {ref: r}], destination: {namespace: d}}\n"))
	f.Add([]byte("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: a, labels: {quayside.dev/operator: 'true'}}\nspec: {chart: {spec: {chart: b, sourceRef: {kind: HelmRepository, name: charts, namespace: b}}}, valuesFrom: [{kind: ConfigMap, name: lamp}]}\n" + fluxSources))
	for _, c := range faults() {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		lines := strings.Split(string(in), "\n")
		inside := func(p diag.Pos) {
			if p.Line > len(lines) || p.Line > 0 && p.Col > len(lines[p.Line-1])+1 {
				t.Errorf("%v is outside of the file", p)
			}
		}
		set, err := declare.Parse("f", in)
		if err != nil {
			var faults diag.List
			errors.As(err, &faults)
			for _, e := range faults {
				inside(e.Pos)
			}
			return
		}
		for _, s := range set.Subscriptions {
			inside(s.Pos)
			if s.Approval == "" || s.Policy == "" || s.Name == "" || s.Namespace == "" || (s.Package == "") == (s.Bundle == "") {
				t.Errorf("incomplete: %+v", s)
			}
		}
		again, err := declare.Merge(set)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(set, again); d != "" {
			t.Errorf("merging once more changed the set: %s", d)
		}
	})
}

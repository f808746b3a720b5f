package declare_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/testing/goldentest"
)

// fluxFields returns the treatment of every field of a HelmRelease, in the order of the page. A field has two
// valid values, or one if the field is rejected.
func fluxFields() []olmField {
	const cluster = "concerns Flux; quayside renders manifests"
	return []olmField{
		{path: "spec.chart.spec.chart", is: isRead, why: "the package; of a `GitRepository`, the directory of the chart in this repository", values: []string{"lamp", "torch"}},
		{path: "spec.chart.spec.version", is: isRead, why: "the range of versions; not of a `GitRepository`", values: []string{"1.x", "'>=1 <3'"}},
		{path: "spec.chart.spec.sourceRef.name", is: isRead, why: "the catalog: a `HelmRepository` in a declared file, with its name; or a `GitRepository`, which is taken for this repository", values: []string{"charts", "other"}},
		{path: "spec.chart.spec.sourceRef.namespace", is: isRead, why: "its namespace; default: that of the HelmRelease", values: []string{"flux-system", "b"}},
		{path: "spec.chart.spec.interval", is: isPassed, why: cluster, values: []string{"1h"}},
		{path: "spec.chart.spec.reconcileStrategy", is: isPassed, why: cluster, values: []string{"Revision"}},
		{path: "spec.chart.spec.valuesFiles", is: isRefused, why: "these files are in the chart: copy their values into `spec.values`", values: []string{"[x.yaml]"}},
		{path: "spec.chart.spec.ignoreMissingValuesFiles", is: isPassed, why: "concerns `valuesFiles`", values: []string{"true"}},
		{path: "spec.chart.spec.verify", is: isRefused, why: "use `spec.trust` in `quayside.yaml`", values: []string{"{provider: cosign}"}},
		{path: "spec.chart.metadata", is: isPassed, why: cluster, values: []string{"{labels: {a: b}}"}},
		{path: "spec.chartRef", is: isRead, why: "an `OCIRepository` in a declared file: the package is the last part of its URL, the range is `ref.semver` or `ref.tag`", values: []string{"{kind: OCIRepository, name: lamp, namespace: flux-system}"}},
		{path: "spec.releaseName", is: isRead, why: "the name of the release; default as in Flux", values: []string{"r", "s"}},
		{path: "spec.targetNamespace", is: isRead, why: "the namespace; default: that of the HelmRelease", values: []string{"c", "d"}},
		{path: "spec.values", is: isRead, why: "the values", values: []string{"{a: 1}", "{a: 2}"}},
		{path: "spec.valuesFrom", is: isRead, why: "values in a `ConfigMap` of a declared file, below `spec.values`. A `Secret` and `targetPath` are rejected", values: []string{"[{kind: ConfigMap, name: lamp}]", "[{kind: ConfigMap, name: lamp, valuesKey: other}]"}},
		{path: "spec.postRenderers", is: isRefused, why: "use an overlay of quayside", values: []string{"[{}]"}},
		{path: "spec.commonMetadata", is: isRefused, why: "use an overlay of quayside", values: []string{"{labels: {a: b}}"}},
		{path: "spec.kubeConfig", is: isRefused, why: "use `spec.clusters` in `quayside.yaml`", values: []string{"{secretRef: {name: x}}"}},
		{path: "spec.suspend", is: isPassed, why: "a suspended HelmRelease declares the operator, too", values: []string{"true"}},
		{path: "spec.install", is: isPassed, why: "CRDs are always rendered, and applied before the operator", values: []string{"{crds: Skip}"}},
		{path: "spec.upgrade", is: isPassed, why: "the same", values: []string{"{crds: CreateReplace}"}},
		{path: "spec.dependsOn", is: isPassed, why: cluster, values: []string{"[{name: x}]"}},
		{path: "spec.interval", is: isPassed, why: cluster, values: []string{"1h"}},
		{path: "spec.timeout", is: isPassed, why: cluster, values: []string{"1h"}},
		{path: "spec.storageNamespace", is: isPassed, why: cluster, values: []string{"x"}},
		{path: "spec.maxHistory", is: isPassed, why: cluster, values: []string{"1"}},
		{path: "spec.serviceAccountName", is: isPassed, why: "the permissions are those of the account that applies the tree", values: []string{"x"}},
		{path: "spec.persistentClient", is: isPassed, why: cluster, values: []string{"true"}},
		{path: "spec.driftDetection", is: isPassed, why: cluster, values: []string{"{mode: warn}"}},
		{path: "spec.test", is: isPassed, why: "hooks of tests are left out", values: []string{"{enable: true}"}},
		{path: "spec.rollback", is: isPassed, why: cluster, values: []string{"{}"}},
		{path: "spec.uninstall", is: isPassed, why: cluster, values: []string{"{}"}},
		{path: "spec.waitStrategy", is: isPassed, why: cluster, values: []string{"{name: poller}"}},
		{path: "spec.healthCheckExprs", is: isPassed, why: cluster, values: []string{"[]"}},
	}
}

const fluxSources = `
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {url: https://charts.example.com/, interval: 1h}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: b}
spec: {url: https://b.example.com/charts, interval: 1h}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: other, namespace: flux-system}
spec: {url: oci://registry.example.com/charts, type: oci}
---
apiVersion: source.toolkit.fluxcd.io/v1beta2
kind: OCIRepository
metadata: {name: lamp, namespace: flux-system}
spec: {url: oci://registry.example.com/other/lamp, ref: {semver: ">=2"}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: fixed, namespace: flux-system}
spec: {url: oci://registry.example.com/other/lamp, ref: {digest: "sha256:aa", tag: v1}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: private, namespace: flux-system}
spec: {url: "https://ada:secret@charts.example.com"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: twice, namespace: flux-system}
spec: {url: "https://charts.example.com"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: twice, namespace: flux-system}
spec: {url: "https://example.com/charts"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: lamp, namespace: a}
data: {values.yaml: "a: {b: 1, c: 2}", other: "a: {c: 3}", list: "[a]", twice: "a: 1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: lamp, namespace: a}
data: {values.yaml: "a: {b: 1, c: 2}", other: "a: {c: 3}", list: "[a]", twice: "a: 2"}
`

// readRelease reads a HelmRelease that also has the given fields. The keys of fields are paths.
func readRelease(t *testing.T, fields map[string]string) (*declare.Set, error) {
	t.Helper()
	object := map[string]any{}
	base := "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: lamp, namespace: a}\nspec: {interval: 1h, chart: {spec: {chart: lamp, sourceRef: {kind: HelmRepository, name: charts, namespace: flux-system}}}}\n"
	if err := yaml.Unmarshal([]byte(base), &object); err != nil {
		t.Fatal(err)
	}
	text := withFields(t, object, fields)
	return declare.LoadFS(files("-- local/lamp/Chart.yaml --\n{name: torch, version: 1.0.0}\n-- r.yaml --\n"+text+fluxSources), declare.LoadOptions{Paths: paths("r.yaml")})
}

// withFields adds fields to an object, and returns the object as YAML. The keys of fields are paths.
func withFields(t *testing.T, object map[string]any, fields map[string]string) string {
	t.Helper()
	for where, value := range fields {
		steps := strings.Split(where, ".")
		in := object
		for _, step := range steps[:len(steps)-1] {
			next, ok := in[step].(map[string]any)
			if !ok {
				next = map[string]any{}
				in[step] = next
			}
			in = next
		}
		var v any
		if err := yaml.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		in[steps[len(steps)-1]] = v
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkFields tries each field of an object that installs a chart. read adds fields to the object, and reads it.
func checkFields(t *testing.T, fields []olmField, read func(fields map[string]string) (*declare.Set, error)) {
	t.Helper()
	digest := func(fields map[string]string) (string, error) {
		set, err := read(fields)
		if err != nil {
			return "", err
		}
		s := set.Subscriptions[0]
		return fmt.Sprint(s.Digest, set.CatalogSources[0].Charts), nil
	}
	plain, err := digest(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		changed := false
		for _, value := range f.values {
			got, err := digest(map[string]string{f.path: value})
			if f.is == isRefused && (err == nil || !strings.Contains(err.Error(), f.path[strings.LastIndex(f.path, ".")+1:]+": not supported for operators")) || f.is != isRefused && err != nil {
				t.Errorf("%s: %s: %v", f.path, value, err)
			}
			changed = changed || got != plain
		}
		if f.is != isRefused && changed != (f.is == isRead) {
			t.Errorf("%s: changed: %t", f.path, changed)
		}
	}
}

// compareFields compares a table of fields with its page.
func compareFields(t *testing.T, page, before string, fields []olmField, after string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(before + "\n| Field | Treatment | Meaning |\n| --- | --- | --- |\n")
	for _, f := range fields {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.path, f.is, f.why)
	}
	b.WriteString("\n" + after)
	goldentest.Compare(t, page, []byte(b.String()))
}

// TestFluxFields tries each field of a HelmRelease.
func TestFluxFields(t *testing.T) {
	checkFields(t, fluxFields(), func(fields map[string]string) (*declare.Set, error) { return readRelease(t, fields) })
}

// TestGoldenFluxFields compares the table with its page.
func TestGoldenFluxFields(t *testing.T) {
	compareFields(t, "../docs/helmrelease-fields.md", `# Fields of Flux's HelmRelease

A HelmRelease declares an operator if `+"`spec.declarations`"+` lists its file, or if it has the label
`+"`quayside.dev/operator: \"true\"`"+`. quayside reads it as a [Subscription](subscription.md) of the chart. The file with
its `+"`HelmRepository` or `OCIRepository`"+` must be listed, too. The treatments are those of [OLM's kinds](olm-fields.md).
`, fluxFields(), "Any other field is an error with its position, and so is a chart in a `Bucket`.\n")
}

// describe lists the operators and catalogs of a set, and the error.
func describe(set *declare.Set, err error) string {
	var out []string
	if set != nil {
		for _, s := range set.Subscriptions {
			out = append(out, fmt.Sprintf("%s/%s %s %q %s %s", s.Namespace, s.Name, s.Package, s.Range, s.Catalog, s.Release))
		}
		for _, c := range set.CatalogSources {
			out = append(out, c.ID.String()+" "+c.Charts)
		}
	}
	if err != nil {
		out = append(out, err.Error())
	}
	return strings.Join(out, "\n")
}

// TestHelmReleases reads HelmReleases from the paths of each case, with the catalogs of their sources.
func TestHelmReleases(t *testing.T) {
	for want, fields := range map[string]map[string]string{
		"a/lamp lamp \"\" charts lamp\ncharts https://charts.example.com":                                                                                                       nil,
		"b/lamp lamp \"1.x\" charts b-lamp\ncharts https://charts.example.com":                                                                                                  {"spec.targetNamespace": "b", "spec.chart.spec.version": "1.x"},
		"a/lamp lamp \"\" other-lamp lamp\nother-lamp oci://registry.example.com/charts/lamp":                                                                                   {"spec.chart.spec.sourceRef.name": "other"},
		"a/lamp lamp \">=2\" lamp lamp\nlamp oci://registry.example.com/other/lamp":                                                                                             {"spec.chartRef": "{kind: OCIRepository, name: lamp, namespace: flux-system}"},
		"r.yaml:11:17: HelmRepository flux-system/gone is not declared\n  hint: list its file in spec.declarations":                                                             {"spec.chart.spec.sourceRef.name": "gone"},
		"r.yaml:11:23: spec.chart.spec.sourceRef.kind: \"Bucket\": must be one of HelmRepository, GitRepository":                                                                {"spec.chart.spec.sourceRef.kind": "Bucket"},
		"a/lamp torch \"\" charts-torch lamp\ncharts-torch dir:local/lamp":                                                                                                      {"spec.chart.spec.sourceRef.kind": "GitRepository", "spec.chart.spec.chart": "./local/lamp", "spec.chart.spec.version": "2.x"},
		"r.yaml:9:20: \"local\" is not a directory of this repository with a chart\n  hint: copy the chart into this repository, or use a HelmRepository or an OCIRepository":   {"spec.chart.spec.sourceRef.kind": "GitRepository", "spec.chart.spec.chart": "local"},
		"r.yaml:9:20: \"../lamp\" is not a directory of this repository with a chart\n  hint: copy the chart into this repository, or use a HelmRepository or an OCIRepository": {"spec.chart.spec.sourceRef.kind": "GitRepository", "spec.chart.spec.chart": "../lamp"},
		"r.yaml:11:17: HelmRepository flux-system/private has a user name or a password in spec.url: log in to the host, as for images":                                         {"spec.chart.spec.sourceRef.name": "private"},
		"r.yaml:11:17: HelmRepository flux-system/twice has two contents: at r.yaml:47:1 and at r.yaml:52:1":                                                                    {"spec.chart.spec.sourceRef.name": "twice"},
		"r.yaml:16:11: ConfigMap a/lamp has two values for the key \"twice\": at r.yaml:61:1 and at r.yaml:66:1":                                                                {"spec.valuesFrom": "[{kind: ConfigMap, name: lamp, valuesKey: twice}]"},
		"r.yaml:11:17: OCIRepository flux-system/fixed has spec.ref.digest, which is not supported: use spec.ref.tag or spec.ref.semver":                                        {"spec.chartRef": "{kind: OCIRepository, name: fixed, namespace: flux-system}"},
	} {
		if d := cmp.Diff(want, describe(readRelease(t, fields))); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	}
	const lamp = "{kind: ConfigMap, name: lamp}"
	for want, from := range map[string]string{
		`{"a":{"b":9,"c":2}}`: "[" + lamp + "]",
		`{"a":{"b":9,"c":3}}`: "[{kind: ConfigMap, name: gone, optional: true}, " + lamp + ", {kind: ConfigMap, name: lamp, valuesKey: other}]",
		"r.yaml:19:11: ConfigMap a/gone with the key \"values.yaml\" was not found\n  hint: list its file in spec.declarations":                              "[{kind: ConfigMap, name: gone}]",
		"r.yaml:19:11: ConfigMap a/lamp: list:1:1: expected a mapping, got a list":                                                                           "[{kind: ConfigMap, name: lamp, valuesKey: list}]",
		"r.yaml:19:17: spec.valuesFrom[0].kind: not supported for operators: Secret \"x\" is not available offline; let the operator read it in the cluster": "[{kind: Secret, name: x}]",
		"r.yaml:21:23: spec.valuesFrom[0].targetPath: not supported for operators: write the value into spec.values":                                         "[{kind: ConfigMap, name: lamp, targetPath: a}]",
	} {
		set, err := readRelease(t, map[string]string{"spec.valuesFrom": from, "spec.values": "{a: {b: 9}}"})
		got := fmt.Sprint(err)
		if err == nil {
			got = string(set.Subscriptions[0].ChartValues)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	}
	release := "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: %s, namespace: a%s}\nspec: {chart: {spec: {chart: lamp, sourceRef: {kind: HelmRepository, name: charts, namespace: flux-system}}}}\n"
	all := "-- d/r.yaml --\n" + fmt.Sprintf(release, "app", "") + "---\n" + fmt.Sprintf(release, "asked", `, labels: {quayside.dev/operator: "true"}`) + "-- d/s.yaml --" + fluxSources
	set, err := declare.LoadFS(files(all), declare.LoadOptions{Paths: paths("d")})
	if d := cmp.Diff("a/asked lamp \"\" charts asked\ncharts https://charts.example.com", describe(set, err)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}

	// A ConfigMap of a path that overrides replaces the one of an earlier path.
	one := "-- d/r.yaml --\n" + fmt.Sprintf(release, "app", "") + "  valuesFrom: [{kind: ConfigMap, name: lamp}]" + "\n-- d/s.yaml --" + fluxSources + "-- e/kustomization.yaml --\nresources: [m.yaml]\n-- e/m.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: lamp, namespace: a}, data: {values.yaml: 'b: 1'}}\n"
	one = strings.Replace(one, "}}}}\n  valuesFrom: [{kind: ConfigMap, name: lamp}]", "}}}, valuesFrom: [{kind: ConfigMap, name: lamp}]}", 1)
	set, err = declare.LoadFS(files(one), declare.LoadOptions{Paths: paths("d/r.yaml", "d/s.yaml", "e")})
	if err != nil || string(set.Subscriptions[0].ChartValues) != `{"b":1}` {
		t.Errorf("got %v, %v, want the values of the last path", set, err)
	}

	// HelmRepositories with the same name in two namespaces are two sources.
	two := "-- d/r.yaml --\n" + fmt.Sprintf(release, "app", "") + "---\n" + strings.Replace(fmt.Sprintf(release, "else", ""), "namespace: flux-system}", "namespace: b}", 1) + "-- d/s.yaml --" + fluxSources
	set, err = declare.LoadFS(files(two), declare.LoadOptions{Paths: paths("d/r.yaml", "d/s.yaml")})
	if d := cmp.Diff("a/app lamp \"\" charts app\ncharts https://charts.example.com\nd/r.yaml:9:47: HelmRepository b/charts gives a catalog the name \"charts\", which is that of https://charts.example.com\n  hint: rename one of them", describe(set, err)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

package extend_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/extend"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
)

// TestReadCharts reads HelmReleases and Applications whose installed version is unknown or ambiguous.
func TestReadCharts(t *testing.T) {
	const repository = `{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: c, namespace: ns}, spec: {url: "https://example.com"}}`
	const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: v, namespace: ns}, data: {y: ""}}`
	release := func(name, spec, status string) string {
		return "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: " + name + ", namespace: ns, labels: {quayside.dev/operator: \"true\"}}, spec: {chart: {spec: {chart: lamp, sourceRef: {kind: HelmRepository, name: c}}}" + spec + "}, status: " + status + "}"
	}
	history := func(name, more string) string {
		entry := "name: " + name + ", namespace: ns"
		for field, value := range map[string]string{"chartName": "lamp", "chartVersion": "1.0.0", "status": "deployed"} {
			if !strings.Contains(more, field+":") {
				entry += ", " + field + ": " + value
			}
		}
		return "{history: [{" + entry + more + "}]}"
	}
	app := func(source, status string) string {
		return "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a, namespace: argocd, labels: {quayside.dev/operator: \"true\"}}, spec: {destination: {namespace: ns}, source: " + source + "}, status: " + status + "}"
	}
	const chart = `{repoURL: "https://example.com", chart: lamp, targetRevision: "1.x"}`
	for name, c := range map[string]struct {
		objects []string
		want    string // reason of the only skipped object, or "namespace/name bundle"
	}{
		"installed":                       {[]string{release("a", "", history("a", ""))}, "ns/a lamp-1.0.0"},
		"no status":                       {[]string{release("a", "", "{}")}, "status.history is empty: Flux has installed no version"},
		"a status of another type":        {[]string{release("a", "", `{history: [1, "x"]}`)}, "status.history is empty: Flux has installed no version"},
		"an empty entry":                  {[]string{release("a", "", "{history: [{}]}")}, "status.history[0].chartVersion is missing"},
		"uninstalled":                     {[]string{release("a", "", history("a", ", status: uninstalled"))}, "status.history[0].status is uninstalled"},
		"another release":                 {[]string{release("a", ", releaseName: b", history("a", ""))}, "release ns/a is installed, but its spec has release ns/b"},
		"another chart":                   {[]string{release("a", "", history("a", ", chartName: torch"))}, "chart torch is installed, but its spec has chart lamp"},
		"no version":                      {[]string{release("a", "", history("a", ", chartVersion: ../x"))}, "ns/a lamp-../x"},
		"the digest of Flux":              {[]string{release("a", "", history("a", ", chartVersion: 1.0.0+0123456789ab, ociDigest: \"sha256:0123456789abcdef\""))}, "ns/a lamp-1.0.0"},
		"build metadata":                  {[]string{release("a", "", history("a", ", chartVersion: 1.0.0+ab, ociDigest: \"sha256:0123456789abcdef\""))}, "ns/a lamp-1.0.0+ab"},
		"a chart in Git":                  {[]string{strings.Replace(release("a", "", history("a", "")), "kind: HelmRepository", "kind: GitRepository", 1)}, `it cannot be declared: "lamp" is not a directory of this repository with a chart`},
		"a ConfigMap that is not there":   {[]string{release("a", ", valuesFrom: [{kind: ConfigMap, name: v}]", history("a", ""))}, `it cannot be declared: ConfigMap ns/v with the key "values.yaml" was not found`},
		"a ConfigMap without the key":     {[]string{release("a", ", valuesFrom: [{kind: ConfigMap, name: v, valuesKey: x}]", history("a", "")), configMap}, `it cannot be declared: ConfigMap ns/v with the key "x" was not found`},
		"v2beta1":                         {[]string{strings.Replace(release("a", "", "{lastAppliedRevision: 1.0.0}"), "/v2,", "/v2beta1,", 1)}, "ns/a lamp-1.0.0"},
		"v2beta2":                         {[]string{strings.Replace(release("a", "", history("a", "")), "/v2,", "/v2beta2,", 1)}, "ns/a lamp-1.0.0"},
		"two of a package":                {[]string{release("a", "", history("a", "")), release("b", "", history("b", ""))}, "ns/a lamp-1.0.0\nHelmRelease ns/a installs an operator with the same name or package in the same namespace, ns"},
		"an Application":                  {[]string{app(chart, "{sync: {status: Synced, revision: 1.0.0}}")}, "ns/a lamp-1.0.0"},
		"an Application without a sync":   {[]string{app(chart, "{sync: {status: Unknown, revision: 1.0.0}}")}, "status.history is empty: Argo CD has installed no version"},
		"an Application without revision": {[]string{app(chart, "{sync: {status: Synced}}")}, "status.sync.revision is missing"},
		"an Application of another chart": {[]string{app(chart, "{sync: {status: Synced, revision: 1.0.0, comparedTo: {source: {chart: torch}}}}")}, "chart torch is installed, but its spec has chart lamp"},
		"an Application of a directory":   {[]string{app(`{repoURL: "https://example.com", path: x}`, "{}")}, "spec.source.chart is missing"},
		"a digest, and a range":           {[]string{app(`{repoURL: "oci://example.com/lamp", targetRevision: "1.x"}`, `{sync: {status: Synced, revision: "sha256:00"}}`)}, `status.sync.revision is a digest, and spec.source.targetRevision "1.x" is no version: set the installed version`},
		"a digest, and a version":         {[]string{app(`{repoURL: "oci://example.com/lamp", targetRevision: 1.0.0}`, `{sync: {status: Synced, revision: "sha256:00"}}`)}, "ns/a lamp-1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := snapshot.Read("dump", strings.NewReader("---\n"+strings.Join(append(c.objects, repository), "\n---\n")), snapshot.Selection{})
			check(t, err)
			got := extend.Read(s)
			var facts []string
			for _, op := range got.Operators {
				facts = append(facts, op.Key()+" "+op.Bundle)
			}
			for _, l := range got.Skipped {
				facts = append(facts, l.Reason)
			}
			if text := strings.Join(facts, "\n"); text != c.want {
				t.Errorf("got %s\nwant %s", text, c.want)
			}
			if got.Total != len(slices.DeleteFunc(c.objects, func(o string) bool { return o == configMap })) {
				t.Errorf("%d objects", got.Total)
			}
		})
	}
}

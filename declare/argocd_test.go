package declare_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare"
)

// applicationFields returns the treatment of every field of an Application with a chart, in the order of the
// page. The rows have the same form as in fluxFields.
func applicationFields() []olmField {
	const (
		tool  = "concerns Argo CD; quayside renders manifests"
		patch = "use an overlay of quayside"
	)
	return []olmField{
		{path: "spec.source.chart", is: isRead, why: "the package", values: []string{"torch"}},
		{path: "spec.source.repoURL", is: isRead, why: "the catalog, with the URL as its name, such as `charts.jetstack.io`. A URL without `https://` is a registry. After `oci://`, the last part is the package if `chart` is not set", values: []string{"https://other.example.com", "registry.example.com/charts"}},
		{path: "spec.source.targetRevision", is: isRead, why: "the version or the range of versions, as for `helm pull --version`", values: []string{"2.0.0", "'>=1 <3'", "'*'"}},
		{path: "spec.source.helm.releaseName", is: isRead, why: "the name of the release; default: that of the Application", values: []string{"r"}},
		{path: "spec.source.helm.namespace", is: isRefused, why: "only if it is not `spec.destination.namespace`: use that", values: []string{"other"}},
		{path: "spec.source.helm.valuesObject", is: isRead, why: "the values", values: []string{"{a: 1}", "{a: 2}"}},
		{path: "spec.source.helm.values", is: isRead, why: "the values, if `valuesObject` is not set", values: []string{"'a: 1'"}},
		{path: "spec.source.helm.valueFiles", is: isRead, why: "files of this repository as `$ref/path`, where `ref` is that of another source. Other files are rejected: copy their values into `valuesObject`. The `repoURL` of that source must have the owner and name of `origin`, or of `spec.gitops.repoURL`; without these, it is taken for this repository", values: []string{"[$values/values/lamp.yaml]"}},
		{path: "spec.source.helm.ignoreMissingValueFiles", is: isChecked, why: "with `true`, files in `valueFiles` may be missing", values: []string{"true"}},
		{path: "spec.source.helm.parameters", is: isRead, why: "assignments in the syntax of `--set` or, with `forceString`, of `--set-string`. They override values", values: []string{"[{name: a.b, value: '1'}]", "[{name: a.b, value: '1', forceString: true}]"}},
		{path: "spec.source.helm.fileParameters", is: isRefused, why: "copy the text of the files into `helm.valuesObject`", values: []string{"[{name: a, path: x}]"}},
		{path: "spec.source.helm.kubeVersion", is: isRefused, why: "use `spec.kubernetesVersion` in `quayside.yaml`", values: []string{"v1.30.0"}},
		{path: "spec.source.helm.apiVersions", is: isRefused, why: "use `spec.provides` in `quayside.yaml`", values: []string{"[a/v1]"}},
		{path: "spec.source.helm.skipCrds", is: isRefused, why: "CRDs are always rendered, and applied before the operator", values: []string{"true"}},
		{path: "spec.source.helm.skipSchemaValidation", is: isRefused, why: "values must match the schema of the chart", values: []string{"true"}},
		{path: "spec.source.helm.skipTests", is: isPassed, why: "hooks of tests are left out", values: []string{"true"}},
		{path: "spec.source.helm.passCredentials", is: isPassed, why: "quayside uses your [logins for registries and web servers](registries.md#logins)", values: []string{"true"}},
		{path: "spec.source.helm.version", is: isPassed, why: "templates of Helm 3 give the same objects with Helm 4", values: []string{"v3"}},
		{path: "spec.source.path", is: isRefused, why: "a chart has no path", values: []string{"x"}},
		{path: "spec.source.kustomize", is: isRefused, why: patch, values: []string{"{namePrefix: x}"}},
		{path: "spec.source.directory", is: isRefused, why: "a chart is no directory", values: []string{"{recurse: true}"}},
		{path: "spec.source.plugin", is: isRefused, why: "quayside runs no plugins", values: []string{"{name: x}"}},
		{path: "spec.source.ref", is: isPassed, why: "a chart has no values for other sources", values: []string{"x"}},
		{path: "spec.source.name", is: isPassed, why: tool, values: []string{"x"}},
		{path: "spec.sources", is: isRead, why: "one source with a chart, as above, and sources with `ref` for `valueFiles`. Other sources are rejected: apply them with an Application of their own", values: []string{"[{repoURL: https://other.example.com, chart: lamp, targetRevision: 1.x}]"}},
		{path: "spec.destination.namespace", is: isRead, why: "the namespace", values: []string{"b"}},
		{path: "spec.destination.server", is: isPassed, why: "quayside renders for the clusters of the workspace. `cluster` of a path in `spec.declarations` selects Applications", values: []string{"https://b.example.com"}},
		{path: "spec.destination.name", is: isPassed, why: "the same", values: []string{"b"}},
		{path: "spec.project", is: isPassed, why: tool, values: []string{"x"}},
		{path: "spec.syncPolicy.automated", is: isPassed, why: tool, values: []string{"{prune: true}"}},
		{path: "spec.syncPolicy.syncOptions", is: isPassed, why: tool, values: []string{"[CreateNamespace=true]"}},
		{path: "spec.syncPolicy.retry", is: isPassed, why: tool, values: []string{"{limit: 1}"}},
		{path: "spec.syncPolicy.managedNamespaceMetadata", is: isRefused, why: "declare a Namespace with these labels and annotations", values: []string{"{labels: {a: b}}"}},
		{path: "spec.ignoreDifferences", is: isPassed, why: tool, values: []string{"[{kind: x}]"}},
		{path: "spec.info", is: isPassed, why: tool, values: []string{"[{name: x, value: x}]"}},
		{path: "spec.revisionHistoryLimit", is: isPassed, why: tool, values: []string{"1"}},
		{path: "spec.sourceHydrator", is: isRefused, why: "use `spec.source`", values: []string{"{drySource: {}}"}},
		{path: "operation", is: isPassed, why: tool, values: []string{"{}"}},
	}
}

const valuesOfLamp = "-- values/lamp.yaml --\na: {b: 3, c: 4}\n"

// readChartApplication reads an Application that installs a chart, with values from this repository. fields
// adds fields to the Application, by path; in these paths, spec.source stands for the source with the chart.
func readChartApplication(t *testing.T, fields map[string]string) (*declare.Set, error) {
	t.Helper()
	inSource, others := map[string]string{}, map[string]string{}
	for where, value := range fields {
		if of, is := strings.CutPrefix(where, "spec.source."); is {
			inSource[of] = value
		} else {
			others[where] = value
		}
	}
	source := map[string]any{"repoURL": "https://charts.example.com/", "chart": "lamp", "targetRevision": "1.x"}
	withFields(t, source, inSource)
	object := map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": "app", "namespace": "argocd"},
		"spec": map[string]any{
			"project": "default", "destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": "lights"},
			"sources": []any{map[string]any{"repoURL": "https://git.example.com/x.git", "ref": "values"}, source},
		},
	}
	return declare.LoadFS(files("-- argo/a.yaml --\n"+withFields(t, object, others)+valuesOfLamp), declare.LoadOptions{Paths: paths("argo/a.yaml")})
}

// TestApplicationFields tries each field of an Application.
func TestApplicationFields(t *testing.T) {
	checkFields(t, applicationFields(), func(fields map[string]string) (*declare.Set, error) { return readChartApplication(t, fields) })
}

// TestGoldenApplicationFields compares the table with its page.
func TestGoldenApplicationFields(t *testing.T) {
	compareFields(t, "../docs/application-fields.md", `# Fields of Argo CD's Application

An Application that installs a chart declares an operator if `+"`spec.declarations`"+` lists its file and it installs nothing
else, or if it has the label `+"`quayside.dev/operator: \"true\"`"+`. quayside reads it as a [Subscription](subscription.md)
of the chart. The treatments are those of [OLM's kinds](olm-fields.md). An ApplicationSet declares the operators of the
Applications that it creates; `+"[Charts and manifests](charts.md#applications-of-argo-cd)"+` has the rules.
`, applicationFields(), "Any other field is an error with its position.\n")
}

// TestApplicationValues merges the values of an Application in the order of Argo CD.
func TestApplicationValues(t *testing.T) {
	const file, object = "spec.source.helm.valueFiles", "spec.source.helm.valuesObject"
	for want, fields := range map[string]map[string]string{
		"":                                 nil,
		`{"a":{"b":1,"c":4},"d":"ARGOCD"}`: {file: "[$values/values/lamp.yaml]", object: "{a: {b: 1}, d: ARGOCD}", "spec.source.helm.values": "'a: {b: 2}'"},
		`{"a":{"b":2}}`:                    {"spec.source.helm.values": "'a: {b: 2}'"},
		`{"a":{"b":"9","c":4},"l":["x,y","z"],"n":"app in lights"}`: {
			file: "[$values/values/gone.yaml, $values/values/lamp.yaml]", "spec.source.helm.ignoreMissingValueFiles": "true",
			"spec.source.helm.parameters": "[{name: a.b, value: '9', forceString: true}, {name: l, value: '{x\\,y,z}'}, {name: n, value: $ARGOCD_APP_NAME in $ARGOCD_APP_NAMESPACE}]",
		},
		`{"l":[{"a":1,"b":2}]}`: {object: "{l: [{a: 1}]}", "spec.source.helm.parameters": "[{name: 'l[0].b', value: '2'}]"},
	} {
		set, err := readChartApplication(t, fields)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got := string(set.Subscriptions[0].ChartValues); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

const applicationHead = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: app%s}\n"

// TestApplications reads Applications with charts from the paths of each case, and checks the positions of
// faults.
func TestApplications(t *testing.T) {
	const chart = "spec: {source: {repoURL: https://charts.example.com, chart: lamp, targetRevision: 1.2.3}, destination: {namespace: lights}}\n"
	labelled := fmt.Sprintf(applicationHead, `, labels: {quayside.dev/operator: "true"}`)
	plain := fmt.Sprintf(applicationHead, "")
	const one = "lights/app lamp \"1.2.3\" charts.example.com app\ncharts.example.com https://charts.example.com"
	sources := func(list string) string { return "spec: {sources: [" + list + "], destination: {namespace: lights}}\n" }
	of := func(more string) string {
		return plain + "spec: {source: {repoURL: https://charts.example.com, chart: lamp, targetRevision: 1.x" + more + "}, destination: {namespace: lights}}\n"
	}
	const lamp, ref = "{repoURL: registry.example.com:5000/charts, chart: lamp, targetRevision: 1.2.3}", "{repoURL: https://git.example.com/x.git, ref: v}"
	for name, c := range map[string]struct{ path, text, want string }{
		"listed":                            {"argo/a.yaml", plain + chart, one},
		"in a listed directory":             {"argo", plain + chart, ""},
		"with the label":                    {"argo", labelled + chart, one},
		"several sources":                   {"argo/a.yaml", plain + sources(ref+", "+lamp), "lights/app lamp \"1.2.3\" registry.example.com-5000-charts-lamp app\nregistry.example.com-5000-charts-lamp oci://registry.example.com:5000/charts/lamp"},
		"an OCI source":                     {"argo/a.yaml", plain + "spec: {source: {repoURL: oci://registry.example.com/charts/lamp, path: ., targetRevision: 1.2.3}, destination: {namespace: lights}}\n", "lights/app lamp \"1.2.3\" registry.example.com-charts-lamp app\nregistry.example.com-charts-lamp oci://registry.example.com/charts/lamp"},
		"an entry point":                    {"argo/a.yaml", plain + sources(lamp+", {repoURL: https://git.example.com/x.git, path: values}"), ""},
		"an entry point, labelled":          {"argo/a.yaml", labelled + sources(lamp+", {repoURL: https://git.example.com/x.git, path: values}"), "argo/a.yaml:4:146: spec.sources[1].path: not supported for operators: apply this directory with an Application of its own"},
		"two charts":                        {"argo/a.yaml", plain + sources(lamp+", "+lamp), "argo/a.yaml:4:99: spec.sources[1]: not supported for operators: a second chart: write an Application for each"},
		"no chart":                          {"argo", labelled + "spec: {source: {repoURL: https://git.example.com/x.git, path: values}}\n", "argo/a.yaml:4:16: spec.source.chart: missing"},
		"no namespace, no revision":         {"argo/a.yaml", plain + "spec: {source: {repoURL: https://charts.example.com, chart: lamp}}\n", "argo/a.yaml:4:7: spec.destination.namespace: missing\nargo/a.yaml:4:16: spec.source.targetRevision: missing"},
		"a branch":                          {"argo/a.yaml", strings.Replace(plain+chart, "1.2.3", "HEAD", 1), "argo/a.yaml:4:83: spec.source.targetRevision: \"HEAD\" is not a version range such as \">=1.2.0 <2\""},
		"a file of the chart":               {"argo/a.yaml", of(", helm: {valueFiles: [a.yaml]}"), "argo/a.yaml:4:108: spec.source.helm.valueFiles[0]: not supported for operators: not a $ref/path of a file in this repository: copy the file's values into helm.valuesObject"},
		"a file of no source":               {"argo/a.yaml", of(", helm: {valueFiles: [$v/a.yaml]}"), "argo/a.yaml:4:108: spec.source.helm.valueFiles[0]: not supported for operators: not a $ref/path of a file in this repository: copy the file's values into helm.valuesObject"},
		"a file of a source without a name": {"argo/a.yaml", of(", helm: {valueFiles: [$/a.yaml]}"), "argo/a.yaml:4:108: spec.source.helm.valueFiles[0]: not supported for operators: not a $ref/path of a file in this repository: copy the file's values into helm.valuesObject"},
		"a URL without a scheme":            {"argo/a.yaml", strings.Replace(plain+chart, "https:", "", 1), "lights/app lamp \"1.2.3\" charts.example.com app\ncharts.example.com //charts.example.com"},
		"a password":                        {"argo/a.yaml", strings.Replace(plain+chart, "https://", "https://ada:secret@", 1), "argo/a.yaml:4:26: spec.source.repoURL: must not have a user name or a password: log in to the host, as for images"},
		"a password for a registry":         {"argo/a.yaml", strings.Replace(plain+chart, "https://", "ada:secret@", 1), "argo/a.yaml:4:26: spec.source.repoURL: must not have a user name or a password: log in to the host, as for images"},
		"a missing file":                    {"argo/a.yaml", plain + sources(ref+", "+strings.Replace(lamp, "lamp,", "lamp, helm: {valueFiles: [$v/a.yaml]},", 1)), "registry.example.com-5000-charts-lamp oci://registry.example.com:5000/charts/lamp\nargo/a.yaml:4:145: file of values \"a.yaml\": open a.yaml: file does not exist"},
		"invalid values":                    {"argo/a.yaml", of(", helm: {values: 'a: ['}"), "argo/a.yaml:4:103: spec.source.helm.values: is not valid YAML: values:1: malformed YAML: did not find expected node content"},
		"an invalid parameter":              {"argo/a.yaml", of(", helm: {parameters: [{name: 'a[x]', value: x}]}"), "charts.example.com https://charts.example.com\nargo/a.yaml:4:108: --set \"a[x]=x\": error parsing index: strconv.Atoi: parsing \"x\": invalid syntax"},
		"an unknown field":                  {"argo/a.yaml", of(", helm: {valueFile: x}"), "argo/a.yaml:4:95: unknown field \"valueFile\" in spec.source.helm (did you mean \"valueFiles\"?)"},
		"a name of a release":               {"argo/a.yaml", of(", helm: {releaseName: A}"), "argo/a.yaml:4:108: spec.source.helm.releaseName: \"A\" is not a release name: at most 53 lower case letters, digits, dots and dashes"},
	} {
		t.Run(name, func(t *testing.T) {
			got := describe(declare.LoadFS(files("-- argo/a.yaml --\n"+c.text+valuesOfLamp), declare.LoadOptions{Paths: paths(c.path)}))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestForeignValues rejects values in the file of another repository, although this repository has a file with the
// same path.
func TestForeignValues(t *testing.T) {
	text := fmt.Sprintf(applicationHead, "") + "spec: {destination: {namespace: lights}, sources: [{repoURL: 'https://u:p@git.example.com/other/x.git', ref: other}, {repoURL: https://git.example.com/own/x.git, ref: own}, {repoURL: https://charts.example.com, chart: lamp, targetRevision: 1.x, helm: {valueFiles: [$own/values/lamp.yaml, $other/values/lamp.yaml]}}]}\n"
	opt := declare.LoadOptions{Paths: paths("argo/a.yaml"), Foreign: func(url string) bool { return strings.Contains(url, "other") }}
	_, err := declare.LoadFS(files("-- argo/a.yaml --\n"+text+valuesOfLamp), opt)
	const want = "spec.sources[2].helm.valueFiles[1]: not supported for operators: a file of another repository, https://***@git.example.com/other/x.git: copy the file's values into helm.valuesObject"
	if got := fmt.Sprint(err); !strings.HasPrefix(got, "argo/a.yaml:4:") || !strings.HasSuffix(got, want) || strings.Count(got, "valueFiles") != 1 {
		t.Errorf("got %s, want %s", got, want)
	}
	opt.Foreign = nil
	if _, err := declare.LoadFS(files("-- argo/a.yaml --\n"+text+valuesOfLamp), opt); err != nil {
		t.Errorf("got %v, want no error if this repository is unknown", err)
	}
}

// TestApplicationSets reads the Applications that an ApplicationSet creates.
func TestApplicationSets(t *testing.T) {
	set := func(generator, source string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: apps}\nspec:\n  generators: [" + generator + "]\n  template:\n    metadata: {name: '{{name}}-lamp'}\n" +
			"    spec:\n      source: {repoURL: https://charts.example.com, " + source + "}\n      destination: {name: '{{name}}', namespace: lights}\n"
	}
	const list = "{list: {elements: [{name: a, v: 1.0.0}, {name: b, v: 2.0.0}]}}"
	const catalog = "\ncharts.example.com https://charts.example.com"
	for name, c := range map[string]struct{ cluster, text, want string }{
		"clusters":               {"", set(list, "chart: lamp, targetRevision: 1.x, helm: {releaseName: lamp}"), "lights/lamp lamp \"1.x\" charts.example.com lamp" + catalog},
		"clusters of a cluster":  {"", set("{clusters: {}}", "chart: lamp, targetRevision: 1.x, helm: {releaseName: lamp}"), "lights/lamp lamp \"1.x\" charts.example.com lamp" + catalog},
		"charts":                 {"", set("{list: {elements: [{name: desk}, {name: lamp}]}}", "chart: '{{name}}', targetRevision: 1.x"), "lights/desk-lamp desk \"1.x\" charts.example.com desk-lamp\nlights/lamp-lamp lamp \"1.x\" charts.example.com lamp-lamp" + catalog},
		"different versions":     {"", set(list, "chart: lamp, targetRevision: '{{v}}', helm: {releaseName: lamp}"), "f.yaml:7:5: the Applications of lights/lamp for the clusters \"a\" and \"b\" have a different targetRevision\n  hint: list the file with cluster in spec.declarations, for each environment"},
		"different releases":     {"", set(list, "chart: lamp, targetRevision: 1.x"), "f.yaml:7:5: the Applications of lights/lamp for the clusters \"a\" and \"b\" have a different release name\n  hint: list the file with cluster in spec.declarations, for each environment"},
		"different values":       {"", set(list, "chart: lamp, targetRevision: 1.x, helm: {releaseName: lamp, valuesObject: {v: '{{v}}'}}"), "f.yaml:7:5: the Applications of lights/lamp for the clusters \"a\" and \"b\" have a different set of values\n  hint: list the file with cluster in spec.declarations, for each environment"},
		"one of the clusters":    {"b", set(list, "chart: lamp, targetRevision: '{{v}}'"), "lights/b-lamp lamp \"2.0.0\" charts.example.com b-lamp" + catalog},
		"no such cluster":        {"c", set(list, "chart: lamp, targetRevision: '{{v}}'"), "f.yaml: applies nothing of this repository to the cluster \"c\": file does not exist"},
		"values of clusters":     {"", set("{clusters: {}}", "chart: lamp, targetRevision: 1.x, helm: {releaseName: lamp, valuesObject: {name: '{{name}}'}}"), "f.yaml:9:127: spec.source.helm.valuesObject: depends on a value that is not available offline; write the value into the file"},
		"a release of a cluster": {"", set("{clusters: {}}", "chart: lamp, targetRevision: 1.x"), "f.yaml:9:15: spec.source.helm.releaseName: missing: its default is the name of the Application, which is not available offline"},
		"a rejected field":       {"", set(list, "chart: lamp, targetRevision: 1.x, helm: {skipCrds: true}"), "f.yaml:9:104: spec.source.helm.skipCrds: not supported for operators: CRDs are always rendered, and applied before the operator"},
		"an unknown generator":   {"", set("{list: {elementsYaml: '{'}}", "chart: lamp, targetRevision: 1.x"), "f.yaml:1:1: the objects that ApplicationSet \"apps\" applies are unknown: elementsYaml: error converting YAML to JSON: yaml: line 1: did not find expected node content"},
	} {
		t.Run(name, func(t *testing.T) {
			got := describe(declare.LoadFS(files("-- f.yaml --\n"+c.text), declare.LoadOptions{Paths: []declare.Path{{Path: "f.yaml", Cluster: c.cluster}}}))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
	// A labelled ApplicationSet in a directory is read, and one without the label is not.
	labelled := strings.Replace(set(list, "chart: lamp, targetRevision: 1.x, helm: {releaseName: lamp}"), "{name: apps}", `{name: apps, labels: {quayside.dev/operator: "true"}}`, 1)
	both := "-- d/a.yaml --\n" + labelled + "-- d/b.yaml --\n" + strings.ReplaceAll(set(list, "chart: desk, targetRevision: 1.x"), "lamp", "desk")
	if d := cmp.Diff("lights/lamp lamp \"1.x\" charts.example.com lamp"+catalog, describe(declare.LoadFS(files(both), declare.LoadOptions{Paths: paths("d")}))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

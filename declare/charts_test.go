package declare_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/testing/charttest"
)

// chartFiles are a chart of operators, and a chart of Applications that apply it.
const chartFiles = `
-- ops/Chart.yaml --
{apiVersion: v2, name: ops, version: 1.0.0}
-- ops/values.yaml --
channel: stable
packages: [etcd]
-- ops/fast.yaml --
channel: fast
-- ops/templates/s.yaml --
{{- range .Values.packages }}
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: {{ . }}-{{ $.Release.Name }}
  {{- with $.Values.namespace }}
  namespace: {{ . }}
  {{- end }}
spec: {name: {{ . }}, channel: {{ $.Values.channel | quote }}, source: c, sourceNamespace: olm}
---
{{- end }}
{{- if .Values.look }}
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: look, namespace: a}
spec: {name: look, source: c, sourceNamespace: olm, channel: {{ (lookup "v1" "Namespace" "" "x").kind | default "none" }}}
{{- end }}
-- ops/templates/test.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: test, namespace: a, annotations: {helm.sh/hook: test}}
spec: {name: test, source: c, sourceNamespace: olm}
-- apps/Chart.yaml --
{apiVersion: v2, name: apps, version: 1.0.0, dependencies: [{name: ops, version: 1.0.0, repository: "file://../ops", condition: own}]}
-- apps/values.yaml --
own: false
-- apps/templates/a.yaml --
{{- range .Values.apps }}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: {{ . }}}
spec:
  source: {path: ops, helm: {parameters: [{name: channel, value: {{ . }}}]}}
  destination: {namespace: {{ . }}}
{{- end }}
-- broken/Chart.yaml --
{apiVersion: v2, name: broken, version: 1.0.0}
-- broken/templates/s.yaml --
{apiVersion: operators.coreos.com/v1alpha1, kind: {{ .Values.x.y }}}
-- plain/Chart.yaml --
{apiVersion: v2, name: plain, version: 1.0.0}
-- plain/templates/s.yaml --
{apiVersion: apps/v1, kind: {{ fail "not rendered" }}}
`

// TestCharts reads the declarations in charts, rendered with values. Either a path names the chart, or an
// Application applies it.
func TestCharts(t *testing.T) {
	helmApp := func(helm string) string { return application("{path: ops, helm: {"+helm+"}}", "{namespace: a}") }
	for name, c := range map[string]struct {
		path declare.Path
		more string
		want string
	}{
		"a chart": {
			declare.Path{Path: "ops", Namespace: "a"}, "", "a/etcd etcd-ops [stable]\n",
		},
		"values": {
			declare.Path{Path: "ops", Values: json.RawMessage(`{"namespace": "b", "packages": ["kafka", "etcd"]}`), ValuesFiles: []string{"ops/fast.yaml"}, ReleaseName: "r"},
			"",
			"b/etcd etcd-r [fast]\nb/kafka kafka-r [fast]\n",
		},
		"no namespace": {
			declare.Path{Path: "ops"}, "", "ops/templates/s.yaml:2:1: metadata.namespace: missing\n",
		},
		"values for no chart": {
			declare.Path{Path: "docs", Namespace: "a"}, "-- docs/a.yaml --\n", "docs: values, valuesFiles, releaseName and namespace are only for the directory of a Helm chart\n",
		},
		"missing file": {
			declare.Path{Path: "ops", ValuesFiles: []string{"gone.yaml"}}, "", "ops: the Helm chart \"ops\" cannot be rendered: file with values \"gone.yaml\" cannot be read\n",
		},
		"lookup": {
			declare.Path{Path: "ops", Namespace: "a", Values: json.RawMessage(`{"look": true, "packages": []}`)},
			"",
			"ops/templates/s.yaml:13:1: its template calls lookup, whose result is not available offline\n",
		},
		"a fault in a template": {
			declare.Path{Path: "broken"},
			"",
			`broken: the Helm chart "broken" cannot be rendered: broken/templates/s.yaml:1:60: chart broken 1.0.0: executing "broken/templates/s.yaml" at <.Values.x.y>: nil pointer evaluating interface {}.y` + "\n",
		},
		"a chart without declarations": {declare.Path{Path: "plain"}, "", ""},
		"Applications of a chart": {
			declare.Path{Path: "apps", Values: json.RawMessage(`{"apps": ["one", "two"]}`)}, "", "one/etcd etcd-one [one]\ntwo/etcd etcd-two [two]\n",
		},
		"a subchart of another directory": {
			declare.Path{Path: "apps", Namespace: "a", Values: json.RawMessage(`{"own": true}`)}, "", "a/etcd etcd-apps [stable]\n",
		},
		"an Application": {
			declare.Path{Path: "argo/app.yaml"}, helmApp(""), "a/etcd etcd-app [stable]\n",
		},
		"with values": {
			declare.Path{Path: "argo/app.yaml"},
			helmApp("releaseName: r, valueFiles: [fast.yaml, /gone.yaml], ignoreMissingValueFiles: true, values: \"{packages: [kafka], channel: x}\", parameters: [{name: channel, value: \"1.10\", forceString: true}]"),
			"a/kafka kafka-r [1.10]\n",
		},
		"with an object of values": {
			declare.Path{Path: "argo/app.yaml"}, helmApp("values: \"{packages: [kafka]}\", valuesObject: {channel: slow}"), "a/etcd etcd-app [slow]\n",
		},
		"with values of another source": {
			declare.Path{Path: "argo/app.yaml"},
			strings.Replace(application("[{ref: v}, {path: ops, helm: {valueFiles: [$v/ops/fast.yaml]}}]", "{namespace: a}"), "source:", "sources:", 1),
			"a/etcd etcd-app [fast]\n",
		},
		"with an unknown file": {
			declare.Path{Path: "argo/app.yaml"},
			helmApp("valueFiles: [https://example.com/x.yaml]"),
			`argo/app.yaml:6:18: the objects that Application "app" applies are unknown: the Helm chart "ops" cannot be rendered: the file with values "https://example.com/x.yaml" is in another repository` + "\n",
		},
		"an ApplicationSet for clusters": {
			declare.Path{Path: "set.yaml"},
			"-- set.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  generators: [{clusters: {}}]\n  template: {metadata: {name: x}, spec: {source: {path: ops, helm: {valuesObject: {packages: [kafka, '{{name}}']}}}, destination: {namespace: a}}}\n",
			"a/kafka kafka-x [stable]\nops/templates/s.yaml:2:1: a value of the chart is not available offline\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := declare.LoadFS(files(chartFiles+c.more), declare.LoadOptions{Paths: []declare.Path{c.path}, Charts: charttest.New(t, declare.APIs())})
			got := ""
			if set != nil {
				for _, s := range set.Subscriptions {
					got += s.Namespace + "/" + s.Package + " " + s.Name + " [" + strings.Join(s.Channels, " ") + "]\n"
				}
			}
			if err != nil {
				got += err.Error() + "\n"
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

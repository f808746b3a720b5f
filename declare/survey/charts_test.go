package survey_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/testing/charttest"
)

// TestCharts finds the declarations in charts. An Application applies the chart, a workspace names it, or an
// Application in another chart applies it. The test checks which object applies each declaration.
func TestCharts(t *testing.T) {
	app := func(name, source string) string {
		return fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: %s}\nspec: {source: {%s}, destination: {namespace: ops, name: %s}}\n---\n", name, source, name)
	}
	loop := app("loop", `path: apps, helm: {valuesObject: {depth: {{ add .Values.depth 1 }}}}`)
	files := map[string]string{
		"argo/a.yaml":             app("one", "path: apps, helm: {valuesObject: {names: [red]}}") + app("two", "path: ops, helm: {valuesObject: {name: blue}}"),
		"argo/b.yaml":             app("three", "path: broken"),
		"apps/Chart.yaml":         "{apiVersion: v2, name: apps, version: 1.0.0}",
		"apps/templates/a.yaml":   "{{ range .Values.names }}\n" + app("{{ . }}", "path: ops, helm: {valuesObject: {name: {{ . }}}}") + "{{ end }}",
		"ops/Chart.yaml":          "{apiVersion: v2, name: ops, version: 1.0.0}",
		"ops/templates/s.yaml":    "{{- if ne .Values.name \"none\" }}\n" + request("{{ .Values.name }}") + "{{ end }}",
		"broken/Chart.yaml":       "{apiVersion: v2, name: broken, version: 1.0.0}",
		"broken/templates/s.yaml": request("{{ required \"no name\" .Values.name }}"),
		"unused/Chart.yaml":       "{apiVersion: v2, name: unused, version: 1.0.0}",
		"unused/templates/s.yaml": request("x"),
		"named/Chart.yaml":        "{apiVersion: v2, name: named, version: 1.0.0}",
		"named/templates/a.yaml":  app("green", "path: ops, helm: {valuesObject: {name: {{ .Values.name }}}}"),
		"loop/Chart.yaml":         "{apiVersion: v2, name: loop, version: 1.0.0}",
		"loop/templates/a.yaml":   strings.ReplaceAll(loop, "path: apps", "path: loop"),
	}
	named := survey.Named("named", &survey.Chart{Values: map[string]any{"name": "green"}}, diag.Pos{File: "envs/a/quayside.yaml", Line: 5})
	s, err := survey.New(filesOf(files), skipNone, none, func(*survey.Survey) []*survey.Applied { return []*survey.Applied{named} }, survey.Options{Charts: charttest.New(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range s.Declarations {
		line := fmt.Sprintf("%s %s %s", d.Pos, d.Package, d.Obstacle)
		for _, a := range s.Appliers(d) {
			line += fmt.Sprintf("; %s at %s", a.Entry.By, a.Pos)
		}
		got = append(got, line)
	}
	want := []string{
		`broken/templates/s.yaml:1:1  is in a template: the Helm chart "broken" cannot be rendered: broken/templates/s.yaml:3:20: chart broken 1.0.0: no name; Application "three" at argo/b.yaml:4:23`,
		`ops/templates/s.yaml:2:1 blue ; Application "two" at argo/a.yaml:9:23`,
		`ops/templates/s.yaml:2:1 green ; Application "green" at named/templates/a.yaml:1:1`,
		`ops/templates/s.yaml:2:1 red ; Application "red" at apps/templates/a.yaml:2:1`,
		`unused/templates/s.yaml:1:1  is in a template of the Helm chart "unused": list the chart with its values, or the object that applies the chart, in spec.declarations`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	got = nil
	for _, a := range s.Applications([]string{"named", "ops"}, nil, all) {
		got = append(got, fmt.Sprintf("%s %s %s %t", a.By, a.Declaration.Package, a.Cluster, a.Proven))
	}
	want = []string{`Application "two" blue two true`, `Application "green" green green false`, `Application "red" red red true`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	chosen, _ := s.Propose(nil).Choose(nil)
	if got, want := fmt.Sprint(chosen), "[{argo/a.yaml }]"; got != want {
		t.Errorf("proposed %s, want %s", got, want)
	}
}

// TestInstalledCharts finds the objects of GitOps tools that install charts of other repositories, and the
// entry points that apply these objects.
func TestInstalledCharts(t *testing.T) {
	const helm, label = "repoURL: https://charts.example.com, chart: lamp, targetRevision: 1.x", `, labels: {quayside.dev/operator: "true"}`
	app := func(name, meta, source string) string {
		return fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: %s%s}\nspec: {%s, destination: {namespace: ops}}\n---\n", name, meta, source)
	}
	files := map[string]string{
		"argo/a.yaml":           app("one", "", "source: {"+helm+"}") + app("two", label, "sources: [{"+helm+"}, {repoURL: https://git.example.com/x.git, ref: v}]") + app("both", "", "sources: [{"+helm+"}, {path: flux}]"),
		"argo/b.yaml":           app("root", "", "source: {path: apps}") + app("git", label, "source: {path: flux}"),
		"apps/Chart.yaml":       "{apiVersion: v2, name: apps, version: 1.0.0}",
		"apps/templates/a.yaml": "{{ range list `u` `v` }}\n" + app("{{ . }}", label, "source: {"+helm+"}") + "{{ end }}",
		"argo/set.yaml":         "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: set}\nspec: {template: {spec: {source: {repoURL: oci://registry.example.com/lamp, path: .}}}}\n",
		"flux/r.yaml":           "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r, namespace: a}\nspec: {targetNamespace: b, chart: {spec: {chart: lamp, sourceRef: {kind: HelmRepository, name: c}}}}\n",
		"flux/own.yaml":         "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: own}\nspec: {chart: {spec: {chart: charts/own, sourceRef: {kind: GitRepository, name: own}}}}\n",
		"flux/patch.yaml":       "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r}\nspec: {values: {a: 1}}\n",
	}
	s, err := survey.New(filesOf(files), skipNone, none, nil, survey.Options{Charts: charttest.New(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range s.Charts {
		line := fmt.Sprintf("%s %s %s/%s %s %t %t", d.Pos, d.Kind, d.Namespace, d.Name, d.Package, d.Selected, d.Alone)
		for _, a := range s.Appliers(d) {
			line += "; " + a.Entry.By
		}
		got = append(got, line)
	}
	want := []string{
		`apps/templates/a.yaml:2:1 Application ops/u lamp true true; Application "root"`,
		`apps/templates/a.yaml:2:1 Application ops/v lamp true true; Application "root"`,
		`argo/a.yaml:1:1 Application ops/one lamp false true`,
		`argo/a.yaml:6:1 Application ops/two lamp true true`,
		`argo/a.yaml:11:1 Application ops/both lamp false false`,
		`argo/set.yaml:1:1 ApplicationSet /set  false true`,
		`flux/r.yaml:1:1 HelmRelease b/r lamp false true; Application "both"; Application "git"`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if len(s.Declarations) > 0 {
		t.Errorf("declarations of OLM: %v", s.Declarations)
	}
}

func none(string) bool { return false }

func skipNone(fs.FS, string) bool { return false }

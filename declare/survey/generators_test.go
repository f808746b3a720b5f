package survey_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare/survey"
)

// appSet returns an ApplicationSet with generators and the spec of its template.
func appSet(generators, template string) string {
	return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  generators:\n" + generators + "  template:\n    metadata: {name: x}\n    spec:\n" + template
}

// TestGenerators evaluates ApplicationSets. A result is a directory with its cluster; "?" marks a guess.
func TestGenerators(t *testing.T) {
	const path = "      source: {path: '{{path}}'}\n      destination: {name: '{{name}}'}\n"
	for name, c := range map[string]struct {
		set  string
		want []string
		not  string // why it cannot be told
	}{
		"list": {
			set: appSet("  - list: {elements: [{name: dev, path: ops/a}, {name: prod, path: ops/b}]}\n", path), want: []string{"ops/a dev", "ops/b prod"},
		},
		"directories": {
			set:  appSet("  - git: {directories: [{path: ops/*}, {path: ops/b, exclude: true}]}\n", path),
			want: []string{"ops/a"},
		},
		"files": {
			set:  appSet("  - git: {files: [{path: 'ops/**/config.yaml'}]}\n", "      source: {path: '{{path}}/{{env.dir}}'}\n      destination: {name: '{{env.name}}'}\n"),
			want: []string{"ops/b/x east"},
		},
		"another repository": {
			set: appSet("  - git: {repoURL: 'https://git.example.com/other', directories: [{path: ops/*}]}\n", path), not: "its path * is not available offline",
		},
		"clusters, and a fixed path": {
			set: appSet("  - clusters: {}\n", "      source: {path: ops/a}\n      destination: {name: '{{name}}'}\n"), want: []string{"ops/a"},
		},
		"clusters in the path": {
			set: appSet("  - clusters: {}\n", "      source: {path: 'ops/{{name}}'}\n"), want: []string{"ops/a ?", "ops/b ?"},
		},
		"matrix": {
			set:  appSet("  - matrix: {generators: [{list: {elements: [{name: dev, top: ops}]}}, {git: {directories: [{path: '{{top}}/*'}]}}]}\n", path),
			want: []string{"ops/a dev", "ops/b dev"},
		},
		"merge": {
			set:  appSet("  - merge: {mergeKeys: [name], generators: [{list: {elements: [{name: dev, path: ops/a}, {name: prod, path: ops/a}]}}, {list: {elements: [{name: prod, path: ops/b}]}}]}\n", path),
			want: []string{"ops/a dev", "ops/b prod"},
		},
		"selector": {
			set:  appSet("  - list: {elements: [{name: dev, path: ops/a}, {name: prod, path: ops/b}]}\n    selector: {matchExpressions: [{key: name, operator: In, values: [prod]}]}\n", path),
			want: []string{"ops/b prod"},
		},
		"a template of a generator": {
			set:  appSet("  - list: {elements: [{name: dev}], template: {spec: {source: {path: ops/b}}}}\n", path),
			want: []string{"ops/b dev"},
		},
		"Go templates": {
			set: "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  goTemplate: true\n  generators: [{git: {directories: [{path: ops/*}]}}]\n" +
				"  template: {spec: {source: {path: '{{ index .path.segments 0 }}/{{ .path.basename | lower | replace \"b\" \"a\" }}'}, destination: {name: '{{ if eq .path.basename \"a\" }}dev{{ else }}prod{{ end }}'}}}\n",
			want: []string{"ops/a dev", "ops/a prod"},
		},
		"a patch of the template": {
			set: "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  goTemplate: true\n  generators: [{list: {elements: [{dir: a}]}}]\n" +
				"  template: {spec: {source: {path: x}}}\n  templatePatch: |\n    spec: {source: {path: 'ops/{{ .dir }}'}}\n",
			want: []string{"ops/a"},
		},
		"a loop": {
			set: "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  goTemplate: true\n  generators: [{list: {elements: [{dir: a}]}}]\n" +
				"  template: {spec: {source: {path: '{{ range 3 }}a{{ end }}'}}}\n",
			not: "loops are not evaluated",
		},
		"a server": {
			set: appSet("  - scmProvider: {github: {organization: acme}}\n", "      source: {path: ops/a, repoURL: '{{url}}'}\n"), want: []string{"ops/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSurvey(t, filesOf(map[string]string{
				"set.yaml": c.set, "ops/a/a.yaml": request("a"), "ops/b/b.yaml": request("b"), "ops/b/config.yaml": "env: {name: east, dir: x}\n", "ops/b/x/c.yaml": request("c"),
			}))
			var got []string
			not := ""
			for _, e := range s.Entries {
				not += e.CannotTell()
				for _, a := range e.Applied {
					text := a.Dir
					if a.Cluster != "" {
						text += " " + a.Cluster
					}
					if a.Guess != "" {
						text += " ?"
					}
					got = append(got, text)
				}
			}
			slices.Sort(got)
			if d := cmp.Diff(c.want, got); d != "" || not != c.not {
				t.Errorf("-want +got\n%s\ncannot tell: %q", d, not)
			}
		})
	}
}

// TestDeclarations finds objects that look like declarations, and the reasons why they are not read.
func TestDeclarations(t *testing.T) {
	nested := "apiVersion: policy.open-cluster-management.io/v1\nkind: ConfigurationPolicy\nmetadata: {name: p}\nspec:\n  object-templates:\n  - objectDefinition: {apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {name: nest, namespace: x}, spec: {name: nest}}\n"
	s := newSurvey(t, filesOf(map[string]string{
		"chart/Chart.yaml": "name: c\n", "chart/templates/s.yaml": "{{- if .Values.on }}\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata:\n  name: etcd\n{{- end }}\n",
		"roles/t/s.yaml.j2": "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata:\n  name: '{{ x }}'\n",
		"policy.yaml":       nested, ".hidden/s.yaml": request("h"), "broken.yaml": "a: [\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\n",
		"map.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  s.yaml: |\n    apiVersion: operators.coreos.com/v1alpha1\n    kind: Subscription\n",
		"raw.yaml":             "object-templates-raw: |\n  - objectDefinition:\n      apiVersion: operators.coreos.com/v1alpha1\n      kind: Subscription\n",
		"k/kustomization.yaml": "resources: [s.yaml]\npatches: [{path: p.yaml}]\n", "k/s.yaml": request("k"), "k/p.yaml": request("k"),
	}))
	var got []string
	for _, d := range s.Declarations {
		got = append(got, d.Pos.String()+" "+d.Kind+" "+d.Name+" "+d.Obstacle)
	}
	want := []string{
		".hidden/s.yaml:1:1 Subscription h ",
		"broken.yaml:2:1 OperatorGroup  is in a file that is not valid YAML",
		`chart/templates/s.yaml:2:1 Subscription etcd is in a template of the Helm chart "chart": list the chart with its values, or the object that applies the chart, in spec.declarations`,
		"k/s.yaml:1:1 Subscription k ",
		`map.yaml:6:1 Subscription  is text in ConfigMap "m"`,
		"policy.yaml:6:23 Subscription nest ",
		"raw.yaml:3:1 Subscription  is text in an object without a kind",
		"roles/t/s.yaml.j2:1:1 Subscription {{ x }} is in a template",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestChart finds directories whose paths are values of a chart that creates Applications.
func TestChart(t *testing.T) {
	s := newSurvey(t, filesOf(map[string]string{
		"chart/Chart.yaml": "name: c\n", "chart/values.yaml": "apps: {a: {path: ops/a}}\n", "ops/a/a.yaml": request("a"),
		"chart/templates/app.yaml": "{{- range .Values.apps }}\napiVersion: argoproj.io/v1alpha1\nkind: Application\nspec: {source: {path: {{ .path }}}}\n{{- end }}\n",
	}))
	apps := s.Applications(nil, nil, func(survey.Declaration) bool { return true })
	if len(apps) != 1 || apps[0].By != `Helm chart "chart"` || apps[0].Proven || apps[0].Pos.String() != "chart/values.yaml:1:18" {
		t.Errorf("got %+v", apps)
	}
}

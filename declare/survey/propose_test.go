package survey_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare/survey"
)

// TestPropose proposes paths for the environments of a repository.
func TestPropose(t *testing.T) {
	overlay := "resources: [../../base]\npatches: [{path: p.yaml}]\n"
	two := map[string]string{
		"op/base/kustomization.yaml": "resources: [s.yaml]\n", "op/base/s.yaml": request("a"),
		"op/overlays/dev/kustomization.yaml": overlay, "op/overlays/prod/kustomization.yaml": overlay, "op/overlays/prod/p.yaml": request("a"),
		"single/s.yaml": request("b"), "only/prod/s.yaml": request("c"),
	}
	for name, c := range map[string]struct {
		files        map[string]string
		environments string
		choose       []string
		want, open   string
	}{
		"overlays":            {files: two, environments: "dev prod", choose: []string{"dev"}, want: "op/overlays/dev single", open: "only/prod"},
		"another environment": {files: two, environments: "dev prod", choose: []string{"prod"}, want: "only/prod op/overlays/prod single"},
		"none":                {files: two, environments: "dev prod", want: "single", open: "only/prod op/overlays/dev op/overlays/prod"},
		"applied": {
			files: map[string]string{
				"op/base/kustomization.yaml": "resources: [s.yaml]\n", "op/base/s.yaml": request("a"), "op/overlays/dev/kustomization.yaml": overlay, "op/overlays/prod/kustomization.yaml": overlay,
				"app.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec: {source: {path: op/overlays/prod}}\n",
			},
			want: "op/overlays/prod",
		},
		"applied with changes": {
			files: map[string]string{
				"op/kustomization.yaml": "resources: [s.yaml]\n", "op/s.yaml": request("a"),
				"app.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec: {source: {path: op, kustomize: {namespace: other}}}\n",
			},
			want: "app.yaml",
		},
		"clusters": {
			files: map[string]string{
				"op/s.yaml": strings.Replace(request("a"), ", namespace: ops", "", 1),
				"app.yaml":  "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: x}\nspec:\n  generators: [{list: {elements: [{c: dev}, {c: prod}]}}]\n  template: {spec: {source: {path: op}, destination: {name: '{{c}}', namespace: '{{c}}'}}}\n",
			},
			environments: "dev prod", choose: []string{"prod"}, want: "app.yaml@prod",
		},
		"policies for different placements": {
			files: map[string]string{
				"ps/dev.yaml": policyOf("dev", "a") + bindingOf("dev", "dev-clusters"), "ps/prod.yaml": policyOf("prod", "a"), "ps/bindings.yaml": bindingOf("prod", "prod-clusters"), "ps/all.yaml": policyOf("all", "b"),
			},
			environments: "dev-clusters prod-clusters", choose: []string{"prod-clusters"}, want: "ps/all.yaml ps/prod.yaml",
		},
		"policies for the same placement": {
			files: map[string]string{"ps/a.yaml": policyOf("a", "a") + bindingOf("a", "x"), "ps/b.yaml": policyOf("b", "b") + bindingOf("b", "x")}, want: "ps",
		},
		"files beside others": {
			files: map[string]string{"s.yaml": request("a"), "ops/s.yaml": request("b"), "ops/deep/s.yaml": request("c"), "chart/Chart.yaml": "", "chart/templates/s.yaml": request("d")},
			want:  "ops/deep ops/s.yaml s.yaml",
		},
		"a kustomization that is not valid": {
			files: map[string]string{"k/kustomization.yaml": "resources: [s.yaml\n", "k/s.yaml": request("a")}, want: "k",
		},
		"a base that is not used": {
			files: map[string]string{
				"groups/a/kustomization.yaml": "resources: [g.yaml]\n", "groups/a/g.yaml": group("a"), "groups/b/kustomization.yaml": "resources: [g.yaml]\n", "groups/b/g.yaml": group("a"),
				"prod/kustomization.yaml": "resources: [s.yaml, ../groups/a]\n", "prod/s.yaml": request("a"), "own/kustomization.yaml": "resources: [g.yaml]\n", "own/g.yaml": group("b"),
			},
			want: "own prod",
		},
		"an unlisted file": {
			files: map[string]string{"k/kustomization.yaml": "resources: [s.yaml]\n", "k/s.yaml": request("a"), "k/old.yaml": request("b")}, want: "k",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newSurvey(t, filesOf(c.files)).Propose(nil)
			chosen, open := p.Choose(c.choose)
			got := [3]string{strings.Join(p.Environments, " "), joinChoices(chosen), joinChoices(open)}
			if d := cmp.Diff([3]string{c.environments, c.want, c.open}, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func group(namespace string) string {
	return "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: g, namespace: " + namespace + "}\n"
}

func joinChoices(list []survey.Choice) string {
	var out []string
	for _, c := range list {
		text := c.Path
		if c.Cluster != "" {
			text += "@" + c.Cluster
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

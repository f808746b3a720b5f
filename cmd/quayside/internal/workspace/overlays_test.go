package workspace_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/profile"
)

// TestOverlays checks the list of overlays of each cluster, and the errors for overlays that
// would be lost or apply to other operators.
func TestOverlays(t *testing.T) {
	const component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
	for _, c := range []struct {
		name, granularity string
		files             map[string]string
		want              map[string][]string
		wantErrors        []string // texts that the error must contain
	}{
		{name: "none"},
		{
			name: "all sorts",
			files: map[string]string{
				"prod/kustomization.yaml":              component + "labels: [{pairs: {a: b}}]\nimages: [{name: a, newName: b}]\ncomponents: [../common]\npatches: [{target: {kind: Deployment}, path: p.yaml}]\n",
				"prod/p.yaml":                          "[]\n",
				"prod/my-etcd.etcd/kustomization.yaml": component + "replicas: [{name: x, count: 2}]\n",
				"prod/resources/kustomization.yaml":    "resources: [x.yaml]\n",
				"prod/parts/kustomization.yaml":        component,
				"common/kustomization.yaml":            component,
				"notes/README":                         "",
			},
			want: map[string][]string{"prod": {"", "my-etcd.etcd", "resources"}},
		},
		{
			name:       "of a cluster that there is not",
			files:      map[string]string{"production/kustomization.yaml": component, "other/a.b/kustomization.yaml": component},
			wantErrors: []string{`overlays/production: no cluster "production" (available: stage, prod)`, `overlays/other: no cluster "other"`},
		},
		{
			name:       "no component",
			files:      map[string]string{"prod/kustomization.yaml": "resources: [a.yaml]\n"},
			wantErrors: []string{"overlays/prod/kustomization.yaml: kind must be Component", "overlays/prod/resources"},
		},
		{
			name: "of single objects",
			files: map[string]string{"prod/kustomization.yaml": component +
				"replicas: [{name: x, count: 2}]\npatches:\n- patch: '{kind: A}'\nnamePrefix: a-\nconfigMapGenerator: [{name: x}]\nresources: [a.yaml]\nreplacements: [{}]\nnamespace: x\n"},
			wantErrors: []string{
				"overlays/prod/kustomization.yaml:3:11: replicas would apply to every operator: move it to overlays/prod/<namespace>.<package>/",
				"overlays/prod/kustomization.yaml:5:3: patches[0]", "namePrefix", "configMapGenerator", "resources", "replacements", "namespace",
			},
		},
		{
			name: "of single objects, by cluster", granularity: profile.PerCluster,
			files: map[string]string{"prod/kustomization.yaml": component + "replicas: [{name: x, count: 2}]\nresources: [a.yaml]\n"},
			want:  map[string][]string{"prod": {""}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, dir, "quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  profile: argocd\n  clusters: [{name: stage}, {name: prod, server: 'https://b'}]\n"+
				"  gitops: {repoURL: 'https://git.example.com/x.git', granularity: "+cmp.Or(c.granularity, profile.PerOperator)+"}\n")
			for name, text := range c.files {
				writeFile(t, dir, filepath.Join("overlays", name), text)
			}
			p, err := workspace.Open(workspace.Dir(dir), env(t))
			check(t, err)
			got, _, err := p.Overlays()
			for _, says := range c.wantErrors {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("want %q in\n%v", says, err)
				}
			}
			if c.wantErrors == nil {
				check(t, err)
				if d := gocmp.Diff(c.want, got); d != "" && (len(got) > 0 || len(c.want) > 0) {
					t.Error(d)
				}
			}
			for _, names := range got {
				if !slices.IsSorted(names) {
					t.Errorf("not sorted: %q", names)
				}
			}
		})
	}
}

// writeFile writes a file below dir.
func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	check(t, os.MkdirAll(filepath.Dir(file), 0o755))
	check(t, os.WriteFile(file, []byte(text), 0o600))
}

package workspace_test

import (
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/filetree"
)

// TestSteers checks that GitOpsEffect reports an effect of a foreign file only if a GitOps tool applies or reads it.
func TestSteers(t *testing.T) {
	want := filetree.New()
	for _, name := range []string{"operators/n.p/kustomization.yaml", "clusters.yaml"} {
		if err := want.Add(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	applied, kustomize, argo, flux := "applied with its directory", "read by kustomize", "read by Argo CD", "read by Flux"
	for name, how := range map[string]string{
		"pieces/own.yaml": applied, "pieces/_shared/own.yaml": applied, "installations/own.yaml": applied, "clusters/c/installations/own.yaml": applied,
		"crds/p/own.yaml": applied, "crds/kustomization.yaml": applied, "flux/c/own.yaml": applied, "argocd/own.yaml": applied, "argocd/x/README.md": applied,
		"operators/n.p/own.yaml": "", "README.md": "", "plain/own.yaml": "", "mine/Kustomization": "", "operators/n.p/sub/kustomization.yaml": "",
		"operators/n.p/kustomization.yml": kustomize, "operators/n.p/Kustomization": kustomize, "kustomization.yaml": kustomize,
		"operators/n.p/Chart.yaml": argo, ".argocd-source.yaml": argo, "operators/n.p/.argocd-source-etcd.yaml": argo, "operators/.sourceignore": flux,
	} {
		if got := workspace.GitOpsEffect(name, want); got != how {
			t.Errorf("%s: %q, want %q", name, got, how)
		}
	}
}

package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/filetree"
	"github.com/quayside/quayside/internal/base/terminal"
)

// TestFoldedChanges writes over a tree with many differences. Those in the directory of an operator,
// of the CRDs of a package, or at the top are printed as one.
func TestFoldedChanges(t *testing.T) {
	e := env(t)
	e.Log = &noteLogger{}
	dir := copyQuickstart(t)
	p, err := workspace.Open(workspace.Dir(dir), e)
	check(t, err)
	rendered := filepath.Join(dir, "rendered")
	check(t, os.CopyFS(filepath.Join(rendered, "operators/old.vault"), os.DirFS(filepath.Join(rendered, "operators/vault.vault"))))
	for _, name := range []string{
		"operators/at-operator.at-operator", "operators/memcached-operator-system.memcached-operator", "operators/my-etcd.etcd",
		"crds/etcd/kustomization.yaml", "crds/vault/kustomization.yaml", "namespaces/vault/namespace.yaml", "namespaces/my-etcd/namespace.yaml",
	} {
		check(t, os.RemoveAll(filepath.Join(rendered, name)))
	}
	for _, name := range []string{"crds/etcd/customresourcedefinition-etcdbackups.etcd.database.coreos.com.yaml", "kustomization.yaml"} {
		check(t, os.WriteFile(filepath.Join(rendered, name), []byte("{}\n"), 0o600))
	}
	r, err := p.WriteTree(t.Context(), true)
	check(t, err)
	var out bytes.Buffer
	r.Print(terminal.New(&out, nil), e.Log)
	if got := out.String(); got != `~ crds/etcd/ (2 files)
+ crds/vault/kustomization.yaml
~ kustomization.yaml
+ namespaces/ (2 files)
+ operators/at-operator.at-operator/ (9 files)
+ operators/memcached-operator-system.memcached-operator/ (11 files)
+ operators/my-etcd.etcd/ (9 files)
- operators/old.vault/ (9 files)
` {
		t.Errorf("printed\n%s", got)
	}
}

// TestSteers checks that a foreign file has an effect only if a GitOps tool applies or reads it.
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

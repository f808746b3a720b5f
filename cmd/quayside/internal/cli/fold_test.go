package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/filetree"
)

func TestFolded(t *testing.T) {
	got := foldChanges([]filetree.FileChange{
		{Path: "clusters/default/operators/ns.etcd/kustomization.yaml", Kind: "missing"},
		{Path: "clusters/default/all/kustomization.yaml", Kind: "differs"},
		{Path: "crds/etcd/a.yaml", Kind: "missing"},
		{Path: "crds/etcd/b.yaml", Kind: "missing"},
		{Path: "kustomization.yaml", Kind: "differs"},
		{Path: "operators/ns.etcd/a.yaml", Kind: "extra"},
		{Path: "pieces/ns.etcd.yaml", Kind: "missing"},
		{Path: "operators/ns.vault/a.yaml", Kind: "extra"},
		{Path: "operators/ns.vault/b.yaml", Kind: "extra"},
	})
	want := []filetree.FileChange{
		{Path: "clusters/default/ (2 files)", Kind: "differs"},
		{Path: "crds/etcd/ (2 files)", Kind: "missing"},
		{Path: "kustomization.yaml", Kind: "differs"},
		{Path: "operators/ns.etcd/a.yaml", Kind: "extra"},
		{Path: "pieces/ns.etcd.yaml", Kind: "missing"},
		{Path: "operators/ns.vault/ (2 files)", Kind: "extra"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

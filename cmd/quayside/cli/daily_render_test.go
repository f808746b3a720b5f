package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFolded(t *testing.T) {
	got := folded([]fileChange{
		{Path: "clusters/default/kustomization.yaml", Change: "missing"},
		{Path: "clusters/kustomization.yaml", Change: "differs"},
		{Path: "crds/etcd/a.yaml", Change: "missing"},
		{Path: "crds/etcd/b.yaml", Change: "missing"},
		{Path: "kustomization.yaml", Change: "differs"},
		{Path: "operators/ns/etcd/a.yaml", Change: "extra"},
		{Path: "operators/ns/kustomization.yaml", Change: "missing"},
		{Path: "operators/ns/vault/a.yaml", Change: "extra"},
		{Path: "operators/ns/vault/b.yaml", Change: "extra"},
	})
	want := []fileChange{
		{Path: "clusters/ (2 files)", Change: "differs"},
		{Path: "crds/etcd/ (2 files)", Change: "missing"},
		{Path: "kustomization.yaml", Change: "differs"},
		{Path: "operators/ns/etcd/a.yaml", Change: "extra"},
		{Path: "operators/ns/kustomization.yaml", Change: "missing"},
		{Path: "operators/ns/vault/ (2 files)", Change: "extra"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

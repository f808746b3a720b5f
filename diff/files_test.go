package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func paths[T any](list []T, of func(T) string) []string {
	out := []string{}
	for _, e := range list {
		out = append(out, of(e))
	}
	return out
}

func TestBaseAndOwn(t *testing.T) {
	files := []File{
		{Path: "rendered/crds/demo/widgets.yaml", Data: []byte(widget("{type: string}"))},
		{Path: "rendered/operators/ops/demo/serviceaccount-demo.yaml", Data: []byte(account)},
		{Path: "rendered/operators/ops/demo/kustomization.yaml", Data: []byte("resources: []")},
		{Path: "rendered/clusters/prod/patch.yaml", Data: []byte(account + "\nsecrets: []")},
		{Path: "renderedly/crds/x.yaml", Data: []byte(account)},
		{Path: "team/widget.yaml", Data: []byte(custom("v1", "{x: a}"))},
		{Path: "team/chart/templates/widget.yaml", Data: []byte("apiVersion: demo.io/v1\nkind: {{ .Kind }\n")},
		{Path: "team/other.yaml", Data: []byte("a: [")},
		{Path: "team/namespace.yaml", Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}")},
	}
	base := Base("rendered", files)
	if d := cmp.Diff([]string{"rendered/crds/demo/widgets.yaml", "rendered/operators/ops/demo/serviceaccount-demo.yaml", "rendered/operators/ops/demo/kustomization.yaml"}, paths(base, func(f File) string { return f.Path })); d != "" {
		t.Error(d)
	}
	rendered, err := Objects(base, nil)
	if err != nil || len(rendered) != 2 {
		t.Fatalf("%d objects, %v", len(rendered), err)
	}
	mine, skipped := own(files[5:], rendered)
	if d := cmp.Diff([]string{"team/widget.yaml", "team/namespace.yaml"}, paths(mine, func(o Object) string { return o.Path })); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"team/chart/templates/widget.yaml"}, skipped); d != "" {
		t.Error(d)
	}
}

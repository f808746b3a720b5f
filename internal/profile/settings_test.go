package profile_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestShared changes each setting of a cluster. Clusters may share pieces only if the setting does not affect
// the content of pieces. The test expects that every new setting affects the content, except settings of a tool.
func TestShared(t *testing.T) {
	for _, f := range yamlnode.Fields(reflect.TypeFor[profile.Cluster]()) {
		var c profile.Cluster
		v := reflect.ValueOf(&c).Elem().FieldByIndex(f.Index)
		switch v.Kind() { //nolint:exhaustive // other kinds fail below
		case reflect.String:
			v.SetString("x")
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Struct:
			v.Field(0).Set(reflect.MakeSlice(v.Field(0).Type(), 1, 1))
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("a"), reflect.ValueOf(`"b"`).Convert(v.Type().Elem()))
		}
		if v.IsZero() {
			t.Fatalf("%s: this test cannot set a %s", f.Name, v.Type())
		}
		if shared := c.Shared() == (profile.Cluster{}).Shared(); shared != (len(f.Index) > 1 || slices.Contains([]string{"name", "values", "provides"}, f.Name)) {
			t.Errorf("%s: clusters with different values share pieces: %v", f.Name, shared)
		} else if changes := c.ObjectSettings() != ""; changes != (!shared && !slices.Contains([]string{"kubernetesVersion", "operators"}, f.Name)) {
			t.Errorf("%s: changes objects: %v", f.Name, changes)
		}
	}
}

// TestGets checks which patterns match an operator.
func TestGets(t *testing.T) {
	for _, c := range []struct {
		globs []string
		want  bool
	}{
		{nil, true},
		{[]string{"*"}, true},
		{[]string{"*/*"}, true},
		{[]string{"ns/*"}, true},
		{[]string{"x", "*/pkg"}, true},
		{[]string{"ns"}, false},
		{[]string{"n/*", "ns/p"}, false},
	} {
		if got, err := (profile.Cluster{Operators: c.globs}).Gets("ns/pkg"); got != c.want || err != nil {
			t.Errorf("%v: %v, %v", c.globs, got, err)
		}
	}
	if _, err := profile.ClustersThatGet("ns/pkg", []profile.Cluster{{Name: "a"}, {Name: "b", Operators: []string{"["}}}); err == nil {
		t.Error("an invalid pattern is accepted")
	}
}

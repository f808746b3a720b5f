package declare

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/quayside/quayside/internal/yamlnode"
)

// TestV1Alpha1 parses declarations of schema v1alpha1, which all releases must support. No flag
// updates the file or the expectations. The file sets every field.
func TestV1Alpha1(t *testing.T) {
	text, err := os.ReadFile("testdata/v1alpha1.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := Parse("v1alpha1.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Subscriptions) != 2 {
		t.Fatalf("%d subscriptions", len(set.Subscriptions))
	}
	etcd, mine := set.Subscriptions[1], set.Subscriptions[0] // sorted by namespace
	if etcd.Key() != "my-etcd/etcd" || etcd.Package != "etcd" || etcd.Range != ">=0.9.2 <0.10" || !slices.Equal(etcd.Channels, []string{"stable"}) || etcd.Catalog.String() != "olm/operatorhubio" ||
		!slices.Equal(etcd.Watch, []string{"my-etcd", "other"}) || etcd.Approval != Manual || etcd.Hold != "waiting for a backup" ||
		string(etcd.Config) != `{"env":[{"name":"A","value":"b"}]}` || etcd.Replaces != "my-etcd/etcd-classic" ||
		!slices.Equal(etcd.Only, []string{"dev", "prod"}) || string(etcd.ChartValues) != `{"replicas":2}` || !slices.Equal(etcd.ValuesFiles, []string{"values/etcd.yaml"}) || etcd.Release != "etcd-main" || etcd.Policy != SelfCertified {
		t.Errorf("%+v", etcd)
	}
	if mine.Key() != "mine/mine" || mine.Bundle != "dir:bundle/" {
		t.Errorf("%+v", mine)
	}
	for _, f := range yamlnode.Fields(reflect.TypeFor[specOwn]()) {
		if !regexp.MustCompile(`(?m)^(  |spec: \{)` + f.Name + `:`).Match(text) {
			t.Errorf("the file does not set %s", f.Name)
		}
	}
}

package lockfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/lockfile"
)

func TestAccepted(t *testing.T) {
	f := sample()
	f.Accepted = []lockfile.Accepted{
		{Operator: "my-etcd/etcd", Permissions: []string{"list secrets", "* *.apps in my-etcd"}, APIs: []string{"etcdclusters.etcd.database.coreos.com/v1beta2"}},
		{Operator: "apps/cert"},
	}
	text := string(lockfile.Format(f))
	if plain := string(lockfile.Format(sample())); !strings.HasPrefix(text, plain) {
		t.Errorf("the budget changes what stands before it: %s", cmp.Diff(plain, text))
	}
	got, err := lockfile.Parse("quayside.lock", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []lockfile.Accepted{
		{Operator: "apps/cert"},
		{Operator: "my-etcd/etcd", Permissions: []string{"* *.apps in my-etcd", "list secrets"}, APIs: f.Accepted[0].APIs},
	}
	if d := cmp.Diff(want, got.Accepted, ignorePos()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if again := string(lockfile.Format(got)); again != text {
		t.Errorf("not canonical: %s", cmp.Diff(text, again))
	}
	edited := strings.Replace(text, "list secrets", "get secrets", 1)
	if _, err := lockfile.Parse("quayside.lock", []byte(edited)); err == nil || !strings.Contains(err.Error(), `what is accepted of "my-etcd/etcd" was edited by hand`) {
		t.Errorf("edited by hand: %v", err)
	}
}

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

// TestAcceptedIn adds up what is accepted in all clusters and in one.
func TestAcceptedIn(t *testing.T) {
	f := sample()
	f.Accepted = []lockfile.Accepted{
		{Operator: "a/b", Clusters: []string{"c3", "c2"}, Permissions: []string{"create pods"}, Without: []string{"list secrets", "x.y/v1"}},
		{Operator: "a/b", Permissions: []string{"list secrets", "get pods"}, APIs: []string{"x.y/v1", "z.y/v1"}},
		{Operator: "c/d", Permissions: []string{"get pods"}},
	}
	text := lockfile.Format(f)
	f, err := lockfile.Parse("quayside.lock", text)
	if err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string][]lockfile.Accepted{
		"":   {{Operator: "a/b", Permissions: []string{"get pods", "list secrets"}, APIs: []string{"x.y/v1", "z.y/v1"}}, {Operator: "c/d", Permissions: []string{"get pods"}}},
		"c2": {{Operator: "a/b", Permissions: []string{"get pods", "create pods"}, APIs: []string{"z.y/v1"}}, {Operator: "c/d", Permissions: []string{"get pods"}}},
	} {
		if d := cmp.Diff(want, f.AcceptedIn(cluster), ignorePos()); d != "" {
			t.Errorf("%q: -want +got\n%s", cluster, d)
		}
	}
	if again := lockfile.Format(f); string(again) != string(text) {
		t.Errorf("reading it changed it: %s", cmp.Diff(string(text), string(again)))
	}
	f.Accepted = append(f.Accepted, lockfile.Accepted{Operator: "a/b", Clusters: []string{"c2", "c3"}})
	if _, err := lockfile.Parse("quayside.lock", lockfile.Format(f)); err == nil || !strings.Contains(err.Error(), `what is accepted of "a/b" in c2, c3 appears twice`) {
		t.Errorf("twice: %v", err)
	}
}

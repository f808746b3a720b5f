package inventory_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/lockfile"
)

func sampleDigest(c string) string { return "sha256:" + strings.Repeat(c, 64) }

func sampleProvenance() *inventory.Provenance {
	id := lockfile.NewCatalog(catalog.ID{Namespace: "olm", Name: "community"}, "image:quay.io/org/catalog:v1", catalog.Digest(sampleDigest("c")))
	o := &inventory.Provenance{
		Source: "https://git.example.com/fleet", Revision: "main@sha1:" + strings.Repeat("a", 40), Workspace: "envs/stage",
		Clusters: []string{"stage-1"}, Lock: sampleDigest("b"),
	}
	o.Catalogs, o.Operators = inventory.NewProvenanceInputs(lockfile.New(
		[]lockfile.Pin{
			{Namespace: "my-etcd", Package: "etcd", Version: "0.9.4", Image: "quay.io/org/etcd@" + sampleDigest("d"), Catalog: id},
			{Namespace: "vault", Package: "vault", Version: "0.1.9", ContentDigest: catalog.Digest(sampleDigest("e")), Catalog: id},
		}))
	return o
}

func predicateText(t testing.TB, o *inventory.Provenance) string {
	t.Helper()
	data, err := json.Marshal(o.Predicate())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPredicate compares the bytes of a predicate with a fixed text, because predicates are signed.
func TestPredicate(t *testing.T) {
	want := `{"buildDefinition":{"buildType":"https://quayside.dev/provenance/tree/v1",` +
		`"externalParameters":{"revision":"main@sha1:` + strings.Repeat("a", 40) + `","workspace":"envs/stage","clusters":["stage-1"]},` +
		`"resolvedDependencies":[` +
		`{"name":"source","uri":"git+https://git.example.com/fleet","digest":{"gitCommit":"` + strings.Repeat("a", 40) + `"}},` +
		`{"name":"lock","digest":{"sha256":"` + strings.Repeat("b", 64) + `"}},` +
		`{"name":"catalog:olm/community","uri":"pkg:oci/catalog@sha256%3A` + strings.Repeat("c", 64) + `?repository_url=quay.io%2Forg%2Fcatalog","digest":{"sha256":"` + strings.Repeat("c", 64) + `"}},` +
		`{"name":"operator:my-etcd/etcd","uri":"pkg:oci/etcd@sha256%3A` + strings.Repeat("d", 64) + `?repository_url=quay.io%2Forg%2Fetcd","digest":{"sha256":"` + strings.Repeat("d", 64) + `"},"annotations":{"version":"0.9.4"}},` +
		`{"name":"operator:vault/vault","digest":{"sha256":"` + strings.Repeat("e", 64) + `"},"annotations":{"version":"0.1.9"}}]},` +
		`"runDetails":{"builder":{"id":"https://quayside.dev/push"}}}`
	if d := cmp.Diff(want, predicateText(t, sampleProvenance())); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestParseProvenance parses the predicate of a random provenance. The result must equal the original.
func TestParseProvenance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z<&"]{1,5}`)
		hex := func(n int) string {
			return rapid.StringOfN(rapid.RuneFrom([]rune("0123456789abcdef")), n, n, n).Draw(t, "hex")
		}
		inputs := func(label string) []inventory.ProvenanceInput {
			list := rapid.SliceOfNDistinct(rapid.Custom(func(r *rapid.T) inventory.ProvenanceInput {
				return inventory.ProvenanceInput{Name: word.Draw(r, "name"), URI: word.Draw(r, "uri"), Digest: sampleDigest("a")}
			}), 0, 4, func(in inventory.ProvenanceInput) string { return in.Name }).Draw(t, label)
			return append([]inventory.ProvenanceInput{}, list...)
		}
		want := &inventory.Provenance{
			Source: word.Draw(t, "source"), Revision: rapid.SampledFrom([]string{"", "main@", "a@b@", "x:y@"}).Draw(t, "branch"), Workspace: word.Draw(t, "workspace"),
			Lock: "sha256:" + hex(64), Catalogs: inputs("catalogs"), Operators: inputs("operators"),
		}
		if rapid.Bool().Draw(t, "sha1") {
			want.Revision += "sha1:" + hex(40)
		} else {
			want.Revision += "sha256:" + hex(64)
		}
		data, err := json.Marshal(want.Predicate())
		if err != nil {
			t.Fatal(err)
		}
		got, err := inventory.ParseProvenance(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-want +got\n%s", d)
		}
		if len(got.CompareCommit(want)) > 0 {
			t.Fatalf("differs from itself: %q", got.CompareCommit(want))
		}
	})
}

// TestParseProvenanceFaults checks the errors for foreign and contradictory predicates.
func TestParseProvenanceFaults(t *testing.T) {
	good := predicateText(t, sampleProvenance())
	for name, c := range map[string]struct{ old, with, want string }{
		"no JSON":        {"{", "<", "not the provenance of a tree"},
		"another's":      {inventory.ProvenanceBuildType, "https://actions.github.io/buildtypes/workflow/v1", `its build type is "https://actions.github.io/`},
		"no revision":    {"main@sha1:", "main", "invalid revision"},
		"another commit": {`"gitCommit":"a`, `"gitCommit":"b`, "has both revision main@sha1:"},
		"no lock":        {`"name":"lock"`, `"name":"clock"`, "has no digest of the lock"},
		"twice":          {"operator:vault/vault", "operator:my-etcd/etcd", `contains "operator:my-etcd/etcd" twice`},
	} {
		got, err := inventory.ParseProvenance([]byte(strings.Replace(good, c.old, c.with, 1)))
		if got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want %q", name, got, err, c.want)
		}
		if other := name == "no JSON" || name == "another's"; errors.Is(err, inventory.ErrForeignProvenance) != other {
			t.Errorf("%s: another builder's: %t", name, !other)
		}
	}
}

// TestCompareArtifact compares provenances with the contents of artifacts.
func TestCompareArtifact(t *testing.T) {
	part := inventory.ArtifactContents{Revision: sampleProvenance().Revision, Clusters: []string{"stage-1"}, Operators: []string{"vault/vault"}}
	whole := inventory.ArtifactContents{Revision: sampleProvenance().Revision, Whole: true, Clusters: []string{"stage-1"}, Operators: []string{"my-etcd/etcd", "vault/vault"}}
	all := sampleProvenance()
	all.Clusters = nil
	for name, c := range map[string]struct {
		origin *inventory.Provenance
		have   inventory.ArtifactContents
		change func(*inventory.ArtifactContents)
		want   string
	}{
		"part":              {sampleProvenance(), part, func(*inventory.ArtifactContents) {}, ""},
		"whole":             {all, whole, func(*inventory.ArtifactContents) {}, ""},
		"revision":          {all, whole, func(c *inventory.ArtifactContents) { c.Revision = "" }, "but the artifact has nothing"},
		"all, but a part":   {all, part, func(*inventory.ArtifactContents) {}, "for a whole environment, but the artifact is for stage-1"},
		"part, but all":     {sampleProvenance(), whole, func(*inventory.ArtifactContents) {}, "for clusters stage-1, but the artifact is for stage-1"},
		"another cluster":   {sampleProvenance(), part, func(c *inventory.ArtifactContents) { c.Clusters = []string{"prod-1"} }, "for clusters stage-1, but the artifact is for prod-1"},
		"operator missing":  {all, whole, func(c *inventory.ArtifactContents) { c.Operators = c.Operators[:1] }, "the provenance has operator vault/vault, but the artifact does not"},
		"operator more":     {all, whole, func(c *inventory.ArtifactContents) { c.Operators = append(c.Operators, "x/y") }, "the artifact has operator x/y, but the provenance does not"},
		"part with another": {sampleProvenance(), part, func(c *inventory.ArtifactContents) { c.Operators = []string{"x/y"} }, "has operator x/y, but the provenance does not"},
	} {
		c.change(&c.have)
		got := strings.Join(c.origin.CompareArtifact(c.have), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestCompareCommit compares provenances with the provenance of a commit.
func TestCompareCommit(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*inventory.Provenance)
		want   string
	}{
		"another URL":     {func(o *inventory.Provenance) { o.Source = "git@git.example.com:fleet" }, ""},
		"lock":            {func(o *inventory.Provenance) { o.Lock = sampleDigest("0") }, "the provenance has lock " + sampleDigest("0")},
		"workspace":       {func(o *inventory.Provenance) { o.Workspace = "envs/prod" }, "workspace envs/prod, but the commit has envs/stage"},
		"catalog":         {func(o *inventory.Provenance) { o.Catalogs[0].Digest = sampleDigest("0") }, "the provenance has catalog olm/community (" + sampleDigest("0")},
		"no catalog":      {func(o *inventory.Provenance) { o.Catalogs = nil }, "has catalog olm/community, but the provenance does not"},
		"bundle":          {func(o *inventory.Provenance) { o.Operators[0].URI = "pkg:oci/mallory" }, "pkg:oci/mallory"},
		"operator more":   {func(o *inventory.Provenance) { o.Operators[0].Name = "x/y" }, "the provenance has operator x/y, but the commit does not"},
		"without version": {func(o *inventory.Provenance) { o.Operators[1].Version = "" }, "but the commit has vault/vault 0.1.9"},
	} {
		o := sampleProvenance()
		c.change(o)
		got := strings.Join(o.CompareCommit(sampleProvenance()), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// FuzzParseProvenance parses untrusted predicates. If a predicate is accepted, encoding and parsing it again
// must not change it.
func FuzzParseProvenance(f *testing.F) {
	f.Add([]byte(predicateText(f, sampleProvenance())))
	f.Add([]byte(`{"buildDefinition":{"buildType":"` + inventory.ProvenanceBuildType + `"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := inventory.ParseProvenance(data)
		if err != nil {
			return
		}
		again, err := inventory.ParseProvenance([]byte(predicateText(t, got)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(got.CompareCommit(again), []string(nil)); d != "" || again.Revision != got.Revision {
			t.Error(d)
		}
	})
}

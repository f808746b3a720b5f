package provenance_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/provenance"
	"github.com/quayside/quayside/lockfile"
)

func digest(c string) string { return "sha256:" + strings.Repeat(c, 64) }

func sample() *provenance.Origin {
	id := lockfile.NewCatalog(catalog.ID{Namespace: "olm", Name: "community"}, "image:quay.io/org/catalog:v1", catalog.Digest(digest("c")))
	o := &provenance.Origin{
		Source: "https://git.example.com/fleet", Revision: "main@sha1:" + strings.Repeat("a", 40), Workspace: "envs/stage",
		Clusters: []string{"stage-1"}, Lock: digest("b"),
	}
	o.Catalogs, o.Operators = provenance.Inputs(lockfile.New(
		[]lockfile.Pin{
			{Namespace: "my-etcd", Package: "etcd", Version: "0.9.4", Image: "quay.io/org/etcd@" + digest("d"), Catalog: id},
			{Namespace: "vault", Package: "vault", Version: "0.1.9", ContentDigest: catalog.Digest(digest("e")), Catalog: id},
		}))
	return o
}

func text(t testing.TB, o *provenance.Origin) string {
	t.Helper()
	data, err := json.Marshal(o.Predicate())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPredicate fixes the bytes: they are signed, and two machines must agree.
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
	if d := cmp.Diff(want, text(t, sample())); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestReadBack wants of any origin what was stated of it.
func TestReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z<&"]{1,5}`)
		hex := func(n int) string {
			return rapid.StringOfN(rapid.RuneFrom([]rune("0123456789abcdef")), n, n, n).Draw(t, "hex")
		}
		inputs := func(label string) []provenance.Input {
			list := rapid.SliceOfNDistinct(rapid.Custom(func(r *rapid.T) provenance.Input {
				return provenance.Input{Name: word.Draw(r, "name"), URI: word.Draw(r, "uri"), Digest: digest("a")}
			}), 0, 4, func(in provenance.Input) string { return in.Name }).Draw(t, label)
			return append([]provenance.Input{}, list...)
		}
		want := &provenance.Origin{
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
		got, err := provenance.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-want +got\n%s", d)
		}
		if len(got.Differences(want)) > 0 {
			t.Fatalf("differs from itself: %q", got.Differences(want))
		}
	})
}

// TestParseFaults refuses what is another's, or contradicts itself.
func TestParseFaults(t *testing.T) {
	good := text(t, sample())
	for name, c := range map[string]struct{ old, with, want string }{
		"no JSON":        {"{", "<", "not the provenance of a tree"},
		"another's":      {provenance.BuildType, "https://actions.github.io/buildtypes/workflow/v1", `of build type "https://actions.github.io/`},
		"no revision":    {"main@sha1:", "main", "want a commit"},
		"another commit": {`"gitCommit":"a`, `"gitCommit":"b`, "at once"},
		"no lock":        {`"name":"lock"`, `"name":"clock"`, "names no lock"},
		"twice":          {"operator:vault/vault", "operator:my-etcd/etcd", `names "operator:my-etcd/etcd" twice`},
	} {
		got, err := provenance.Parse([]byte(strings.Replace(good, c.old, c.with, 1)))
		if got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want %q", name, got, err, c.want)
		}
		if other := name == "no JSON" || name == "another's"; errors.Is(err, provenance.ErrOther) != other {
			t.Errorf("%s: another builder's: %t", name, !other)
		}
	}
}

// TestAgainst compares what is stated with what an artifact shows.
func TestAgainst(t *testing.T) {
	part := provenance.Contents{Revision: sample().Revision, Clusters: []string{"stage-1"}, Operators: []string{"vault/vault"}}
	whole := provenance.Contents{Revision: sample().Revision, Whole: true, Clusters: []string{"stage-1"}, Operators: []string{"my-etcd/etcd", "vault/vault"}}
	all := sample()
	all.Clusters = nil
	for name, c := range map[string]struct {
		origin *provenance.Origin
		have   provenance.Contents
		change func(*provenance.Contents)
		want   string
	}{
		"part":              {sample(), part, func(*provenance.Contents) {}, ""},
		"whole":             {all, whole, func(*provenance.Contents) {}, ""},
		"revision":          {all, whole, func(c *provenance.Contents) { c.Revision = "" }, "and the artifact names nothing"},
		"all, but a part":   {all, part, func(*provenance.Contents) {}, "all of an environment, and the artifact is for stage-1"},
		"part, but all":     {sample(), whole, func(*provenance.Contents) {}, "of clusters stage-1, and the artifact is for stage-1"},
		"another cluster":   {sample(), part, func(c *provenance.Contents) { c.Clusters = []string{"prod-1"} }, "of clusters stage-1, and the artifact is for prod-1"},
		"operator missing":  {all, whole, func(c *provenance.Contents) { c.Operators = c.Operators[:1] }, "it states operator vault/vault, which the artifact has not"},
		"operator more":     {all, whole, func(c *provenance.Contents) { c.Operators = append(c.Operators, "x/y") }, "it does not state operator x/y, which the artifact has"},
		"part with another": {sample(), part, func(c *provenance.Contents) { c.Operators = []string{"x/y"} }, "it does not state operator x/y"},
	} {
		c.change(&c.have)
		got := strings.Join(c.origin.Against(c.have), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestDifferences compares what is stated with what a commit has.
func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*provenance.Origin)
		want   string
	}{
		"another URL":     {func(o *provenance.Origin) { o.Source = "git@git.example.com:fleet" }, ""},
		"lock":            {func(o *provenance.Origin) { o.Lock = digest("0") }, "it states lock " + digest("0")},
		"workspace":       {func(o *provenance.Origin) { o.Workspace = "envs/prod" }, "workspace envs/prod, and the commit has envs/stage"},
		"catalog":         {func(o *provenance.Origin) { o.Catalogs[0].Digest = digest("0") }, "it states catalog olm/community (" + digest("0")},
		"no catalog":      {func(o *provenance.Origin) { o.Catalogs = nil }, "it does not state catalog olm/community"},
		"bundle":          {func(o *provenance.Origin) { o.Operators[0].URI = "pkg:oci/mallory" }, "pkg:oci/mallory"},
		"operator more":   {func(o *provenance.Origin) { o.Operators[0].Name = "x/y" }, "it states operator x/y, which the commit has not"},
		"without version": {func(o *provenance.Origin) { o.Operators[1].Version = "" }, "and the commit has vault/vault 0.1.9"},
	} {
		o := sample()
		c.change(o)
		got := strings.Join(o.Differences(sample()), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// FuzzParse reads what anybody may have signed: what is taken is stated again as it
// was read.
func FuzzParse(f *testing.F) {
	f.Add([]byte(text(f, sample())))
	f.Add([]byte(`{"buildDefinition":{"buildType":"` + provenance.BuildType + `"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := provenance.Parse(data)
		if err != nil {
			return
		}
		again, err := provenance.Parse([]byte(text(t, got)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(got.Differences(again), []string(nil)); d != "" || again.Revision != got.Revision {
			t.Error(d)
		}
	})
}

package inventory_test

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/resolve"
)

const feedOne = `---
schema: olm.package
name: lamp
defaultChannel: stable
---
schema: olm.channel
package: lamp
name: stable
entries: [{name: lamp.v1.1.0, replaces: lamp.v1.0.0}, {name: lamp.v1.0.0}]
---
schema: olm.channel
package: lamp
name: a/b
entries: [{name: lamp.v1.0.0}]
---
schema: olm.bundle
package: lamp
name: lamp.v1.0.0
image: example.com/lamp@sha256:1
properties: [{type: olm.package, value: {packageName: lamp, version: 1.0.0}}]
---
schema: olm.bundle
package: lamp
name: lamp.v1.1.0
image: example.com/lamp@sha256:2
properties:
- {type: olm.package, value: {packageName: lamp, version: 1.1.0}}
- {type: olm.csv.metadata, value: {annotations: {repository: 'https://example.com/lamp'}}}
---
schema: olm.deprecations
package: lamp
entries: [{reference: {schema: olm.bundle, name: lamp.v1.0.0}, message: leaks}]
---
schema: io.openshift.operators.lifecycles.v1alpha1
package: lamp
versions:
- {name: "1.1", phases: [{name: Full, startDate: 2026-01-01, endDate: 2026-06-30}]}
`

// feedTwo is a catalog that shares one version with feedOne. It also has a new version whose repository is not
// a valid URL.
const feedTwo = `---
schema: olm.package
name: lamp
defaultChannel: stable
---
schema: olm.channel
package: lamp
name: stable
entries: [{name: lamp.v1.2.0, replaces: lamp.v1.1.0}, {name: lamp.v1.1.0}]
---
schema: olm.bundle
package: lamp
name: lamp.v1.1.0
image: example.com/lamp@sha256:2
properties: [{type: olm.package, value: {packageName: lamp, version: 1.1.0}}]
---
schema: olm.bundle
package: lamp
name: lamp.v1.2.0
image: example.com/lamp@sha256:3
properties:
- {type: olm.package, value: {packageName: lamp, version: 1.2.0}}
- {type: olm.csv.metadata, value: {annotations: {repository: 'javascript:alert(1)'}}}
`

func newIndex(t *testing.T, texts ...string) *catalog.Index {
	t.Helper()
	var cats []*catalog.Catalog
	for i, text := range texts {
		content, err := fbc.LoadFS(fstest.MapFS{"catalog.yaml": {Data: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		content.ID = catalog.ID{Namespace: "olm", Name: string(rune('a' + i))}
		c, err := catalog.New(content)
		if err != nil {
			t.Fatal(err)
		}
		cats = append(cats, c)
	}
	x, err := catalog.NewIndex(cats...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// feedFiles returns the feed as compact JSON, by path.
func feedFiles(t *testing.T, x *catalog.Index, ages ...resolve.Age) map[string]string {
	t.Helper()
	tree, err := inventory.NewFeed(x, ages)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, data := range tree.All() {
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(text)
	}
	return out
}

// TestFeedChannels checks that each channel has one file with the versions of all catalogs,
// oldest first, without duplicates.
func TestFeedChannels(t *testing.T) {
	got := feedFiles(t, newIndex(t, feedOne, feedTwo), resolve.Age{Namespace: "x", Package: "lamp", Pinned: "1.0.0"}, resolve.Age{Namespace: "y", Package: "lamp", Pinned: "1.1.0"})
	want := map[string]string{
		"operators/x/lamp.json":     `{"releases":[{"version":"1.0.0"}]}`,
		"operators/y/lamp.json":     `{"releases":[{"version":"1.1.0"}]}`,
		"packages/lamp/a%2Fb.json":  `{"releases":[{"isDeprecated":true,"version":"1.0.0"}]}`,
		"packages/lamp/stable.json": `{"releases":[{"isDeprecated":true,"version":"1.0.0"},{"supportedUntil":"2026-06-30","version":"1.1.0"},{"version":"1.2.0"}]}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestFeedOperator checks that the feed offers the next version, unless resolving this version would fail.
func TestFeedOperator(t *testing.T) {
	x := newIndex(t, feedOne, feedTwo)
	const next = `{"releases":[{"version":"1.0.0"},{"supportedUntil":"2026-06-30","version":"1.1.0"}],"sourceUrl":"https://example.com/lamp"}`
	const none = `{"releases":[{"version":"1.0.0"}]}`
	for held, want := range map[resolve.HeldBack]string{
		"": next, resolve.HeldByApproval: next,
		resolve.HeldByHold: none, resolve.HeldByRange: none, resolve.HeldByInstallMode: none, resolve.HeldByCluster: none,
	} {
		got := feedFiles(t, x, resolve.Age{Namespace: "x", Package: "lamp", Pinned: "1.0.0", Next: "1.1.0", HeldBack: held})["operators/x/lamp.json"]
		if got != want {
			t.Errorf("held back by %q: got %s, want %s", held, got, want)
		}
	}
	for name, c := range map[string]struct {
		age  resolve.Age
		want string
	}{
		"deprecated":    {resolve.Age{Pinned: "1.0.0", Deprecated: []string{"leaks"}}, `{"releases":[{"isDeprecated":true,"version":"1.0.0"}]}`},
		"no address":    {resolve.Age{Pinned: "1.1.0", Next: "1.2.0"}, `{"releases":[{"version":"1.1.0"},{"version":"1.2.0"}]}`},
		"in no catalog": {resolve.Age{Pinned: "1.1.0", Next: "7.0.0"}, `{"releases":[{"version":"1.1.0"},{"version":"7.0.0"}]}`},
	} {
		c.age.Namespace, c.age.Package = "x", "lamp"
		if got := feedFiles(t, x, c.age)["operators/x/lamp.json"]; got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

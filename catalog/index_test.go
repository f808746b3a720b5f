package catalog

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/diag"
)

func mustNew(t *testing.T, id ID, text string) *Catalog {
	t.Helper()
	c := contentOf(t, text)
	c.ID = id
	cat, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

func TestIndex(t *testing.T) {
	one := mustNew(t, ID{"ns", "one"}, "package a default=c\nc: a.v1")
	two := mustNew(t, ID{"ns", "two"}, "package a default=c\nc: a.v1\npackage b default=c\nc: b.v1")
	cluster := mustNew(t, ID{"", "z"}, "package b default=c\nc: b.v1")
	x, err := NewIndex(two, cluster, one)
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Catalogs(); !slices.Equal(got, []*Catalog{cluster, one, two}) {
		t.Errorf("Catalogs() are not in the order of their IDs: %v", got)
	}
	if got := x.CatalogsWith("b"); !slices.Equal(got, []*Catalog{cluster, two}) {
		t.Errorf("Having(b) = %v", got)
	}
	if _, err := NewIndex(one, two, one); err == nil || err.Error() != `duplicate catalog "ns/one"` {
		t.Errorf("the same catalog twice: got %v", err)
	}
	why := errors.New("unreachable")
	y := x.WithBroken(ID{"ns", "two"}, why).WithBroken(ID{"ns", "three"}, why)
	if _, ok := y.Catalog(ID{"ns", "two"}); ok || len(y.Catalogs()) != 2 || len(y.Broken()) != 2 || !errors.Is(y.Broken()[ID{"ns", "two"}], why) {
		t.Errorf("broken catalogs: have %v, broken %v", y.Catalogs(), y.Broken())
	}
	if c, ok := x.Catalog(ID{"ns", "two"}); !ok || c != two || len(x.Broken()) != 0 {
		t.Error("WithBroken modified its receiver")
	}
}

func TestOrders(t *testing.T) {
	const text = `package b default=z
z: b.v2 replaces=b.v1
z: b.v1
a: b.v2
a.v9 9.0.0
package a default=y
y: a.v3 replaces=a.v1 skips=a.v2
y: a.v2 replaces=a.v1
y: a.v1
x: a.v2
`
	in := strings.ReplaceAll(text, "a.v9 9.0.0\n", "")
	for _, b := range []string{"a.v3 3.0.0", "a.v2 2.0.0", "a.v1 1.0.0"} {
		in += b + ` olm.gvk={"group":"g","version":"v1","kind":"K"} olm.gvk={"group":"g","version":"v1","kind":"K"} olm.label={"label":"l"}` + "\n"
	}
	in += "package c default=m\nm: c.v1\n" + `c.v1 1.0.0 olm.gvk={"group":"g","version":"v1","kind":"K"} olm.deprecated={} olm.maxOpenShiftVersion="4.9"` + "\ndeprecate olm.package : p\ndeprecate olm.channel m: q\ndeprecate olm.bundle c.v1: r\n"
	for seed := range uint64(20) {
		c := contentOf(t, in)
		shuffle(c, rand.New(rand.NewPCG(seed, 7)))
		cat, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		checkOrders(t, cat)
	}
}

// shuffle shuffles all lists in c whose order is insignificant.
func shuffle(c Content, rnd *rand.Rand) {
	rnd.Shuffle(len(c.Packages), func(i, j int) { c.Packages[i], c.Packages[j] = c.Packages[j], c.Packages[i] })
	for _, p := range c.Packages {
		rnd.Shuffle(len(p.Channels), func(i, j int) { p.Channels[i], p.Channels[j] = p.Channels[j], p.Channels[i] })
		rnd.Shuffle(len(p.Bundles), func(i, j int) { p.Bundles[i], p.Bundles[j] = p.Bundles[j], p.Bundles[i] })
		for _, ch := range p.Channels {
			e := ch.Entries
			rnd.Shuffle(len(e), func(i, j int) { e[i], e[j] = e[j], e[i] })
		}
	}
}

func checkOrders(t *testing.T, cat *Catalog) {
	t.Helper()
	var packages, channels, providers, bundles []string
	for _, p := range cat.Packages() {
		packages = append(packages, p.Name()+"="+strings.Join(p.ChannelNames(), ","))
	}
	for _, c := range cat.Channels() {
		channels = append(channels, c.Package().Name()+"/"+c.Name())
	}
	for _, e := range cat.Providers(GVK{Group: "g", Version: "v1", Kind: "K"}) {
		providers = append(providers, e.Channel().Name()+"/"+e.Name())
	}
	a, _ := cat.Package("a")
	for _, b := range a.Bundles() {
		bundles = append(bundles, b.Name())
	}
	for _, tt := range []struct {
		what string
		got  []string
		want string
	}{
		{"Packages", packages, "a=y,x b=z,a c=m"},
		{"Channels", channels, "a/y b/z c/m a/x b/a"},
		{"Providers", providers, "y/a.v3 y/a.v1 m/c.v1 x/a.v2"},
		{"Bundles", bundles, "a.v3 a.v2 a.v1"},
	} {
		if got := strings.Join(tt.got, " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.what, got, tt.want)
		}
	}
	two, _ := a.Bundle("a.v2")
	if got := two.Entries(); len(got) != 2 || got[0].Channel().Name() != "y" || !got[0].Skipped() || got[1].Skipped() {
		t.Errorf("entries of a.v2: %v", got)
	}
	if got := two.Provides(); len(got) != 1 || !slices.Equal(two.Labels(), []string{"l"}) {
		t.Errorf("a.v2 provides %v, has labels %v", got, two.Labels())
	}
	c, _ := cat.Package("c")
	m, _ := c.Channel("m")
	b := m.Head().Bundle()
	if c.Deprecation() != "p" || m.Deprecation() != "q" || b.Deprecation() != "r" || !b.Deprecated() || b.MaxOpenShiftVersion() != "4.9" {
		t.Errorf("deprecations %q %q %q, deprecated %t, OpenShift %q", c.Deprecation(), m.Deprecation(), b.Deprecation(), b.Deprecated(), b.MaxOpenShiftVersion())
	}
}

func TestEdgeFrom(t *testing.T) {
	cat := mustNew(t, ID{Name: "c"}, `package a default=c
c: a.v5 replaces=a.v4 range=>=2.0.0_<5.0.0
c: a.v4 replaces=a.v3 skips=other.v1
c: a.v3 replaces=a.v2
c: a.v2 replaces=a.v1
c: a.v1`)
	p, _ := cat.Package("a")
	ch, _ := p.Channel("c")
	for _, tt := range []struct{ of, version, want string }{
		{"a.v1", "1.0.0", "a.v2:replaces"},
		{"a.v2", "2.0.0", "a.v5:skipRange a.v3:replaces"},
		{"a.v4", "4.0.0", "a.v5:replaces"}, // replaces takes precedence over the skipRange
		{"a.v5", "5.0.0", ""},
		{"other.v1", "0.1.0", "a.v4:skips"},
		{"gone.v3", "3.1.0", "a.v5:skipRange"},
		{"a.v2", "", "a.v3:replaces"},
		{"", "0.0.0", ""},
	} {
		var v *Version
		if tt.version != "" {
			parsed, err := ParseVersion(tt.version)
			if err != nil {
				t.Fatal(err)
			}
			v = &parsed
		}
		var got []string
		for _, e := range ch.Walk() {
			if edge := e.EdgeFrom(tt.of, v); edge != NoEdge {
				got = append(got, e.Name()+":"+string(edge))
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("edges from %q, %s: %q, want %q", tt.of, tt.version, got, tt.want)
		}
	}
}

// TestCopies checks that modifying the result of an accessor does not change the catalog.
func TestCopies(t *testing.T) {
	cat := mustNew(t, ID{Name: "c"}, "package a default=c\nc: a.v2 replaces=a.v1 skips=x\nc: a.v1\n"+`a.v2 2.0.0 olm.gvk={"group":"g","version":"v1","kind":"K"}`)
	p, _ := cat.Package("a")
	ch, _ := p.Channel("c")
	clear(cat.Packages())
	clear(cat.Channels())
	clear(cat.Providers(GVK{Group: "g", Version: "v1", Kind: "K"}))
	clear(p.Bundles())
	clear(p.Channels())
	clear(ch.Walk())
	clear(ch.Entries())
	clear(ch.Head().Skips())
	b := ch.Head().Bundle()
	clear(b.Provides())
	clear(b.Properties())
	clear(b.Entries())
	if entryNames(ch.Entries()) != "a.v2 a.v1" || entryNames(ch.Walk()) != "a.v2 a.v1" || ch.Head().Skips()[0] != "x" ||
		cat.Packages()[0] != p || cat.Channels()[0] != ch || p.Channels()[0] != ch || p.Bundles()[0] != b || b.Entries()[0] != ch.Head() ||
		b.Provides()[0].Kind != "K" || b.Properties()[0].Type != "olm.package" || cat.Providers(GVK{Group: "g", Version: "v1", Kind: "K"})[0] != ch.Head() {
		t.Error("modifying the result of an accessor changed the catalog")
	}
}

func TestWarnings(t *testing.T) {
	c := contentOf(t, "package a default=c\nc: a.v1")
	c.Warnings = []diag.Warning{{Code: "b"}, {Code: "a"}, {Code: "b"}}
	cat, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := cat.Warnings(); len(got) != 2 || got[0].Code != "a" || got[1].Code != "b" {
		t.Errorf("Warnings() = %v, want a and b", got)
	}
	if c.Warnings[0].Code != "b" {
		t.Error("New modified its argument")
	}
}

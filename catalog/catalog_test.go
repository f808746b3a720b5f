package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// contentOf parses the short notation of catalogs in these tests:
//
//	package etcd default=stable
//	stable: a.v2 replaces=a.v1 skips=a.v0 range=<1.5.0
//	a.v2 2.0.0 olm.gvk={"group":"g","version":"v1","kind":"K"}
//	deprecate olm.channel stable: gone
//
// Each channel entry gets a bundle, unless the line of the package contains "bundles=none". The version
// of the bundle is the number after ".v" in its name, followed by ".0.0".
func contentOf(t *testing.T, text string) Content {
	t.Helper()
	var c Content
	var cur *PackageData
	auto := true
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case f[0] == "package":
			c.Packages = append(c.Packages, PackageData{Name: f[1]})
			cur = &c.Packages[len(c.Packages)-1]
			auto = true
			for _, a := range f[2:] {
				k, v, _ := strings.Cut(a, "=")
				switch k {
				case "default":
					cur.DefaultChannel = v
				case "bundles":
					auto = v != "none"
				default:
					t.Fatalf("unknown attribute %q", a)
				}
			}
		case f[0] == "deprecate":
			what, msg, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "deprecate ")), ":")
			schema, name, _ := strings.Cut(strings.TrimSpace(what), " ")
			cur.Deprecations = append(cur.Deprecations, DeprecationData{Schema: schema, Name: name, Message: strings.TrimSpace(msg)})
		case strings.HasSuffix(f[0], ":"):
			addEntry(cur, strings.TrimSuffix(f[0], ":"), f[1:], auto)
		default:
			addBundle(cur, f[0], f[1], f[2:])
		}
	}
	return c
}

func addEntry(p *PackageData, channel string, f []string, auto bool) {
	at := slices.IndexFunc(p.Channels, func(c ChannelData) bool { return c.Name == channel })
	if at < 0 {
		p.Channels = append(p.Channels, ChannelData{Name: channel})
		at = len(p.Channels) - 1
	}
	if len(f) == 0 {
		return
	}
	e := EntryData{Name: f[0]}
	for _, a := range f[1:] {
		k, v, _ := strings.Cut(a, "=")
		switch k {
		case "replaces":
			e.Replaces = v
		case "skips":
			e.Skips = strings.Split(v, ",")
		case "range":
			e.SkipRange = strings.ReplaceAll(v, "_", " ")
		}
	}
	p.Channels[at].Entries = append(p.Channels[at].Entries, e)
	if auto && !slices.ContainsFunc(p.Bundles, func(b BundleData) bool { return b.Name == e.Name }) {
		_, v, _ := strings.Cut(e.Name, ".v")
		addBundle(p, e.Name, v+".0.0", nil)
	}
}

func addBundle(p *PackageData, name, version string, props []string) {
	b := BundleData{Name: name, Image: "example.com/" + name}
	if version != "-" {
		b.Properties = append(b.Properties, Property{Type: "olm.package", Value: json.RawMessage(fmt.Sprintf(`{"packageName":%q,"version":%q}`, p.Name, version))})
	}
	for _, a := range props {
		k, v, _ := strings.Cut(a, "=")
		b.Properties = append(b.Properties, Property{Type: k, Value: json.RawMessage(v)})
	}
	p.Bundles = slices.DeleteFunc(p.Bundles, func(old BundleData) bool { return old.Name == name })
	p.Bundles = append(p.Bundles, b)
}

func entryNames(es []*Entry) string {
	names := make([]string, len(es))
	for i, e := range es {
		names[i] = e.Name()
	}
	return strings.Join(names, " ")
}

// TestWalk checks the order of the results of Walk and Entries.
func TestWalk(t *testing.T) {
	for _, tt := range []struct{ name, in, walk, entries string }{
		{
			"ok/chain",
			"c: a.v1\nc: a.v3 replaces=a.v2\nc: a.v2 replaces=a.v1",
			"a.v3 a.v2 a.v1", "a.v3 a.v2 a.v1",
		},
		{
			"ok/an entry that is replaced and skipped is omitted",
			"c: a.v3 replaces=a.v2 skips=a.v2,a.v1\nc: a.v2 replaces=a.v1\nc: a.v1 replaces=a.v0",
			"a.v3", "a.v3 a.v2 a.v1",
		},
		{
			"ok/a skipped entry outside of the chain",
			"c: a.v3 replaces=a.v1 skips=a.v2\nc: a.v1\nc: a.v2",
			"a.v3 a.v1", "a.v3 a.v1 a.v2",
		},
		{
			"ok/a cycle below skipped entries ends",
			"c: a.v4 replaces=a.v3 skips=a.v3,a.v2\nc: a.v3 replaces=a.v2\nc: a.v2 replaces=a.v3",
			"a.v4", "a.v4 a.v3 a.v2",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cat, err := New(contentOf(t, "package a default=c\n"+tt.in))
			if err != nil {
				t.Fatal(err)
			}
			p, _ := cat.Package("a")
			ch, _ := p.Channel("c")
			if got := entryNames(ch.Walk()); got != tt.walk {
				t.Errorf("Walk() = %q, want %q", got, tt.walk)
			}
			if got := entryNames(ch.Entries()); got != tt.entries {
				t.Errorf("Entries() = %q, want %q", got, tt.entries)
			}
		})
	}
}

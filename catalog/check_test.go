package catalog

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/diag"
)

// TestNewFaults checks the faults of catalogs in the short notation of contentOf.
func TestNewFaults(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"ok/one entry", "package a default=c\nc: a.v1", ""},
		{"ok/tail replaces a missing bundle", "package a default=c\nc: a.v1 replaces=a.v0", ""},
		{"ok/slash in a channel's name, equal bundle names in two packages", "package a default=c/d\nc/d: x.v1\npackage b default=c\nc: x.v1", ""},
		{"ok/versions that differ in build metadata", "package a default=c\nc: a.v2 replaces=a.v1\nc: a.v1\na.v2 1.0.0+2\na.v1 1.0.0+1", ""},
		{"ok/prerelease", "package a default=c\nc: a.v1\na.v1 1.0.0-rc.1", ""},
		{"error/no channel", "package a default=c", `package "a" has no channel`},
		{"error/no default channel", "package a\nc: a.v1", `package "a" has no default channel`},
		{
			"error/default channel missing", "package a default=stabel\nstable: a.v1",
			`default channel "stabel" of package "a" does not exist (did you mean "stable"?)`,
		},
		{
			"error/default channel missing, no similar name", "package a default=x\nstable: a.v1\nalpha: a.v1",
			`default channel "x" of package "a" does not exist (available: alpha, stable)`,
		},
		{"error/empty channel", "package a default=c\nc:", `channel "c" of package "a" has no entry`},
		{
			"error/several heads", "package a default=c\nc: a.v2\nc: a.v1",
			`channel "c" of package "a" has 2 heads: "a.v1", "a.v2"`,
		},
		{
			"error/no head", "package a default=c\nc: a.v2 replaces=a.v1\nc: a.v1 replaces=a.v2",
			`channel "c" of package "a" has no head: every entry is replaced or skipped by another`,
		},
		{
			"error/entry skips itself", "package a default=c\nc: a.v1 skips=a.v1",
			`channel "c" of package "a" has no head: every entry is replaced or skipped by another`,
		},
		{
			"error/cycle", "package a default=c\nc: a.v3 replaces=a.v2\nc: a.v2 replaces=a.v1\nc: a.v1 replaces=a.v2",
			`channel "c" of package "a" has a cycle: a.v2 replaces a.v1 replaces a.v2`,
		},
		{
			"error/unreachable below a skipped entry", "package a default=c\nc: a.v3 replaces=a.v2 skips=a.v2\nc: a.v2 replaces=a.v1\nc: a.v1",
			`channel "c" of package "a": replaces chain from head "a.v3" does not reach "a.v1"`,
		},
		{
			"error/unreachable cycle", "package a default=c\nc: a.v3\nc: a.v2 replaces=a.v1\nc: a.v1 replaces=a.v2",
			`channel "c" of package "a": replaces chain from head "a.v3" does not reach "a.v1", "a.v2"`,
		},
		{
			"error/duplicate entry", "package a default=c\nc: a.v1\nc: a.v1",
			`duplicate entry "a.v1" in channel "c" of package "a"`,
		},
		{
			"error/entry without bundle", "package a default=c bundles=none\nc: a.v1\na.v2 2.0.0\nd: a.v2",
			`entry "a.v1" of channel "c" of package "a" has no bundle (did you mean "a.v2"?)`,
		},
		{
			"error/bundle in no channel", "package a default=c\nc: a.v1\nlost 3.0.0",
			`bundle "lost" of package "a" is in no channel`,
		},
		{"error/empty skip", "package a default=c\nc: a.v1 skips=", `entry "a.v1" of channel "c" of package "a" skips an empty name`},
		{
			"error/same version", "package a default=c\nc: a.v2 replaces=a.v1\nc: a.v1\na.v2 1.0.0",
			`bundles "a.v1" and "a.v2" of package "a" have the same version 1.0.0`,
		},
		{
			"error/package name", "package A_b default=c\nc: a.v1",
			`package name "A_b": must be a DNS-1123 label (lower case letters, digits and "-", at most 63)`,
		},
		{
			"error/version", "package a default=c\nc: a.v1\na.v1 1.0",
			`bundle "a.v1" of package "a": version "1.0": No Major.Minor.Patch elements found`,
		},
		{
			"error/no olm.package", "package a default=c\nc: a.v1\na.v1 -",
			`bundle "a.v1" of package "a" has 0 olm.package properties: expected exactly one`,
		},
		{
			"error/two olm.package", `package a default=c` + "\nc: a.v1\n" + `a.v1 1.0.0 olm.package={"packageName":"a","version":"1.0.0"}`,
			`bundle "a.v1" of package "a" has 2 olm.package properties: expected exactly one`,
		},
		{
			"error/olm.package of another package", "package a default=c\nc: a.v1\n" + `a.v1 - olm.package={"packageName":"b","version":"1.0.0"}`,
			`bundle "a.v1" of package "a": property olm.package has package "b"`,
		},
		{
			"error/olm.gvk", "package a default=c\nc: a.v1\n" + `a.v1 1.0.0 olm.gvk={"group":7}`,
			`bundle "a.v1" of package "a": property olm.gvk: group: expected string, got number`,
		},
		{
			"error/property without value", "package a default=c\nc: a.v1\na.v1 1.0.0 olm.gvk=",
			`property 2 of bundle "a.v1" of package "a" has no type or no value`,
		},
		{"error/duplicate package", "package a default=c\nc: a.v1\npackage a default=c\nc: a.v1", `duplicate package "a"`},
		{
			"error/deprecations", "package a default=c\nc: a.v1\ndeprecate olm.channel d: x\ndeprecate olm.bundle a.v2: x\ndeprecate olm.what : x\ndeprecate olm.package :",
			`deprecated bundle "a.v2" is not in package "a" (did you mean "a.v1"?)
deprecated channel "d" is not in package "a" (did you mean "c"?)
deprecation of olm.package "" in package "a" has no message
deprecation of unknown schema "olm.what" in package "a"`,
		},
		{
			"error/several faults", "package a default=c\nc: a.v1\nc: a.v2\npackage b\nc: b.v1",
			`channel "c" of package "a" has 2 heads: "a.v1", "a.v2"` + "\n" + `package "b" has no default channel`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(contentOf(t, tt.in))
			got := ""
			if err != nil {
				got = err.Error()
				var list diag.List
				if !errors.As(err, &list) {
					t.Errorf("error is a %T, want diag.List", err)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestNewFaultsFromData(t *testing.T) {
	at := func(line int) diag.Pos { return diag.Pos{File: "c.json", Line: line, Col: 1} }
	c := Content{Packages: []PackageData{
		{
			Name: "etcd", DefaultChannel: "c", Pos: at(1), Channels: []ChannelData{{Name: "c", Pos: at(2), Entries: []EntryData{{Name: "e.v1", Pos: at(3)}}}},
			Bundles: []BundleData{{Name: "e.v1", Pos: at(4), Properties: []Property{{Type: "olm.package", Value: []byte(`{"packageName":"etcd","version":"1.0.0"}`)}}}},
		},
		{Name: "etdc", Undeclared: true, Channels: []ChannelData{{Name: "x", Pos: at(9)}}, Bundles: []BundleData{{Name: "y", Pos: at(8)}}, Deprecations: []DeprecationData{{Pos: at(7)}}},
	}}
	_, err := New(c)
	want := `c.json:4:1: bundle "e.v1" of package "etcd" has neither an image nor embedded manifests
c.json:7:1: deprecation is for package "etdc", which has no olm.package (did you mean "etcd"?)
c.json:8:1: bundle "y" is for package "etdc", which has no olm.package (did you mean "etcd"?)
c.json:9:1: channel "x" is for package "etdc", which has no olm.package (did you mean "etcd"?)`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestUnusable checks that an invalid requirement makes only its bundle unusable.
func TestUnusable(t *testing.T) {
	for _, tt := range []struct{ prop, want string }{
		{`olm.package.required={"packageName":"b","versionRange":">1"}`, `olm.package.required: package "b": version range ">1"`},
		{`olm.package.required={"packageName":"b"}`, `olm.package.required: package "b": version range ""`},
		{`olm.package.required=[]`, `olm.package.required: value: expected object, got array`},
		{`olm.gvk.required={"group":1}`, `olm.gvk.required: group: expected string, got number`},
		{`olm.label.required="x"`, `olm.label.required: value: expected object, got string`},
		{`olm.constraint={}`, `olm.constraint: constraint is empty`},
		{`olm.constraint=null`, `olm.constraint: constraint is empty`},
		{`olm.constraint={"teapot":{}}`, `olm.constraint: unknown field "teapot"`},
		{`olm.constraint={"all":{"constraints":[{}]}}`, `olm.constraint: constraint is empty`},
		{`olm.constraint={"package":{"packageName":"b","versionRange":"1.0"}}`, `olm.constraint: package "b": version range "1.0"`},
		{`olm.constraint=` + strings.Repeat(`{"not":{"constraints":[`, 40) + `{"gvk":{}}` + strings.Repeat(`]}}`, 40), `olm.constraint: constraint nested deeper than 32 levels`},
		{`olm.constraint={"failureMessage":"` + strings.Repeat("x", 2<<16) + `"}`, `olm.constraint: constraint of 131093 bytes`},
	} {
		cat, err := New(contentOf(t, "package a default=c\nc: a.v2 replaces=a.v1\nc: a.v1\na.v2 2.0.0 "+tt.prop))
		if err != nil {
			t.Errorf("%.60s: %v", tt.prop, err)
			continue
		}
		p, _ := cat.Package("a")
		b, _ := p.Bundle("a.v2")
		if !strings.HasPrefix(b.Unusable(), tt.want) || b.Requires() != nil {
			t.Errorf("%.60s: Unusable() = %q, want %q; requires %v", tt.prop, b.Unusable(), tt.want, b.Requires())
		}
		if other, _ := p.Bundle("a.v1"); other.Unusable() != "" {
			t.Errorf("%.60s: the other bundle is unusable: %s", tt.prop, other.Unusable())
		}
	}
}

// TestUnseenNames checks that a bundle with an invalid name is unusable. It also checks that unprintable names
// of channels, and of replaced or skipped bundles, are faults.
func TestUnseenNames(t *testing.T) {
	content := func(bundle, channel, replaces, skips string) Content {
		return Content{Packages: []PackageData{{
			Name: "a", DefaultChannel: channel,
			Channels: []ChannelData{{Name: channel, Entries: []EntryData{{Name: bundle, Replaces: replaces, Skips: []string{skips}}}}},
			Bundles: []BundleData{{Name: bundle, Image: "quay.io/a/a:v1", Properties: []Property{
				{Type: "olm.package", Value: []byte(`{"packageName":"a","version":"1.0.0"}`)},
				{Type: "olm.package.required", Value: []byte(`{"packageName":"b","versionRange":"1.0.0"}`)},
			}}},
		}}}
	}
	for name, unusable := range map[string]bool{
		"a.v1.0.0": false, "a-v1.0.0-rc.1": false, "A.v1": false, "a_v1": false, "a.v1+2": false, "a b": true, "-a": true, "[skip-ci]": true, "@a": true, strings.Repeat("a", 254): true, "a.v1\n\n### forged": true, "a.v1\x1b[2K": true, " a.v1": true, "a\u202e": true,
	} {
		cat, err := New(content(name, "c", "a.v0", "a.v0"))
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		b, _ := cat.Packages()[0].Bundle(name)
		if (b.Unusable() != "") != unusable || (b.Requires() == nil) != unusable {
			t.Errorf("bundle %q: unusable %q, requires %v", name, b.Unusable(), b.Requires())
		}
	}
	for _, name := range []string{"c\n::error::x", "c ", "\u200bc", "c\x9b", "c\u2028d"} {
		for what, c := range map[string]Content{"channel": content("a.v1", name, "", "a.v0"), "replaces": content("a.v1", "c", name, "a.v0"), "skips": content("a.v1", "c", "", name)} {
			if _, err := New(c); err == nil || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
}

func TestRequires(t *testing.T) {
	cat, err := New(contentOf(t, `package a default=c
c: a.v1
a.v1 1.0.0 olm.gvk.required={"group":"g","version":"v1","kind":"K"} olm.package.required={"packageName":"b","versionRange":"1.x"} olm.label.required={"label":"l"} olm.constraint={"failureMessage":"m","any":{"constraints":[{"cel":{"rule":"true"}},{"not":{"constraints":[{"gvk":{"group":"g","version":"v2","kind":"K"}}]}}]}} unknown.type={"x":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := cat.Package("a")
	b, _ := p.Bundle("a.v1")
	got := b.Requires()
	oneX, err := ParseRange("1.x")
	if err != nil {
		t.Fatal(err)
	}
	want := []Requirement{
		{Kind: RequireGVK, GVK: GVK{Group: "g", Version: "v1", Kind: "K"}},
		{Kind: RequirePackage, Package: "b", Range: oneX},
		{Kind: RequireLabel, Label: "l"},
		{Kind: RequireAny, Message: "m", Of: []Requirement{
			{Kind: RequireCEL, Rule: "true"},
			{Kind: RequireNot, Of: []Requirement{{Kind: RequireGVK, GVK: GVK{Group: "g", Version: "v2", Kind: "K"}}}},
		}},
	}
	byText := cmp.Comparer(func(a, b Range) bool { return a.String() == b.String() })
	if d := cmp.Diff(want, got, byText); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for v, in := range map[string]bool{"1.9.9": true, "2.0.0-rc.1": true, "2.0.0": false} {
		parsed, err := ParseVersion(v)
		if err != nil {
			t.Fatal(err)
		}
		if got[1].Range.Contains(parsed) != in {
			t.Errorf("1.x contains %s: got %t", v, !in)
		}
	}
}

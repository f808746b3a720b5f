package catalog

import (
	"slices"
	"strings"
	"testing"
)

// TestReleases checks the order of releases with the cases of operator-registry's tests: each release is
// higher than the previous one.
func TestReleases(t *testing.T) {
	order := []string{"", "0", "1", "2", "10", "10.1", "10.2", "10.11", "10.11.0", "10.a", "10.a.b", "a", "a.1", "alpha", "alpha.beta", "beta"}
	for i, a := range order {
		for j, b := range order {
			x, err1 := ParseRelease(a)
			y, err2 := ParseRelease(b)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if got, want := x.Compare(y), max(-1, min(1, i-j)); got != want {
				t.Errorf("%q and %q: got %d, want %d", a, b, got, want)
			}
		}
	}
	for _, bad := range []string{"01", "1..2", ".", "a_b", "1.", strings.Repeat("1", 21), "é"} {
		if r, err := ParseRelease(bad); err == nil {
			t.Errorf("%q is parsed as %v", bad, r)
		}
	}
}

func TestLegacyReleases(t *testing.T) {
	for text, want := range map[string]string{"1.0.0": "", "1.0.0+2": "2", "1.0.0+2.a": "2.a", "1.0.0+0123": "", "1.0.0+g012345678901234567890": ""} {
		v, err := ParseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := ParseRelease(want)
		if got := LegacyRelease(v); !slices.Equal(got, r) {
			t.Errorf("%s: got %v, want %q", text, got, want)
		}
	}
}

// TestReleasesArePreserved checks that properties distinguish a missing release, an empty release and
// other releases.
func TestReleasesArePreserved(t *testing.T) {
	if got, want := string(PackageReleaseProperty("a", "1.0.0", "").Value), `{"packageName":"a","version":"1.0.0"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	ps := []Property{PackageReleaseProperty("a", "1.0.0", "1.b")}
	if got := Read(ps).Release; got == nil || *got != "1.b" || ReleaseOf(ps) != "1.b" {
		t.Errorf("%s: decoded as %v, %q", ps[0].Value, got, ReleaseOf(ps))
	}
	if got := Read([]Property{{TypePackage, []byte(`{"packageName":"a","version":"1.0.0","release":""}`)}}).Release; got == nil || *got != "" {
		t.Errorf("an empty release is decoded as %v", got)
	}
	if got := Read([]Property{PackageProperty("a", "1.0.0")}).Release; got != nil {
		t.Errorf("a missing release is decoded as %q", *got)
	}
	for _, c := range []struct {
		a, release, b, other string
		want                 int
	}{{"1.0.0", "9", "1.0.0", "10", -1}, {"1.0.1", "", "1.0.0", "10", 1}, {"1.0.0", "1", "1.0.0", "", 1}, {"x", "1", "1.0.0", "", -1}, {"1.0.0", "01", "1.0.0", "", 0}} {
		if got := CompareBundles(c.a, c.release, c.b, c.other); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

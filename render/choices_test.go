package render

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// TestNewestProvider checks that newestProvider chooses the same operator for every order of its arguments.
func TestNewestProvider(t *testing.T) {
	crd := Object{"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "as.x.io"}}
	provide := func(namespace, version string, owns bool) provider {
		csv := &bundle.CSV{OwnedCRDs: []bundle.API{{Name: "bs.x.io"}}}
		if owns {
			csv.OwnedCRDs = []bundle.API{{Name: "as.x.io"}}
		}
		return provider{in: &operator{pin: lockfile.Pin{Namespace: namespace, Package: "a", Version: version}, b: &bundle.Bundle{CSV: csv}}, crd: crd}
	}
	for name, all := range map[string][]provider{ // the first provider is expected
		"an owner, not a newer bundle that only ships it": {provide("one", "1.0.0", true), provide("two", "2.0.0", false)},
		"the newest owner":                 {provide("two", "1.10.0", true), provide("one", "1.9.0", true), provide("three", "3.0.0", false)},
		"the newest, if there is no owner": {provide("two", "2.0.0", false), provide("one", "1.0.0", false)},
	} {
		want := all[0].in.name()
		for range all {
			if got, err := newestProvider(all); err != nil || got.in.name() != want {
				t.Errorf("%s: got %s, %v, want %s", name, got.in.name(), err, want)
			}
			all = append(all[1:len(all):len(all)], all[0])
		}
		slices.Reverse(all)
		if got, err := newestProvider(all); err != nil || got.in.name() != want {
			t.Errorf("%s, reversed: got %s, %v, want %s", name, got.in.name(), err, want)
		}
	}
	first := []provider{provide("one", "1.0.0", true), provide("two", "1.0.0", true)}
	if got, err := newestProvider(first); err != nil || got.in.name() != "one/a" {
		t.Errorf("equal versions: got %s, %v, want the first", got.in.name(), err)
	}
}

// TestNamesFillTheirLimits checks names with lengths around each limit.
func TestNamesFillTheirLimits(t *testing.T) {
	for n := 40; n < 80; n++ {
		deployment := strings.Repeat("a", n)
		got := serviceName(deployment)
		base, isService := strings.CutSuffix(got, "-service")
		if !isService || !strings.HasPrefix(deployment, base) || len(got) != min(n+len("-service"), k8s.MaxLabel) {
			t.Errorf("a deployment name of %d bytes: %s, of %d bytes", n, got, len(got))
		}
		if dir := path.Join("rendered", deployment); len(path.Join(dir, strings.Repeat("f", maxFileName(dir)))) != maxPath {
			t.Errorf("maximum of %d bytes for a file name in a directory with a name of %d bytes", maxFileName(dir), len(dir))
		}
	}
	if got := joinedName([]string{"b/y", "c/z", "a/x"}); !strings.HasPrefix(got, "a.x-and-2-") {
		t.Errorf("a piece of three operators is called %s", got)
	}
}

// TestPieceNeeds checks that the requirements of a piece are listed once, and without the piece itself.
func TestPieceNeeds(t *testing.T) {
	member := func(name string, requires ...string) *operator {
		o := &operator{pin: lockfile.Pin{Namespace: "ops", Package: name}}
		for _, r := range requires {
			o.pin.Requires = append(o.pin.Requires, lockfile.Requirement{Pin: "ops/" + r})
		}
		return o
	}
	all := []piece{
		{name: "c-and-d", members: []*operator{member("c", "d"), member("d", "c", "b")}},
		{name: "a", members: []*operator{member("a", "c", "d")}},
		{name: "b", members: []*operator{member("b")}},
		{name: "e", members: []*operator{member("e", "c", "b", "a", "elsewhere")}},
	}
	for i, want := range [][]string{{"b"}, {"c-and-d"}, nil, {"a", "b", "c-and-d"}} {
		if got := all[i].needs(all); !slices.Equal(got, want) {
			t.Errorf("%s needs %q, want %q", all[i].name, got, want)
		}
	}
}

package fbc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
)

// shelf is a Sink that keeps what it is given, and takes what is valid.
type shelf struct {
	packages map[string]catalog.PackageData
	back     int
}

func (s *shelf) Put(p *catalog.PackageData) bool {
	if _, err := catalog.New(catalog.Content{Packages: []catalog.PackageData{*p}}); err != nil {
		return false
	}
	s.packages[p.Name] = *p
	return true
}

func (s *shelf) Back(name string) (catalog.PackageData, error) {
	p, ok := s.packages[name]
	if !ok {
		return p, errors.New("not here")
	}
	delete(s.packages, name)
	s.back++
	return p, nil
}

// scattered returns the objects of some packages, each with two bundles.
func scattered(packages int) []string {
	var out []string
	for i := range packages {
		p := fmt.Sprintf("p%d", i)
		out = append(out,
			fmt.Sprintf(`{"schema":"olm.package","name":%q,"defaultChannel":"c"}`, p),
			fmt.Sprintf(`{"schema":"olm.channel","package":%q,"name":"c","entries":[{"name":"%s.v1"},{"name":"%s.v2","replaces":"%s.v1"}]}`, p, p, p, p),
			fmt.Sprintf(`{"schema":"olm.bundle","package":%q,"name":"%s.v1","image":"i","properties":[{"type":"olm.package","value":{"packageName":%q,"version":"1.0.0"}}]}`, p, p, p),
			fmt.Sprintf(`{"schema":"olm.bundle","package":%q,"name":"%s.v2","image":"i","properties":[{"type":"olm.package","value":{"packageName":%q,"version":"2.0.0"}}]}`, p, p, p),
			fmt.Sprintf(`{"schema":"olm.deprecations","package":%q,"entries":[{"reference":{"schema":"olm.package"},"message":"m"}]}`, p),
			fmt.Sprintf(`{"schema":"io.openshift.operators.lifecycles.v1alpha1","package":%q,"versions":[{"name":"1.0","phases":[{"name":"f","startDate":"2025-01-01","endDate":"2025-06-30"}]}]}`, p),
			`{"schema":"other","package":"x"}`,
		)
	}
	return out
}

// spread writes objects into files, in their order.
func spread(objects []string, perFile int) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(objects); i += perFile {
		text := strings.Join(objects[i:min(len(objects), i+perFile)], "\n")
		fsys[fmt.Sprintf("f%03d", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// TestStream reads catalogs in any order and finds in the sink and the rest what
// LoadFS finds, and the same faults.
func TestStream(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	gaveBack := 0
	for round := range 300 {
		objects := scattered(4)
		for range rnd.IntN(20) { // from in order to all mixed up
			i, j := rnd.IntN(len(objects)), rnd.IntN(len(objects))
			objects[i], objects[j] = objects[j], objects[i]
		}
		if round%3 == 0 {
			objects = slices.Delete(objects, 3, 4+rnd.IntN(3))
			objects = append(objects, objects[rnd.IntN(len(objects))])
		}
		fsys := spread(objects, 1+rnd.IntN(len(objects)))
		want, wantErr := LoadFS(fsys)
		sink := &shelf{packages: map[string]catalog.PackageData{}}
		rest, err := StreamFS(fsys, sink)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("got %v, want %v", err, wantErr)
		}
		if err != nil {
			continue
		}
		gaveBack += sink.back
		got := slices.Clone(rest.Packages)
		for name, p := range sink.packages {
			rest.Unread = append(rest.Unread, name)
			got = append(got, p)
		}
		slices.SortStableFunc(got, func(a, b catalog.PackageData) int { return strings.Compare(a.Name, b.Name) })
		if d := cmp.Diff(want.Packages, got); d != "" {
			t.Fatalf("-load +stream:\n%s\nof\n%s", d, strings.Join(objects, "\n"))
		}
		_, wantErr = catalog.New(want)
		if _, err = catalog.New(rest); fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("checking the rest says\n%v\nchecking all\n%v", err, wantErr)
		}
	}
	if gaveBack == 0 {
		t.Error("no package was ever given back: the test shows too little")
	}
}

// TestStreamLetsGo shows that the packages of a catalog in order are not held
// together.
func TestStreamLetsGo(t *testing.T) {
	for _, perFile := range []int{1, 6, 7, 8, 700} {
		sink := &shelf{packages: map[string]catalog.PackageData{}}
		rest, err := StreamFS(spread(scattered(100), perFile), sink)
		if err != nil || len(rest.Packages) != 0 || len(sink.packages) != 100 || sink.back > 0 {
			t.Errorf("%d to a file: the sink has %d packages and gave back %d, left are %d; %v", perFile, len(sink.packages), sink.back, len(rest.Packages), err)
		}
	}
}

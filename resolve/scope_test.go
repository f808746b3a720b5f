package resolve_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

var whole = flag.Bool("whole", false, "solve every problem of the conformance data from a part of its catalogs, not only some") //nolint:gochecknoglobals // as flags are

// reduceIndex returns the part of x that the needs select, and the number of omitted packages. It writes an
// index file for each catalog and reads the part from these files. The map held caches the files. name returns
// the cache key of a catalog; with the key "", the file is not cached.
func reduceIndex(t testing.TB, x *catalog.Index, want catalog.Needs, held map[string][]byte, name func(catalog.ID) string) (*catalog.Index, int) {
	t.Helper()
	var indexes []*cache.Index
	for _, c := range x.Catalogs() {
		key := name(c.ID())
		data, ok := held[key]
		if !ok || key == "" {
			var buf bytes.Buffer
			if err := cache.WriteIndex(&buf, "test", c); err != nil {
				t.Fatal(err)
			}
			data = buf.Bytes()
			held[key] = data
		}
		one, err := cache.OpenIndex(bytes.NewReader(data), int64(len(data)), "test")
		if err != nil {
			t.Fatal(err)
		}
		indexes = append(indexes, one)
	}
	contents, err := cache.PickClosure(want)(indexes, catalog.Needs{})
	if err != nil {
		t.Fatal(err)
	}
	var cats []*catalog.Catalog
	left := 0
	for i, content := range contents {
		c := x.Catalogs()[i]
		content.ID, content.Priority, content.Labels, content.Source, content.Digest = c.ID(), c.Priority(), c.Labels(), c.Source(), c.Digest()
		cat, err := catalog.New(content)
		if err != nil {
			t.Fatal(err)
		}
		cats = append(cats, cat)
		left += len(content.Unread)
	}
	part, err := catalog.NewIndex(cats...)
	if err != nil {
		t.Fatal(err)
	}
	for id, err := range x.Broken() {
		part = part.WithBroken(id, err)
	}
	return part, left
}

// visibleOutput holds all results of resolving that a user can see.
type visibleOutput struct {
	Lock, Err, Check, WhyNot, WhyNotErr string
	Result                              string
	Ages                                []resolve.Age
}

func collectOutput(t testing.TB, x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt resolve.Options) visibleOutput {
	t.Helper()
	res, err := resolve.Resolve(x, decl, prev, opt)
	out := visibleOutput{Err: fmt.Sprint(err)}
	if res != nil {
		shown, jerr := json.MarshalIndent([]any{res.Warnings, res.Conflicts, res.PinChanges, res.Rounds}, "", " ")
		if jerr != nil {
			t.Fatal(jerr)
		}
		out.Result = string(shown)
		if res.Partial != nil {
			out.Lock = string(lockfile.Format(res.Partial))
		}
	}
	if prev != nil {
		out.Check = fmt.Sprint(check(x, decl, prev, opt))
		out.Ages = resolve.Outdated(x, decl, prev, opt, "2026-11-23")
	}
	for _, target := range opt.Named {
		o, err := resolve.WhyNot(x, decl, prev, opt, target)
		out.WhyNotErr += fmt.Sprintln(err)
		if o != nil {
			out.WhyNot += o.Text()
		}
	}
	return out
}

// TestPartOfTheIndexIsEnough resolves random universes with the full index and with the part that Scope
// returns. The results must be the same.
func TestPartOfTheIndexIsEnough(t *testing.T) {
	left := 0
	rapid.Check(t, func(rt *rapid.T) {
		u := drawUniverse(rt)
		u.constrain(rt)
		x := u.index(rt)
		opt := drawOptions(rt)
		same := func(prev *lockfile.File, opt resolve.Options) {
			want := resolve.Scope(&u.decl, prev, opt)
			part, n := reduceIndex(t, x, want, map[string][]byte{}, func(catalog.ID) string { return "" })
			left += n
			if d := cmp.Diff(collectOutput(t, x, &u.decl, prev, opt), collectOutput(t, part, &u.decl, prev, opt)); d != "" {
				rt.Fatalf("whole index against part of it (-whole +part):\n%s", d)
			}
		}
		same(nil, opt)
		res, err := resolve.Resolve(x, &u.decl, nil, resolve.Options{KeepGoing: true, AllowOverlap: true})
		if err != nil || res.Lock == nil {
			return
		}
		opt.Upgrade = true
		same(res.Lock, opt)
		opt.Named = []resolve.Target{{Namespace: "ops", Package: rapid.SampledFrom([]string{"a", "b", "e", "aa"}).Draw(rt, "named")}}
		same(res.Lock, opt)
	})
	if left == 0 {
		t.Error("no package was ever left out: the test is ineffective")
	}
}

// constrain adds labels and other kinds of requirements to some bundles, and may add a subscription to
// a missing package.
func (u *universe) constrain(t *rapid.T) {
	gvk := func() map[string]any {
		return map[string]any{"gvk": api(rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "kind"))}
	}
	pkg := func() map[string]any {
		return map[string]any{"package": map[string]string{"packageName": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "package"), "versionRange": ">=1.0.0"}}
	}
	list := func(parts ...map[string]any) map[string]any { return map[string]any{"constraints": parts} }
	cel := map[string]any{"cel": map[string]string{"rule": `properties.exists(p, p.type == "olm.gvk")`}}
	forms := []func() catalog.Property{
		func() catalog.Property { return property("olm.label", map[string]string{"label": "x"}) },
		func() catalog.Property {
			return property("olm.gvk.required", api(rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "kind"), "v2"))
		},
		func() catalog.Property { return property("olm.label.required", map[string]string{"label": "x"}) },
		func() catalog.Property {
			return property("olm.constraint", map[string]any{"failureMessage": "all", "all": list(gvk(), pkg())})
		},
		func() catalog.Property {
			return property("olm.constraint", map[string]any{"failureMessage": "any", "any": list(gvk(), pkg())})
		},
		func() catalog.Property {
			return property("olm.constraint", map[string]any{"all": list(map[string]any{"not": list(pkg())}, gvk())})
		},
		func() catalog.Property { return property("olm.constraint", map[string]any{"not": list(gvk())}) },
		func() catalog.Property { return property("olm.constraint", cel) },
		func() catalog.Property { return property("olm.constraint", map[string]any{"any": list(cel, pkg())}) },
		func() catalog.Property { return property("olm.constraint", map[string]any{"nonsense": 1}) },
	}
	for i := range u.cats {
		for j := range u.cats[i].Packages {
			for k := range u.cats[i].Packages[j].Bundles {
				if n := rapid.IntRange(0, 4*len(forms)).Draw(t, "form"); n < len(forms) {
					b := &u.cats[i].Packages[j].Bundles[k]
					b.Properties = append(b.Properties, forms[n]())
				}
			}
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "misspelt") == 0 {
		u.decl.Subscriptions = append(u.decl.Subscriptions, declare.Subscription{
			Dialect: declare.V0, Name: "aa", Namespace: "ops", Package: "aa", Approval: declare.Automatic, Policy: declare.CatalogProvided,
		})
	}
}

// TestPartOfTheIndexIsEnoughForProblems is TestPartOfTheIndexIsEnough for the problems in QUAYSIDE_CONFORMANCE.
func TestPartOfTheIndexIsEnoughForProblems(t *testing.T) {
	dir := os.Getenv("QUAYSIDE_CONFORMANCE")
	if dir == "" {
		t.Skip("QUAYSIDE_CONFORMANCE is unset: no problems to solve")
	}
	files, err := filepath.Glob(filepath.Join(dir, "resolve", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no problems in %s: %v", dir, err)
	}
	corpora, held := map[string]*catalog.Content{}, map[string][]byte{}
	solved, left := 0, 0
	for _, file := range files {
		for i, p := range readProblems(t, file) {
			x, ok := p.index(t, corpora)
			if !ok || !*whole && i%10 != 0 {
				continue
			}
			decl, opt := p.declarations(t)
			part, n := reduceIndex(t, x, resolve.Scope(decl, nil, opt), held, func(id catalog.ID) string { return p.Catalogs[id.Name].Corpus })
			if d := cmp.Diff(collectOutput(t, x, decl, nil, opt), collectOutput(t, part, decl, nil, opt)); d != "" {
				t.Errorf("%s: whole index against part of it (-whole +part):\n%s", p.ID, d)
			}
			solved, left = solved+1, left+n
		}
	}
	if left == 0 {
		t.Error("no package was ever left out: the test is ineffective")
	}
	t.Logf("%d problems; %d packages left out", solved, left)
}

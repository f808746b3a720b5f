package declare_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/declare"
)

// environment is the directory to which the paths in the tests below are relative.
const environment = "envs/prod"

// entries parses paths. A path with a trailing "!" has Overrides.
func entries(text string) []declare.Path {
	var out []declare.Path
	for _, name := range strings.Fields(text) {
		name, overrides := strings.CutSuffix(name, "!")
		out = append(out, declare.Path{Path: name, Overrides: overrides})
	}
	return out
}

// channel returns a subscription in the namespace ns.
func channel(name, channel string) string {
	return fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %s, namespace: ns}\nspec: {package: %s, channel: %s}\n", name, name, channel)
}

func TestOverrides(t *testing.T) {
	fsys := fstest.MapFS{
		"operators/a.yaml":                   text(channel("a", "shared")),
		"operators/b.yaml":                   text(channel("b", "shared")),
		"operators/catalogs.yaml":            text("apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n"),
		"envs/prod/plain/a.yaml":             text(channel("a", "plain")),
		"envs/prod/more/a.yaml":              text(channel("a", "more")),
		"envs/prod/built/kustomization.yaml": text("resources: [a.yaml]\n"),
		"envs/prod/built/a.yaml":             text(channel("a", "built")),
		"envs/prod/twice/one.yaml":           text(channel("a", "one")),
		"envs/prod/twice/two.yaml":           text(channel("a", "two")),
		"envs/prod/olm/a.yaml":               text("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ns}\nspec: {name: a, source: hub, sourceNamespace: olm}\n"),
	}
	twice := func(at, first string) string {
		return at + `:1:1: subscription "ns/a" is declared twice, first at ` + first + ":1:1"
	}
	const hint = ": to override it, set overrides: true on the later path of spec.declarations"
	for paths, want := range map[string]string{
		"../../operators":                         "a shared ../../operators/a.yaml, b shared ../../operators/b.yaml",
		"../../operators plain!":                  "a plain plain/a.yaml, b shared ../../operators/b.yaml",
		"../../operators plain/a.yaml!":           "a plain plain/a.yaml, b shared ../../operators/b.yaml",
		"../../operators plain! more!":            "a more more/a.yaml, b shared ../../operators/b.yaml",
		"../../operators more! plain!":            "a plain plain/a.yaml, b shared ../../operators/b.yaml",
		"../../operators built plain!":            "a plain plain/a.yaml, b shared ../../operators/b.yaml",
		"../../operators plain! built":            "a built built/a.yaml, b shared ../../operators/b.yaml",
		"../../operators built":                   "a built built/a.yaml, b shared ../../operators/b.yaml",
		"../../operators ../prod/plain!":          "a plain plain/a.yaml, b shared ../../operators/b.yaml",
		"../../operators ../../envs/prod/plain/!": "a plain plain/a.yaml, b shared ../../operators/b.yaml",
		"../../operators! ../../operators/a.yaml": "a shared ../../operators/a.yaml, b shared ../../operators/b.yaml",
		"../../operators plain":                   twice("plain/a.yaml", "../../operators/a.yaml") + hint,
		"plain ../../operators":                   twice("../../operators/a.yaml", "plain/a.yaml") + hint,
		"plain! ../../operators":                  twice("../../operators/a.yaml", "plain/a.yaml") + hint,
		"../../operators built plain":             twice("plain/a.yaml", "built/a.yaml") + hint,
		"../../operators twice!":                  twice("twice/two.yaml", "twice/one.yaml"),
		"../../operators olm!":                    twice("olm/a.yaml", "../../operators/a.yaml"),
		"../../../operators plain!":               "../../../operators: is outside of the repository",
	} {
		set, err := declare.LoadFS(fsys, declare.LoadOptions{Dir: environment, Paths: entries(paths)})
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(channels(set), ", ")
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", paths, got, want)
		}
	}
}

func channels(set *declare.Set) []string {
	var out []string
	for _, s := range set.Subscriptions {
		out = append(out, fmt.Sprintf("%s %s %s", s.Name, strings.Join(s.Channels, ","), s.Pos.File))
	}
	return out
}

// TestOverridesProperty draws paths with overlapping declarations and compares the result with a model. The
// last path with Overrides replaces earlier paths. If two paths without Overrides declare the same object, the
// error says so. The result must not depend on the files within a path.
func TestOverridesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var opt declare.LoadOptions
		opt.Dir = environment
		names := []string{"a", "b", "c"}
		declared := map[string][]int{} // indexes of the paths with the declaration
		once, again := fstest.MapFS{}, fstest.MapFS{}
		for entry := range rapid.IntRange(1, 4).Draw(t, "paths") {
			p := declare.Path{
				Path:      fmt.Sprintf(rapid.SampledFrom([]string{"p%d", "../p%d", "../../p%d"}).Draw(t, "where"), entry),
				Overrides: rapid.Bool().Draw(t, "overrides"),
			}
			opt.Paths = append(opt.Paths, p)
			dir, _ := p.In(environment)
			once[dir+"/note.txt"], again[dir+"/note.txt"] = text(""), text("")
			for _, name := range names {
				if !rapid.Bool().Draw(t, name) {
					continue
				}
				declared[name] = append(declared[name], entry)
				for _, fsys := range []fstest.MapFS{once, again} {
					put(fsys, path.Join(dir, rapid.SampledFrom([]string{"x.yaml", "y.yml", "z/z.yaml"}).Draw(t, "file")), channel(name, fmt.Sprint("from", entry)))
				}
			}
		}
		var want []string
		fails := false
		for _, name := range names {
			of := declared[name]
			last := slices.IndexFunc(of, func(entry int) bool {
				return !slices.ContainsFunc(of, func(e int) bool { return e > entry && opt.Paths[e].Overrides }) && opt.Paths[entry].Overrides
			})
			of = of[max(last, 0):]
			fails = fails || len(of) > 1
			if len(of) > 0 {
				want = append(want, fmt.Sprintf("%s from%d", name, of[0]))
			}
		}
		for _, fsys := range []fstest.MapFS{once, again} {
			set, err := declare.LoadFS(fsys, opt)
			if fails {
				if err == nil || !strings.Contains(err.Error(), "is declared twice, first at ") {
					t.Fatalf("error %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range set.Subscriptions {
				got = append(got, s.Name+" "+s.Channels[0])
				said := declare.Path{Path: s.Pos.File}
				at, _ := said.In(environment)
				lines := strings.Split(string(fsys[at].Data), "\n")
				if line := lines[s.At(declare.FieldChannel).Line-1]; !strings.HasSuffix(line, s.Channels[0]+"}") {
					t.Fatalf("%s of %s is not at %s: %s", s.Channels[0], s.Name, s.At(declare.FieldChannel), line)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("-want +got\n%s", d)
			}
		}
	})
}

// put appends a document to a file.
func put(fsys fstest.MapFS, name, document string) {
	if f, known := fsys[name]; known {
		document = string(f.Data) + "---\n" + document
	}
	fsys[name] = text(document)
}

package declare_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare"
)

func own(name string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: " + name + ", namespace: ns}\nspec: {package: " + name + "}\n")}
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func paths(names ...string) []declare.Path {
	var out []declare.Path
	for _, name := range names {
		out = append(out, declare.Path{Path: name})
	}
	return out
}

func names(set *declare.Set) []string {
	var out []string
	for _, s := range set.Subscriptions {
		out = append(out, s.Name+" "+s.Pos.File)
	}
	return out
}

func TestLoadFS(t *testing.T) {
	fsys := fstest.MapFS{
		"env/subscriptions/b.yaml":         own("b"),
		"env/subscriptions/a.yml":          own("c"),
		"env/subscriptions/sub/d.json":     text(`{"apiVersion":"quayside.dev/v1alpha1","kind":"Subscription","metadata":{"name":"d","namespace":"ns"},"spec":{"package":"d"}}`),
		"env/subscriptions/notes.txt":      text("{{ not yaml"),
		"env/subscriptions/.hidden.yaml":   own("hidden"),
		"env/subscriptions/.git/x.yaml":    own("hidden"),
		"env/subscriptions/out/x.yaml":     own("rendered"),
		"env/subscriptions/values.yaml":    text("replicas: 3\n"),
		"env/elsewhere/declared":           own("e"),
		"env/elsewhere/ignored/never.yaml": own("never"),
	}
	set, err := declare.LoadFS(fsys, declare.LoadOptions{
		Dir: "env", Paths: paths("subscriptions/", "elsewhere/declared", "./subscriptions/b.yaml"), Output: "subscriptions/out",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"b subscriptions/b.yaml", "c subscriptions/a.yml", "d subscriptions/sub/d.json", "e elsewhere/declared"}
	if d := cmp.Diff(want, names(set)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if len(set.Warnings) != 0 {
		t.Errorf("unexpected warnings: %v", set.Warnings)
	}
}

func TestLoadFSErrors(t *testing.T) {
	_, err := declare.LoadFS(fstest.MapFS{
		"a/one.yaml":    own("x"),
		"a/two.yaml":    text(strings.Replace(string(own("x").Data), "package:", "channel: beta, package:", 1)),
		"a/zero.yaml":   text("kind: [\n"),
		"a/fine.yaml":   own("z"),
		"a/\u202e.yaml": own("y"),
	}, declare.LoadOptions{Paths: paths("missing", "a", "../b")})
	want := "../b: is outside of the repository\n" +
		"a/two.yaml:1:1: subscription \"ns/x\" is declared twice, first at a/one.yaml:1:1\n" +
		"a/zero.yaml:2: malformed YAML: did not find expected node content\n" +
		"a/\\u202e.yaml: file name \"a/\\u202e.yaml\" contains the character U+202E, which is not allowed in names\n" +
		"missing: no such file or directory: file does not exist"
	if got := fmt.Sprint(err); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the error does not wrap fs.ErrNotExist")
	}
}

func TestAppliedDeclaration(t *testing.T) {
	for name, c := range map[string]struct {
		fsys fstest.MapFS
		opt  declare.LoadOptions
		want string
	}{
		"ok/alone": {fsys: fstest.MapFS{"s/a.yaml": own("a")}},
		"applied directory": {
			fsys: fstest.MapFS{"apps/s/a.yaml": own("a")}, opt: declare.LoadOptions{Applied: []string{"rendered", "apps"}},
			want: `this declaration is in "apps", which the GitOps tool applies to the cluster: move it, or exclude it there`,
		},
		"named output": {
			fsys: fstest.MapFS{"rendered/a.yaml": own("a")}, opt: declare.LoadOptions{Paths: paths("rendered/a.yaml"), Output: "rendered", Applied: []string{"rendered"}},
			want: `this declaration is in "rendered", which the GitOps tool applies to the cluster: move it, or exclude it there`,
		},
	} {
		if len(c.opt.Paths) == 0 { // files are read regardless of their directory
			here, _ := fs.Glob(c.fsys, "*/a.yaml")
			below, _ := fs.Glob(c.fsys, "*/*/a.yaml")
			c.opt.Paths = paths(slices.Concat(here, below)...)
		}
		set, err := declare.LoadFS(c.fsys, c.opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, w := range set.Warnings {
			got = append(got, w.Msg)
			if w.Code != "declaration-in-tree" || w.Pos.Line != 1 {
				t.Errorf("%s: warning %+v", name, w)
			}
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, strings.Join(got, "\n"), c.want)
		}
	}
}

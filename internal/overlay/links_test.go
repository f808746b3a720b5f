package overlay_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/internal/overlay"
)

// TestLinks checks that symbolic links to files and directories are followed, unless they lead out of
// the repository or to a file that kustomize rejects.
func TestLinks(t *testing.T) {
	for _, c := range []struct {
		name string
		more map[string]string
		want string // the error, or empty if the build contains k: w
	}{
		{"a file in a subdirectory", map[string]string{"top/c/kustomization.yaml": "resources: [generated]\npatches: [{path: link.yaml}]\n", "top/c/link.yaml": "-> deep/p.yaml"}, ""},
		{"a directory elsewhere", map[string]string{"top/c/kustomization.yaml": "resources: [generated]\ncomponents: [link]\n", "top/c/link": "-> ../../shared"}, ""},
		{"a link to a link", map[string]string{"top/c/kustomization.yaml": "resources: [generated]\ncomponents: [link]\n", "top/c/link": "-> ../two", "top/two": "-> ../shared"}, ""},
		{"below a link", map[string]string{"top/c/kustomization.yaml": "resources: [generated]\npatches: [{path: link/p.yaml}]\n", "top/c/link": "-> deep"}, ""},
		{"the kustomization itself", map[string]string{"top/c/kustomization.yaml": "-> deep/k.yaml", "top/c/deep/k.yaml": "resources: [generated]\npatches: [{path: deep/p.yaml}]\n"}, ""},
		{"out of the repository", map[string]string{"top/c/kustomization.yaml": "resources: [generated, link.yaml]\n", "top/c/link.yaml": "-> ../../../x.yaml"}, "top/c/kustomization.yaml:1:24: symbolic link top/c/link.yaml points outside the repository, to ../../../x.yaml"},
		{"out of the repository, by a directory", map[string]string{"top/c/kustomization.yaml": "resources: [generated]\ncomponents: [link/x]\n", "top/c/link": "-> ../../.."}, "top/c/kustomization.yaml:2:14: symbolic link top/c/link points outside the repository, to ../../.."},
		{"an absolute one", map[string]string{"top/c/kustomization.yaml": "resources: [generated, link.yaml]\n", "top/c/link.yaml": "-> /etc/passwd"}, "top/c/kustomization.yaml:1:24: symbolic link top/c/link.yaml points outside the repository, to /etc/passwd"},
		{"named by a plugin", map[string]string{
			"top/c/kustomization.yaml": "resources: [generated]\ntransformers: [\"apiVersion: builtin\\nkind: PatchTransformer\\nmetadata: {name: x}\\npath: link.yaml\\n\"]\n", "top/c/link.yaml": "-> /etc/passwd",
		}, "top/c/kustomization.yaml:2:16: symbolic link top/c/link.yaml points outside the repository, to /etc/passwd"},
		{"a file above", map[string]string{"top/c/kustomization.yaml": "resources: [generated, link.yaml]\n", "top/c/link.yaml": "-> ../../base/a.yaml"}, "top/c/kustomization.yaml:1:24: \"link.yaml\" resolves to base/a.yaml, but kustomize only reads files below top/c"},
		{"a cycle", map[string]string{"top/c/kustomization.yaml": "resources: [generated, link.yaml]\n", "top/c/link.yaml": "-> link.yaml"}, "top/c/link.yaml has a chain of more than 40 symbolic links"},
		{"a missing target", map[string]string{"top/c/kustomization.yaml": "resources: [generated, link.yaml]\n", "top/c/link.yaml": "-> none.yaml"}, "\"link.yaml\": file does not exist"},
		{"to itself", map[string]string{"top/c/kustomization.yaml": "resources: [generated, link]\n", "top/c/link": "-> ../c"}, "includes itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.more["top/c/deep/p.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: w}\n"
			c.more["shared/p.yaml"] = c.more["top/c/deep/p.yaml"]
			c.more["shared/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: p.yaml}]\n"
			o, err := files(c.more).Open("top/c")
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			built, err := o.Build()
			if err != nil || len(built) != 1 || !bytes.Contains(built[0], []byte(`"k":"w"`)) {
				t.Errorf("%s, %v", built, err)
			}
		})
	}
}

// TestLinksAsKustomizeFollowsThem draws trees with links on disk. It checks that Build and
// kustomize return the same objects, or both fail.
func TestLinksAsKustomizeFollowsThem(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		dir := filepath.Join(root, "tree")
		must(t, os.RemoveAll(dir))
		put := func(name, text string) {
			name = filepath.Join(dir, filepath.FromSlash(name))
			must(t, os.MkdirAll(filepath.Dir(name), 0o700))
			must(t, os.WriteFile(name, []byte(text), 0o600))
		}
		entries := []string{"x.yaml", "lf.yaml", "ld", "ld/x.yaml", "ld/sub", "sub", "sub/lf.yaml", "../b/x.yaml", "../b/ld", "../b", "../ld/sub"}
		for _, at := range []string{"a", "b"} {
			put(at+"/x.yaml", strings.ReplaceAll(object, "name: a", "name: "+at))
			put(at+"/sub/kustomization.yaml", "resources: ["+pick(at+"/sub lists", "x.yaml", "lf.yaml", "../x.yaml")+"]\n")
			put(at+"/sub/x.yaml", strings.ReplaceAll(object, "name: a", "name: "+at+"-sub"))
			put(at+"/kustomization.yaml", fmt.Sprintf("resources: [%s, %s]\nnamePrefix: %s-\n", pick(at+" lists", entries...), pick(at+" lists too", entries...), at))
		}
		targets := []string{"", "x.yaml", "../x.yaml", "sub", "../b/sub", "../a/sub", "../b", "../b/ld", "sub/x.yaml", "../a/../b/sub", "none"}
		for _, name := range []string{"a/lf.yaml", "a/ld", "a/sub/lf.yaml", "b/lf.yaml", "b/ld", "b/sub/lf.yaml", "ld"} {
			if target := pick(name, targets...); target != "" {
				must(t, os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))))
			}
		}
		fsys := os.DirFS(dir)
		f := overlay.New(source{func(name string) ([]byte, error) {
			for at := name; at != "."; at = filepath.ToSlash(filepath.Dir(at)) {
				if _, err := fs.ReadLink(fsys, at); err == nil {
					t.Fatalf("%s is read through a link", name)
				}
			}
			return fs.ReadFile(fsys, name)
		}, func(name string) (string, bool) {
			target, err := fs.ReadLink(fsys, name)
			return target, err == nil
		}})
		var got [][]byte
		o, err := f.Open("a")
		if err == nil {
			got, err = o.Build()
		}
		var want [][]byte
		stock, stockErr := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "a"))
		if stockErr == nil {
			for _, r := range stock.Resources() {
				data, err := r.MarshalJSON()
				must(t, err)
				want = append(want, data)
			}
		}
		if (err == nil) != (stockErr == nil) {
			t.Fatalf("Build: %v, kustomize: %v", err, stockErr)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("(-kustomize +Build):\n%s", d)
		}
	})
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

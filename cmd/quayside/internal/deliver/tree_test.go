package deliver

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci/sign"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/internal/testing/gittest"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

// exampleSettings are the settings of a workspace with two clusters, whose artifact starts at the
// top of the repository.
const exampleSettings = `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  declarations: [subscriptions]
  catalogs: [{name: quickstart, namespace: olm, source: "oci:catalog"}]
  kubernetesVersion: "1.34"
  profile: flux
  clusters: [{name: one}, {name: two, operators: ["*/etcd"]}]
  gitops: {repoURL: "https://git.example.com/fleet", sourceRef: {name: fleet}, path: ops/rendered}
`

// treeFixture is a repository with a workspace in ops. The overlay of the cluster two includes a component
// outside of the workspace.
type treeFixture struct {
	*testing.T
	dir string // directory of the repository
}

func newTreeFixture(t *testing.T) treeFixture {
	t.Helper()
	repository.Do(func() {
		writeRepository(treeFixture{t, filepath.Join(repository.dir, "repository")})
	})
	f := treeFixture{t, t.TempDir()}
	f.check(os.CopyFS(f.dir, os.DirFS(filepath.Join(repository.dir, "repository"))))
	gittest.Run(f, f.dir, "update-index", "-q", "--refresh")
	return f
}

// repository holds a store, and the directory with the repository that newTreeFixture copies. TestMain creates
// and removes both.
var repository struct { //nolint:gochecknoglobals // rendering it takes longer than many tests
	sync.Once
	dir string
}

// writeRepository writes the repository of newTreeFixture.
func writeRepository(f treeFixture) {
	f.Helper()
	ops := filepath.Join(f.dir, "ops")
	f.check(os.CopyFS(ops, os.DirFS("../../../../examples/quickstart")))
	const component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
	f.write("ops/quayside.yaml", exampleSettings)
	f.write("ops/overlays/two/kustomization.yaml", component+"components: [../../../shared]\n")
	f.write("shared/kustomization.yaml", component+"commonAnnotations: {team: a}\n")
	gittest.Run(f, f.dir, "init", "-q")
	f.render()
	f.commit()
}

func (f treeFixture) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f treeFixture) commit() {
	f.Helper()
	gittest.Run(f, f.dir, "add", "-A")
	gittest.Run(f, f.dir, "commit", "-qm", "all")
}

func (f treeFixture) write(name, text string) {
	f.Helper()
	name = filepath.Join(f.dir, name)
	f.check(os.MkdirAll(filepath.Dir(name), 0o700))
	f.check(os.WriteFile(name, []byte(text), 0o600))
}

func (f treeFixture) edit(name, old, with string) {
	f.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	f.check(err)
	if !strings.Contains(string(data), old) {
		f.Fatalf("%s has no %q", name, old)
	}
	f.write(name, strings.Replace(string(data), old, with, 1))
}

func (f treeFixture) open() *workspace.Project {
	f.Helper()
	getenv := func(key string) string {
		return map[string]string{"XDG_CACHE_HOME": filepath.Join(repository.dir, "store")}[key]
	}
	p, err := workspace.Open(workspace.Dir(filepath.Join(f.dir, "ops")), workspace.Env{Getenv: getenv, Version: "test", Log: terminal.NewLogger(terminal.New(io.Discard, nil))})
	f.check(err)
	return p
}

func (f treeFixture) render() {
	f.Helper()
	p := f.open()
	lock, err := p.NeedLock()
	f.check(err)
	res, err := p.Render(f.Context(), lock)
	f.check(err)
	f.check(filetree.Write(filepath.Join(f.dir, "ops", "rendered"), res.Tree))
}

func (f treeFixture) load(opt LoadOptions) *Tree {
	f.Helper()
	c, err := LoadTree(f.Context(), f.open(), opt)
	f.check(err)
	return c
}

// treeNames returns the sorted paths of an artifact, without the prefix of the rendered tree.
func treeNames(t *filetree.Tree) []string {
	var out []string
	for name := range t.Names() {
		out = append(out, strings.TrimPrefix(name, "ops/rendered/"))
	}
	slices.Sort(out)
	return out
}

// TestLoadTree loads the artifact of the whole environment, and one for each cluster. A cluster's
// artifact must have the same files as the whole one, except that it lacks files that only the
// other cluster uses. It must include all inputs of the cluster's overlay.
func TestLoadTree(t *testing.T) {
	f := newTreeFixture(t)
	whole, one, two := f.load(LoadOptions{}), f.load(LoadOptions{Clusters: []string{"one"}}), f.load(LoadOptions{Clusters: []string{"two"}})
	both := f.load(LoadOptions{Clusters: []string{"two", "one", "two"}})
	for name, part := range map[string]*Tree{"one": one, "two": two, "both": both} {
		for _, c := range compareTrees(part.Files, whole.Files) {
			if c.Kind != filetree.Missing && !strings.HasSuffix(c.Path, "clusters.yaml") {
				t.Errorf("%s: %v", name, c)
			}
		}
		r, err := CheckArtifact(t.Context(), f.open(), f.pushAndOpen(part), true)
		if err != nil || !r.UpToDate {
			t.Errorf("%s: %v", name, err)
		}
	}
	has := func(c *Tree, part string) bool {
		return slices.ContainsFunc(treeNames(c.Files), func(name string) bool { return strings.HasPrefix(name, part) })
	}
	for part, want := range map[string][3]bool{ // in the artifacts of the environment, of cluster one, and of cluster two
		"shared/":                 {true, false, true},
		"ops/overlays/two/":       {true, false, true},
		"clusters/two/":           {true, false, true},
		"flux/one/":               {true, true, false},
		"flux/two/":               {true, false, true},
		"operators/vault.vault/":  {true, true, false},
		"operators/my-etcd.etcd/": {true, true, true},
		".quayside-files":         {true, false, false},
		"ops/quayside.lock":       {false, false, false},
		"ops/subscriptions/":      {false, false, false},
	} {
		if got := [3]bool{has(whole, part), has(one, part), has(two, part)}; got != want {
			t.Errorf("%s: %v, want %v", part, got, want)
		}
	}
	if !slices.Equal(both.Clusters, []string{"one", "two"}) || whole.Clusters != nil {
		t.Errorf("clusters are %v, %v", both.Clusters, whole.Clusters)
	}
	if got := whole.Meta.Revision; !strings.HasPrefix(got, "main@sha1:") || got != whole.Origin.Revision {
		t.Errorf("revision %q, %q", got, whole.Origin.Revision)
	}
	if whole.Meta.Source != "https://git.example.com/fleet" {
		t.Errorf("source %q", whole.Meta.Source)
	}
	if at := f.load(LoadOptions{At: "HEAD", Branch: "release"}); !strings.HasPrefix(at.Meta.Revision, "release@sha1:") || !maps.Equal(treeFiles(at.Files), treeFiles(whole.Files)) {
		t.Errorf("of the same commit, named: %s, %v", at.Meta.Revision, compareTrees(at.Files, whole.Files))
	}
}

func treeFiles(t *filetree.Tree) map[string]string {
	out := map[string]string{}
	for name, data := range t.All() {
		out[name] = string(data)
	}
	return out
}

// TestLoadTreeRefuses checks the errors for uncommitted changes, trees that are out of date, and
// files that an artifact cannot contain.
func TestLoadTreeRefuses(t *testing.T) {
	two := LoadOptions{Clusters: []string{"two"}}
	for name, c := range map[string]struct {
		change func(f treeFixture)
		opt    LoadOptions
		want   string
	}{
		"no cluster":    {func(treeFixture) {}, LoadOptions{Clusters: []string{"three"}}, `three`},
		"no revision":   {func(treeFixture) {}, LoadOptions{At: "v9"}, "v9"},
		"no repository": {func(f treeFixture) { f.check(os.RemoveAll(filepath.Join(f.dir, ".git"))) }, LoadOptions{}, "is not in a Git repository"},
		"not committed": {func(f treeFixture) { f.edit("ops/quayside.yaml", "1.34", "1.33") }, LoadOptions{}, "or specify a revision with --at"},
		"component":     {func(f treeFixture) { f.edit("shared/kustomization.yaml", "team: a", "team: b") }, two, "uncommitted changes: shared/kustomization.yaml"},
		"out of date":   {func(f treeFixture) { f.edit("ops/rendered/flux/one/kustomization.yaml", "kind", "# kind"); f.commit() }, LoadOptions{}, "(1 file): run 'quayside render'"},
		"a foreign file": {func(f treeFixture) {
			f.write("ops/rendered/crds/etcd/other.yaml", "kind: A\n")
			f.commit()
		}, LoadOptions{}, "run 'quayside render'"},
		"top":       {func(f treeFixture) { f.editSettings("path: ops/rendered", "path: .") }, two, `shared/kustomization.yaml: an overlay includes this file, but the artifact starts at ops/rendered`},
		"elsewhere": {func(f treeFixture) { f.editSettings("path: ops/rendered", "path: some/where") }, LoadOptions{}, "ops/quayside.yaml:9:"},
		"link": {func(f treeFixture) {
			f.check(os.Rename(filepath.Join(f.dir, "shared"), filepath.Join(f.dir, "other")))
			f.check(os.Symlink("other", filepath.Join(f.dir, "shared")))
			f.commit()
		}, two, "shared is a symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTreeFixture(t)
			c.change(f)
			got, err := LoadTree(t.Context(), f.open(), c.opt)
			if got != nil && err == nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// editSettings changes the settings, renders the tree, and commits both.
func (f treeFixture) editSettings(old, with string) {
	f.Helper()
	f.edit("ops/quayside.yaml", old, with)
	f.render()
	f.commit()
}

// pushAndOpen pushes a tree to a layout, and returns the artifact there.
func (f treeFixture) pushAndOpen(c *Tree) *workspace.Artifact {
	f.Helper()
	p, to := f.open(), "oci:"+f.TempDir()+"/out:v1"
	_, err := c.Push(f.Context(), PushOptions{To: to, Project: p, Here: p})
	f.check(err)
	a, err := p.Artifact(f.Context(), to)
	f.check(err)
	return a
}

// TestCheckArtifact compares artifacts with their commits. It includes an artifact whose commit is missing.
func TestCheckArtifact(t *testing.T) {
	const some = "ops/rendered/operators/vault.vault/kustomization.yaml"
	for name, c := range map[string]struct {
		change    func(c *Tree)
		strict    bool
		want      string // error
		changes   string
		unchecked string
	}{
		"as it is": {func(*Tree) {}, true, "", "", ""},
		"differs": {
			func(c *Tree) {
				c.Files = withFile(c.Files, map[string]string{"shared/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {team: b}\n"})
			},
			false, " differs from main@sha1:", "differs shared/kustomization.yaml", "",
		},
		"extra and missing": {
			func(c *Tree) {
				c.Files = withFile(c.Files, map[string]string{"a": "b", "ops/rendered/namespaces/vault/.quayside-files": ""})
			},
			false, "(2 files)", "extra a, missing ops/rendered/namespaces/vault/.quayside-files", "",
		},
		"does not build":  {func(c *Tree) { c.Files = withFile(c.Files, map[string]string{some: "resources: [x.yaml]\n"}) }, false, "x.yaml", "", ""},
		"no tree":         {func(c *Tree) { c.Files = withFile(filetree.New(), map[string]string{"a": "b"}) }, false, "not a tree rendered by quayside", "", ""},
		"another commit":  {func(c *Tree) { c.Meta.Revision = "main@sha1:" + strings.Repeat("0", 40) }, false, "", "", "is not in this repository: no revision"},
		"another, strict": {func(c *Tree) { c.Meta.Revision = "main@sha1:" + strings.Repeat("0", 40) }, true, "not everything could be checked", "", "is not in this repository: no revision"},
		"no commit":       {func(c *Tree) { c.Meta.Revision = "v1.2.3" }, false, "", "", "the artifact names no commit to compare with"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTreeFixture(t)
			tree := f.load(LoadOptions{})
			c.change(tree)
			r, err := CheckArtifact(t.Context(), f.open(), f.pushAndOpen(tree), c.strict)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if r.UpToDate != (err == nil) {
				t.Errorf("in step: %t", r.UpToDate)
			}
			var changes []string
			for _, change := range r.Changes {
				changes = append(changes, fmt.Sprintf("%s %s", change.Kind, change.Path))
			}
			if got := strings.Join(changes, ", "); got != c.changes {
				t.Errorf("changes are %q, want %q", got, c.changes)
			}
			if got := strings.Join(r.Unchecked, ", "); (got != "") != (c.unchecked != "") || !strings.Contains(got, c.unchecked) {
				t.Errorf("unchecked is %q, want %q", got, c.unchecked)
			}
		})
	}
}

// withFile returns a tree with changed files. An empty text removes a file.
func withFile(t *filetree.Tree, changed map[string]string) *filetree.Tree {
	all := treeFiles(t)
	maps.Copy(all, changed)
	out := filetree.New()
	for name, text := range all {
		if text == "" {
			continue
		}
		if err := out.Add(name, []byte(text)); err != nil {
			panic(err)
		}
	}
	return out
}

// TestPush checks that the artifact and its signature are pushed before the tag, and that nothing
// is pushed twice.
func TestPush(t *testing.T) {
	f := newTreeFixture(t)
	server := ocitest.NewReferring(t)
	key, err := sign.NewKey(trusttest.NewKey(t).Private(t, "x"), "x")
	f.check(err)
	repo := "oci://" + server.Host + "/org/fleet"
	send := func(tag string, signer *sign.Signer) (*PushResult, []string) {
		t.Helper()
		p := f.open()
		server.Requests()
		sent, err := f.load(LoadOptions{Clusters: []string{"two"}}).Push(t.Context(), PushOptions{To: repo + ":" + tag, Project: p, Here: p, Signer: signer})
		f.check(err)
		puts := slices.DeleteFunc(server.Requests(), func(line string) bool {
			return !strings.HasPrefix(line, "PUT ") || !strings.Contains(line, "/manifests/")
		})
		return sent, puts
	}
	for _, step := range []struct {
		tag    string
		signer *sign.Signer
		state  PushState
		signed string
	}{
		{"v1", nil, "sent", ""},
		{"v1", nil, "present", ""},
		{"v2", nil, "tagged", ""},
		{"v2", key, "present", "signed"},
		{"v2", key, "present", "present"},
		{"v3", key, "tagged", "present"},
	} {
		got, puts := send(step.tag, step.signer)
		if got.State != step.state || got.Signed != step.signed || got.Tag != step.tag || got.Reference != repo+"@"+got.Digest {
			t.Errorf("%+v, want %+v", got, step)
		}
		for i, put := range puts {
			if strings.HasSuffix(put, "/manifests/"+step.tag) != (i == len(puts)-1 && step.state != "present") {
				t.Errorf("%v: in this order: %q", step, puts)
			}
		}
		if again := step.state == "present" && step.signed != "signed"; again != (len(puts) == 0) {
			t.Errorf("%v: %q", step, puts)
		}
	}
	if _, err := f.load(LoadOptions{}).Push(t.Context(), PushOptions{To: "oci:x@sha256:" + strings.Repeat("0", 64), Project: f.open(), Here: f.open()}); err == nil || !strings.Contains(err.Error(), "must be oci:path or oci:path:tag") {
		t.Errorf("to a digest: %v", err)
	}
}

// TestParseRevision checks that parseRevision reverses formatRevision, and rejects other texts.
func TestParseRevision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		branch := rapid.SampledFrom([]string{"", "main", "a@b", "feature/x", "sha1:x"}).Draw(t, "branch")
		commit := rapid.StringMatching(`[0-9a-f]{40}|[0-9a-f]{64}`).Draw(t, "commit")
		gotBranch, gotCommit, ok := parseRevision(formatRevision(branch, commit))
		if !ok || gotBranch != branch || gotCommit != commit {
			t.Fatalf("%q of %q: %q of %q, %t", commit, branch, gotCommit, gotBranch, ok)
		}
	})
	for _, text := range []string{"", "main", "v1.2.3", "main@sha1:abc", "main@" + strings.Repeat("a", 40), "sha256:" + strings.Repeat("a", 40), "@sha1:" + strings.Repeat("a", 40), "main@sha1:" + strings.Repeat("A", 40)} {
		if branch, commit, ok := parseRevision(text); ok {
			t.Errorf("%q is commit %q of %q", text, commit, branch)
		}
	}
}

// TestCompareTrees checks that applying the differences between two random trees to one gives the other.
func TestCompareTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := func(label string) (*filetree.Tree, map[string]string) {
			m := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c/d", "c/e"}), rapid.SampledFrom([]string{"1", "2"})).Draw(t, label)
			return withFile(filetree.New(), m), m
		}
		have, haveFiles := tree("have")
		want, wantFiles := tree("want")
		for _, c := range compareTrees(have, want) {
			switch c.Kind {
			case filetree.Extra:
				delete(haveFiles, c.Path)
			default:
				haveFiles[c.Path] = wantFiles[c.Path]
			}
		}
		if d := cmp.Diff(wantFiles, haveFiles); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
		if len(compareTrees(want, want)) != 0 {
			t.Fatal("it differs from itself")
		}
	})
}

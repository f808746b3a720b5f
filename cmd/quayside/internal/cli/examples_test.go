package cli_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/testing/goldentest"
)

// TestGoldenExampleQuickstart builds the catalog of the quickstart from its sources, then the lock
// from the declarations, then the tree from the lock, and compares all with the committed files.
// With -update it writes them.
func TestGoldenExampleQuickstart(t *testing.T) {
	work := quickstart(t)
	built := []string{"catalog", "quayside.lock", "rendered"}
	remove(t, work, built...)
	check(t, buildCatalog(filepath.Join(work, "catalog"), os.DirFS(filepath.Join(work, "catalog-src"))))
	cache := t.TempDir()
	for _, command := range []string{"resolve", "render", "verify"} {
		mustRunIn(t, work, cache, command, "--offline")
	}
	for _, name := range built {
		compareExample(t, filepath.Join("../../../../examples/quickstart", name), filepath.Join(work, name))
	}
}

// TestGoldenExampleFleet checks that the locks of the fleet are up to date with the declarations, renders
// their trees, and runs the commands of its README.
func TestGoldenExampleFleet(t *testing.T) {
	const examples = "../../../../examples"
	top := t.TempDir()
	for _, dir := range []string{"fleet", "quickstart/catalog"} {
		check(t, os.CopyFS(filepath.Join(top, dir), os.DirFS(filepath.Join(examples, dir))))
	}
	check(t, os.Mkdir(filepath.Join(top, ".git"), 0o777)) // shared files are those of a repository
	work := filepath.Join(top, "fleet")
	for _, env := range []string{"dev", "stage", "prod-east", "prod-west"} {
		dir, tree := filepath.Join(work, "envs", env), filepath.Join("envs", env, "rendered")
		remove(t, work, tree)
		mustRun(t, dir, "resolve", "--check", "--offline")
		mustRun(t, dir, "render", "--offline")
		compareExample(t, filepath.Join(examples, "fleet", tree), filepath.Join(work, tree))
	}
	followed := 0
	for line := range strings.Lines(read(t, examples, "fleet/README.md")) {
		command, ok := strings.CutPrefix(line, "    quayside ")
		if !ok {
			continue
		}
		followed++
		dir, args := work, strings.Fields(command)
		if args[0] == "-C" {
			dir, args = filepath.Join(work, args[1]), args[2:]
		}
		mustRun(t, dir, args...)
	}
	if followed < 5 {
		t.Errorf("the README has %d commands", followed)
	}
	for env, version := range map[string]string{"stage": "0.0.2", "prod-east": "0.0.1", "prod-west": "0.0.1"} {
		if lock := read(t, work, "envs/"+env+"/quayside.lock"); !strings.Contains(lock, "bundle: memcached-operator.v"+version+"\n") {
			t.Errorf("%s: not at %s after one step", env, version)
		}
	}
}

// TestExampleFromARepository follows docs/from-a-repository.md in the repository of each section except helm,
// and moves the declarations to quayside. At the end, verify must not warn about the workspace's own cluster.
func TestExampleFromARepository(t *testing.T) {
	const examples = "../../../../examples"
	sections := map[string]string{"## Kustomize and Argo CD": "kustomize", "## Flux": "flux", "## Policies": "policies", "## Helm charts": "charts"}
	work, cache, followed := "", t.TempDir(), map[string]int{}
	shell := func(command string) {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	for line := range strings.Lines(read(t, "../../../../docs", "from-a-repository.md")) {
		if name, is := sections[strings.TrimSpace(line)]; is {
			work = t.TempDir()
			check(t, os.CopyFS(work, os.DirFS(filepath.Join(examples, "from-a-repository", name))))
			check(t, os.CopyFS(filepath.Join(work, "catalog"), os.DirFS(filepath.Join(examples, "quickstart/catalog"))))
			shell("git init --quiet && git add --all && git commit --quiet --message first")
		}
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    ")
		if !ok {
			continue
		}
		args := strings.Fields(command)
		if args[0] != "quayside" {
			shell(command)
			continue
		}
		dir, args := work, args[1:]
		if args[0] == "-C" {
			dir, args = filepath.Join(work, args[1]), args[2:]
		}
		got := mustRunIn(t, dir, cache, args...)
		followed[args[0]]++
		others := strings.Count(got.stderr, `for the cluster "prod" applies`) // in the workspace of another cluster
		switch {
		case args[0] == "resolve" && !strings.Contains(got.stdout, "my-etcd/etcd 0.9.4"):
			t.Errorf("%s: %s", command, got.stdout)
		case args[0] == "render" && !strings.Contains(got.stderr, "[still-applied]"), args[0] == "verify" && strings.Count(got.stderr, "[still-applied]") > others:
			t.Errorf("%s: %s", command, got.stderr)
		}
	}
	if want := (map[string]int{"init": 4, "declarations": 4, "resolve": 4, "render": 4, "verify": 4}); !maps.Equal(followed, want) {
		t.Errorf("followed %v", followed)
	}
}

// buildCatalog writes an OCI layout of a catalog that embeds the bundles in src.
func buildCatalog(dir string, src fs.FS) error {
	content, err := bundledir.LoadFS(src)
	if err != nil {
		return err
	}
	objects := func(pkg, name string) ([][]byte, error) {
		fsys, err := bundledir.Find(src, pkg, name)
		if err != nil {
			return nil, err
		}
		ms, err := bundle.Manifests(fsys)
		if err != nil {
			return nil, err
		}
		out := make([][]byte, len(ms))
		for i, m := range ms {
			out[i] = m.Data
		}
		return out, nil
	}
	var buf bytes.Buffer
	if err := fbc.Encode(&buf, content, objects); err != nil {
		return err
	}
	packed, err := oci.Pack(
		fstest.MapFS{"catalog.json": {Data: buf.Bytes()}},
		oci.PackOptions{
			Prefix: "configs",
			Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
		})
	if err != nil {
		return err
	}
	return packed.WriteLayout(dir, "")
}

// compareExample compares a committed file or directory with a new one, and replaces it with
// -update.
func compareExample(t *testing.T, committed, built string) {
	t.Helper()
	want, got := treeAt(t, built), treeAt(t, committed)
	changes := filetree.Diff(got, want)
	if len(changes) == 0 {
		return
	}
	if !goldentest.Update() {
		for _, c := range changes {
			t.Errorf("%s: %s %s (run make golden)", committed, c.Path, c.Kind)
		}
		return
	}
	check(t, os.RemoveAll(committed))
	for name, data := range want.All() {
		put(t, filepath.Dir(committed), name, string(data))
	}
}

// treeAt returns the file at path, or all files in the directory at path, with names relative to the parent directory.
func treeAt(t *testing.T, path string) *filetree.Tree {
	t.Helper()
	tree, parent := filetree.New(), os.DirFS(filepath.Dir(path))
	err := fs.WalkDir(parent, filepath.Base(path), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(parent, name)
		if err != nil {
			return err
		}
		return tree.Add(name, data)
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return tree
}

// TestReadmeExcerpt compares the command output in README.md with the real output. make demo must run that command.
func TestReadmeExcerpt(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "../../../..", "README.md"), "```console\n$ quayside ")
	shown, _, _ := strings.Cut(rest, "```\n")
	command, output, _ := strings.Cut(shown, "\n")
	if !strings.Contains(read(t, "../../../../examples/quickstart", "demo.sh"), "\nrun "+command+"\n") {
		t.Errorf("make demo does not run quayside %s", command)
	}
	if got := mustRun(t, quickstart(t), strings.Fields(command)...).stdout; output == "" || !strings.HasPrefix(got, output) {
		t.Errorf("quayside %s prints:\n%s\nREADME.md shows:\n%s", command, got, output)
	}
}

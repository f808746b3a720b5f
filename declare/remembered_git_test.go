package declare_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/testing/propertytest"
)

// workTree is a Git repository on disk, with results of earlier surveys.
type workTree struct {
	t interface {
		Helper()
		Fatal(args ...any)
	}
	dir     string
	results resultFile
}

func (w *workTree) git(args ...string) {
	w.t.Helper()
	c := exec.Command("git", args...)
	c.Dir = w.dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatal(args, err, string(out))
	}
}

func (w *workTree) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *workTree) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// write writes a file with a new modification time. It waits until the time of the file system has advanced.
func (w *workTree) write(name, text string) {
	w.t.Helper()
	probe := w.path(".git/probe")
	now := func() time.Time {
		w.check(os.WriteFile(probe, nil, 0o600))
		w.check(os.WriteFile(probe, []byte("x"), 0o600))
		info, err := os.Stat(probe)
		w.check(err)
		return info.ModTime()
	}
	for start := now(); now().Equal(start); {
	}
	w.check(os.MkdirAll(filepath.Dir(w.path(name)), 0o700))
	w.check(os.WriteFile(w.path(name), []byte(text), 0o600))
}

// ageFiles sets the time of the index to one hour later, so that the index is newer than all files.
func (w *workTree) ageFiles() {
	later := time.Now().Add(time.Hour)
	w.check(os.Chtimes(w.path(".git/index"), later, later))
}

func (w *workTree) survey(files fs.FS, opt survey.Options) *survey.Survey {
	w.t.Helper()
	s, err := survey.New(files, func(fs.FS, string) bool { return false }, func(string) bool { return false }, nil, opt)
	w.check(err)
	return s
}

// remembered surveys the repository with the index and the results of earlier surveys.
func (w *workTree) remembered(files fs.FS) *survey.Survey {
	w.t.Helper()
	repo, err := gitrepo.Open(w.dir)
	w.check(err)
	index, err := repo.Index()
	w.check(err)
	return w.survey(files, survey.Options{Results: w.results.open(), Index: index})
}

func subscriptionOf(pkg string) string {
	return fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: ops}\nspec: {name: %[1]s, source: c, sourceNamespace: olm}\n", pkg)
}

// newWorkTree returns a repository with the filter "swap", which keeps the size of a file and replaces x by z.
func newWorkTree(t interface {
	Helper()
	Fatal(args ...any)
}, dir string,
) *workTree {
	t.Helper()
	w := &workTree{t: t, dir: dir}
	w.git("init", "-q")
	for _, command := range []string{"clean", "smudge"} {
		w.git("config", "filter.swap."+command, "tr xz zx")
	}
	for _, name := range []string{"a", "b", "c"} {
		w.write(name+"/kustomization.yaml", "resources: [x.yaml]\n")
		w.write(name+"/x.yaml", subscriptionOf("opx"))
		w.write(name+"/z.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n")
	}
	w.write("argo.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {source: {repoURL: \"\", path: a}}\n")
	w.git("add", ".")
	w.git("commit", "-q", "-m", "first")
	w.git("commit", "-q", "--allow-empty", "-m", "second")
	return w
}

// TestRememberedInGit surveys a Git repository again after random edits. The result must be the same without the index.
func TestRememberedInGit(t *testing.T) {
	propertytest.LimitChecks(t, 20)
	root, runs := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		dir := filepath.Join(root, strconv.Itoa(runs))
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w := newWorkTree(t, dir)
		files := filetree.OpenRootDir(dir).FS()
		var log []string
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "directory") + rapid.SampledFrom([]string{"/x.yaml", "/kustomization.yaml", "/z.yaml"}).Draw(t, "file")
			text := map[bool]string{false: "resources: [" + rapid.SampledFrom([]string{"x", "z", "n"}).Draw(t, "resource") + ".yaml]\n", true: subscriptionOf(rapid.SampledFrom([]string{"opx", "opz"}).Draw(t, "package"))}[!strings.HasSuffix(name, "/kustomization.yaml")]
			edit := rapid.SampledFrom([]string{"write", "write back in time", "replace", "rename", "chmod", "untracked", "add", "add and write", "touch", "commit", "checkout", "filter", "no filter", "renormalize", "clone"}).Draw(t, "edit")
			log = append(log, edit+" "+name)
			info, missing := os.Stat(w.path(name))
			switch edit {
			case "write", "add and write":
				if edit == "add and write" {
					w.git("add", ".")
				}
				w.write(name, text)
			case "write back in time", "replace":
				if edit == "replace" && missing == nil {
					w.write("new", text)
					w.check(os.Rename(w.path("new"), w.path(name)))
				} else {
					w.write(name, text)
				}
				if missing == nil {
					w.check(os.Chtimes(w.path(name), info.ModTime(), info.ModTime()))
				}
			case "rename":
				if missing == nil {
					w.check(os.Rename(w.path(name), w.path("c/n.yaml")))
				}
			case "chmod":
				if missing == nil {
					w.check(os.Chmod(w.path(name), info.Mode()^0o100))
				}
			case "untracked":
				w.write("untracked/x.yaml", text)
			case "add":
				w.git("add", ".")
			case "touch":
				if missing == nil {
					w.check(os.Chtimes(w.path(name), time.Time{}, time.Now()))
				}
			case "commit":
				w.git("commit", "-q", "-a", "--allow-empty", "-m", "next")
			case "checkout":
				w.git("reset", "-q", "--hard", "HEAD@{1}")
			case "filter":
				w.write(".gitattributes", "kustomization.yaml filter=swap\n")
			case "no filter":
				w.check(os.RemoveAll(w.path(".gitattributes")))
			case "renormalize":
				w.git("add", ".")
				w.git("add", "--renormalize", ".")
			case "clone": // files and index are written again
				w.git("commit", "-q", "-a", "--allow-empty", "-m", "next")
				w.git("rm", "-q", "-r", "--cached", ".")
				w.git("reset", "-q", "--hard")
			}
			if rapid.Bool().Draw(t, "later") {
				w.ageFiles()
			}
			if d := cmp.Diff(surveyText(w.survey(files, survey.Options{})), surveyText(w.remembered(files))); d != "" {
				t.Fatalf("-fresh +remembered\n%s\n%s", d, strings.Join(log, "\n"))
			}
		}
	})
}

// readNames records the files that are read.
type readNames struct {
	fs.FS
	names []string
}

func (r *readNames) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, ".yaml") && !strings.Contains(name, ".argocd-source") {
		r.names = append(r.names, name)
	}
	return r.FS.Open(name)
}

// TestUnchangedFilesAreNotRead surveys a Git repository twice. The second survey must only read files that may
// have changed, and files with declarations and objects of GitOps tools.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	w := newWorkTree(t, t.TempDir())
	found := []string{"a/x.yaml", "argo.yaml", "b/x.yaml", "c/x.yaml"}
	for _, step := range []struct {
		name string
		edit func()
		want []string
	}{
		{"racily clean", func() {}, []string{"a/kustomization.yaml", "a/z.yaml"}},
		{"unchanged", w.ageFiles, nil},
		{"changed", func() { w.write("a/z.yaml", "kind: x\n") }, []string{"a/z.yaml"}},
		{"attribute", func() { w.write("b/.gitattributes", "z.yaml filter=lfs\n") }, []string{"a/z.yaml", "b/z.yaml"}},
	} {
		w.remembered(os.DirFS(w.dir))
		step.edit()
		r := &readNames{FS: os.DirFS(w.dir)}
		w.remembered(r)
		read := map[string]bool{}
		for _, name := range r.names {
			read[name] = true
		}
		for _, name := range append(found, step.want...) {
			if !read[name] {
				t.Errorf("%s: %s is not read", step.name, name)
			}
			delete(read, name)
		}
		if step.name != "racily clean" && len(read) > 0 {
			t.Errorf("%s: also read: %v", step.name, read)
		}
	}
}

// TestFilteredFileIsRead changes a file, and adds a filter that maps the new text to the old blob in the index.
// The size of the file stays the same. The file must be read again.
func TestFilteredFileIsRead(t *testing.T) {
	w := newWorkTree(t, t.TempDir())
	files := filetree.OpenRootDir(w.dir).FS()
	w.remembered(files)
	w.write(".gitattributes", "kustomization.yaml filter=swap\n")
	w.write("a/kustomization.yaml", "resources: [z.yaml]\n")
	w.git("add", ".")
	w.ageFiles()
	if d := cmp.Diff(surveyText(w.survey(files, survey.Options{})), surveyText(w.remembered(files))); d != "" {
		t.Fatalf("-fresh +remembered\n%s", d)
	}
}

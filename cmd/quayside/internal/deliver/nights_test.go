package deliver_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// TestBranchesMerge simulates nightly runs of propose. Git merges some of the open branches, in any order.
// After each merge, the lock must satisfy the declarations, and the tree must equal the rendered lock. A branch
// of an earlier night stays open if its upgrades still make the same changes. Unrelated operators must not
// share a branch. If the catalog drops a package, unrelated operators must not be held back.
func TestBranchesMerge(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed: nothing to merge with")
	}
	if usage, _ := exec.Command(git, "merge-tree", "-h").CombinedOutput(); !bytes.Contains(usage, []byte("--write-tree")) {
		t.Skip("git is older than 2.38: it cannot merge without a work tree")
	}
	cache := t.TempDir()
	env := workspace.Env{Version: "test", Offline: true, Getenv: func(key string) string {
		if key == "XDG_CACHE_HOME" {
			return cache
		}
		return ""
	}}
	var seen counts
	rapid.Check(t, func(t *rapid.T) {
		repo := newRepo(t, git)
		defer os.RemoveAll(repo.dir)
		f := &fleet{T: t, world: drawWorld(t), repo: repo, env: env, seen: &seen}
		if f.begin() {
			for range rapid.IntRange(1, nights-1).Draw(t, "nights") {
				f.night()
			}
		}
	})
	t.Logf("%+v", seen)
	if seen.merges == 0 || seen.older == 0 || seen.joined == 0 || seen.whole == 0 || seen.drops == 0 || seen.left == 0 {
		t.Error("the test shows nothing")
	}
}

// counts contains the number of times that the test reached each case.
type counts struct {
	nights, branches, joined, merges, older, squashed, whole, changes, stuck, unrendered int
	drops, left                                                                          int // number of dropped packages, number of holds
}

// fleet simulates a repository with a workspace over several nights.
type fleet struct {
	*rapid.T
	*world
	repo *repo
	env  workspace.Env
	seen *counts
	day  int
	drop string // package that is missing from its catalog tonight, or ""
	main state
	open []branch
}

// state is a commit of the workspace.
type state struct {
	commit string
	lock   *lockfile.File
	files  map[string][]byte
}

// branch is a proposed upgrade.
type branch struct {
	state
	operators []string
	base      state
}

// upgrades describes the changes of a branch to the pins.
func (b branch) upgrades() string {
	var out []string
	for _, c := range lockfile.Diff(b.base.lock, b.lock) {
		out = append(out, fmt.Sprint(c.Kind, c.Namespace, c.Package, c.From, c.To))
	}
	return strings.Join(out, " ")
}

// changes returns the new contents of the files that a branch changes, without the lock and the
// index files.
func (b branch) changes() map[string]string {
	out := map[string]string{}
	for _, files := range []map[string][]byte{b.base.files, b.files} {
		for name := range files {
			now, there := b.files[name]
			if name != workspace.LockFile && path.Base(name) != filetree.Index && !bytes.Equal(now, b.base.files[name]) {
				out[name] = fmt.Sprint(there, string(now))
			}
		}
	}
	return out
}

// project opens the current workspace with a lock, which may be nil.
func (f *fleet) project(lock *lockfile.File) *workspace.Project {
	files := fstest.MapFS{}
	for _, some := range []map[string]string{f.settings, f.declared, f.catalogs(f.day, f.drop)} {
		for name, text := range some {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	if lock != nil {
		files[workspace.LockFile] = &fstest.MapFile{Data: lockfile.Format(lock)}
	}
	p, err := workspace.Open(workspace.Files(files, "map:", "."), f.env)
	f.check(err)
	return p
}

func (f *fleet) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// files returns the files of a commit with a lock and its rendered tree.
func (f *fleet) files(lock *lockfile.File) (map[string][]byte, error) {
	res, err := f.project(lock).Render(f.Context(), lock)
	if err != nil {
		return nil, err
	}
	tree, err := filetree.SimulateWrite(filetree.New(), res.Tree)
	f.check(err)
	out := map[string][]byte{workspace.LockFile: lockfile.Format(lock)}
	for name, data := range tree.All() {
		out[path.Join("rendered", name)] = data
	}
	for _, some := range []map[string]string{f.settings, f.declared} {
		for name, text := range some {
			out[name] = []byte(text)
		}
	}
	return out, nil
}

// begin commits the first lock, and reports whether there is one.
func (f *fleet) begin() bool {
	return f.resolve(nil, resolve.Options{})
}

// resolve resolves the declarations, and commits the lock and the rendered tree. It returns false
// if there is no solution.
func (f *fleet) resolve(before *lockfile.File, more resolve.Options) bool {
	p := f.project(before)
	opt := p.ResolveOptions()
	opt.Prune, opt.Settled, opt.Removed = more.Prune, more.Settled, more.Removed
	in, err := workspace.ReadProblem(f.Context(), p, workspace.Request{Options: opt})
	f.check(err)
	res, err := workspace.Resolve(f.Context(), in)
	if err != nil || res.Lock == nil || len(res.Conflicts) > 0 || len(res.Lock.Pins) == 0 {
		return false
	}
	files, err := f.files(res.Lock)
	if err != nil {
		return false
	}
	f.main = state{f.repo.commits(f.main.commit, files)[0], res.Lock, files}
	return true
}

// night proposes the available upgrades, and merges some of them.
func (f *fleet) night() {
	f.day++
	f.drop = ""
	if rapid.IntRange(0, 2).Draw(f.T, "declarations change") == 0 {
		f.declare()
	}
	var pending []string
	if rapid.IntRange(0, 2).Draw(f.T, "drop") > 0 {
		pending = f.pending()
		f.drop = rapid.SampledFrom(f.packages).Draw(f.T, "dropped").name
		f.seen.drops++
	}
	if !f.propose(pending) {
		f.open = nil
		return
	}
	for _, b := range rapid.Permutation(f.open).Draw(f.T, "order") {
		if rapid.IntRange(0, 3).Draw(f.T, "merged") > 0 {
			f.merge(b)
		}
	}
}

// declare changes the declarations on the main branch. It keeps the old ones if the new ones have no solution.
func (f *fleet) declare() {
	asked := f.declared
	f.declared = f.change(f.T)
	gone := rapid.SampledFrom([]resolve.Options{{}, {Prune: true}, {Settled: []string{"*"}, Removed: []string{"*"}}}).Draw(f.T, "observed")
	if !f.resolve(f.main.lock, gone) {
		f.declared = asked
		return
	}
	f.seen.changes++
}

// split returns the available upgrades of an unattended run, and the holds of the other operators.
func (f *fleet) split() ([]workspace.Upgrade, []resolve.Hold, error) {
	p := f.project(f.main.lock)
	opt := p.ResolveOptions()
	opt.Upgrade = true
	in, err := workspace.ReadProblem(f.Context(), p, workspace.Request{Options: opt, Unattended: true})
	f.check(err)
	upgrades, err := workspace.Split(f.Context(), in)
	if err != nil {
		return nil, nil, err
	}
	return upgrades.Parts, upgrades.Holds, nil
}

// pending returns the operators with an available upgrade, or nil if splitting fails.
func (f *fleet) pending() []string {
	var out []string
	upgrades, _, err := f.split()
	if err != nil {
		return nil
	}
	for _, u := range upgrades {
		out = append(out, u.Operators...)
	}
	return append([]string{}, out...)
}

// propose creates branches for the available upgrades. It keeps branches of earlier nights with the
// same upgrades and changes. It returns false if splitting or rendering fails. pending lists the
// operators that have upgrades while no package is dropped; nil means that they are unknown.
func (f *fleet) propose(pending []string) bool {
	upgrades, left, err := f.split()
	if err != nil {
		if pending != nil {
			f.Fatalf("%s is dropped: %v", f.drop, err)
		}
		f.seen.stuck++
		return false
	}
	f.seen.left += len(left)
	if f.apart && pending != nil {
		var now []string
		for _, u := range upgrades {
			now = append(now, u.Operators...)
		}
		others := slices.DeleteFunc(pending, func(operator string) bool { return path.Base(operator) == f.drop })
		if !slices.Equal(now, others) {
			f.Fatalf("%q is dropped, and %v are upgraded of %v", f.drop, now, others)
		}
	}
	f.seen.nights++
	var open []branch
	var made []map[string][]byte
	for _, u := range upgrades {
		if f.apart && len(u.Operators) > 1 {
			f.Fatalf("%v have nothing in common, and share a branch", u.Operators)
		}
		files, err := f.files(u.Lock)
		if err != nil {
			f.seen.unrendered++
			return false
		}
		now := branch{state{"", u.Lock, files}, u.Operators, f.main}
		i := slices.IndexFunc(f.open, func(b branch) bool {
			return b.upgrades() == now.upgrades() && maps.Equal(b.changes(), now.changes())
		})
		if i >= 0 && rapid.Bool().Draw(f.T, "left open") {
			open = append(open, f.open[i])
			continue
		}
		open, made = append(open, now), append(made, files)
		f.seen.branches++
		if len(u.Operators) > 1 {
			f.seen.joined++
		}
	}
	f.open = open
	for _, commit := range f.repo.commits(f.main.commit, made...) {
		f.open[slices.IndexFunc(f.open, func(b branch) bool { return b.commit == "" })].commit = commit
	}
	return true
}

// merge merges a branch, and compares the result with the rendered lock.
func (f *fleet) merge(b branch) {
	f.seen.merges++
	if b.base.commit != f.main.commit {
		f.seen.older++
	}
	tree, out, err := f.repo.merge(f.main.commit, b.commit)
	if err != nil {
		f.Fatalf("the branch of %v does not merge:\n%s\n%s", b.operators, out, f.describe(b))
	}
	merged := f.repo.files(tree)
	lock, err := lockfile.Parse(workspace.LockFile, merged[workspace.LockFile])
	if err != nil {
		f.Fatalf("the branch of %v merged: %v", b.operators, err)
	}
	if fault := f.verify(lock); fault != nil {
		f.Fatalf("the branch of %v merged: %v\n%s", b.operators, fault, f.describe(b))
	}
	files, err := f.files(lock)
	if err != nil {
		f.Fatalf("the branch of %v merged: %v\n%s", b.operators, err, f.describe(b))
	}
	if d := cmp.Diff(files, merged, cmp.Transformer("text", func(b []byte) string { return string(b) })); d != "" {
		f.Fatalf("the branch of %v merged: what render writes (-) and what is there (+) differ:\n%s\n%s", b.operators, d, f.describe(b))
	}
	if f.seen.merges%5 == 1 { // only some, because it is slow
		f.seen.whole++
		if whole := f.repo.mergeInWorkTree(f.main.commit, b.commit); whole != tree {
			f.Fatalf("git merge and git merge-tree differ:\n%s", f.repo.run(nil, "diff", tree, whole))
		}
	}
	parents := []string{"-p", f.main.commit, "-p", b.commit}
	if rapid.Bool().Draw(f.T, "squashed") {
		parents = parents[:2]
		f.seen.squashed++
	}
	f.main = state{f.repo.line(nil, append([]string{"commit-tree", "-m", "merge", tree}, parents...)...), lock, files}
	f.open = slices.DeleteFunc(f.open, func(o branch) bool { return o.commit == b.commit })
}

// verify checks a lock like 'quayside verify'.
func (f *fleet) verify(lock *lockfile.File) error {
	p := f.project(lock)
	in, err := workspace.ReadProblem(f.Context(), p, workspace.Request{Options: p.ResolveOptions()})
	f.check(err)
	_, err = in.Check(f.Context(), workspace.CheckScope{Content: true})
	return err
}

// describe returns the changes on the main branch and on b since they diverged.
func (f *fleet) describe(b branch) string {
	return "main:\n" + string(f.repo.run(nil, "diff", "--stat=200", b.base.commit, f.main.commit)) + "branch:\n" + string(f.repo.run(nil, "diff", "--stat=200", b.base.commit, b.commit))
}

// repo is a Git repository.
type repo struct {
	*rapid.T
	git, dir string
}

func newRepo(t *rapid.T, git string) *repo {
	dir, err := os.MkdirTemp("", "nights")
	if err != nil {
		t.Fatal(err)
	}
	r := &repo{t, git, dir}
	r.run(nil, "init", "-q", "--template=")
	return r
}

func (r *repo) command(args ...string) *exec.Cmd {
	cmd := exec.Command(r.git, args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		cmd.Env = append(cmd.Env, "GIT_"+who+"_NAME=a", "GIT_"+who+"_EMAIL=a@example.com")
	}
	return cmd
}

func (r *repo) run(in io.Reader, args ...string) []byte {
	r.Helper()
	cmd := r.command(args...)
	cmd.Stdin = in
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		r.Fatalf("git %v: %v\n%s%s", args, err, out, faults.Bytes())
	}
	return out
}

func (r *repo) line(in io.Reader, args ...string) string {
	return strings.TrimSpace(string(r.run(in, args...)))
}

// commits makes a commit of each set of files. All commits have the same parent, which may be "".
func (r *repo) commits(parent string, each ...map[string][]byte) []string {
	var stream bytes.Buffer
	for i, files := range each {
		fmt.Fprintf(&stream, "commit refs/heads/made-%[1]d\nmark :%[1]d\ncommitter a <a@example.com> 0 +0000\ndata 0\n", i+1)
		if parent != "" {
			fmt.Fprintf(&stream, "from %s\n", parent)
		}
		stream.WriteString("deleteall\n")
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", name, len(files[name]), files[name])
		}
		fmt.Fprintf(&stream, "get-mark :%d\n", i+1)
	}
	if len(each) == 0 {
		return nil
	}
	return strings.Fields(r.line(&stream, "fast-import", "--quiet", "--force"))
}

// files returns the files of a tree.
func (r *repo) files(tree string) map[string][]byte {
	out := map[string][]byte{}
	in := tar.NewReader(bytes.NewReader(r.run(nil, "archive", tree)))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			r.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if out[h.Name], err = io.ReadAll(in); err != nil {
				r.Fatal(err)
			}
		}
	}
}

// merge merges two commits without a work tree. It returns the resulting tree, and the output of Git.
func (r *repo) merge(ours, theirs string) (tree, out string, err error) {
	text, err := r.command("merge-tree", "--write-tree", ours, theirs).Output()
	tree, _, _ = strings.Cut(string(text), "\n")
	return tree, string(text), err
}

// mergeInWorkTree merges two commits in a work tree, and returns the resulting tree.
func (r *repo) mergeInWorkTree(ours, theirs string) string {
	r.run(nil, "checkout", "-q", "-f", "--detach", ours)
	r.run(nil, "merge", "-q", "--no-edit", theirs)
	return r.line(nil, "rev-parse", "HEAD^{tree}")
}

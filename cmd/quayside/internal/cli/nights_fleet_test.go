package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/parts"
	"github.com/quayside/quayside/lockfile"
)

// rings returns the names of the rings. Each ring has two clusters.
func rings() []string { return []string{"dev", "stage", "prod"} }

// nightFleet is a repository with an environment for each ring. Its directory has:
//
//	origin.git   the repository, with the branches that are open
//	ci           the clone of the nightly job, new every night
//	desk         the clone of a person
//	probe        the clone in which merges are verified
//	catalogs     the catalogs of the night
//	observed     the observed files of the clusters
//	cache        the cache of people, which still has the bundles that catalogs have withdrawn
//	cold         the cache of the nightly job, which is sometimes empty
type nightFleet struct {
	t    *testing.T
	seed uint64
	rand *rand.Rand
	h    *history
	dir  string

	objects   *objects
	night     int
	published map[string]string      // the files of the catalogs
	declared  map[string]declaration // by package
	postponed map[string]int         // the night from which the bot may merge a branch
	merged    string                 // the last merge of a branch for dev, which a person may revert
	forks     map[string]int         // branches of a person, and the night in which they are merged
	files     []string               // observed files, oldest first
	reverted  map[string]string      // versions of dev that a person has reverted tonight, by operator
	seen      map[string]int         // number of events by kind, for the log
}

// declaration is the declaration of a package.
type declaration struct {
	absent       bool
	hold, manual bool
	config       int // changes with every edit
}

// fatalf fails the test with the message and the seed to repeat it.
func (f *nightFleet) fatalf(format string, args ...any) {
	f.t.Helper()
	f.t.Fatalf("seed %d, %d operators, %d nights, night %d: %s", f.seed, len(f.h.packages), f.h.nights, f.night, fmt.Sprintf(format, args...))
}

// chance returns true with a probability of percent.
func (f *nightFleet) chance(percent int) bool { return f.rand.IntN(100) < percent }

// newNightFleet makes the repository, with every package installed in every environment. Most packages are
// bundles; in a mixed history, some are charts or releases.
func newNightFleet(t *testing.T, seed uint64, h *history) *nightFleet {
	f := &nightFleet{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 2)), h: h, dir: t.TempDir(), published: map[string]string{}, declared: map[string]declaration{},
		postponed: map[string]int{}, forks: map[string]int{}, reverted: map[string]string{}, seen: map[string]int{},
	}
	isolateGit(t)
	f.git(".", "init", "-q", "-b", "main", "desk")
	f.put("desk/envs/base.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  declarations: [../operators]
  catalogs:
  - {name: one, namespace: olm, source: "dir:../../catalogs/one"}
  - {name: two, namespace: olm, source: "dir:../../catalogs/two"}
  - {name: charts, helm: "dir:../../catalogs/charts"}
  - {name: releases, manifests: "dir:../../catalogs/releases"}
`)
	flux, argocd := "sourceRef: {kind: GitRepository, name: fleet}", "repoURL: https://git.example.com/fleet.git"
	for env, x := range map[string]struct{ profile, source, field, more string }{
		"dev":   {"flux", flux, "kubeConfig", ""},
		"stage": {"argocd", argocd, "destination", "  follows: dev\n  promotion: {healthy: 50%, soak: 20h, observedWithin: 30h}\n"},
		"prod":  {"flux", flux, "kubeConfig", "  follows: stage\n  promotion: {healthy: 100%, soak: 44h, clusters: 2, observedWithin: 30h}\n"},
	} {
		f.put("desk/envs/"+env+"/quayside.yaml", fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: %[1]s}
spec:
  extends: ../base.yaml
  profile: %[2]s
  gitops: {path: envs/%[1]s/rendered, %[3]s}
  clusters: [{name: %[1]s-1, %[4]s: a}, {name: %[1]s-2, %[4]s: b}]
`, env, x.profile, x.source, x.field)+x.more)
	}
	for _, pkg := range h.packages {
		f.declare(pkg, declaration{})
	}
	for _, name := range []string{"charts", "releases"} { // a catalog may be empty
		check(t, os.MkdirAll(filepath.Join(f.dir, "catalogs", name), 0o777))
	}
	f.publish(faults{})
	f.mustRun("desk", "resolve", "--all", "--render", "--offline")
	f.git("desk", "add", "-A")
	f.git("desk", "commit", "-q", "-m", "start")
	f.git(".", "clone", "-q", "--bare", "desk", "origin.git")
	f.git("desk", "remote", "add", "origin", "../origin.git")
	f.git(".", "clone", "-q", "--shared", "origin.git", "probe")
	return f
}

// declare writes the declaration of a package into the clone desk.
func (f *nightFleet) declare(pkg string, d declaration) {
	f.declared[pkg] = d
	name := "desk/operators/" + pkg + ".yaml"
	if d.absent {
		check(f.t, os.Remove(filepath.Join(f.dir, name)))
		return
	}
	text := fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: %[2]s}\nspec:\n  package: %[1]s\n", pkg, f.h.namespaceOf(pkg))
	if f.h.formatOf(pkg) == "bundles" {
		text += fmt.Sprintf("  channel: stable\n  watchNamespaces: [%s]\n", f.h.namespaceOf(pkg))
	} else {
		text += "  hops: any\n"
	}
	if d.hold {
		text += "  hold: before the fair\n"
	}
	if d.manual {
		text += "  approval: Manual\n"
	}
	if d.config > 0 {
		text += fmt.Sprintf("  config: {env: [{name: EDIT, value: '%d'}]}\n", d.config)
	}
	f.put(name, text)
}

func (f *nightFleet) put(name, text string) {
	name = filepath.Join(f.dir, name)
	check(f.t, os.MkdirAll(filepath.Dir(name), 0o777))
	check(f.t, os.WriteFile(name, []byte(text), 0o666))
}

// nightOutcome is the result of one run of the program.
type nightOutcome struct {
	code           int
	stdout, stderr string
}

func (o nightOutcome) String() string {
	return fmt.Sprintf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
}

// run runs quayside in a directory.
func (f *nightFleet) run(dir string, args ...string) nightOutcome {
	var stdout, stderr bytes.Buffer
	cache := "cache"
	if strings.HasPrefix(dir, "ci") {
		cache = "cold"
	}
	env := []string{"XDG_CACHE_HOME=" + filepath.Join(f.dir, cache), "HOME=" + f.dir, "QUAYSIDE_ALLOW_OUTSIDE=" + filepath.Join(f.dir, "catalogs")}
	code := cli.Main(parts.All(), append([]string{"-C", filepath.Join(f.dir, dir)}, args...), nil, &stdout, &stderr, env)
	return nightOutcome{code, stdout.String(), stderr.String()}
}

// mustRun is like run, and fails the test unless the exit code is 0.
func (f *nightFleet) mustRun(dir string, args ...string) nightOutcome {
	f.t.Helper()
	got := f.run(dir, args...)
	if got.code != 0 {
		f.fatalf("quayside %q in %s: %v", args, dir, got)
	}
	return got
}

// mustDecode runs quayside, which must exit with 0, and decodes its JSON.
func (f *nightFleet) mustDecode(into any, dir string, args ...string) nightOutcome {
	f.t.Helper()
	got := f.mustRun(dir, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(got.stdout), into); err != nil {
		f.fatalf("quayside %q: %v\n%s", args, err, got.stdout)
	}
	return got
}

// tryGit runs git in a directory.
func (f *nightFleet) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Join(f.dir, dir)
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

func (f *nightFleet) git(dir string, args ...string) string {
	f.t.Helper()
	out, err := f.tryGit(dir, args...)
	if err != nil {
		f.fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return out
}

// lockAt returns the lock of an environment in a commit of origin.
func (f *nightFleet) lockAt(commit, env string) *lockfile.File {
	f.t.Helper()
	if f.objects == nil {
		f.objects = openObjects(f.t, filepath.Join(f.dir, "origin.git"))
	}
	data := f.objects.read(f.t, commit+":envs/"+env+"/quayside.lock")
	lock, err := lockfile.Parse(commit, data)
	if err != nil {
		f.fatalf("lock of %s in %s: %v", env, commit, err)
	}
	return lock
}

// objects reads objects of a Git repository with one long-running git process.
type objects struct {
	in  io.Writer
	out *bufio.Reader
}

func openObjects(t *testing.T, dir string) *objects {
	cmd := exec.Command("git", "cat-file", "--batch")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &objects{in, bufio.NewReader(out)}
}

func (o *objects) read(t *testing.T, name string) []byte {
	t.Helper()
	_, err := io.WriteString(o.in, name+"\n")
	check(t, err)
	header, err := o.out.ReadString('\n')
	check(t, err)
	var hash, kind string
	var size int
	if _, err := fmt.Sscan(header, &hash, &kind, &size); err != nil {
		t.Fatalf("git cat-file: %s", header)
	}
	data := make([]byte, size+1)
	_, err = io.ReadFull(o.out, data)
	check(t, err)
	return data[:size]
}

// branches returns the branches of origin that start with one of the prefixes, with their commits.
func (f *nightFleet) branches(prefixes ...string) map[string]string {
	out := map[string]string{}
	args := []string{"for-each-ref", "--format=%(refname:short) %(objectname)"}
	for _, prefix := range prefixes {
		args = append(args, "refs/heads/"+prefix)
	}
	for line := range strings.Lines(f.git("origin.git", args...) + "\n") {
		if name, commit, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out[name] = commit
		}
	}
	return out
}

// mergeTree returns the commit that merges two commits of origin, or the conflicts.
func (f *nightFleet) mergeTree(ours, theirs, message string) (commit, conflicts string) {
	out, err := f.tryGit("origin.git", "merge-tree", "--write-tree", ours, theirs)
	if err != nil {
		return "", out
	}
	return f.git("origin.git", "commit-tree", "-p", ours, "-p", theirs, "-m", message, out), ""
}

// checkout checks out a commit of origin in the probe.
func (f *nightFleet) checkout(commit string) {
	f.t.Helper()
	f.git("probe", "checkout", "-q", "-f", "--detach", f.git("origin.git", "rev-parse", commit))
}

// verify verifies a commit of origin in every environment.
func (f *nightFleet) verify(commit, what string) {
	f.t.Helper()
	f.checkout(commit)
	if got := f.run("probe", "verify", "--all", "--offline"); got.code != 0 {
		f.fatalf("%s: verify: %v\n%s", what, got, f.git("origin.git", "log", "--oneline", "--graph", "-n", "20", commit))
	}
}

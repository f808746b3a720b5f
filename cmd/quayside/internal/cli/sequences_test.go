package cli_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/parts"
	"github.com/quayside/quayside/internal/testing/propertytest"
	"github.com/quayside/quayside/lockfile"
)

// TestSequences plays random sequences of commands, edits by hand, commits, merges and reverts in random
// repositories with three environments. After a command, all rules must hold, or the command failed and wrote
// nothing. After an edit, a merge or a revert, all rules must hold, or verify must report the broken ones. The
// test computes promotions independently of the program. The result of verify must not depend on the cache, the
// order of runs, or the history of the work tree.
func TestSequences(t *testing.T) {
	propertytest.LimitChecks(t, 15) // with -short a fifth of them, which takes ten seconds
	isolateGit(t)
	root, seen, n := t.TempDir(), map[string]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s := newSequence(t, filepath.Join(root, fmt.Sprint(n)), seen)
		defer os.RemoveAll(s.dir)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			s.step()
		}
		s.end()
	})
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%6d %s", seen[what], what)
	}
}

// isolateGit makes Git ignore the user's configuration during the test.
func isolateGit(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for key, value := range map[string]string{"COUNT": "1", "KEY_0": "gc.autoDetach", "VALUE_0": "false"} {
		t.Setenv("GIT_CONFIG_"+key, value) // clone cannot copy objects that a gc in the background packs
	}
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+role+"_NAME", "Test")
		t.Setenv("GIT_"+role+"_EMAIL", "test@example.com")
	}
}

// sequence is a repository with the environments of rings. Its directory has:
//
//	repo      the work tree
//	catalogs  the catalogs of the night
//	cache     the cache of all commands
type sequence struct {
	*rapid.T
	dir   string
	seen  map[string]int // number of events by kind, of all sequences
	steps []string       // of this sequence, for failures

	h         *history
	night     int
	published map[string]string

	misnamed []string // overlay files for which no operator existed at that time

	past lockHistory
}

// newSequence makes a repository that verify accepts.
func newSequence(t *rapid.T, dir string, seen map[string]int) *sequence {
	s := &sequence{T: t, dir: dir, seen: seen, published: map[string]string{}, past: lockHistory{dir: filepath.Join(dir, "repo")}}
	s.h = &history{releases: map[string][]release{}, nights: 4}
	for i := range 4 {
		list := []release{{"1.0.0", 0, forever}}
		for v := range rapid.IntRange(1, 2).Draw(t, "releases") {
			list = append(list, release{fmt.Sprintf("1.%d.0", v+1), rapid.IntRange(v, v+1).Draw(t, "night"), forever})
		}
		s.h.add(fmt.Sprintf("p%02d", i), list)
	}
	s.publish()
	s.put("envs/base.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  declarations: [../operators]
  kubernetesVersion: "1.34"
  catalogs:
  - {name: one, namespace: olm, source: "dir:../../catalogs/one"}
  - {name: two, namespace: olm, source: "dir:../../catalogs/two"}
`)
	s.put("operators/README.md", "Operators of all environments.\n")
	for _, pkg := range s.h.packages {
		if to := rapid.SampledFrom([]string{"operators", "operators", "envs/prod/own", ""}).Draw(t, "to"); to != "" {
			s.put(to+"/"+pkg+".yaml", s.declaration(pkg, ""))
		}
	}
	for i, env := range rings() {
		s.putSettings(env, i)
		s.put("envs/"+env+"/own/README.md", "Operators of this environment alone.\n")
	}
	s.git("init", "-q", "-b", "main")
	if got := s.run("", "resolve", "--all", "--render", "--offline"); got.code != 0 {
		s.failf("the first resolution: %v", got)
	}
	s.commit("start")
	if got := s.verify(); got.code != 0 {
		s.failf("the first state: %v", got)
	}
	return s
}

// putSettings writes random settings of the environment rings()[i].
func (s *sequence) putSettings(env string, i int) {
	profile := rapid.SampledFrom([]string{"plain", "flux", "argocd"}).Draw(s.T, "profile")
	text := fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nmetadata: {name: %s}\nspec:\n  extends: ../base.yaml\n  declarations: [../../operators, own]\n  profile: %s\n", env, profile)
	switch profile {
	case "flux":
		text += fmt.Sprintf("  gitops: {path: envs/%[1]s/rendered, sourceRef: {kind: GitRepository, name: fleet}}\n  clusters: [{name: %[1]s-1, kubeConfig: a}]\n", env)
	case "argocd":
		text += fmt.Sprintf("  gitops: {path: envs/%[1]s/rendered, repoURL: https://git.example.com/fleet.git}\n  clusters: [{name: %[1]s-1, destination: a-%[1]s}]\n", env)
	default:
		text += fmt.Sprintf("  clusters: [{name: %s-1}]\n", env)
	}
	if i > 0 {
		text += "  follows: " + rings()[i-1] + "\n"
	}
	if rapid.IntRange(0, 3).Draw(s.T, "waiver") == 3 {
		text += "  policy: {waivers: [{rule: ahead-of-upstream, object: " + s.h.operator("p00") + ", reason: a hotfix, expires: 9999-12-31}]}\n"
	}
	s.put("envs/"+env+"/quayside.yaml", text)
	if pkg := s.pkg(); s.read("operators/"+pkg+".yaml") != "" && rapid.Bool().Draw(s.T, "overlay") {
		s.putOverlay(env, s.h.namespaceOf(pkg)+"."+pkg, pkg)
	}
}

// putOverlay writes an overlay of an operator in the cluster of an environment.
func (s *sequence) putOverlay(env, dir, pkg string) {
	s.put("envs/"+env+"/overlays/"+env+"-1/"+dir+"/kustomization.yaml", fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: %s, namespace: %s}\n    spec: {replicas: 2}\n", pkg, s.h.namespaceOf(pkg)))
}

// declaration returns a declaration of a package. more contains additional lines for its spec.
func (s *sequence) declaration(pkg, more string) string {
	return fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: %[2]s}\nspec:\n  package: %[1]s\n  watchNamespaces: [%[2]s]\n%[3]s", pkg, s.h.namespaceOf(pkg), more)
}

// publish writes the catalogs of the night.
func (s *sequence) publish() {
	for _, pkg := range s.h.packages {
		file := filepath.Join(s.dir, "catalogs", s.h.catalogOf(pkg), pkg+".json")
		if text := s.h.catalog(pkg, s.h.entries(pkg, s.night, ""), "stable", nil); s.published[file] != text {
			s.published[file] = text
			s.write(file, text)
		}
	}
}

// failf fails the test with the steps so far.
func (s *sequence) failf(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s\nafter:\n  %s\n%s", fmt.Sprintf(format, args...), strings.Join(s.steps, "\n  "), s.gitText("log", "--oneline", "--graph", "--all"))
}

// did records a step for the message of failf, and counts the steps of each kind.
func (s *sequence) did(kind, format string, args ...any) {
	s.seen[kind]++
	s.steps = append(s.steps, kind+": "+fmt.Sprintf(format, args...))
}

func (s *sequence) pkg() string { return rapid.SampledFrom(s.h.packages).Draw(s.T, "package") }
func (s *sequence) env() string { return rapid.SampledFrom(rings()).Draw(s.T, "environment") }

func (s *sequence) path(name string) string { return filepath.Join(s.dir, "repo", name) }

func (s *sequence) put(name, text string) { s.write(s.path(name), text) }

func (s *sequence) write(file, text string) {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		s.Fatal(err)
	}
}

// read returns the content of a file, or "" if it does not exist.
func (s *sequence) read(name string) string {
	data, err := os.ReadFile(s.path(name))
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	return string(data)
}

// run runs quayside in a directory of the repository.
func (s *sequence) run(dir string, args ...string) nightOutcome {
	return s.runIn(s.path(dir), filepath.Join(s.dir, "cache"), args...)
}

// runIn runs quayside in a directory with a cache. Any exit code that the commands do not document
// is an error.
func (s *sequence) runIn(dir, cache string, args ...string) nightOutcome {
	var stdout, stderr bytes.Buffer
	env := []string{"XDG_CACHE_HOME=" + cache, "HOME=" + s.dir, "QUAYSIDE_ALLOW_OUTSIDE=" + filepath.Join(s.dir, "catalogs")}
	got := nightOutcome{code: cli.Main(parts.All(), append([]string{"-C", dir}, args...), nil, &stdout, &stderr, env)}
	got.stdout, got.stderr = stdout.String(), stderr.String()
	if got.code < 0 || got.code > 4 || got.code > 0 && got.stderr == "" && !slices.Contains(args, "--check") {
		s.failf("quayside %q: %v", args, got)
	}
	return got
}

func (s *sequence) tryGit(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = s.path("")
	if err := os.MkdirAll(cmd.Dir, 0o777); err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (s *sequence) gitText(args ...string) string {
	out, err := s.tryGit(args...)
	if err != nil {
		out += err.Error()
	}
	return out
}

func (s *sequence) git(args ...string) string {
	s.Helper()
	out, err := s.tryGit(args...)
	if err != nil {
		s.failf("git %q: %v\n%s", args, err, out)
	}
	return out
}

// commit commits all files.
func (s *sequence) commit(message string) {
	s.git("add", "-A")
	s.git("commit", "-q", "--allow-empty", "-m", message)
}

// undo returns to the last commit.
func (s *sequence) undo() {
	s.git("reset", "-q", "--hard")
	s.git("clean", "-q", "-fdx")
}

// snapshot returns a digest of all files outside of .git.
func (s *sequence) snapshot() string {
	digest, err := digestFiles(s.path(""))
	if err != nil {
		s.Fatal(err)
	}
	return digest
}

// digestFiles returns a digest of the names and contents of all files below dir, except those in .git.
func digestFiles(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		data, err := os.ReadFile(name)
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// verify verifies all environments. Sometimes it verifies again, with an empty and with a filled cache. It
// fails the test if the results differ.
func (s *sequence) verify() nightOutcome {
	s.Helper()
	warm := s.run("", "verify", "--all", "--offline")
	s.checkAhead(warm)
	if rapid.IntRange(0, 3).Draw(s.T, "cold") > 0 {
		return warm
	}
	cold := filepath.Join(s.dir, "cold")
	if got := s.runIn(s.path(""), cold, "verify", "--all", "--offline"); got != warm {
		s.failf("verify with a warm cache: %v\nwith a cold one: %v", warm, got)
	}
	if err := os.RemoveAll(cold); err != nil {
		s.Fatal(err)
	}
	if again := s.run("", "verify", "--all", "--offline"); again != warm {
		s.failf("verify: %v\nand again: %v", warm, again)
	}
	return warm
}

// checkAhead fails the test if verify accepts a state in which an environment is ahead of its upstream environment.
func (s *sequence) checkAhead(got nightOutcome) {
	s.Helper()
	for i, env := range rings()[1:] {
		for _, operator := range s.ahead(rings()[i], env) {
			if got.code == 0 {
				s.failf("%s is ahead of %s with %s, and verify accepts it: %v", env, rings()[i], operator, got)
			}
			s.seen["environments ahead"]++
		}
	}
}

// ahead returns the operators of env with a bundle that its upstream environment, followed, has never
// had. It returns none if a lock cannot be read, or if env no longer follows that environment.
func (s *sequence) ahead(followed, env string) []string {
	settings := s.read("envs/" + env + "/quayside.yaml")
	if !strings.Contains(settings, "follows: "+followed+"\n") {
		return nil
	}
	own, err1 := s.lock(env)
	theirs, err2 := s.lock(followed)
	if err1 != nil || err2 != nil {
		return nil
	}
	had := maps.Clone(s.past.along(s.T, "HEAD", "envs/"+followed))
	for _, pin := range theirs.Pins {
		had[pin.BundleDigest()] = true
	}
	var out []string
	for _, pin := range own.Pins {
		declared := s.read("operators/"+pin.Package+".yaml") != "" || s.read("envs/"+followed+"/own/"+pin.Package+".yaml") != ""
		if declared && !had[pin.BundleDigest()] && !strings.Contains(settings, "object: "+pin.Key()+",") {
			out = append(out, pin.Key())
		}
	}
	return out
}

func (s *sequence) lock(env string) (*lockfile.File, error) {
	return lockfile.Parse(env, []byte(s.read("envs/"+env+"/quayside.lock")))
}

// codes returns the sorted codes of the errors in the output of verify.
func (s *sequence) codes(got nightOutcome) []string {
	var out []string
	for line := range strings.Lines(got.stderr) {
		if m := regexp.MustCompile(`\[([a-z-]+)\]$`).FindStringSubmatch(strings.TrimSpace(line)); m != nil && !strings.Contains(line, "warning: ") {
			out = append(out, m[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// end commits the state, and verifies a new clone, which must have the same result.
func (s *sequence) end() {
	s.commit("end")
	here := s.verify()
	clone := filepath.Join(s.dir, "clone")
	s.git("clone", "-q", "--shared", ".", clone)
	s.git("-C", clone, "remote", "remove", "origin")
	if there := s.runIn(clone, filepath.Join(s.dir, "cache"), "verify", "--all", "--offline"); there != here {
		s.failf("verify of the work tree: %v\nof a new clone: %v", here, there)
	}
	failed := false
	for _, env := range rings() { // alone, each environment has the same result
		failed = s.run("envs/"+env, "verify", "--offline").code != 0 || failed
	}
	if failed != (here.code != 0) {
		s.failf("verify --all: %v\nverify of each environment fails: %v", here, failed)
	}
}

package cli_test

import (
	"maps"
	"os"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/lockfile"
)

// step plays a random step. Before and after the step, verify accepts the state.
func (s *sequence) step() {
	kinds := []func(){s.command, s.command, s.command, s.edit, s.edit, s.merge, s.revert, s.publishMore, s.propose, s.commitState}
	rapid.SampledFrom(kinds).Draw(s.T, "step")()
}

// publishMore publishes the releases of the next night.
func (s *sequence) publishMore() {
	s.night = min(s.night+1, s.h.nights-1)
	s.publish()
	s.did("night", "%d", s.night)
	if got := s.verify(); got.code != 0 {
		s.failf("new releases break the state: %v", got)
	}
}

func (s *sequence) commitState() {
	s.commit("step")
	s.did("commit", "")
	if got := s.verify(); got.code != 0 {
		s.failf("a commit breaks the state: %v", got)
	}
}

// args draws a command, and the directory in which it runs.
func (s *sequence) args() (dir string, args []string) {
	env, pkg := s.env(), s.pkg()
	dir, operator := "envs/"+env, s.h.operator(pkg)
	version := rapid.SampledFrom([]string{"1.0.0", "1.1.0", "1.2.0"}).Draw(s.T, "version")
	// Only dev adds shared declarations, and only if no other environment has its own declaration of the package.
	to := "own"
	if env == "dev" && s.read("envs/prod/own/"+pkg+".yaml") == "" && s.read("envs/stage/own/"+pkg+".yaml") == "" {
		to = "../../operators"
	}
	all := [][]string{
		{"add", pkg, "-n", s.h.namespaceOf(pkg), "--watch", s.h.namespaceOf(pkg), "--to", to, "--render"},
		{"add", pkg + "@" + version, "-n", s.h.namespaceOf(pkg), "--to", to, "--render"},
		{"remove", operator, "--render"},
		{"resolve", "--render"},
		{"resolve", "--upgrade", "--render"},
		{"resolve", "--upgrade=" + operator, "--render"},
		{"resolve", "--upgrade=" + operator + "@" + version, "--hops", "all", "--render"},
		{"resolve", "--unpin", operator, "--render"},
		{"resolve", "--reinstall", operator, "--allow-downgrade", "--render"},
		{"resolve", "--prune", "--render"},
		{"upgrade", "--yes"},
		{"upgrade", "--yes", "--hops", "all"},
		{"upgrade", operator, "--yes"},
		{"upgrade", operator + "@" + version, "--yes", "--hops", "all"},
		{"promote", "--render"},
		{"promote", "dev", "stage", "--render"},
		{"promote", "dev", "prod", "--render"},
		{"promote", "stage", "prod", operator, "--render"},
		{"render"},
	}
	args = rapid.SampledFrom(all).Draw(s.T, "command")
	if args[0] == "promote" || slices.Contains([]string{"resolve", "upgrade"}, args[0]) && rapid.IntRange(0, 4).Draw(s.T, "all") == 0 {
		dir = ""
		if args[0] != "promote" {
			args = append(slices.Clone(args), "--all")
		}
	}
	if i := slices.Index(args, "--render"); i >= 0 && rapid.IntRange(0, 4).Draw(s.T, "no render") == 0 {
		args = slices.Delete(slices.Clone(args), i, i+1)
	}
	return dir, append(slices.Clone(args), "--offline")
}

// command runs a command that writes. If the command fails, it must write nothing. Otherwise verify must accept
// the result, at the latest after resolve and render in all environments that share declarations.
func (s *sequence) command() {
	dir, args := s.args()
	before := s.snapshot()
	if rapid.IntRange(0, 5).Draw(s.T, "check") == 0 {
		args = append(slices.DeleteFunc(args, func(a string) bool { return a == "--yes" }), "--check")
	}
	got := s.run(dir, args...)
	after := s.snapshot()
	s.did(args[0], "%s in %q: %d", strings.Join(args, " "), dir, got.code)
	switch {
	case slices.Contains(args, "--check") && before != after:
		s.failf("--check writes: %v", got)
	case got.code != 0 && before != after && !slices.Contains(args, "--all") && args[0] != "promote":
		s.failf("refused, and written: %v\n%s", got, s.gitText("status", "--short"))
	case got.code != 0:
		s.seen["refused "+args[0]]++
		if before != after { // other workspaces of --all
			s.undo()
		}
		return
	case before == after:
		return
	}
	s.seen["written by "+args[0]]++
	s.settle(got)
}

// settle verifies the state after a command that wrote. If necessary, it first runs resolve and render.
func (s *sequence) settle(after nightOutcome) {
	got := s.verify()
	if got.code == 0 {
		return
	}
	for line := range strings.Lines(got.stderr) {
		if !isNextStep(line) {
			s.failf("a command breaks the state: %v\nverify: %v", after, got)
		}
	}
	s.seen["states that wait for resolve or render"]++
	for range rings() { // each environment waits for the one that it follows
		mended := s.run("", "resolve", "--all", "--render", "--offline")
		if mended.code != 0 && strings.Contains(mended.stderr, "[unused-overlay]") { // it was only a warning before the operator came
			s.seen["overlays that an operator makes misnamed"]++
			for _, name := range s.misnamed {
				s.remove(name)
			}
			continue
		}
		if mended.code != 0 {
			s.failf("resolve after a command that wrote: %v\n%v", after, mended)
		}
	}
	if got = s.verify(); got.code != 0 {
		s.failf("a command breaks the state, also after resolve: %v\nverify: %v", after, got)
	}
}

// isNextStep reports whether a line of verify's output only reports that resolve or render must be run next.
func isNextStep(line string) bool {
	for _, part := range []string{"warning: ", "hint: ", "up to date", "run 'quayside resolve'", "run 'quayside render'", "[stale-lock]"} {
		if strings.Contains(line, part) {
			return true
		}
	}
	// Headings, and the details of a lock that is out of date.
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "envs/") && strings.HasSuffix(line, ":\n")
}

// edit edits a file. If verify then reports a broken rule, edit also runs a command, which must not
// break any other rule.
func (s *sequence) edit() {
	env, other, pkg := s.env(), s.env(), s.pkg()
	dir := "envs/" + env + "/"
	lock, settings := s.read(dir+"quayside.lock"), s.read(dir+"quayside.yaml")
	// Each edit returns a text that verify must print, or "" if verify may accept the state.
	edits := map[string]func() string{
		"delete a lock": func() string {
			requested := s.isRequestedAtHead(env, lock)
			s.remove(dir + "quayside.lock")
			if requested {
				return "but HEAD has it"
			}
			return "quayside.lock"
		},
		"copy a lock": func() string {
			s.put(dir+"quayside.lock", s.read("envs/"+other+"/quayside.lock"))
			return ""
		},
		"restore the first lock": func() string {
			first, _, _ := strings.Cut(s.git("rev-list", "--max-parents=0", "HEAD"), "\n")
			s.put(dir+"quayside.lock", s.git("show", first+":"+dir+"quayside.lock")+"\n")
			return ""
		},
		"edit a version in a lock": func() string {
			edited := strings.Replace(lock, "version: 1.0.0", "version: 1.1.0", 1)
			s.put(dir+"quayside.lock", edited)
			if edited == lock {
				return ""
			}
			return "checksum"
		},
		"delete a shared declaration": func() string {
			s.remove("operators/" + pkg + ".yaml")
			// Without any declaration, a workspace may have only a lock.
			declares := slices.ContainsFunc(s.h.packages, func(p string) bool { return s.read("operators/"+p+".yaml")+s.read(dir+"own/"+p+".yaml") != "" })
			if declares && s.isRequested(lock, pkg) && s.read(dir+"own/"+pkg+".yaml") == "" {
				s.checkStale(dir)
			}
			return ""
		},
		"declare a package": func() string {
			s.put("operators/"+pkg+".yaml", s.declaration(pkg, ""))
			return ""
		},
		"declare a package here": func() string {
			s.put(dir+"own/"+pkg+".yaml", s.declaration(pkg, ""))
			if shared := s.read("operators/" + pkg + ".yaml"); shared != "" && shared != s.declaration(pkg, "") {
				return "declared"
			}
			return ""
		},
		"declare a version": func() string {
			s.put("operators/"+pkg+".yaml", s.declaration(pkg, "  version: "+rapid.SampledFrom([]string{"1.0.0", "1.1.0", "9.9.9"}).Draw(s.T, "version")+"\n"))
			return s.h.operator(pkg)
		},
		"a Kubernetes that cannot exist": func() string {
			s.put(dir+"quayside.yaml", settings+"  kubernetesVersion: \"1.99\"\n")
			return "cannot exist"
		},
		"an old Kubernetes": func() string {
			s.put(dir+"quayside.yaml", settings+"  kubernetesVersion: \"1.18\"\n")
			if strings.Contains(lock, "package: ") {
				return "[requirement]"
			}
			return ""
		},
		"another tree": func() string {
			s.put(dir+"quayside.yaml", strings.Replace(settings, "path: envs/"+env+"/", "path: envs/"+other+"/", 1))
			if env != other && strings.Contains(settings, "path: ") {
				return "[gitops-path]"
			}
			return ""
		},
		"no waivers": func() string {
			before, _, _ := strings.Cut(settings, "  policy: ")
			s.put(dir+"quayside.yaml", before)
			return ""
		},
		"ignored files": func() string {
			s.git("rm", "-q", "-r", "--cached", dir+"rendered")
			s.put(".gitignore", "rendered/\n")
			return "[not-in-git]"
		},
		"edit the tree": func() string {
			name := dir + "rendered/clusters.yaml"
			s.put(name, s.read(name)+"# edited\n")
			return "rendered"
		},
		"delete the tree": func() string {
			if err := os.RemoveAll(s.path(dir + "rendered")); err != nil {
				s.Fatal(err)
			}
			return "rendered"
		},
		"an overlay of a similar name": func() string {
			s.putOverlay(env, s.h.namespaceOf(pkg)+"-"+pkg, pkg)
			s.misnamed = append(s.misnamed, "envs/"+env+"/overlays/"+env+"-1/"+s.h.namespaceOf(pkg)+"-"+pkg+"/kustomization.yaml")
			if strings.Contains(lock, "package: "+pkg+"\n") {
				return "[unused-overlay]"
			}
			return ""
		},
		"an overlay": func() string {
			s.putOverlay(env, s.h.namespaceOf(pkg)+"."+pkg, pkg)
			return ""
		},
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(edits))).Draw(s.T, "edit")
	want := edits[name]()
	got := s.verify()
	s.did("edit", "%s of %s: %s in %s: %d", name, pkg, other, env, got.code)
	if want != "" && (got.code == 0 || !strings.Contains(got.stderr, want)) {
		s.failf("verify does not report %q: %v", want, got)
	}
	if got.code == 0 {
		s.seen["edits that verify accepts"]++
		return
	}
	s.seen["edits that verify reports"]++
	s.commandWhileBroken(got)
}

// isRequested reports whether a lock pins a package because of a declaration. text is the content of the lock.
func (s *sequence) isRequested(text, pkg string) bool {
	lock, err := lockfile.Parse("quayside.lock", []byte(text))
	if err != nil {
		return false
	}
	pin, ok := lock.Pin(s.h.namespaceOf(pkg), pkg)
	return ok && len(pin.RequestedBy) > 0
}

// isRequestedAtHead reports whether at least one package is requested both in the lock text and in HEAD's lock.
func (s *sequence) isRequestedAtHead(env, text string) bool {
	head, err := s.tryGit("show", "HEAD:envs/"+env+"/quayside.lock")
	return err == nil && slices.ContainsFunc(s.h.packages, func(pkg string) bool {
		return s.isRequested(text, pkg) && s.isRequested(head+"\n", pkg)
	})
}

// checkStale checks that render reports a lock that is out of date with the declarations.
func (s *sequence) checkStale(dir string) {
	s.seen["stale locks"]++
	if got := s.run(dir, "render", "--check", "--offline"); !strings.Contains(got.stderr, "[stale-lock]") {
		s.failf("render does not report the deleted declaration: %v", got)
	}
}

// commandWhileBroken runs a command in a state that verify does not accept. If the command writes, it must
// break no other rule. Finally, commandWhileBroken restores the last commit.
func (s *sequence) commandWhileBroken(before nightOutcome) {
	dir, args := s.args()
	state := s.snapshot()
	got := s.run(dir, args...)
	s.did("command while broken", "%s in %q: %d", strings.Join(args, " "), dir, got.code)
	if written := s.snapshot() != state; written {
		s.seen["written while broken"]++
		if got.code != 0 && !slices.Contains(args, "--all") && args[0] != "promote" {
			s.failf("refused, and written: %v", got)
		}
		after := s.verify()
		for _, code := range s.codes(after) {
			if !slices.Contains(s.codes(before), code) && code != "stale-lock" {
				s.failf("verify before: %v\nthe command: %v\nverify after it: %v", before, got, after)
			}
		}
	}
	s.undo()
	if got := s.verify(); got.code != 0 {
		s.undone(got)
	}
}

// undone runs resolve and render, and commits the results. This repairs a last commit that was never verified.
func (s *sequence) undone(got nightOutcome) {
	if mended := s.run("", "resolve", "--all", "--render", "--offline"); mended.code != 0 {
		s.failf("the last commit is broken: %v\n%v", got, mended)
	}
	s.commit("mended")
	if again := s.verify(); again.code != 0 {
		s.failf("the last commit is broken, also after resolve: %v", again)
	}
}

func (s *sequence) remove(name string) {
	if err := os.Remove(s.path(name)); err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
}

// merge runs a command on two branches, and merges them.
func (s *sequence) merge() {
	s.commit("before the branches")
	start := s.git("rev-parse", "HEAD")
	for _, branch := range []string{"topic", "main"} {
		s.git("checkout", "-q", "-B", branch, start)
		dir, args := s.args()
		got := s.run(dir, args...)
		s.did("branch", "%s: %s in %q: %d", branch, strings.Join(args, " "), dir, got.code)
		if got.code == 0 {
			s.run("", "resolve", "--all", "--render", "--offline")
		}
		if got = s.run("", "verify", "--all", "--offline"); got.code != 0 {
			s.undo()
		}
		s.commit(branch)
	}
	s.git("tag", "-f", "ORIG_STATE")
	if out, err := s.tryGit("merge", "-q", "--no-edit", "topic"); err != nil && !s.resolveConflicts(out) {
		return
	}
	s.accept("merge", s.verify())
}

// resolveConflicts resolves conflicts in locks and trees as docs/lock.md describes, and commits.
// Other conflicts abort the merge.
func (s *sequence) resolveConflicts(out string) bool {
	names := strings.Fields(s.git("diff", "--name-only", "--diff-filter=U"))
	for _, name := range names {
		if strings.HasSuffix(name, "quayside.lock") {
			s.git("checkout", "--theirs", name)
		} else if !strings.Contains(name, "/rendered/") {
			s.seen["merges with conflicts in declarations"]++
			s.git("merge", "--abort")
			return false
		}
	}
	s.seen["merges with conflicts"]++
	got := s.run("", "resolve", "--all", "--render", "--offline")
	if got.code != 0 {
		s.seen["merges with conflicts that resolve refuses"]++
		s.did("conflict", "%s: %d\n%s", strings.Join(names, " "), got.code, got.stderr)
		s.git("merge", "--abort")
		return false
	}
	s.git("add", "-A")
	s.git("commit", "-q", "--no-edit")
	return true
}

// accept checks the state after a merge or a revert. If verify rejects it, accept repairs it with resolve and
// render or, if that fails, restores the state before the merge or revert.
func (s *sequence) accept(what string, got nightOutcome) {
	s.did(what, "%d", got.code)
	if got.code == 0 {
		return
	}
	s.seen[what+" that verify reports"]++
	if mended := s.run("", "resolve", "--all", "--render", "--offline"); mended.code == 0 {
		s.commit("mended")
		if again := s.verify(); again.code == 0 {
			s.seen[what+" that resolve mends"]++
			return
		}
	}
	s.git("reset", "-q", "--hard", "ORIG_STATE")
	s.git("clean", "-q", "-fdx")
}

// revert reverts one of the last commits.
func (s *sequence) revert() {
	s.commit("before the revert")
	s.git("tag", "-f", "ORIG_STATE")
	commits := strings.Fields(s.git("rev-list", "--first-parent", "-n", "5", "HEAD"))
	commit := rapid.SampledFrom(commits).Draw(s.T, "commit")
	args := []string{"revert", "--no-edit", commit}
	switch parents := strings.Fields(s.git("rev-list", "--parents", "-n", "1", commit))[1:]; len(parents) {
	case 0:
		return
	case 2:
		args = []string{"revert", "--no-edit", "-m", "1", commit}
	}
	if _, err := s.tryGit(args...); err != nil {
		s.seen["reverts with conflicts or without changes"]++
		_, _ = s.tryGit("revert", "--abort")
		s.undo()
		return
	}
	s.accept("revert", s.verify())
}

// propose proposes upgrades or promotions on branches. verify must accept every branch: no environment may be
// ahead of its upstream environment.
func (s *sequence) propose() {
	s.commit("before the night")
	s.git("tag", "-f", "ORIG_STATE")
	args := []string{"propose", "--all", "--branch", "bot", "--offline"}
	if rapid.Bool().Draw(s.T, "promote") {
		args = []string{"propose", "--promote", "--branch", "bot", "--offline"}
	}
	before := s.snapshot()
	got := s.run("", args...)
	s.did("propose", "%s: %d", strings.Join(args, " "), got.code)
	if s.snapshot() != before {
		s.failf("propose changes the work tree: %v", got)
	}
	for branch := range strings.FieldsSeq(s.git("for-each-ref", "--format=%(refname:short)", "refs/heads/bot", "refs/heads/bot/")) {
		s.seen["branches of propose"]++
		s.git("checkout", "-q", "--detach", branch)
		if got := s.verify(); got.code != 0 {
			s.failf("%s: %v", branch, got)
		}
		s.git("checkout", "-q", "main")
		if rapid.Bool().Draw(s.T, "merged") {
			if out, err := s.tryGit("merge", "-q", "--no-edit", branch); err != nil {
				s.failf("%s does not merge: %s", branch, out)
			}
			if got := s.verify(); got.code != 0 {
				s.failf("the merge of %s: %v", branch, got)
			}
		}
		s.git("branch", "-q", "-D", branch)
	}
}

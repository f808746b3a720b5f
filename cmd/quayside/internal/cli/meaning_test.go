package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// meaningExemptions returns patterns of mutants that do not affect the operators, each with the reason.
func meaningExemptions() []struct{ pattern, reason string } {
	return []struct{ pattern, reason string }{
		{`without (profile: argocd|certificates: cert-manager|failOn: high|newDeclarations: \S+|requirements: enforce|output: rendered|revision: main|namespace: flux-system|path: rendered|spec: \{\})$`, "the value is the default"},
		{`olmv0.txtar quayside.yaml:17: without operators`, "the patterns name all operators"},
		{`kustomize.txtar base.yaml:7: .*certificates`, "no operator here has a webhook"},
		{`kustomize.txtar quayside.yaml:4: .*name: prod`, "the name of the environment is only in observations"},
		{`operators/vault.yaml:5: .*namespace: default`, "the kustomization sets the namespace"},
		{`envs.txtar operators/(base/memcached.yaml|prod/kustomization.yaml:6)`, "own/memcached.yaml overrides it"},
		{`policy.txtar policies/etcd.yaml:4`, "the Subscription is named after the package"},
		{`at-installer`, "only OLM v1 uses the ServiceAccount"},
		{`without apiVersion: kustomize`, "kustomize has a default for it"},
		{`settings.txtar quayside.yaml:\d+: .*kubernetesVersion`, "no operator here depends on the version"},
		{`revision: main → mainx`, "sourceRef names a Git source that is not rendered"},
		{`reason: reviewed`, "a text for people"},
		{`without images.new: low`, "the severity affects only later reports"},
		{`settings.txtar subscriptions/catalog.yaml`, "spec.catalogs overrides the CatalogSource"},
	}
}

// mutant is a file of a valid repository with one mistake.
type mutant struct {
	title string // "quayside.yaml:7: profile: argocd → argocdx"
	file  string
	text  string // "" with renamed
	to    string // new name of the file; "" if it keeps its name
}

// mutants returns the mutants of a file: each scalar with another well-formed value, each line
// deleted, and the file renamed.
func mutants(file, text string) []mutant {
	lines := strings.SplitAfter(text, "\n")
	out := []mutant{{title: file + " renamed", file: file, to: file + ".bak"}}
	with := func(i int, line, what string) {
		changed := slices.Clone(lines)
		changed[i] = line
		out = append(out, mutant{title: fmt.Sprintf("%s:%d: %s", file, i+1, what), file: file, text: strings.Join(changed, "")})
	}
	scalar := regexp.MustCompile(`(: |\[|, |- )("[^"]*"|[^\s"{}\[\],|]+)`)
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		with(i, "", "without "+strings.TrimSpace(line))
		for _, at := range scalar.FindAllStringSubmatchIndex(line, -1) {
			old := line[at[4]:at[5]]
			if strings.HasSuffix(old, ":") || strings.Contains(old, ": ") {
				continue
			}
			wrong := wrongValue(line[:at[5]], old)
			with(i, line[:at[4]]+wrong+line[at[5]:], fmt.Sprintf("%s → %s", strings.TrimSpace(line[:at[5]]), wrong))
		}
	}
	return out
}

// wrongValue returns a wrong but well-formed replacement for old, the value at the end of line:
// another value of its enumeration, or a text with the same syntax.
func wrongValue(line, old string) string {
	for _, pair := range [][2]string{
		{" true", "false"},
		{" false", "true"},
		{" Manual", "Automatic"},
		{" None", "Automatic"},
		{" musthave", "mustnothave"},
		{"remediationAction: enforce", "inform"},
		{"requirements: enforce", "warn"},
		{"removedClusters: delete", "keep"},
		{"granularity: cluster", "operator"},
		{"granularity: operator", "cluster"},
		{" GitRepository", "OCIRepository"},
		{" OCIRepository", "GitRepository"},
		{" argocd", "plain"},
		{" flux", "plain"},
		{" plain", "argocd"},
		{": high", "off"},
		{": medium", "off"},
		{" cert-manager", "secret"},
		{`"50%"`, `"10%"`},
	} {
		if strings.HasSuffix(line, pair[0]) {
			return pair[1]
		}
	}
	if digits := regexp.MustCompile(`\d+`).FindAllStringIndex(old, -1); len(digits) > 0 && !strings.Contains(old, "/") {
		last := digits[len(digits)-1]
		return old[:last[0]] + "7" + old[last[1]:]
	}
	if quoted, ok := strings.CutSuffix(old, `"`); ok {
		return quoted + `x"`
	}
	return old + "x"
}

// TestMeaning makes one mistake at a time in valid repositories. Each mistake must cause an error, a warning or
// a difference in diff: no operator may be removed or held back silently. With -whole it tests every mutant,
// otherwise a sample.
func TestMeaning(t *testing.T) {
	if testing.Short() {
		t.Skip("runs four commands for every mutant")
	}
	files, err := filepath.Glob("testdata/meaning/*.txtar")
	check(t, err)
	every := 20
	if *wholeCorpus {
		every = 1
	}
	used := map[string]int{}
	count, total := 0, 0
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		check(t, err)
		top, cache := t.TempDir(), t.TempDir()
		dir := filepath.Join(top, "prod")
		check(t, os.CopyFS(filepath.Join(dir, "catalog"), os.DirFS("../../../../examples/quickstart/catalog")))
		if !copyCorpus(t, archive, dir) {
			t.Logf("%s: not tested, because QUAYSIDE_CORPUS is not set", name)
			continue
		}
		for _, f := range archive.Files {
			put(t, dir, f.Name, string(f.Data))
		}
		mustRunIn(t, dir, cache, "resolve", "--offline")
		mustRunIn(t, dir, cache, "render", "--offline")
		sound := mustRunIn(t, dir, cache, "verify", "--offline")
		gitIn(t, top, "init", "-q", "-b", "main")
		gitIn(t, top, "add", "-A")
		gitIn(t, top, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "sound")
		outdated := quaysideIn(t, dir, cache, "outdated", "--current", "--offline")
		for _, f := range archive.Files {
			if strings.HasPrefix(f.Name, "..") { // of the other environment
				continue
			}
			for _, m := range mutants(f.Name, string(f.Data)) {
				if total++; total%every != 0 {
					continue
				}
				count++
				copied := t.TempDir()
				check(t, os.CopyFS(copied, os.DirFS(top)))
				mutated := filepath.Join(copied, "prod")
				if m.to != "" {
					check(t, os.Rename(filepath.Join(mutated, m.file), filepath.Join(mutated, m.to)))
				} else {
					put(t, mutated, m.file, m.text)
				}
				if isNoticed(t, mutated, cache, sound, outdated) {
					continue
				}
				title := filepath.Base(name) + " " + m.title
				i := slices.IndexFunc(meaningExemptions(), func(e struct{ pattern, reason string }) bool {
					return regexp.MustCompile(e.pattern).MatchString(title)
				})
				if i < 0 {
					t.Errorf("%s: no command reports it", title)
					continue
				}
				used[meaningExemptions()[i].pattern]++
			}
		}
	}
	t.Logf("%d of %d mutants", count, total)
	for _, e := range meaningExemptions() {
		t.Logf("%4d exempt: %s: %s", used[e.pattern], e.pattern, e.reason)
		if *wholeCorpus && used[e.pattern] == 0 {
			t.Errorf("no mutant needs the exemption %s", e.pattern)
		}
	}
	if len(meaningExemptions()) > 15 || count == 0 {
		t.Errorf("%d exemptions, %d mutants", len(meaningExemptions()), count)
	}
}

// copyCorpus copies operators from QUAYSIDE_CORPUS. The file called corpus in an archive lists them, one a
// line; copyCorpus removes this file. It returns false if operators are listed but the variable is not set.
func copyCorpus(t *testing.T, archive *txtar.Archive, dir string) bool {
	t.Helper()
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "corpus" })
	if i < 0 {
		return true
	}
	bundles := os.Getenv("QUAYSIDE_CORPUS")
	if bundles == "" {
		return false
	}
	for name := range strings.FieldsSeq(string(archive.Files[i].Data)) {
		check(t, os.CopyFS(filepath.Join(dir, "corpus", name), os.DirFS(filepath.Join(bundles, "bundles", name))))
	}
	archive.Files = slices.Delete(archive.Files, i, i+1)
	return true
}

// isNoticed reports whether resolve, render, verify or diff reports the mistake in a workspace. sound and
// outdated are the results of 'quayside verify' and 'quayside outdated' in the workspace without the mistake.
func isNoticed(t *testing.T, dir, cache string, sound, outdated outcome) bool {
	t.Helper()
	for _, command := range []string{"resolve --offline", "render --offline", "verify --offline", "diff HEAD --offline"} {
		got := quaysideIn(t, dir, cache, strings.Fields(command)...)
		known := func(line string) bool {
			return !strings.Contains(line, "warning: ") || strings.Contains(sound.stderr, line)
		}
		isNew := slices.ContainsFunc(strings.Split(got.stderr, "\n"), func(line string) bool { return !known(line) })
		hasChanges := strings.HasPrefix(command, "resolve") && got.stdout != ""
		if got.code != 0 || isNew || hasChanges {
			return true
		}
	}
	if got := quaysideIn(t, dir, cache, "outdated", "--current", "--offline"); got.stdout != outdated.stdout {
		t.Errorf("outdated differs, but nothing else: %s", got.stdout)
	}
	return false
}

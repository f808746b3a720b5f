package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/parts"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/testing/goldentest"
)

// brokenState is a state of envs/prod that breaks a rule.
type brokenState struct {
	mark     string                   // regular expression for the rule's finding in the output of a command
	edit     func(f *brokenWorkspace) // breaks the rule by hand, from a state in which all rules hold
	after    func(f *brokenWorkspace) // runs after the state was committed
	observed string                   // file for --observed
}

// brokenWorkspace is a repository with envs/dev, and with envs/prod, which follows dev. Both install the
// operator ns-p00/p00; only prod installs ns-p01/p01. Each operator has an upgrade.
type brokenWorkspace struct {
	t   *testing.T
	dir string // of the repository
}

// brokenStates returns a state for each rule.
func brokenStates() map[string]brokenState {
	spec := func(line string) func(*brokenWorkspace) {
		return func(f *brokenWorkspace) { f.append("quayside.yaml", "  "+line+"\n") }
	}
	return map[string]brokenState{
		"policy-expressions":   {mark: `policy rule "x"`, edit: spec(`policy: {rules: [{name: x, expression: "finding."}]}`)},
		"cluster-names":        {mark: `no cluster "nowhere"`, edit: spec("policy: {clusters: [{names: [nowhere], failOn: low}]}")},
		"followed-environment": {mark: `no environment "test"`, edit: func(f *brokenWorkspace) { f.replace("quayside.yaml", "follows: dev", "follows: test") }},
		"future-versions":      {mark: `cannot exist yet`, edit: spec(`kubernetesVersion: "1.99"`)},
		"old-versions":         {mark: `\[old-version\]`, edit: func(f *brokenWorkspace) { spec(`kubernetesVersion: "1.3.3"`)(f); spec("requirements: warn")(f) }},
		"cluster-operators": {mark: `no operator "nowhere/\*"`, edit: func(f *brokenWorkspace) {
			f.replace("quayside.yaml", "destination: prod", "destination: prod, operators: ['nowhere/*', '*']")
		}},
		"waiver-operators": {mark: `no operator "ns-p01/p10"`, edit: spec("policy: {waivers: [{rule: crd.field-removed, operator: ns-p01/p10, reason: r, expires: 9999-12-31}]}")},
		"unused-waivers":   {mark: `no operator "elsewhere/kafka"`, edit: spec("policy: {waivers: [{rule: crd.field-removed, operator: elsewhere/kafka, reason: r, expires: 9999-12-31}]}")},
		"expired-waivers":  {mark: `\[waiver-expired\]`, edit: spec("policy: {waivers: [{rule: crd.field-removed, operator: ns-p01/p01, reason: r, expires: 2020-01-31}]}")},
		"deleted-lock":     {mark: `quayside\.lock: missing, but committed in HEAD|no quayside\.lock in`, after: func(f *brokenWorkspace) { f.remove("quayside.lock") }},
		"misspelled-apis":  {mark: `correct apiVersion|p01 is pinned for it`, edit: func(f *brokenWorkspace) { f.replace("own/p01.yaml", "quayside.dev/v1alpha1", "quaysid.dev/v1alpha1") }},
		"dropped-paths": {mark: `spec\.declarations no longer includes`, edit: func(f *brokenWorkspace) {
			f.replace("quayside.yaml", "own, more]", "more]")
		}},
		"only-environments": {mark: `no environment "prd"`, edit: func(f *brokenWorkspace) { f.append("own/p01.yaml", "  only: [prod, prd]\n") }},
		"promotion": {mark: `ahead-of-upstream|has never been in the upstream environment dev`, edit: func(f *brokenWorkspace) {
			f.replace("quayside.yaml", "  follows: dev\n", "")
			f.run("resolve", "--upgrade=ns-p00/p00", "--hops", "all", "--render", "--offline")
			f.replace("quayside.yaml", "spec:\n", "spec:\n  follows: dev\n")
		}},
		"requirements": {mark: `\[requirement\]|\[settings.requirements\]`, edit: spec(`kubernetesVersion: "1.18"`)},
		"declared-twice": {mark: `is declared twice|is declared several times`, edit: func(f *brokenWorkspace) {
			f.put("own/again.yaml", strings.Replace(f.read("own/p01.yaml"), "name: p01", "name: again", 1))
		}},
		"freshness": {mark: `\[stale-lock\]|out of date: run 'quayside resolve'|differs from the declaration`, edit: func(f *brokenWorkspace) { f.append("own/p01.yaml", "  config: {env: [{name: A, value: b}]}\n") }},
		"address":   {mark: `\[gitops-path\]|\[state.address\]`, edit: func(f *brokenWorkspace) { f.replace("quayside.yaml", "path: envs/prod", "path: envs/dev") }},
		"engine-names": {mark: `\[gitops-name\]|\[state.names\]`, edit: func(f *brokenWorkspace) {
			f.replace("quayside.yaml", "destination: prod", "server: https://kubernetes.default.svc")
			f.replace("quayside.yaml", "gitops: {", "gitops: {name: dev, ")
			f.replace("../dev/quayside.yaml", "destination: dev", "server: https://kubernetes.default.svc")
			f.run("-C", "../dev", "render", "--offline")
		}},
		"one-owner": {mark: `\[two-owners\]|\[state.owner\]`, edit: func(f *brokenWorkspace) {
			f.replace("quayside.yaml", "destination: prod", "server: https://a.example.com")
			f.replace("../dev/quayside.yaml", "destination: dev", "server: https://a.example.com")
			f.run("-C", "../dev", "render", "--offline")
		}},
		"one-crd": {mark: `differs from the one in`, edit: func(f *brokenWorkspace) {
			f.replace("quayside.yaml", "destination: prod", "server: https://a.example.com")
			f.replace("../dev/quayside.yaml", "destination: dev", "server: https://a.example.com, operators: [ns-p00/p00]")
			crd := "rendered/crds/p01/customresourcedefinition-things.p01.io.yaml"
			f.put("../dev/rendered/crds/p00/customresourcedefinition-things.p01.io.yaml", strings.Replace(f.read(crd), "plural: things", "plural: thingz", 1))
			spec("policy: {waivers: [{rule: two-owners, object: ns-p00/p00, reason: r, expires: 9999-12-31}]}")(f)
		}},
		"remotes": {mark: `\[gitops-remote\]`, after: func(f *brokenWorkspace) {
			f.git("remote", "add", "origin", "https://git.example.com/fleet.git")
			f.git("update-ref", "refs/remotes/origin/trunk", "HEAD")
		}},
		"in-git": {mark: `\[not-in-git\]|uncommitted changes: envs/prod/rendered`, edit: func(f *brokenWorkspace) {
			f.git("rm", "-q", "-r", "--cached", "rendered")
			f.put(".gitignore", "rendered/\n")
		}},
		"git-attributes": {mark: `the Git attribute "working-tree-encoding"`, edit: func(f *brokenWorkspace) {
			f.put("../../.gitattributes", "*.txt working-tree-encoding=UTF-16\n/envs/prod/overlays/** working-tree-encoding=ASCII//TRANSLIT\n")
			f.putOverlay("ns-p00.p00", "{replicas: 2}")
			f.run("render", "--offline")
		}},
		"still-applied": {mark: `\[still-applied\]`, edit: func(f *brokenWorkspace) {
			f.put("../../apps.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: own, namespace: argocd}\nspec:\n  project: default\n  destination: {name: prod, namespace: ns-p01}\n  source: {repoURL: https://git.example.com/fleet.git, path: envs/prod/own}\n")
		}},
		"abandoned-trees": {mark: `\[abandoned-tree\]|a tree that is never updated`, edit: func(f *brokenWorkspace) { spec("output: tree")(f) }},
		"ignored-observations": {mark: `\[not-checked\]`, observed: "elsewhere.yaml", edit: func(f *brokenWorkspace) {
			f.put("elsewhere.yaml", string(health.FormatObserved(health.Summary{At: time.Now(), Environment: "elsewhere", Cluster: "other-1"})))
		}},
		"unmet-needs": {mark: `\[pod-security\]`, edit: func(f *brokenWorkspace) {
			f.put("own/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns-p01, labels: {pod-security.kubernetes.io/enforce: restricted}}\n")
			f.run("resolve", "--offline")
		}},
		"schema": {mark: `\[invalid-object\]|\[state.schema\]`, edit: func(f *brokenWorkspace) { f.putOverlay("ns-p00.p00", "{replica: 2}") }},
		"gone-images": {mark: `\[image-gone\]`, edit: func(f *brokenWorkspace) {
			f.putOverlay("ns-p00.p00", "{template: {spec: {initContainers: [{name: proxy, image: 'k8s.gcr.io/pause:3.2'}]}}}")
		}},
		"recreate":        {mark: `\[outdated-recreate\]`, edit: spec("recreate: [{operator: ns-p00/p00, version: 0.0.1, kind: Deployment, name: p00}]")},
		"unused-overlays": {mark: `\[unused-overlay\]`, edit: func(f *brokenWorkspace) { f.putOverlay("ns-p00-p00", "{replicas: 2}") }},
		"selectors": {mark: `no matches for Id|does not exist`, edit: func(f *brokenWorkspace) {
			f.put("overlays/prod-1/ns-p00.p00/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- target: {kind: Deployment, name: gone}\n  patch: |\n    - {op: add, path: /spec/replicas, value: 2}\n")
		}},
		"overlays": {mark: `no-such-file`, edit: func(f *brokenWorkspace) {
			f.put("overlays/prod-1/ns-p00.p00/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [no-such-file.yaml]\n")
		}},
		"window-environments": {mark: `no environment "prd"`, edit: spec(`windows: [{kind: deny, schedule: "0 0 29 2 *", duration: 1m, environments: [prd]}]`)},
		"window-operators":    {mark: `no operator "ns-p01/p10"`, edit: spec(`windows: [{kind: deny, schedule: "0 0 29 2 *", duration: 1m, operators: [ns-p01/p10]}]`)},
		"windows": {mark: `\[outside-window\]|may be merged from 9999`, edit: func(f *brokenWorkspace) {
			f.run("upgrade", "ns-p00/p00", "--yes", "--offline")
			spec(`freeze: {until: "9999-01-01T00:00:00Z", reason: r}`)(f)
		}},
		"policy-rules": {mark: `policy rule "none"`, edit: spec(`policy: {rules: [{name: none, on: tree, expression: "object.kind == \"Deployment\""}]}`)},
	}
}

// Reasons why a cell of the table has no outcome.
const (
	nothingWritten = "a" // the command has nothing to write
	noObservations = "b" // the command reads no observations
	workTreeOnly   = "c" // the state is no commit
	notCompared    = "d" // diff compares the objects of clusters and the settings; verify reports the rest
)

// brokenColumn is a command that could write the state, or that reports it.
type brokenColumn struct {
	name   string
	before func(f *brokenWorkspace) // makes a change that the command can write
	args   []string
}

func brokenColumns() []brokenColumn {
	return []brokenColumn{
		{"add", nil, []string{"add", "p02", "-n", "ns-p02", "--watch", "ns-p02", "--to", "more", "--render"}},
		{"remove", nil, []string{"remove", "ns-p01/p01", "--render"}},
		{"resolve", nil, []string{"resolve", "--upgrade=ns-p01/p01", "--render"}},
		{"upgrade", nil, []string{"upgrade", "ns-p01/p01", "--yes"}},
		{"promote", nil, []string{"-C", "../..", "promote", "dev", "prod", "--render"}},
		{"render", func(f *brokenWorkspace) { f.remove("rendered/clusters.yaml") }, []string{"render"}},
		{"propose", nil, []string{"propose", "--branch", "bot"}},
		{"verify", nil, []string{"verify"}},
		{"diff", nil, []string{"diff", "main"}},
	}
}

// TestGoldenRulesByCommand breaks every rule about states, and runs every command that could write the state or
// that reports it. It keeps the table of outcomes up to date.
func TestGoldenRulesByCommand(t *testing.T) {
	if testing.Short() && !goldentest.Update() {
		t.Skip("-short: the table takes half a minute")
	}
	isolateGit(t)
	base := newBrokenBase(t)
	states := brokenStates()
	var b strings.Builder
	b.WriteString(rulesByCommandHead)
	cells := make([][]string, len(rules.Table()))
	t.Run("rules", func(t *testing.T) {
		for i, rule := range rules.Table() {
			state, ok := states[rule.ID]
			if !ok {
				t.Errorf("no state breaks the rule %s", rule.ID)
				continue
			}
			cells[i] = make([]string, len(brokenColumns()))
			t.Run(rule.ID, func(t *testing.T) {
				t.Parallel()
				for j, column := range brokenColumns() {
					f := base.copyTo(t)
					cells[i][j] = f.outcome(state, column)
					check(t, os.RemoveAll(filepath.Dir(f.dir)))
				}
			})
		}
	})
	for i, rule := range rules.Table() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", rule.ID, strings.Join(cells[i], " | "))
	}
	goldentest.Compare(t, docs+"contributing/rules-by-command.md", []byte(b.String()))
}

// docs is the directory of the pages.
const docs = "../../../../docs/"

const rulesByCommandHead = `# Rules by command

For each [rule](../rules.md) a test breaks a state by hand, and runs each command that could write the state or
that reports it (TestGoldenRulesByCommand in cmd/quayside/internal/cli). Written by ` + "`make golden`" + `.

| Outcome | Meaning |
| --- | --- |
| refused | the command reports the rule, fails, and writes nothing |
| warned | the command reports the rule, and writes: it was broken before |
| verify | the command writes without a report, and verify reports the rule afterwards |
| mended | the rule holds in what the command has written |
| error, warning | verify or diff reports the rule, as an error or high finding, or as a warning |

Reasons for an empty cell:

- a: the command has nothing to write.
- b: the command reads no observations.
- c: the state is no commit.
- d: diff compares what clusters get, and settings; verify, in the same job, reports the rest.

| Rule | add | remove | resolve | upgrade | promote | render | propose | verify | diff |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
`

// newBrokenBase makes a repository in which all rules hold.
func newBrokenBase(t *testing.T) *brokenWorkspace {
	root := t.TempDir()
	f := &brokenWorkspace{t, filepath.Join(root, "repo")}
	h := &history{releases: map[string][]release{}, nights: 2}
	for i := range 3 {
		h.add(fmt.Sprintf("p%02d", i), []release{{"1.0.0", 0, forever}, {"1.1.0", 1, forever}, {"1.2.0", 1, forever}})
	}
	publish := func(night int) {
		for _, pkg := range h.packages {
			put(t, root, "catalogs/"+pkg+".json", h.catalog(pkg, h.entries(pkg, night, ""), "stable", nil))
		}
	}
	put(t, f.dir, "envs/base.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  declarations: [../operators]\n  kubernetesVersion: \"1.34\"\n  catalogs: [{name: all, namespace: olm, source: \"dir:../../catalogs\"}]\n")
	declare := func(dir, pkg string) {
		put(t, f.dir, dir+"/"+pkg+".yaml", fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: ns-%[1]s}\nspec:\n  package: %[1]s\n  watchNamespaces: [ns-%[1]s]\n", pkg))
	}
	declare("operators", "p00")
	declare("envs/prod/own", "p01")
	for env, line := range map[string]string{"dev": "", "prod": "  follows: dev\n"} {
		put(t, f.dir, "envs/"+env+"/own/README.md", "Own operators.\n")
		put(t, f.dir, "envs/"+env+"/more/README.md", "More operators.\n")
		put(t, f.dir, "envs/"+env+"/quayside.yaml", fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nmetadata: {name: %[1]s}\nspec:\n%[2]s  extends: ../base.yaml\n  declarations: [../../operators, own, more]\n  profile: argocd\n  gitops: {path: envs/%[1]s/rendered, repoURL: https://git.example.com/fleet.git}\n  clusters: [{name: %[1]s-1, destination: %[1]s}]\n", env, line))
	}
	publish(0)
	f.git("init", "-q", "-b", "main", "../..")
	f.mustRun("-C", "../..", "resolve", "--all", "--render", "--offline")
	f.git("add", "-A")
	f.git("commit", "-q", "-m", "start")
	publish(1)
	f.mustRun("-C", "../dev", "upgrade", "--yes", "--offline")
	f.git("add", "-A")
	f.git("commit", "-q", "-m", "upgrade")
	f.mustRun("-C", "../..", "verify", "--all", "--offline")
	return f
}

// copyTo returns a copy of the repository and its catalogs.
func (f *brokenWorkspace) copyTo(t *testing.T) *brokenWorkspace {
	root := t.TempDir()
	check(t, os.CopyFS(root, os.DirFS(filepath.Dir(f.dir))))
	return &brokenWorkspace{t, filepath.Join(root, "repo")}
}

func (f *brokenWorkspace) path(name string) string { return filepath.Join(f.dir, "envs/prod", name) }

func (f *brokenWorkspace) read(name string) string { return read(f.t, f.dir, "envs/prod/"+name) }

func (f *brokenWorkspace) put(name, text string) { put(f.t, f.dir, "envs/prod/"+name, text) }

func (f *brokenWorkspace) append(name, text string) { f.put(name, f.read(name)+text) }

func (f *brokenWorkspace) remove(name string) { check(f.t, os.Remove(f.path(name))) }

func (f *brokenWorkspace) replace(name, old, text string) {
	before := f.read(name)
	if !strings.Contains(before, old) {
		f.t.Fatalf("%s has no %q:\n%s", name, old, before)
	}
	f.put(name, strings.Replace(before, old, text, 1))
}

// putOverlay writes an overlay that patches the spec of the Deployment of p00.
func (f *brokenWorkspace) putOverlay(dir, spec string) {
	f.put("overlays/prod-1/"+dir+"/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: p00, namespace: ns-p00}\n    spec: "+spec+"\n")
}

func (f *brokenWorkspace) git(args ...string) string {
	f.t.Helper()
	check(f.t, os.MkdirAll(f.path(""), 0o777))
	cmd := exec.Command("git", args...)
	cmd.Dir = f.path("")
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// run runs quayside in envs/prod.
func (f *brokenWorkspace) run(args ...string) outcome {
	var stdout, stderr bytes.Buffer
	root := filepath.Dir(f.dir)
	env := []string{"XDG_CACHE_HOME=" + filepath.Join(root, "cache"), "HOME=" + root, "QUAYSIDE_ALLOW_OUTSIDE=" + filepath.Join(root, "catalogs")}
	dir := f.path("")
	if args[0] == "-C" {
		dir, args = f.path(args[1]), args[2:]
	}
	code := cli.Main(parts.All(), append([]string{"-C", dir}, args...), nil, &stdout, &stderr, env)
	return outcome{code, stdout.String(), stderr.String()}
}

func (f *brokenWorkspace) mustRun(args ...string) {
	f.t.Helper()
	if got := f.run(args...); got.code != 0 {
		f.t.Fatalf("quayside %q: %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
}

// state returns the files and branches that a command can write.
func (f *brokenWorkspace) state() string {
	files, err := digestFiles(f.dir)
	check(f.t, err)
	return files + f.git("for-each-ref")
}

// outcome breaks a rule, runs a command, and returns the cell of the table.
func (f *brokenWorkspace) outcome(state brokenState, column brokenColumn) string {
	f.t.Helper()
	f.git("checkout", "-q", "-b", "broken")
	if state.edit != nil {
		state.edit(f)
		f.git("add", "-A")
		f.git("commit", "-q", "-m", "broken")
	}
	if state.after != nil {
		state.after(f)
	}
	if column.before != nil {
		column.before(f)
	}
	args := append(slices.Clone(column.args), "--offline")
	switch {
	case column.name == "propose" && state.edit == nil && state.after != nil && f.git("status", "--porcelain") != "":
		return workTreeOnly
	case state.observed != "" && !slices.Contains([]string{"resolve", "promote", "render", "propose", "verify"}, column.name):
		return noObservations
	case column.name == "diff":
		args = append(slices.Clone(column.args), "--exit-zero")
	}
	observed := []string{}
	if state.observed != "" {
		observed = []string{"--observed", f.path(state.observed)}
	}
	args = append(args, observed...)
	before := f.state()
	got := f.run(args...)
	after := f.state()
	mark := regexp.MustCompile(state.mark)
	said := mark.MatchString(got.stdout + got.stderr)
	switch {
	case column.name == "verify" && said && got.code != 0, column.name == "diff" && said && got.code == 4:
		return "error"
	case (column.name == "verify" || column.name == "diff") && said:
		return "warning"
	case column.name == "diff" && (got.code == 0 || got.code == 4):
		return notCompared
	case said && got.code != 0 && before != after:
		f.t.Errorf("quayside %q: refused, and written\n%s%s", args, got.stdout, got.stderr)
	case said && got.code != 0:
		return "refused"
	case said:
		return "warned"
	case got.code != 0:
		f.t.Errorf("quayside %q: exit code %d, and does not report the rule\n%s%s", args, got.code, got.stdout, got.stderr)
	case before == after:
		return nothingWritten
	}
	if column.name == "propose" && got.code == 0 {
		f.git("checkout", "-q", "-f", strings.TrimSpace(f.git("for-each-ref", "--count=1", "--format=%(refname:short)", "refs/heads/bot")))
	}
	if now := f.run(append([]string{"verify", "--offline"}, observed...)...); mark.MatchString(now.stdout + now.stderr) {
		return "verify"
	}
	return "mended"
}

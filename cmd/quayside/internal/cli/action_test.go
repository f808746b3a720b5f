package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/testing/forgetest"
)

// action is the metadata of a composite GitHub action, with all of its fields, because the test rejects unknown
// fields.
type action struct {
	Name, Description, Author string
	Branding                  struct{ Icon, Color string }
	Inputs                    map[string]struct {
		Description string
		Default     string
		Required    bool
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []actionStep
	}
}

type actionStep struct {
	Name, ID, If, Shell, Run, Uses string
	Env, With                      map[string]string
}

func readAction(t *testing.T) action {
	t.Helper()
	data, err := os.ReadFile("../../../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.UnmarshalStrict(data, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestActionMetadata checks the action: all used inputs and outputs exist, no expression is
// inserted into a script, and other actions are pinned by commit.
func TestActionMetadata(t *testing.T) {
	a := readAction(t)
	if a.Runs.Using != "composite" || a.Name == "" || a.Description == "" {
		t.Errorf("action %+v", a)
	}
	for name, in := range a.Inputs {
		if in.Description == "" || in.Required && in.Default != "" {
			t.Errorf("input %s: %+v", name, in)
		}
	}
	ids := map[string]bool{}
	texts := []string{}
	for i, s := range a.Runs.Steps {
		switch {
		case s.Name == "":
			t.Errorf("step %d has no name", i)
		case s.Run != "" && (s.Shell != "bash" || s.Uses != ""):
			t.Errorf("%s: a script wants a shell", s.Name)
		case s.Run == "" && !regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`).MatchString(s.Uses):
			t.Errorf("%s: %q is not pinned", s.Name, s.Uses)
		case strings.Contains(s.Run, "${{"):
			t.Errorf("%s: an expression in a script is run as part of it", s.Name)
		case s.ID != "" && ids[s.ID]:
			t.Errorf("%s: another step is called %s", s.Name, s.ID)
		}
		texts = append(texts, s.If)
		for _, m := range []map[string]string{s.Env, s.With} {
			for _, v := range m {
				texts = append(texts, v)
			}
		}
		for _, m := range regexp.MustCompile(`steps\.(\w+)\.`).FindAllStringSubmatch(strings.Join(texts, " "), -1) {
			if !ids[m[1]] && m[1] != s.ID {
				t.Errorf("%s: no step before is called %s", s.Name, m[1])
			}
		}
		ids[s.ID] = true
	}
	for name, out := range a.Outputs {
		if m := regexp.MustCompile(`^\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}$`).FindStringSubmatch(out.Value); m == nil || !ids[m[1]] || out.Description == "" {
			t.Errorf("output %s: %+v", name, out)
		}
	}
	all := strings.Join(texts, " ")
	for _, m := range regexp.MustCompile(`inputs\.([\w-]+)`).FindAllStringSubmatch(all, -1) {
		if _, ok := a.Inputs[m[1]]; !ok {
			t.Errorf("unknown input %s", m[1])
		}
	}
	for name := range a.Inputs {
		if !regexp.MustCompile(`inputs\.` + name + `\b`).MatchString(all) {
			t.Errorf("unused input %s", name)
		}
	}
}

// job runs the steps of an action as a runner does: each step in its own shell, with the variables and outputs
// of earlier steps. If a step uses another action, job records that action instead of running it.
type job struct {
	dir, temp string
	context   map[string]string // "inputs.mode", "github.repository"
	env       []string
	used      []string // other actions, with their inputs
	summary   string
	log       strings.Builder
}

// newJob returns a job for a forge and a workspace, and serves the program to the job as a release archive.
func newJob(t *testing.T, s *forgetest.Server, dir string) *job {
	t.Helper()
	server, sum := serveRelease(t)
	j := &job{dir: dir, temp: t.TempDir(), context: map[string]string{
		"github.token": forgetest.Token, "github.repository": forgetest.Project, "runner.os": "Linux", "github.event_name": "push", "github.event.repository.default_branch": "main", "github.event.repository.visibility": "public",
		"inputs.version": "1.2.3", "inputs.sha256": sum, "inputs.releases": server,
	}}
	for name, in := range readAction(t).Inputs {
		if _, set := j.context["inputs."+name]; !set {
			j.context["inputs."+name] = in.Default
		}
	}
	j.context["inputs.token"] = forgetest.Token
	home := t.TempDir()
	arch := map[string]string{"amd64": "X64", "arm64": "ARM64"}[runtime.GOARCH]
	system := map[string]string{"linux": "Linux", "darwin": "macOS"}[runtime.GOOS]
	j.env = []string{
		"HOME=" + home, "RUNNER_TEMP=" + j.temp, "RUNNER_OS=" + system, "RUNNER_ARCH=" + arch, "GIT_CONFIG_NOSYSTEM=1",
		"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + j.temp + "/summary",
	}
	for key, value := range s.Env() {
		j.env = append(j.env, key+"="+value)
	}
	return j
}

// serveRelease serves the program as a release archive, and returns the address and the digest of the
// archive.
func serveRelease(t *testing.T) (address, sum string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary acts as the program if it is called quayside.
	script := fmt.Sprintf("#!/bin/bash\nexec -a quayside %q \"$@\"\n", self)
	var packed strings.Builder
	gz := gzip.NewWriter(&packed)
	tw := tar.NewWriter(gz)
	for name, text := range map[string]string{"LICENSE": "license\n", "quayside": script} {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(fmt.Sprintf("GET /releases/v1.2.3/quayside_1.2.3_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, packed.String())
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/releases", fmt.Sprintf("%x", sha256.Sum256([]byte(packed.String())))
}

// run runs every step whose condition holds, and returns the first error. After an error it runs
// only steps with always().
func (j *job) run(t *testing.T) error {
	t.Helper()
	var failed error
	paths := []string{os.Getenv("PATH")}
	for i, s := range readAction(t).Runs.Steps {
		condition := strings.TrimPrefix(s.If, "always() && ")
		if s.If != "" && !j.holds(t, condition) || failed != nil && condition == s.If {
			continue
		}
		if s.Uses != "" {
			line := s.Uses[:strings.Index(s.Uses, "@")]
			for _, key := range []string{"path", "sarif_file", "category"} {
				if v, ok := s.With[key]; ok {
					line += " " + strings.TrimPrefix(j.expand(t, v), j.temp+"/")
				}
			}
			j.used = append(j.used, line)
			continue
		}
		output, path := fmt.Sprintf("%s/output-%d", j.temp, i), fmt.Sprintf("%s/path-%d", j.temp, i)
		put(t, "/", output, "")
		put(t, "/", path, "")
		cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
		cmd.Dir, cmd.Stdout, cmd.Stderr = j.dir, &j.log, &j.log
		cmd.Env = append([]string{"PATH=" + strings.Join(paths, ":"), "GITHUB_OUTPUT=" + output, "GITHUB_PATH=" + path, "GORACE=" + os.Getenv("GORACE")}, j.env...)
		for key, value := range s.Env {
			cmd.Env = append(cmd.Env, key+"="+j.expand(t, value))
		}
		if err := cmd.Run(); err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", s.Name, err)
		}
		for line := range strings.Lines(read(t, "/", output)) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			j.context["steps."+s.ID+".outputs."+key] = value
		}
		for line := range strings.Lines(read(t, "/", path)) {
			paths = append([]string{strings.TrimSuffix(line, "\n")}, paths...)
		}
	}
	if data, err := os.ReadFile(filepath.Join(j.temp, "summary")); err == nil {
		j.summary = string(data)
	}
	if log := regexp.MustCompile(`(?m)^::add-mask::.*$`).ReplaceAllString(j.log.String(), ""); strings.Contains(log+j.summary, forgetest.Token) {
		t.Error("the log shows the token")
	}
	return failed
}

// expand replaces the expressions in a text with their values.
func (j *job) expand(t *testing.T, text string) string {
	return regexp.MustCompile(`\$\{\{ (.*?) \}\}`).ReplaceAllStringFunc(text, func(s string) string {
		return j.evaluate(t, s[len("${{ "):len(s)-len(" }}")])
	})
}

func (j *job) holds(t *testing.T, condition string) bool {
	t.Helper()
	v := j.evaluate(t, condition)
	return v != "" && v != "false"
}

// evaluate evaluates an expression. It supports ||, &&, comparisons, names, strings and one group in
// parentheses.
func (j *job) evaluate(t *testing.T, e string) string {
	t.Helper()
	e = strings.TrimSpace(e)
	if before, group, ok := strings.Cut(e, "("); ok && strings.HasSuffix(group, ")") && (before == "" || strings.HasSuffix(before, "&& ")) {
		v := j.evaluate(t, strings.TrimSuffix(group, ")"))
		before = strings.TrimSuffix(strings.TrimSpace(before), "&&")
		if before != "" && !j.holds(t, before) {
			return "false"
		}
		return v
	}
	if parts := strings.Split(e, " || "); len(parts) > 1 {
		for _, p := range parts {
			if v := j.evaluate(t, p); v != "" && v != "false" {
				return v
			}
		}
		return j.evaluate(t, parts[len(parts)-1])
	}
	if parts := strings.Split(e, " && "); len(parts) > 1 {
		v := ""
		for _, p := range parts {
			if v = j.evaluate(t, p); v == "" || v == "false" {
				return v
			}
		}
		return v
	}
	if left, right, ok := strings.Cut(e, " == "); ok {
		return fmt.Sprint(j.evaluate(t, left) == j.evaluate(t, right))
	}
	if left, right, ok := strings.Cut(e, " != "); ok {
		return fmt.Sprint(j.evaluate(t, left) != j.evaluate(t, right))
	}
	switch {
	case strings.HasPrefix(e, "'"):
		return strings.Trim(e, "'")
	case strings.HasPrefix(e, "hashFiles("):
		return "hash"
	case regexp.MustCompile(`^(inputs|github|steps|runner)\.[\w.-]+$`).MatchString(e):
		return j.context[e]
	}
	t.Fatalf("the expression %q", e)
	return ""
}

// onPullRequest converts j to a job for a pull request from a repository.
func (j *job) onPullRequest(from string) {
	j.context["github.event_name"], j.context["github.event.pull_request.number"] = "pull_request", "1"
	j.context["github.event.pull_request.head.repo.full_name"] = from
	j.env = append(j.env, "GITHUB_BASE_REF=main")
}

// TestAction runs the action in clean directories. It installs the program from an archive with a
// digest, opens a pull request for an upgrade, and checks, reports and comments on the pull
// request.
func TestAction(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: the action fetches with it")
	}
	s := forgetest.New(t, "github")
	s.Job = true
	bare, work := newFleet(t)
	gitIn(t, work, "remote", "add", "origin", bare)
	gitIn(t, work, "fetch", "-q", "origin")

	offer := newJob(t, s, work)
	offer.context["inputs.mode"] = "upgrade"
	if err := offer.run(t); err != nil {
		t.Fatalf("%v\n%s", err, offer.log.String())
	}
	pulls := s.Pulls()
	if len(pulls) != 4 || !strings.Contains(read(t, "/", offer.context["steps.upgrade.outputs.upgrades"]), `"outcome": "opened"`) {
		t.Fatalf("the pull requests are %+v", pulls)
	}
	if !slices.Equal(offer.used, []string{"actions/cache ~/.cache/quayside"}) {
		t.Errorf("used: %q", offer.used)
	}
	i := slices.IndexFunc(pulls, func(p forgetest.Pull) bool { return strings.HasSuffix(p.Head, "/memcached-operator") })
	head := pulls[max(i, 0)].Head
	dir := strings.TrimPrefix(filepath.Dir(filepath.Dir(head)), "upgrade/")
	gitIn(t, work, "checkout", "-q", head)

	for _, c := range []struct {
		name, from string
		comments   int
		used       []string
	}{
		{"the repository's own", forgetest.Project, 1, []string{"actions/cache ~/.cache/quayside", "github/codeql-action/upload-sarif quayside.sarif quayside/" + dir}},
		{"again", forgetest.Project, 1, []string{"actions/cache ~/.cache/quayside", "github/codeql-action/upload-sarif quayside.sarif quayside/" + dir}},
		{"a fork's", "mallory/fleet", 1, []string{"actions/cache ~/.cache/quayside"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob(t, s, work)
			j.onPullRequest(c.from)
			j.context["inputs.directory"] = environmentDir(t, work, dir)
			j.context["inputs.registry"], j.context["inputs.username"], j.context["inputs.password"] = "registry.example.com", "me", "a'b\"c $x"
			c.used = slices.Clone(c.used)
			for i := range c.used {
				c.used[i] = strings.Replace(c.used[i], "quayside/"+dir, "quayside/"+j.context["inputs.directory"], 1)
			}
			if err := j.run(t); err != nil {
				t.Fatalf("%v\n%s", err, j.log.String())
			}
			if all := s.Comments(); len(all) != c.comments || !strings.Contains(all[0].Body, "0.0.2") {
				t.Errorf("the comments are %+v", all)
			}
			if !strings.HasPrefix(j.summary, "<!-- quayside:diff -->") || !strings.Contains(j.summary, "0.0.2") {
				t.Errorf("the summary is %q", j.summary)
			}
			if !slices.Equal(j.used, c.used) || j.context["steps.diff.outputs.code"] != "0" || !strings.Contains(read(t, j.temp, "quayside.sarif"), "rbac.gained") {
				t.Errorf("used: %q, want %q; %v", j.used, c.used, j.context)
			}
			if _, err := os.Stat(filepath.Join(j.temp, "quayside-auth.json")); err == nil {
				t.Error("the login was not removed")
			}
		})
	}

	t.Run("refused by the policy", func(t *testing.T) {
		j := newJob(t, s, work)
		j.onPullRequest(forgetest.Project)
		j.context["inputs.directory"] = environmentDir(t, work, dir)
		mustRun(t, filepath.Join(work, j.context["inputs.directory"]), "remove", "vault/vault", "--render", "--offline")
		err := j.run(t)
		if err == nil || !strings.HasPrefix(err.Error(), "Apply the policy: exit status 4") {
			t.Errorf("got %v\n%s", err, j.log.String())
		}
		if all := s.Comments(); len(all) != 1 || !strings.Contains(all[0].Body, "vault") || len(j.used) != 2 {
			t.Errorf("the comments are %+v; used: %q", all, j.used)
		}
	})
	t.Run("out of date", func(t *testing.T) {
		j := newJob(t, s, work)
		j.onPullRequest(forgetest.Project)
		j.context["inputs.directory"] = environmentDir(t, work, dir)
		put(t, work, j.context["inputs.directory"]+"/rendered/clusters.yaml", "a: b\n")
		if err := j.run(t); err == nil || !strings.HasPrefix(err.Error(), "Verify: exit status 1") {
			t.Errorf("got %v\n%s", err, j.log.String())
		}
		if all := s.Comments(); len(all) != 1 || !strings.Contains(all[0].Body, "### quayside: verify failed") || !strings.Contains(all[0].Body, "rendered is out of date") {
			t.Errorf("the comments are %+v", all)
		}
	})
	t.Run("invalid settings", func(t *testing.T) {
		j := newJob(t, s, work)
		j.onPullRequest(forgetest.Project)
		j.context["inputs.directory"] = environmentDir(t, work, dir)
		put(t, work, j.context["inputs.directory"]+"/quayside.yaml", "a: b\n")
		if err := j.run(t); err == nil || !strings.HasPrefix(err.Error(), "Verify: exit status 2") {
			t.Errorf("got %v\n%s", err, j.log.String())
		}
		if all := s.Comments(); len(all) != 1 || !strings.Contains(all[0].Body, "quayside.yaml:1:1") {
			t.Errorf("the comments are %+v", all)
		}
	})
}

// TestActionTree runs the action twice after a merge. Only the first run may open a pull request with the tree.
func TestActionTree(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: the action fetches with it")
	}
	s := forgetest.New(t, "github")
	s.Job = true
	bare, work := newFleet(t)
	sendTree(t, bare, work)
	for _, want := range []string{"opened", "unchanged"} {
		j := newJob(t, s, work)
		j.context["inputs.mode"] = "tree"
		if err := j.run(t); err != nil {
			t.Fatalf("%v\n%s", err, j.log.String())
		}
		pulls := s.Pulls()
		if trees := read(t, "/", j.context["steps.upgrade.outputs.upgrades"]); len(pulls) != 1 || !strings.HasPrefix(pulls[0].Head, "render/") || !strings.Contains(trees, fmt.Sprintf(`"outcome": %q`, want)) {
			t.Errorf("want it %s: %s\n%+v", want, trees, pulls)
		}
	}
}

// environmentDir returns the directory of an environment.
func environmentDir(t *testing.T, work, name string) string {
	t.Helper()
	for dir := range environments() {
		if dir == name || filepath.Base(dir) == name {
			return dir
		}
	}
	t.Fatalf("no environment %s in %s", name, work)
	return ""
}

// TestActionInstalls checks that an archive with another digest is rejected before it is unpacked,
// and that inputs with paths or commands are rejected.
func TestActionInstalls(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: the action fetches with it")
	}
	s := forgetest.New(t, "github")
	for name, c := range map[string]struct{ input, value, say string }{
		"another digest":     {"sha256", strings.Repeat("0", 64), "quayside is not installed"},
		"no digest":          {"sha256", "", "the 64 digits"},
		"half a digest":      {"sha256", "0123", "the 64 digits"},
		"another version":    {"version", "1.2.4", "404"},
		"a path":             {"version", "1.2.3/../../x", "version must be a release"},
		"a command":          {"version", "1.2.3$(touch pwned)", "version must be a release"},
		"another mode":       {"mode", "checks", "mode must be check, upgrade, tree or install"},
		"a registry's quote": {"registry", `x"},"y":{"`, "registry must be a host"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, s, t.TempDir())
			j.context["inputs.mode"] = "install"
			j.context["inputs."+c.input] = c.value
			err := j.run(t)
			if err == nil || !strings.Contains(j.log.String(), c.say) {
				t.Errorf("got %v\n%s", err, j.log.String())
			}
			found, err := filepath.Glob(j.temp + "/quayside-*/quayside")
			if err != nil || len(found) > 0 && c.input != "registry" {
				t.Errorf("%q is installed, %v", found, err)
			}
			if _, err := os.Stat(filepath.Join(j.dir, "pwned")); err == nil {
				t.Error("the command was run")
			}
		})
	}
	j := newJob(t, s, t.TempDir())
	j.context["inputs.mode"] = "install"
	if err := j.run(t); err != nil || len(j.used) != 0 {
		t.Errorf("%v, used: %q\n%s", err, j.used, j.log.String())
	}
}

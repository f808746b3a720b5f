package cli_test

import (
	"bytes"
	"cmp"
	"fmt"
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

// component is a GitLab component with its inputs and jobs.
type component struct {
	inputs map[string]struct {
		Description, Default, Regex string
		Options                     []string
	}
	jobs string // with placeholders for inputs
}

// labJob is a job of the component. It needs all fields of the job, because the test rejects unknown fields.
type labJob struct {
	Stage string
	Group string `json:"resource_group"`
	Image struct {
		Name       string
		Entrypoint []string
	}
	Rules     []struct{ If string }
	Variables map[string]string
	Cache     struct {
		Key, When string
		Paths     []string
	}
	BeforeScript []string `json:"before_script"`
	Script       []string
	Artifacts    struct {
		When     string
		ExposeAs string `json:"expose_as"`
		Paths    []string
		Reports  struct{ Codequality string }
	}
}

func readComponent(t *testing.T) component {
	t.Helper()
	data, err := os.ReadFile("../../../../ci/gitlab/templates/quayside.yml")
	if err != nil {
		t.Fatal(err)
	}
	head, jobs, ok := strings.Cut(string(data), "\n---\n")
	if !ok {
		t.Fatal("no header is set off from the jobs")
	}
	var c component
	var header struct {
		Spec struct {
			Inputs map[string]struct {
				Description, Default, Regex string
				Options                     []string
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(head), &header); err != nil {
		t.Fatal(err)
	}
	c.inputs, c.jobs = header.Spec.Inputs, jobs
	return c
}

// with returns the jobs after it has inserted inputs as GitLab does. An invalid input is an error.
func (c component) with(t *testing.T, inputs map[string]string) (map[string]labJob, error) {
	t.Helper()
	required := map[string]string{"image": "registry.example.com/ci@sha256:" + strings.Repeat("0", 64)} // inputs without a default
	var refused error
	text := regexp.MustCompile(`\$\[\[ inputs\.([\w-]+) \]\]`).ReplaceAllStringFunc(c.jobs, func(s string) string {
		name := strings.TrimSuffix(strings.TrimPrefix(s, "$[[ inputs."), " ]]")
		in, ok := c.inputs[name]
		if !ok {
			t.Errorf("unknown input %s", name)
		}
		value, given := inputs[name]
		if !given {
			value = cmp.Or(in.Default, required[name])
		}
		if in.Regex != "" && !regexp.MustCompile(in.Regex).MatchString(value) || in.Options != nil && !slices.Contains(in.Options, value) {
			refused = fmt.Errorf("%s: invalid value %q", name, value)
		}
		return value
	})
	var jobs map[string]labJob
	if err := yaml.UnmarshalStrict([]byte(text), &jobs); err != nil {
		t.Fatal(err)
	}
	return jobs, refused
}

// TestComponentInputs checks that no input can insert commands into a script: every input that a script uses
// must have options or an anchored regular expression.
func TestComponentInputs(t *testing.T) {
	c := readComponent(t)
	for name, in := range c.inputs {
		if in.Description == "" || !strings.Contains(c.jobs, "$[[ inputs."+name+" ]]") {
			t.Errorf("input %s: %+v", name, in)
		}
		for line := range strings.Lines(c.jobs) {
			outside := regexp.MustCompile(`^  (stage|image): `).MatchString(line)
			if strings.Contains(line, "inputs."+name+" ") && !outside && in.Options == nil && !(strings.HasPrefix(in.Regex, "^") && strings.HasSuffix(in.Regex, "$")) {
				t.Errorf("input %s is used without validation in %q", name, line)
			}
		}
		for _, bad := range []string{"a b", "$(x)", "`x`", "a;b", `a"b`, "a'b", "a&b", "a\nb", ""} {
			if in.Regex != "" && regexp.MustCompile(in.Regex).MatchString(bad) {
				t.Errorf("input %s may be %q", name, bad)
			}
		}
	}
	if _, err := c.with(t, map[string]string{"version": "1.2.3", "sha256": "x"}); err == nil {
		t.Error("an invalid digest is accepted")
	}
	jobs, err := c.with(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, j := range jobs {
		if len(j.Image.Entrypoint) != 1 || j.Image.Entrypoint[0] != "" || j.Image.Name == "" {
			t.Errorf("%s: %+v: scripts do not run in an image with an entrypoint", name, j.Image)
		}
	}
}

// runLab runs a job as a runner does: in a new clone, with all lines in one shell that stops at the first
// error.
func runLab(t *testing.T, s *forgetest.Server, bare, branch, token string, inputs map[string]string, name string) (dir, log string, err error) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "project")
	gitIn(t, filepath.Dir(bare), "clone", "-q", "-b", branch, bare, dir)
	jobs, err := readComponent(t).with(t, inputs)
	if err != nil {
		t.Fatal(err)
	}
	j, ok := jobs[name]
	if !ok {
		t.Fatalf("no job %s", name)
	}
	vars := map[string]string{
		"HOME": t.TempDir(), "PATH": os.Getenv("PATH"), "GORACE": os.Getenv("GORACE"), "GIT_CONFIG_NOSYSTEM": "1", "GITLAB_CI": "true", "CI_PROJECT_DIR": dir,
		"CI_PROJECT_URL": strings.TrimSuffix(bare, ".git"), "CI_DEFAULT_BRANCH": "main", "CI_SERVER_HOST": "gitlab.example.com",
		"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_IID": "1", "QUAYSIDE_TOKEN": token,
	}
	for key, value := range s.Env() {
		vars[key] = value
	}
	for key, value := range j.Variables {
		vars[key] = os.Expand(value, func(name string) string { return vars[name] })
	}
	var out bytes.Buffer
	shell := []string{"bash", "-eo", "pipefail", "-c"}
	if inputs["version"] == "" { // a custom image may have only these programs
		shell = []string{"sh", "-e", "-c"}
	}
	cmd := exec.CommandContext(t.Context(), shell[0], append(shell[1:], strings.Join(append(slices.Clone(j.BeforeScript), j.Script...), "\n"))...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	for key, value := range vars {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	err = cmd.Run()
	if strings.Contains(out.String(), forgetest.Token) {
		t.Error("the log shows the token")
	}
	for _, path := range append(j.Artifacts.Paths, j.Artifacts.Reports.Codequality) {
		if _, e := os.Stat(filepath.Join(dir, path)); e != nil && err == nil {
			t.Errorf("missing artifact %s", path)
		}
	}
	return dir, out.String(), err
}

// TestComponent runs both jobs. The first opens merge requests for upgrades. The second adds a
// comment to one of them, updates it, and writes the reports.
func TestComponent(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil || runtime.GOOS != "linux" {
		t.Skip("the component fetches with curl, on Linux")
	}
	s := forgetest.New(t, "gitlab")
	address, sum := serveRelease(t)
	bare, _ := newFleet(t)
	inputs := map[string]string{"version": "1.2.3", "sha256": sum, "platform": "linux_" + runtime.GOARCH, "releases": address}
	for _, want := range []string{"opened", "unchanged"} {
		_, log, err := runLab(t, s, bare, "main", forgetest.Token, inputs, "quayside-upgrade")
		if err != nil || strings.Count(log, ": "+want+"\n") != 4 || len(s.Pulls()) != 4 {
			t.Fatalf("%v, want four to be %s, of %d:\n%s", err, want, len(s.Pulls()), log)
		}
	}
	pulls := s.Pulls()
	head := pulls[slices.IndexFunc(pulls, func(p forgetest.Pull) bool { return strings.HasSuffix(p.Head, "/memcached-operator") })].Head
	inputs["directory"] = environmentDir(t, bare, strings.TrimPrefix(filepath.Dir(filepath.Dir(head)), "upgrade/"))
	for _, want := range []string{"opened", "unchanged"} {
		dir, log, err := runLab(t, s, bare, head, forgetest.Token, inputs, "quayside")
		if err != nil || !strings.Contains(log, "comment on pull request 1: "+want+"\n") || len(s.Comments()) != 1 {
			t.Fatalf("%v, want the note %s, of %d:\n%s", err, want, len(s.Comments()), log)
		}
		if quality := read(t, dir, "quayside-codequality.json"); !strings.Contains(quality, `"check_name": "rbac.gained"`) || !strings.Contains(quality, `"path": "`+inputs["directory"]+"/") {
			t.Errorf("the findings are %s", quality)
		}
	}
	if _, log, err := runLab(t, s, bare, head, "", inputs, "quayside"); err != nil || !strings.Contains(log, "no note is written") {
		t.Errorf("without a token: %v\n%s", err, log)
	}
	inputs["sha256"] = strings.Repeat("0", 64)
	if _, log, err := runLab(t, s, bare, head, forgetest.Token, inputs, "quayside"); err == nil || strings.Contains(log, "up to date") {
		t.Errorf("with another digest: %v\n%s", err, log)
	}
	// Without a version, the job uses the program in the image.
	delete(inputs, "version")
	delete(inputs, "sha256")
	if _, log, err := runLab(t, s, bare, head, forgetest.Token, inputs, "quayside"); err != nil || !strings.Contains(log, "comment on pull request 1: unchanged\n") {
		t.Errorf("with an image that has the program: %v\n%s", err, log)
	}
	t.Setenv("PATH", strings.Join(slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "quayside"))
		return err == nil
	}), string(os.PathListSeparator)))
	if _, log, err := runLab(t, s, bare, head, forgetest.Token, inputs, "quayside"); err == nil || !strings.Contains(log, "the image has no quayside") {
		t.Errorf("without a program: %v\n%s", err, log)
	}
}

// TestComponentTree runs the job after a merge twice. Only the first run may open a merge request with the tree.
func TestComponentTree(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil || runtime.GOOS != "linux" {
		t.Skip("the component fetches with curl, on Linux")
	}
	s := forgetest.New(t, "gitlab")
	address, sum := serveRelease(t)
	bare, work := newFleet(t)
	sendTree(t, bare, work)
	gitIn(t, work, "push", "-q", bare, "HEAD:main")
	inputs := map[string]string{"version": "1.2.3", "sha256": sum, "platform": "linux_" + runtime.GOARCH, "releases": address}
	for _, want := range []string{"opened", "unchanged"} {
		dir, log, err := runLab(t, s, bare, "main", forgetest.Token, inputs, "quayside-tree")
		if err != nil || len(s.Pulls()) != 1 || !strings.Contains(read(t, dir, "quayside-trees.json"), fmt.Sprintf(`"outcome": %q`, want)) {
			t.Errorf("%v, want it %s, of %d:\n%s", err, want, len(s.Pulls()), log)
		}
	}
}

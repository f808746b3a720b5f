package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// environments returns the initial version of etcd in each workspace of the test repository, by
// directory.
func environments() map[string]string {
	return map[string]string{"envs/dev": "0.9.2", "regions/eu/prod": "0.9.0"}
}

// newFleet returns a bare repository with several environments, and a clone. In each environment, etcd and
// memcached can be upgraded.
func newFleet(t *testing.T) (bare, work string) {
	t.Helper()
	fleet.Do(func() {
		dir := filepath.Join(os.Getenv("HOME"), "fleet") // removed after all tests
		makeFleet(t, dir)
		fleet.dir = dir
	})
	root := t.TempDir()
	check(t, os.CopyFS(root, os.DirFS(fleet.dir)))
	bare, work = filepath.Join(root, "fleet.git"), filepath.Join(root, "fleet")
	gitIn(t, work, "update-index", "-q", "--refresh")
	return bare, work
}

// fleet is the directory with the repositories that newFleet copies.
var fleet struct { //nolint:gochecknoglobals // making the repositories takes longer than many tests
	sync.Once
	dir string
}

// makeFleet writes the repositories of newFleet into a directory.
func makeFleet(t *testing.T, root string) {
	t.Helper()
	bare, work := filepath.Join(root, "fleet.git"), filepath.Join(root, "fleet")
	for dir, version := range environments() {
		env := filepath.Join(work, dir)
		if err := os.CopyFS(env, os.DirFS("../../../../examples/quickstart")); err != nil {
			t.Fatal(err)
		}
		etcd := read(t, env, "subscriptions/etcd.yaml")
		put(t, env, "subscriptions/etcd.yaml", strings.Replace(etcd, "  name: etcd\n  source:", "  name: etcd\n  startingCSV: etcdoperator.v"+version+"\n  source:", 1))
		if err := os.Remove(filepath.Join(env, "quayside.lock")); err != nil {
			t.Fatal(err)
		}
		mustRun(t, env, "resolve", "--render", "--offline")
	}
	gitIn(t, work, "init", "-q", "-b", "main")
	commitAll(t, work, "start")
	gitIn(t, root, "clone", "-q", "--bare", work, bare)
	gitIn(t, bare, "remote", "remove", "origin")
}

func commitAll(t *testing.T, dir, message string) {
	t.Helper()
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "-q", "-m", message)
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// lockedVersions returns the versions in the lock of a directory, by operator.
func lockedVersions(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`- namespace: (\S+)\n  package: (\S+)\n  version: (\S+)\n`).FindAllStringSubmatch(read(t, dir, "quayside.lock"), -1) {
		out[m[1]+"/"+m[2]] = m[3]
	}
	return out
}

// TestEditedLocks edits versions in the locks of some environments as a bot does, and runs the commands of the
// recipe twice. Exactly the edited operators must be upgraded, and all locks and trees must be up to date.
func TestEditedLocks(t *testing.T) {
	_, work := newFleet(t)
	for dir := range environments() {
		if dir != "envs/dev" {
			editVersion(t, filepath.Join(work, dir), "my-etcd/etcd", "0.9.2")
			editVersion(t, filepath.Join(work, dir), "memcached-operator-system/memcached-operator", "0.0.2")
		}
	}
	untouched := read(t, work, "envs/dev/quayside.lock")
	mustRun(t, work, "resolve", "--edited", "--render", "--all", "--offline")
	after := map[string]string{}
	for dir := range environments() {
		after[dir] = read(t, work, dir+"/quayside.lock")
	}
	mustRun(t, work, "resolve", "--edited", "--render", "--all", "--offline")
	for dir := range environments() {
		got := lockedVersions(t, filepath.Join(work, dir))
		want := map[string]string{"at-operator/at-operator": "0.1.1", "memcached-operator-system/memcached-operator": "0.0.2", "my-etcd/etcd": "0.9.2", "vault/etcd": "0.9.4", "vault/vault": "0.1.9"}
		if dir == "envs/dev" {
			want["memcached-operator-system/memcached-operator"] = "0.0.1"
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", dir, d)
		}
		if read(t, work, dir+"/quayside.lock") != after[dir] {
			t.Errorf("%s: run again, the command changes the lock", dir)
		}
	}
	if after["envs/dev"] != untouched {
		t.Error("envs/dev: an unedited lock changed")
	}
	mustRun(t, work, "verify", "--all", "--offline")
}

// editVersion replaces the version of a pin in a lock.
func editVersion(t *testing.T, dir, operator, version string) {
	t.Helper()
	ns, pkg, _ := strings.Cut(operator, "/")
	before := read(t, dir, "quayside.lock")
	head := "- namespace: " + ns + "\n  package: " + pkg + "\n  version: "
	after := regexp.MustCompile(regexp.QuoteMeta(head)+`\S+`).ReplaceAllString(before, head+version)
	if after == before {
		t.Fatalf("%s pins no %s", dir, operator)
	}
	put(t, dir, "quayside.lock", after)
}

// TestRenovate runs Renovate with the recipe in a repository with two environments, with separate
// updates and with one group. Every update must be in a branch with up-to-date locks and trees, and
// a second run must change nothing.
func TestRenovate(t *testing.T) {
	program := os.Getenv("QUAYSIDE_RENOVATE")
	if program == "" {
		t.Skip("QUAYSIDE_RENOVATE, the path of Renovate, is not set")
	}
	operators := []string{"memcached-operator-system/memcached-operator", "my-etcd/etcd"}
	next := map[string]map[string]string{}
	for dir, version := range environments() {
		next[dir] = map[string]string{operators[0]: "0.0.2", operators[1]: map[string]string{"0.9.0": "0.9.2", "0.9.2": "0.9.4"}[version]}
	}
	for name, c := range map[string]struct {
		rules    []map[string]any
		branches int
	}{
		"each":           {nil, 4},
		"by environment": {[]map[string]any{{"matchDatasources": []string{"custom.quayside"}, "groupName": "operators"}}, 2},
		"in one":         {[]map[string]any{{"matchDatasources": []string{"custom.quayside"}, "groupName": "operators", "additionalBranchPrefix": "", "commitMessageSuffix": ""}}, 1},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			bare, work := newFleet(t)
			forge := newGitea(t, bare)
			mustRun(t, work, "outdated", "--all", "--feed", forge.feed, "--offline")
			put(t, work, "renovate.json", readRecipe(t, forge.URL+"/feed", c.rules))
			commitAll(t, work, "renovate")
			gitIn(t, work, "push", "-q", bare, "main")
			forge.run(t, program)
			first := forge.tips(t)
			if len(first) != c.branches || len(forge.pulls) != c.branches {
				t.Errorf("%d branches and %d pull requests, want %d: %v", len(first), len(forge.pulls), c.branches, slices.Sorted(maps.Keys(first)))
			}
			forge.checkBranches(t, first, next)
			forge.run(t, program)
			if d := cmp.Diff(first, forge.tips(t)); d != "" {
				t.Errorf("a second run (-before +after):\n%s", d)
			}
		})
	}
}

// readRecipe returns the example recipe with the given feed address and additional rules.
func readRecipe(t *testing.T, feed string, rules []map[string]any) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(ciFiles, "renovate.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), "https://feed.example.com", feed)), &config); err != nil {
		t.Fatal(err)
	}
	all := config["packageRules"].([]any)
	for _, r := range rules {
		all = append(all, r)
	}
	config["packageRules"] = all
	if data, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fakeGitea implements the API of Gitea that Renovate uses, with a bare repository.
type fakeGitea struct {
	*httptest.Server
	bare, feed string
	mu         sync.Mutex
	pulls      []map[string]any
}

func newGitea(t *testing.T, bare string) *fakeGitea {
	f := &fakeGitea{bare: bare, feed: t.TempDir()}
	mux := http.NewServeMux()
	answer := func(pattern string, of func(r *http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(of(r))
		})
	}
	const repo = "/api/v1/repos/team/fleet"
	user := map[string]any{"id": 1, "username": "bot", "login": "bot", "full_name": "Bot", "email": "bot@example.com"}
	answer("GET /api/v1/user", func(*http.Request) any { return user })
	answer("GET /api/v1/version", func(*http.Request) any { return map[string]any{"version": "1.22.0"} })
	answer("GET "+repo, func(*http.Request) any {
		return map[string]any{
			"id": 1, "full_name": "team/fleet", "owner": user, "default_branch": "main", "allow_rebase": true, "ssh_url": bare, "clone_url": bare,
			"permissions": map[string]any{"admin": true, "push": true, "pull": true},
		}
	})
	answer("GET "+repo+"/pulls", func(*http.Request) any { return append([]map[string]any{}, f.pulls...) })
	answer("POST "+repo+"/pulls", func(r *http.Request) any {
		var asked map[string]any
		_ = json.NewDecoder(r.Body).Decode(&asked)
		head := asked["head"].(string)
		pull := map[string]any{
			"number": len(f.pulls) + 1, "title": asked["title"], "body": asked["body"], "state": "open", "mergeable": true, "user": user, "labels": []any{},
			"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "base": map[string]any{"ref": "main"},
			"head": map[string]any{"ref": head, "label": head, "sha": strings.TrimSpace(gitIn(t, bare, "rev-parse", head)), "repo": map[string]any{"full_name": "team/fleet"}},
		}
		f.pulls = append(f.pulls, pull)
		return pull
	})
	answer("PATCH "+repo+"/pulls/{number}", func(r *http.Request) any {
		for _, pull := range f.pulls {
			if fmt.Sprint(pull["number"]) == r.PathValue("number") {
				_ = json.NewDecoder(r.Body).Decode(&pull)
				return pull
			}
		}
		return nil
	})
	answer("GET "+repo+"/", func(*http.Request) any { return []any{} })
	answer("GET /api/v1/orgs/", func(*http.Request) any { return []any{} })
	mux.Handle("GET /feed/", http.StripPrefix("/feed/", http.FileServer(http.Dir(f.feed))))
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// run runs Renovate with this program as quayside.
func (f *fakeGitea) run(t *testing.T, program string) {
	t.Helper()
	home, bin := t.TempDir(), t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(bin, "quayside")); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{
		"platform": "gitea", "endpoint": f.URL, "token": "secret", "gitUrl": "ssh", "repositories": []string{"team/fleet"}, "onboarding": false,
		"allowedCommands": []string{"^quayside resolve --edited --render --all$"}, "baseDir": home, "prHourlyLimit": 0, "prConcurrentLimit": 0,
		"dependencyDashboard": false, "fetchChangeLogs": "off", "hostRules": []any{map[string]any{"matchHost": f.URL, "token": "secret", "hostType": "gitea"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	put(t, home, "config.json", string(config))
	cmd := exec.Command(program)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+home, "RENOVATE_CONFIG_FILE="+filepath.Join(home, "config.json"), "LOG_LEVEL=debug",
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "artifactErrors") && strings.Contains(string(out), `"stderr"`) {
		t.Fatalf("renovate: %v\n%s", err, out)
	}
	t.Logf("%s", summary(out))
}

// tips returns the commits of the branches of Renovate, by name.
func (f *fakeGitea) tips(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(gitIn(t, f.bare, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads")) {
		if name, hash, _ := strings.Cut(strings.TrimSpace(line), " "); name != "main" {
			out[name] = hash
		}
	}
	return out
}

// checkBranches checks that every upgrade of every environment is in exactly one branch, and that
// every branch is up to date and upgrades no other operator.
func (f *fakeGitea) checkBranches(t *testing.T, branches map[string]string, next map[string]map[string]string) {
	t.Helper()
	landed := map[string]int{}
	base := map[string]map[string]string{}
	main := f.checkout(t, "main")
	for dir := range next {
		base[dir] = lockedVersions(t, filepath.Join(main, dir))
	}
	for branch := range branches {
		work := f.checkout(t, branch)
		mustRun(t, work, "verify", "--all", "--offline")
		for dir, want := range next {
			for operator, version := range lockedVersions(t, filepath.Join(work, dir)) {
				switch {
				case version == base[dir][operator]:
				case version == want[operator]:
					landed[dir+" "+operator+" "+version]++
				default:
					t.Errorf("%s: %s of %s is at %s", branch, operator, dir, version)
				}
			}
		}
	}
	for dir, operators := range next {
		for operator, version := range operators {
			if n := landed[dir+" "+operator+" "+version]; n != 1 {
				t.Errorf("%s: %s at %s is in %d branches", dir, operator, version, n)
			}
		}
	}
	titles := map[string]bool{}
	for _, p := range f.pulls {
		if title := fmt.Sprint(p["title"]); titles[title] {
			t.Errorf("two pull requests are called %q", title)
		} else {
			titles[title] = true
		}
	}
}

func (f *fakeGitea) checkout(t *testing.T, branch string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	gitIn(t, ".", "clone", "-q", "-b", branch, f.bare, dir)
	return dir
}

// summary returns the lines of Renovate's output with level INFO or higher.
func summary(out []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(out)) {
		if regexp.MustCompile(`^ *(INFO|WARN|ERROR|FATAL): |Creating pull request: `).MatchString(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

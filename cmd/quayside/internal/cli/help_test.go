package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/pflag"

	"github.com/quayside/quayside/internal/testing/clustertest"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

// TestHelpExamples runs every example in the help of this package's commands, in a copy of the
// quickstart, with a test registry instead of registry.example.com.
func TestHelpExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every command, as the scripts do")
	}
	for _, cmd := range commands(Commands(nil)) {
		if !cmd.Runnable() || cmd.CommandPath() == "quayside help" {
			continue
		}
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			lines := exampleLines(cmd.Example)
			if len(lines) == 0 {
				t.Fatal("--help has no example")
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("../../../../examples/quickstart")); err != nil {
				t.Fatal(err)
			}
			artifacts := strings.Contains(cmd.Example, "oci://")
			if strings.Contains(cmd.Example, "quayside propose") {
				writeEnvironments(t, dir)
			}
			if artifacts || strings.Contains(cmd.Example, "quayside diff") || strings.Contains(cmd.Example, "quayside propose") {
				commitAll(t, dir)
			}
			env := []string{"XDG_CACHE_HOME=" + t.TempDir()}
			if strings.Contains(cmd.Example, "--context") || strings.Contains(cmd.Example, "quayside status") {
				env = append(env, "KUBECONFIG="+startCluster(t, dir))
			}
			if strings.Contains(cmd.Example, "--scan scans/") {
				if err := os.CopyFS(filepath.Join(dir, "scans"), fstest.MapFS{"app.json": {Data: []byte(`{"SchemaVersion": 2, "ArtifactName": "app"}`)}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"observed.yaml", "one.yaml", "two.yaml"} {
				if strings.Contains(cmd.Example, "--observed "+name) || strings.Contains(cmd.Example, "--observed one.yaml") {
					writeObservation(t, dir, name)
				}
			}
			server := ocitest.New(t)
			places := []string{"registry.example.com", server.Host}
			if strings.Contains(cmd.Example, "cosign.key") {
				more, token := prepareSigning(t, dir, server)
				places, env = append(places, more...), append(env, token)
			}
			if artifacts {
				pushTree(t, dir, server.Host+"/fleet/stage:main", server.Host+"/fleet/prod:main", server.Host+"/fleet/prod:next")
			}
			for _, line := range lines {
				if strings.HasPrefix(line, "quayside mirror ") {
					continue // the images of the quickstart do not exist; mirror_registry.txtar tests this
				}
				if strings.HasPrefix(line, "quayside verify envs/prod --source ") {
					continue // needs two repositories; propose_tree.txtar tests this
				}
				line = strings.NewReplacer(places...).Replace(line)
				var stdout, stderr bytes.Buffer
				args := []string{"-C", dir}
				for _, word := range regexp.MustCompile(`('[^']*'|[^\s'])+`).FindAllString(line, -1)[1:] {
					args = append(args, strings.ReplaceAll(word, "'", ""))
				}
				args = slices.DeleteFunc(args, func(s string) bool { return s == "--pull-request" }) // needs a forge
				if code := Main(Parts, args, nil, &stdout, &stderr, env); code != exitOK && (code != exitDiffers || !slices.Contains(args, "--check")) {
					t.Errorf("%s: exit code %d\n%s", line, code, &stderr)
				}
				if stdout.Len() == 0 && stderr.Len() == 0 {
					t.Errorf("%s: no output", line)
				}
			}
		})
	}
}

// writeObservation writes an observation file without operators. The name of the file contains the cluster.
func writeObservation(t *testing.T, dir, name string) {
	t.Helper()
	text := "apiVersion: quayside.dev/v1alpha1\nkind: Observed\nobservedAt: \"2026-11-22T12:00:00Z\"\ncluster: " + strings.TrimSuffix(name, ".yaml") + "\noperators: []\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeEnvironments writes to dir an environment and its upstream environment, with observations of
// the upstream.
func writeEnvironments(t *testing.T, dir string) {
	t.Helper()
	seen := `{"apiVersion": "quayside.dev/v1alpha1", "kind": "Observed", "environment": "dev", "cluster": "default", "observedAt": "2026-11-22T12:00:00Z", "operators": []}`
	for _, name := range []string{"dev", "stage"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS("../../../../examples/quickstart")); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := os.ReadFile(filepath.Join(dir, "stage", "quayside.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "observed"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"stage/quayside.yaml": strings.Replace(string(settings), "spec:\n", "spec:\n  follows: dev\n", 1), "observed/dev-1.json": seen, "dev-1.json": seen,
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// pushTree pushes the tree of a workspace to several references.
func pushTree(t *testing.T, dir string, refs ...string) {
	t.Helper()
	for _, ref := range refs {
		var stdout, stderr bytes.Buffer
		if code := Main(Parts, []string{"push", "oci://" + ref, "-C", dir}, nil, &stdout, &stderr, []string{"XDG_CACHE_HOME=" + t.TempDir()}); code != exitOK {
			t.Fatal(stderr.String())
		}
	}
}

// prepareSigning writes a key without a password to dir, pushes a catalog, and starts sigstore
// services. It returns the addresses of the services and an identity token.
func prepareSigning(t *testing.T, dir string, server *ocitest.Server) (places []string, token string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "cosign.key"), trusttest.NewKey(t).Private(t, ""), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	args := []string{"push", "catalog-src", server.Host + "/ops/catalog:v1", "--bundle-repository", server.Host + "/ops/{package}", "-C", dir}
	if code := Main(Parts, args, nil, &stdout, &stderr, []string{"XDG_CACHE_HOME=" + t.TempDir()}); code != exitOK {
		t.Fatal(stderr.String())
	}
	_, digest, _ := strings.Cut(strings.TrimSpace(stdout.String()), "@")
	services := trusttest.NewServices(t)
	return []string{"sha256:1b5f…", digest, "https://fulcio.example.com", services.URL, "https://rekor.example.com", services.URL},
		"SIGSTORE_ID_TOKEN=" + trusttest.Token("release@example.com", "https://accounts.example.com")
}

// startCluster starts an API server with the rendered objects of the workspace at dir, and returns the
// path of its kubeconfig.
func startCluster(t *testing.T, dir string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := Main(Parts, []string{"render", "--stdout", "-C", dir}, nil, &stdout, &stderr, []string{"XDG_CACHE_HOME=" + t.TempDir()}); code != exitOK {
		t.Fatal(stderr.String())
	}
	objects, err := clustertest.Objects(stdout.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	server := clustertest.New(t)
	server.Put(objects...)
	server.Put(clustertest.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": clustertest.Object{"name": "kube-system", "uid": "u0"}})
	server.Settle()
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(name, []byte(server.Kubeconfig("prod")), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// commitAll creates a repository in dir with one commit on main.
func commitAll(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "user.name", "Test"},
		{"config", "user.email", "test@example.com"},
		{"add", "-A"},
		{"commit", "-q", "-m", "start"},
		{"init", "-q", "--bare", "-b", "main", filepath.Join(dir, ".git", "remote")},
		{"remote", "add", "origin", filepath.Join(dir, ".git", "remote")},
		{"update-ref", "refs/remotes/origin/main", "HEAD"},
		{"symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
}

// exampleLines returns the command lines of an example.
func exampleLines(example string) []string {
	var lines []string
	for line := range strings.Lines(example) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "quayside ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestOtherWords checks that the suggestions for command names of other tools are existing commands.
func TestOtherWords(t *testing.T) {
	root := newTestRoot()
	for _, in := range commands(root) {
		below := in.CommandPath()
		for word, meant := range in.Annotations {
			if cmd, _, err := root.Find(strings.Fields(below + " " + word)[1:]); err == nil && cmd.Name() == word {
				t.Errorf("%s %s is a command itself", below, word)
			}
			cmd, rest, err := root.Find(strings.Fields(meant)[1:])
			if err != nil || !cmd.Runnable() || cmd.CommandPath()+strings.Join(append([]string{""}, rest...), " ") != meant {
				t.Errorf("%s %s: there is no %q", below, word, meant)
			}
			for _, flag := range rest {
				if cmd.Flags().Lookup(strings.TrimLeft(flag, "-")) == nil {
					t.Errorf("%s %s: there is no %q", below, word, meant)
				}
			}
		}
	}
}

// TestFlagsComplete checks that flags with a fixed set of values complete them.
func TestFlagsComplete(t *testing.T) {
	seen := 0
	for _, cmd := range commands(newTestRoot()) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			words := strings.Split(f.Value.Type(), "|")
			if len(words) < 2 {
				return
			}
			seen++
			offers, ok := cmd.GetFlagCompletionFunc(f.Name)
			if !ok {
				t.Errorf("%s --%s: no completions for %s", cmd.CommandPath(), f.Name, f.Value.Type())
				return
			}
			if got, _ := offers(cmd, nil, ""); !slices.Equal(got, words) {
				t.Errorf("%s --%s takes %q and offers %q", cmd.CommandPath(), f.Name, words, got)
			}
		})
	}
	if seen < 20 {
		t.Errorf("got %d flags with a fixed set of values", seen)
	}
}

// TestHelpLength checks that the help of each command has at most 40 lines before its flags.
func TestHelpLength(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(page), "\n## quayside ")[1:]
	if len(sections) < 30 {
		t.Fatalf("%d commands", len(sections))
	}
	for _, section := range sections {
		name, text, _ := strings.Cut(section, "\n\n```\n")
		help, _, _ := strings.Cut(text, "\n\nFlags:\n")
		if n := strings.Count(help, "\n") + 1; n > 40 {
			t.Errorf("quayside %s: %d lines before the flags", name, n)
		}
	}
}

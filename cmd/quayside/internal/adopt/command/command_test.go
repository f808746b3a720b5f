package command_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/command"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run/runtest"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/internal/testing/clustertest"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

func parts() []cli.Part { return []cli.Part{command.Part()} }

func TestMain(m *testing.M) { clitest.Main(m, parts(), nil) }

// TestScripts runs testdata/script/<command>_<case>.txtar, with the commands of clitest.Scripts
// and:
//
//	olm file...             start a writable API server with OLM and a garbage collector
//
// -short skips the scripts pages_*.txtar, which test pages of the documentation.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	check(t, err)
	if testing.Short() {
		files = slices.DeleteFunc(files, func(file string) bool { return strings.HasPrefix(filepath.Base(file), "pages_") })
	}
	server := ocitest.New(t)
	clitest.Scripts(t, parts(), goldentest.Update(), files, []string{"REGISTRY=" + server.Host}, map[string]clitest.Command{"olm": installer(t)})
}

// installer starts an API server for a script with the objects in the named files. It simulates OLM and the
// garbage collector.
func installer(t *testing.T) clitest.Command {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		var objects []k8s.Object
		for _, list := range clitest.Objects(ts, args) {
			text, err := json.Marshal(list)
			ts.Check(err)
			var whole map[string]any
			ts.Check(utiljson.Unmarshal(text, &whole))
			for _, o := range k8s.Items(whole, "items") {
				objects = append(objects, o)
			}
		}
		c := runtest.New(objects...)
		c.OLM = true
		c.Settle()
		ts.Setenv("KUBECONFIG", ts.MkAbs("kubeconfig"))
		ts.Check(os.WriteFile(ts.MkAbs("kubeconfig"), []byte(runtest.Serve(t, c)), 0o600))
	}
}

// TestHelpExamples runs every example in the --help of these commands, in a copy of the quickstart.
func TestHelpExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every command")
	}
	for _, cmd := range commands() {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			dir, cache := quickstart(t), t.TempDir()
			check(t, os.MkdirAll(filepath.Join(dir, "must-gather.local.4711", "namespaces"), 0o755))
			env := []string{"XDG_CACHE_HOME=" + cache, "KUBECONFIG=" + startAppliedCluster(t, dir)}
			if strings.Contains(cmd.Example, "adopt-plan.yaml") || strings.Contains(cmd.Example, "adopt run") {
				writeManualPlan(t, dir)
			}
			if strings.Contains(cmd.Example, "quayside import") {
				writeDump(t, dir)
			}
			if cmd.Name() == "uninstall-olm" {
				env = []string{"XDG_CACHE_HOME=" + cache, "KUBECONFIG=" + startOLM(t)}
			}
			ran := 0
			for line := range strings.Lines(cmd.Example) {
				words := strings.Fields(line)
				if len(words) == 0 || words[0] != "quayside" {
					continue
				}
				ran++
				var stdout, stderr bytes.Buffer
				args := append(words[1:], "-C", dir)
				if code := cli.Main(parts(), args, nil, &stdout, &stderr, env); code != 0 && (code != 1 || !slices.Contains(args, "--check")) {
					t.Errorf("%s: exit code %d\n%s", line, code, &stderr)
				}
				if stdout.Len() == 0 && stderr.Len() == 0 {
					t.Errorf("%s: no output", line)
				}
			}
			if ran == 0 {
				t.Error("--help has no example")
			}
		})
	}
}

// commands returns the commands of the part.
func commands() []*cobra.Command {
	var out []*cobra.Command
	for _, cmd := range cli.Commands(parts()).Commands() {
		if cmd.GroupID == command.Part().Group {
			out = append(append(out, cmd), cmd.Commands()...)
		}
	}
	return out
}

// documentCommands returns command lines for every command that has a schema.
func documentCommands() map[string][]string {
	return map[string][]string{
		"adopt-inspect":       {"adopt inspect DIR/cluster.json", "adopt inspect DIR/absent.json"},
		"adopt-plan":          {"adopt plan DIR/cluster.json", "adopt plan DIR/absent.json"},
		"adopt-revert":        {"adopt revert absent.yaml --yes", "adopt revert quayside.yaml --check"},
		"adopt-check":         {"adopt check", "adopt check DIR/cluster.json", "adopt check DIR/absent.json"},
		"adopt-run":           {"adopt run --finish", "adopt run --finish no/such", "adopt run absent.yaml --yes", "adopt run quayside.yaml --check"},
		"adopt-verify":        {"adopt verify absent.yaml", "adopt verify quayside.yaml DIR/cluster.json"},
		"adopt-uninstall-olm": {"adopt uninstall-olm DIR/cluster.json", "adopt uninstall-olm DIR/absent.json"},
		"import":              {"import subscriptions", "import subscriptions --check --catalog nothing=dir:catalog", "import absent"},
	}
}

// TestDocuments runs every command with JSON and YAML output in valid and invalid workspaces, and
// validates the output against the schema.
func TestDocuments(t *testing.T) {
	lines := documentCommands()
	without := clitest.Documented(nil)
	have := slices.DeleteFunc(clitest.Documented(parts()), func(name string) bool { return slices.Contains(without, name) })
	if d := cmp.Diff(have, slices.Sorted(maps.Keys(lines))); d != "" {
		t.Errorf("commands that print a document (-have +tested):\n%s", d)
	}
	nothing := func(dir string, names ...string) {
		for _, name := range names {
			check(t, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	for place, spoil := range map[string]func(dir string){
		"ok":                 func(string) {},
		"error/no lock":      func(dir string) { nothing(dir, "quayside.lock") },
		"error/no workspace": func(dir string) { nothing(dir, "quayside.yaml", "quayside.lock", "subscriptions", "catalog") },
		"error/settings":     func(dir string) { put(t, dir, "quayside.yaml", "spec: [\n") },
		"error/declaration":  func(dir string) { put(t, dir, "subscriptions/bad.yaml", "kind: Subscription\napiVersion: v9\n") },
		"error/lock":         func(dir string) { put(t, dir, "quayside.lock", "lockVersion: 99\n") },
		"error/catalog":      func(dir string) { nothing(dir, "catalog") },
	} {
		t.Run(place, func(t *testing.T) {
			dir := quickstart(t)
			spoil(dir)
			for _, some := range lines {
				for _, line := range some {
					for _, more := range [][]string{{"-o", "json"}, {"--nothing=1", "--output=yaml"}} {
						quayside(t, dir, t.TempDir(), append(strings.Fields(line), more...)...)
					}
				}
			}
		})
	}
}

// quayside runs the program, and validates its output against the schema.
func quayside(t *testing.T, dir, cache string, args ...string) (code int, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"-C", dir}, args...)
	code = cli.Main(parts(), args, nil, &stdout, &stderr, []string{"XDG_CACHE_HOME=" + cache, "HOME=" + cache})
	if err := clitest.Conforms(parts(), args, stdout.Bytes()); err != nil {
		t.Errorf("quayside %q: %v", args, err)
	}
	return code, stdout.String() + stderr.String()
}

func mustRun(t *testing.T, dir, cache string, args ...string) {
	t.Helper()
	if code, said := quayside(t, dir, cache, args...); code != 0 {
		t.Fatalf("quayside %q: exit code %d\n%s", args, code, said)
	}
}

// quickstart returns a copy of examples/quickstart.
func quickstart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS("../../../../../examples/quickstart")))
	return dir
}

func put(t *testing.T, dir, name, data string) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeManualPlan writes to dir a plan that has only manual steps. One step has begun.
func writeManualPlan(t *testing.T, dir string) {
	t.Helper()
	ws, err := workspace.Open(workspace.Dir(dir), workspace.Env{Getenv: func(string) string { return "" }, Log: terminal.NewLogger(terminal.New(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := ws.NeedLock()
	if err != nil {
		t.Fatal(err)
	}
	res, err := ws.Render(t.Context(), lock)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := res.ObjectsIn(ws.Settings.ClusterNames()[0])
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{
		APIVersion: plan.APIVersion, Kind: plan.Kind, ClusterUID: "u0", Mode: plan.Stopped, Manager: "quayside",
		Lock: plan.LockDigest(lock), Tree: plan.TreeDigest(rendered), OLM: []plan.Workload{}, Operators: []plan.Operator{}, Skipped: []plan.SkippedOperator{},
	}
	for i := range 3 {
		p.Steps = append(p.Steps, plan.Step{Number: i + 1, Name: plan.Certificates, Title: "Look after the certificates", Manual: "Look after them."})
	}
	check(t, os.Mkdir(filepath.Join(dir, "adopt-plan.journal"), 0o700))
	put(t, dir, "adopt-plan.yaml", string(plan.Format(p)))
	put(t, dir, "adopt-plan.journal/log.jsonl", `{"event":"opened","schema":2,"plan":"`+run.Digest(p)+`"}`+"\n"+`{"event":"began","step":1}`+"\n")
}

// writeDump writes the objects of a cluster to files below dir.
func writeDump(t *testing.T, dir string) {
	t.Helper()
	const text = `{"kind": "List", "apiVersion": "v1", "items": [
		{"kind": "CatalogSource", "apiVersion": "operators.coreos.com/v1alpha1", "metadata": {"name": "quickstart", "namespace": "olm"}}]}`
	for _, name := range []string{"olm.json", "must-gather.local.4711/gathered/namespaces/olm/catalogsources.json"} {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// startOLM starts an API server with OLM's controllers only, and returns the path of its kubeconfig.
func startOLM(t *testing.T) string {
	t.Helper()
	var namespaces []k8s.Object
	for _, name := range []string{"kube-system", "olm"} {
		namespaces = append(namespaces, k8s.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	}
	c := runtest.New(namespaces...)
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		c.Put(k8s.Object{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": "olm", "labels": map[string]any{"app": name}},
			"spec": map[string]any{"replicas": int64(1)}, "status": map[string]any{"replicas": int64(1), "readyReplicas": int64(1)},
		})
	}
	c.Settle()
	name := filepath.Join(t.TempDir(), "kubeconfig")
	check(t, os.WriteFile(name, []byte(strings.ReplaceAll(runtest.Serve(t, c), `"test"`, `"prod"`)), 0o600))
	return name
}

// startAppliedCluster starts an API server with all rendered objects of the workspace at dir, and
// returns the path of its kubeconfig.
func startAppliedCluster(t *testing.T, dir string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := cli.Main(parts(), []string{"render", "--stdout", "-C", dir}, nil, &stdout, &stderr, []string{"XDG_CACHE_HOME=" + t.TempDir()}); code != 0 {
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

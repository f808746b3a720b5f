package inspect_test

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render/needs"
)

var whole = flag.Bool("whole", false, "test the plans of every dump and namespace, instead of a sample") //nolint:gochecknoglobals // a flag

// dumpFiles returns the files of the corpus's cluster dumps.
func dumpFiles(tb testing.TB) fstest.MapFS {
	tb.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		tb.Skip("QUAYSIDE_CORPUS is not set")
	}
	f, err := os.Open(filepath.Join(root, "olm-clusters.tar.zst"))
	check(tb, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	check(tb, err)
	defer z.Close()
	files := fstest.MapFS{}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		check(tb, err)
		if h.Typeflag == tar.TypeReg {
			data, err := io.ReadAll(in)
			check(tb, err)
			files[strings.TrimPrefix(h.Name, "./")] = &fstest.MapFile{Data: data}
		}
	}
}

// clusterDump is the dump of a cluster, and a workspace that pins the operators installed in the cluster.
type clusterDump struct {
	seen  *snapshot.Snapshot
	p     *workspace.Project
	lock  *lockfile.File
	found *inspect.Inspection
	stand testWorkspace
}

// sampleNamespaces returns three namespaces at random if the dump has more than four. Otherwise, and with
// -whole, it returns nil, which selects all.
func (d clusterDump) sampleNamespaces(random *rand.Rand) []string {
	namespaces := d.namespaces()
	if *whole || len(namespaces) <= 4 {
		return nil
	}
	random.Shuffle(len(namespaces), func(i, j int) { namespaces[i], namespaces[j] = namespaces[j], namespaces[i] })
	return namespaces[:3]
}

// namespaces returns the namespaces with installed operators.
func (d clusterDump) namespaces() []string {
	var out []string
	for _, op := range d.found.Report.Operators {
		if op.CSV != "" {
			out = append(out, op.Namespace)
		}
	}
	return slices.Compact(out)
}

// testWorkspace is a workspace with the catalogs of the dumps. All dumps use it one after the other.
type testWorkspace struct {
	e   workspace.Env
	all fstest.MapFS
	dir string
}

func newTestWorkspace(tb testing.TB, e workspace.Env, all fstest.MapFS) testWorkspace {
	s := testWorkspace{e, all, tb.TempDir()}
	old := time.Now().Add(-time.Hour) // so that the cache of catalogs is used
	for name, f := range all {
		if strings.HasPrefix(name, "catalog-") {
			s.write(tb, name, f.Data)
		}
	}
	check(tb, filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		check(tb, err)
		return os.Chtimes(path, old, old)
	}))
	s.write(tb, "quayside.yaml", []byte(`{apiVersion: quayside.dev/v1alpha1, kind: Workspace, spec: {kubernetesVersion: "1.36", catalogs: [`+
		`{name: community, namespace: olm, source: "dir:catalog-community"}, {name: lab, namespace: olm, source: "dir:catalog-lab"}], profile: plain}}`))
	return s
}

func (s testWorkspace) write(tb testing.TB, name string, data []byte) {
	tb.Helper()
	check(tb, os.MkdirAll(filepath.Join(s.dir, path.Dir(name)), 0o755))
	check(tb, os.WriteFile(filepath.Join(s.dir, name), data, 0o644))
}

func (s testWorkspace) open(tb testing.TB) *workspace.Project {
	tb.Helper()
	p, err := workspace.Open(workspace.Files(os.DirFS(s.dir), s.dir, "."), s.e)
	check(tb, err)
	return p
}

// inspectDump declares and resolves the operators of a dump at their installed versions, and inspects
// the cluster.
func (s testWorkspace) inspectDump(t testing.TB, file string) clusterDump {
	t.Helper()
	seen, err := snapshot.Load(s.all, file, "", snapshot.Selection{})
	check(t, err)
	var declared []any
	for _, kind := range []string{"OperatorGroup", "Subscription"} {
		for _, o := range seen.Kind(k8s.OLMGroup, kind) {
			body := o.Body()
			if installed := k8s.Text(body, "status", "installedCSV"); kind == "Subscription" {
				if installed == "" {
					continue
				}
				body = k8s.With(body, installed, "spec", "startingCSV")
			}
			declared = append(declared, map[string]any(k8s.Without(body, "status")))
		}
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": declared})
	check(t, err)
	s.write(t, "subscriptions/all.yaml", text)
	check(t, os.RemoveAll(filepath.Join(s.dir, workspace.LockFile)))
	in, err := workspace.ReadProblem(context.Background(), s.open(t), workspace.Request{Options: s.open(t).ResolveOptions()})
	check(t, err)
	res, err := workspace.Resolve(context.Background(), in)
	check(t, err)
	check(t, res.Failed)
	s.write(t, workspace.LockFile, lockfile.Format(res.Lock))
	p := s.open(t)
	found, err := inspect.Inspect(context.Background(), p, seen, "default")
	check(t, err)
	return clusterDump{seen: seen, p: p, lock: res.Lock, found: found, stand: s}
}

func dumps(all fs.FS) []string {
	before, _ := fs.Glob(all, "*/before.json")
	after, _ := fs.Glob(all, "*/after.json")
	return append(before, after...)
}

// env returns an environment with its own store, and without temporary directories.
func env(t testing.TB) workspace.Env {
	cache := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(cache, "no", "such", "directory"))
	getenv := func(key string) string {
		if key == "XDG_CACHE_HOME" {
			return cache
		}
		return ""
	}
	return workspace.Env{Getenv: getenv, Version: "test", Offline: true}
}

// TestDumps inspects every dump once and runs all checks on it. Without -whole, it executes the
// plans of only a quarter of the dumps, and of a few namespaces in each.
func TestDumps(t *testing.T) {
	all := dumpFiles(t)
	checks := []func(*testing.T, fstest.MapFS) dumpCheck{
		checkPodsUnchanged, checkStates, checkAllObjectsClassified, checkDifferences, checkDiagnoses, checkFinish, checkFinishedCleanUp, checkPlans, checkRuns, checkReverts, checkVerification, checkDerivation,
	}
	const plans = 5 // number of checks that execute plans; they are the last in the list
	s := newTestWorkspace(t, env(t), all)
	var open []dumpCheck
	for _, c := range checks {
		open = append(open, c(t, all))
	}
	for n, file := range dumps(all) {
		d, some := s.inspectDump(t, file), open
		if !*whole && n%4 != 0 {
			some = open[:len(open)-plans]
		}
		for _, i := range some {
			i.each(file, d, d.found.Report)
		}
	}
	for _, i := range open {
		i.end()
	}
}

// dumpCheck is a check of all dumps. TestDumps calls each for every dump, and calls end after the last dump.
type dumpCheck struct {
	each func(file string, d clusterDump, rep *adopt.Inspection)
	end  func()
}

// checkPodsUnchanged checks that no pod restarts: the specs of all rendered Deployments must equal OLM's in
// every field. Two Deployments are exempt, because they were never installed.
func checkPodsUnchanged(t *testing.T, _ fstest.MapFS) dumpCheck {
	absent := []string{"ack/ack-ecs-controller", "konflux/konflux-operator-controller-manager"}
	same := map[string]bool{}
	each := func(file string, _ clusterDump, rep *adopt.Inspection) {
		for _, op := range rep.Operators {
			for _, o := range op.Objects {
				name := o.Namespace + "/" + o.Name
				switch {
				case o.Kind != "Deployment":
				case o.Class == adopt.Added:
					if !slices.Contains(absent, name) {
						t.Errorf("%s: Deployment %s is not in the cluster", file, name)
					}
				default:
					same[name] = true
					for _, f := range o.Fields {
						if strings.HasPrefix(f.Path, "spec") {
							t.Errorf("%s: Deployment %s: %+v", file, name, f)
						}
					}
				}
			}
		}
	}
	return dumpCheck{each, func() {
		if len(same) < 20 {
			t.Errorf("only %d Deployments were compared", len(same))
		}
		t.Logf("%d Deployments are unchanged", len(same))
	}}
}

// checkStates checks the states of the operators in the dumps. All operators except three can be adopted
// without a restart.
func checkStates(t *testing.T, _ fstest.MapFS) dumpCheck {
	blocked := map[string]string{
		"ack/ack-ecs-controller":   "csv-not-succeeded",
		"konflux/konflux-operator": "copy-as-parent",
		"pelorus/pelorus-operator": "drives-olm",
	}
	counts := map[adopt.State]int{}
	each := func(file string, _ clusterDump, rep *adopt.Inspection) {
		for _, op := range rep.Operators {
			counts[op.State]++
			var codes []string
			for _, r := range op.Reasons {
				codes = append(codes, r.Code)
			}
			if got, want := strings.Join(codes, " "), blocked[op.Namespace+"/"+op.Package]; got != want || op.State.StaysWithOLM() != (want != "") || want == "" && op.State != adopt.Adoptable {
				t.Errorf("%s: %s/%s is %s for %q, want %q", file, op.Namespace, op.Package, op.State, got, want)
			}
		}
	}
	return dumpCheck{each, func() { t.Log(counts) }}
}

// checkAllObjectsClassified checks that every object of the dumps that has a mark of OLM has exactly one class.
// The counts must match.
func checkAllObjectsClassified(t *testing.T, _ fstest.MapFS) dumpCheck {
	each := func(file string, d clusterDump, rep *adopt.Inspection) {
		told, counted := map[k8s.Key]adopt.Class{}, adopt.Counts{}
		lists := [][]adopt.ClassifiedObject{rep.Shared}
		for _, op := range rep.Operators {
			lists = append(lists, op.Objects)
		}
		for _, list := range lists {
			for _, o := range list {
				if was, twice := told[o.Key]; twice {
					t.Errorf("%s: %s is %s and %s", file, o.Key, was, o.Class)
				}
				told[o.Key] = o.Class
				if d.seen.Get(o.Key) != nil {
					counted.Live++
				}
				switch o.Class {
				case adopt.Added:
					counted.Added++
				case adopt.Equal:
					counted.Equal++
				case adopt.Changed:
					counted.Changed++
				case adopt.OLMOnly:
					counted.OLM++
				case adopt.Unknown:
					t.Errorf("%s: %s has no reason", file, o.Key)
				}
			}
		}
		if counted != rep.Counts || counted.Live != counted.Equal+counted.Changed+counted.OLM {
			t.Errorf("%s: counted %+v, reported %+v", file, counted, rep.Counts)
		}
		for _, o := range d.seen.All() {
			if whose := markedOperator(d, o); told[o.Key] == "" && whose != "" {
				t.Errorf("%s: %s of %s is not reported", file, o.Key, whose)
			}
		}
	}
	return dumpCheck{each, func() {}}
}

// markedOperator returns the operator to which a label or an owner reference assigns an object, or "".
func markedOperator(d clusterDump, o *snapshot.LiveObject) string {
	for _, p := range d.lock.Pins {
		_, component := o.Labels["operators.coreos.com/"+p.Package+"."+p.Namespace]
		owned := o.Labels["olm.owner"] == p.Bundle && (o.Labels["olm.owner.namespace"] == p.Namespace || o.Labels["olm.copiedFrom"] == p.Namespace)
		for _, ref := range o.Owners {
			owned = owned || ref.Kind == "ClusterServiceVersion" && ref.Name == p.Bundle && o.Namespace == p.Namespace
		}
		if component || owned {
			return p.Key()
		}
	}
	return ""
}

// checkDiagnoses checks that every operator has the same diagnosis in the cluster and in the tree. Exactly one
// operator needs OLM.
func checkDiagnoses(t *testing.T, _ fstest.MapFS) dumpCheck {
	each := func(file string, d clusterDump, _ *adopt.Inspection) {
		tree, err := inspect.Diagnose(context.Background(), d.p)
		check(t, err)
		there := map[string]adopt.Dependence{}
		for _, op := range adopt.DiagnoseCluster(d.seen).Operators {
			there[op.Namespace+"/"+op.Package] = op
		}
		for _, op := range tree.Operators {
			name := op.Namespace + "/" + op.Package
			if live, ok := there[name]; ok && !reflect.DeepEqual(live, op) {
				t.Errorf("%s: %s in the tree %+v, in the cluster %+v", file, name, op, live)
			}
			if want := name == "pelorus/pelorus-operator"; want != (op.NeedsOLM == needs.NeedsOLM) || !want && op.NeedsOLM != needs.NeedsNone {
				t.Errorf("%s: %s: %s", file, name, op.NeedsOLM)
			}
		}
	}
	return dumpCheck{each, func() {}}
}

// checkDifferences compares OLM's objects with objects rendered without OLM settings. The fields that differ
// according to this package must be those that differed on a real API server. Ownership labels that only
// quayside sets are ignored.
func checkDifferences(t *testing.T, all fstest.MapFS) dumpCheck {
	var seen struct {
		Replace [][]any `json:"replace"` // kind, field, how, count, an example
	}
	check(t, json.Unmarshal(all["differences.json"].Data, &seen))
	const injected = "metadata.annotations.cert-manager.io/inject-ca-from"
	type fact struct{ kind, path, how string }
	want := map[fact]string{} // each with an example
	index := regexp.MustCompile(`containers\[[^]]*\]`)
	// The tree omits labels and annotations of GitOps tools, even if a bundle contains them.
	tools := []string{"metadata.annotations.argocd.argoproj.io/", "metadata.labels.app.kubernetes.io/instance"}
	ours := func(f fact) bool {
		return f.how == "only quayside" && strings.Contains(f.path, "metadata.") && f.path != injected ||
			slices.ContainsFunc(tools, func(prefix string) bool { return strings.HasPrefix(f.path, prefix) })
	}
	for _, r := range seen.Replace {
		f := fact{r[0].(string), r[1].(string), r[2].(string)}
		example := r[4].([]any)
		if text, _ := example[2].(string); f.path == "metadata.annotations" && strings.Contains(text, "inject-ca-from") {
			f.path = injected // the object had no annotations before
		}
		if !ours(f) && !strings.HasPrefix(f.path, "metadata.annotations.deployment.kubernetes.io/") { // set by the Deployment controller
			want[f] = strings.TrimPrefix(example[0].(string), "/")
		}
	}
	words := map[adopt.DifferenceKind]string{adopt.OtherValue: "differs", adopt.OnlyLive: "only OLM", adopt.OnlyOurs: "only quayside", adopt.Order: "order"}
	named := []struct{ prefix, name string }{
		{"metadata.labels.operators.coreos.com/", "<package>.<namespace>"},
		{"metadata.annotations.operatorframework.io/installed-alongside-", "<hash>"},
	}
	of := func(kind string, f adopt.Field) fact {
		out := fact{kind, index.ReplaceAllString(f.Path, "containers[]"), words[f.Kind]}
		for _, n := range named {
			if strings.HasPrefix(out.path, n.prefix) {
				out.path = n.prefix + n.name
			}
		}
		return out
	}
	found, there := map[fact]bool{}, map[string]bool{}
	each := func(file string, d clusterDump, _ *adopt.Inspection) {
		res, err := d.p.Render(context.Background(), d.lock)
		check(t, err)
		rendered, err := res.ObjectsIn("default")
		check(t, err)
		rep := adopt.Inspect(adopt.Input{Snapshot: d.seen, Lock: d.lock, Rendered: rendered, GenerateDeployments: func(lockfile.Pin) ([]k8s.Object, error) { return nil, errors.New("not asked") }})
		for _, list := range append([][]adopt.ClassifiedObject{rep.Shared}, objectsOf(rep)...) {
			for _, o := range list {
				there[strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")] = true
				for _, f := range o.Fields {
					if got := of(o.Kind, f); o.Kind != "Namespace" && !ours(got) {
						found[got] = true
						if want[got] == "" {
							t.Errorf("%s: %s %s/%s: %+v was not found", file, o.Kind, o.Namespace, o.Name, f)
						}
					}
				}
			}
		}
	}
	return dumpCheck{each, func() {
		checked := 0
		for f, example := range want {
			if there[example] {
				checked++
				if !found[f] {
					t.Errorf("%v of %s is not found", f, example)
				}
			}
		}
		t.Logf("%d of %d facts are about objects of the dumps", checked, len(want))
		if checked < 80 {
			t.Errorf("%d facts are about objects of the dumps: want most", checked)
		}
	}}
}

func objectsOf(rep *adopt.Inspection) [][]adopt.ClassifiedObject {
	var out [][]adopt.ClassifiedObject
	for _, op := range rep.Operators {
		out = append(out, op.Objects)
	}
	return out
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

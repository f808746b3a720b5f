package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/test/cluster/harness"
)

// outcome mirrors the output of cmd/argosync.
type outcome struct {
	Started        time.Time
	Phase, Message string
	Synced         []struct {
		Object, Status, Message string
		Wave                    int
	}
	Unhealthy []string
}

// TestArgoCD installs, upgrades, reverts and uninstalls the quickstart by commits, with Argo CD's own engine and
// the rendered Application. Only the deletion of Namespaces waits for confirmation. CRDs are never deleted.
func TestArgoCD(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	a := argo{
		program: filepath.Join(harness.Require(t, "argo"), "argosync"),
		q:       quickstart(t, gitops{profile: "argocd", url: "https://git.example.com/fleet.git"}),
	}
	repository := inWorkspace(t, a.q)
	a.q.must(t, "render", "--offline")
	repository.commit(t, a.q.dir, "install")
	a.cluster = harness.Start(t, harness.Options{})
	ctx, applier := within(t, 5*time.Minute), applier(t, a.cluster)

	a.checkInstall(ctx, t)
	a.checkInSync(ctx, t)
	installed := a.q.rendered(t)
	awaitRendered(ctx, t, applier, installed, nil)
	if _, err := applier.Apply(ctx, objects(t, database)); err != nil {
		t.Fatal(err)
	}
	before := deployedImages(ctx, t, a.cluster, "memcached-operator-system")

	a.q.must(t, "resolve", "--offline", "--upgrade")
	a.q.must(t, "render", "--offline")
	repository.commit(t, a.q.dir, "upgrade")
	a.syncToEnd(ctx, t)
	a.checkInSync(ctx, t)
	awaitRendered(ctx, t, applier, a.q.rendered(t), nil)
	after := deployedImages(ctx, t, a.cluster, "memcached-operator-system")
	if after == "" || after == before {
		t.Errorf("images after the upgrade: %q, before: %q; want different ones", after, before)
	}

	repository.revert(t, a.q.dir)
	a.syncToEnd(ctx, t)
	awaitRendered(ctx, t, applier, installed, nil)

	a.checkUninstall(ctx, t, applier, repository)
	awaitRendered(ctx, t, applier, a.q.rendered(t), only(installed, holdsData))
	if got := deployedImages(ctx, t, a.cluster, "memcached-operator-system"); got != after {
		t.Errorf("the operator upgraded in the commit of the uninstall: want %q, got %q", after, got)
	}
	if _, err := applier.Get(ctx, objects(t, database)[0]); err != nil {
		t.Errorf("the database after its operator was uninstalled: %v", err)
	}

	a.confirmDeletion(ctx, t)
	a.checkInSync(ctx, t)
	awaitRendered(ctx, t, applier, a.q.rendered(t), only(installed, isCRD))
	if err := applier.AwaitGone(ctx, objects(t, "{apiVersion: v1, kind: Namespace, metadata: {name: my-etcd}}")); err != nil {
		t.Error(err)
	}
}

// argo is Argo CD with the Application of a workspace.
type argo struct {
	program string
	q       quayside
	cluster *harness.Cluster
	started string // start of the operation that waits for confirmation
}

// manifest returns the file of the Application.
func (a *argo) manifest() string {
	return filepath.Join(a.q.dir, "rendered", "argocd", "application-quayside-default-operators.yaml")
}

// sources returns the manifests of the Application's source, as Argo CD reads them.
func (a *argo) sources(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(a.manifest())
	if err != nil {
		t.Fatal(err)
	}
	sources, _, _ := unstructured.NestedSlice(objects(t, string(text))[0].Object, "spec", "sources")
	var all []byte
	for _, s := range sources {
		source, _ := s.(map[string]any)
		path, _, _ := unstructured.NestedString(source, "path")
		dir := filepath.Join(a.q.dir, filepath.FromSlash(path))
		if _, plain, _ := unstructured.NestedMap(source, "directory"); plain {
			all = append(all, readManifests(t, dir)...)
		} else {
			all = append(append(all, "\n---\n"...), runKustomize(t, dir)...)
		}
	}
	return all
}

// sync runs one operation of the Application and returns its outcome.
func (a *argo) sync(ctx context.Context, t *testing.T, application, started string) outcome {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, a.sources(t), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, a.program, "-kubeconfig", a.cluster.Kubeconfig, "-application", application, "-started", started, file)
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("synchronizing: %v\n%s", err, log.String())
	}
	var o outcome
	if err := json.Unmarshal(out.Bytes(), &o); err != nil {
		t.Fatal(err)
	}
	for _, reason := range o.Unhealthy {
		t.Errorf("not healthy: %s", reason)
	}
	return o
}

// syncToEnd synchronizes until the operation succeeds, and returns the outcome.
func (a *argo) syncToEnd(ctx context.Context, t *testing.T) outcome {
	t.Helper()
	o := a.sync(ctx, t, a.manifest(), "")
	if o.Phase != "Succeeded" {
		t.Fatalf("the operation is %s: %s\n%+v", o.Phase, o.Message, o.Synced)
	}
	return o
}

// checkInstall checks that the first operation applies all objects, wave by wave.
func (a *argo) checkInstall(ctx context.Context, t *testing.T) {
	t.Helper()
	o := a.syncToEnd(ctx, t)
	if got, want := len(o.Synced), len(objects(t, string(a.sources(t)))); got != want {
		t.Errorf("the first sync applied %d objects of %d", got, want)
	}
	for i, s := range o.Synced {
		if i > 0 && s.Wave < o.Synced[i-1].Wave {
			t.Errorf("%s of wave %d was applied after %s of wave %d", s.Object, s.Wave, o.Synced[i-1].Object, o.Synced[i-1].Wave)
		}
	}
}

// checkInSync checks that another operation changes nothing.
func (a *argo) checkInSync(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, s := range a.syncToEnd(ctx, t).Synced {
		t.Errorf("%s was out of sync in the second operation: %s", s.Object, s.Message)
	}
}

// checkUninstall removes two operators and upgrades a third in one commit, and checks that only the
// deletion of objects with data waits for confirmation.
func (a *argo) checkUninstall(ctx context.Context, t *testing.T, applier *harness.Applier, repository repository) {
	t.Helper()
	a.q.remove(t, "subscriptions/etcd.yaml", "subscriptions/vault.yaml")
	a.q.must(t, "resolve", "--offline", "--upgrade")
	a.q.must(t, "render", "--offline")
	repository.commit(t, a.q.dir, "uninstall two, upgrade another")
	o := a.sync(ctx, t, a.manifest(), "")
	if o.Phase != "Running" || !strings.HasPrefix(o.Message, "waiting for pruning confirmation") {
		t.Errorf("the operation is %s: %s; want it to wait for confirmation", o.Phase, o.Message)
	}
	a.started = o.Started.Format(time.RFC3339)
	// Without the confirmation, the continued operation still waits.
	if o = a.sync(ctx, t, a.manifest(), a.started); o.Phase != "Running" {
		t.Errorf("the unconfirmed operation is %s: %s", o.Phase, o.Message)
	}
	crds := only(a.q.rendered(t), isCRD)
	for _, crd := range crds {
		live, err := applier.Get(ctx, crd)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := live.GetLabels()["quayside.dev/version"], crd.GetLabels()["quayside.dev/version"]; got != want {
			t.Errorf("%s was held back by the confirmation for other objects: version %q, want %q", harness.Name(crd), got, want)
		}
	}
}

// confirmDeletion confirms the deletion as a person does, with an annotation of the Application, and checks
// that the operation completes.
func (a *argo) confirmDeletion(ctx context.Context, t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(a.manifest())
	if err != nil {
		t.Fatal(err)
	}
	app := objects(t, string(text))[0]
	app.SetAnnotations(map[string]string{"argocd.argoproj.io/deletion-approved": time.Now().UTC().Format(time.RFC3339)})
	if text, err = app.MarshalJSON(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "application.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := a.sync(ctx, t, file, a.started); o.Phase != "Succeeded" {
		t.Errorf("the confirmed operation is %s: %s", o.Phase, o.Message)
	}
}

// readManifests returns all manifests below dir, as Argo CD reads a plain directory.
func readManifests(t *testing.T, dir string) []byte {
	t.Helper()
	var all bytes.Buffer
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		all.WriteString("---\n")
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

// runKustomize returns the output of kustomize build for dir.
func runKustomize(t *testing.T, dir string) []byte {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

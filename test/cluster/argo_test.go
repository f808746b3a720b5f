package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/test/cluster/harness"
)

// outcome mirrors what cmd/argosync prints.
type outcome struct {
	Started        time.Time
	Phase, Message string
	Synced         []struct {
		Object, Status, Message string
		Wave                    int
	}
	Unhealthy []string
}

// TestArgoCD has Argo CD's own engine live through what a team does with the
// quickstart in Git, by the two Applications that are rendered for it: install,
// upgrade, revert, uninstall. What holds data waits for a person, and nothing
// else waits for that.
func TestArgoCD(t *testing.T) {
	t.Parallel() // each has servers of its own, and mostly waits
	a := argo{
		program: filepath.Join(harness.Require(t, "argo"), "argosync"),
		q:       quickstart(t, gitops{profile: "argocd", url: "https://git.example.com/fleet.git"}),
	}
	repository := inWorkspace(t, a.q)
	a.q.must(t, "render", "--offline")
	repository.commit(t, a.q.dir, "install")
	a.cluster = harness.Start(t, harness.Options{})
	ctx, applier := within(t, 5*time.Minute), applier(t, a.cluster)

	a.installs(ctx, t)
	a.inSync(ctx, t)
	installed := a.q.rendered(t)
	sameAsRendered(ctx, t, applier, installed, nil)
	if _, err := applier.Apply(ctx, objects(t, database)); err != nil {
		t.Fatal(err)
	}
	before := deployedImages(ctx, t, a.cluster, "memcached-operator-system")

	a.q.must(t, "resolve", "--offline", "--upgrade")
	a.q.must(t, "render", "--offline")
	repository.commit(t, a.q.dir, "upgrade")
	a.succeeds(ctx, t)
	a.inSync(ctx, t)
	sameAsRendered(ctx, t, applier, a.q.rendered(t), nil)
	after := deployedImages(ctx, t, a.cluster, "memcached-operator-system")
	if after == "" || after == before {
		t.Errorf("after the upgrade the images are %q, before it %q; want others", after, before)
	}

	repository.revert(t, a.q.dir)
	a.succeeds(ctx, t)
	sameAsRendered(ctx, t, applier, installed, nil)

	a.uninstall(ctx, t, applier, repository)
	sameAsRendered(ctx, t, applier, a.q.rendered(t), only(installed, holdsData))
	if got := deployedImages(ctx, t, a.cluster, "memcached-operator-system"); got != after {
		t.Errorf("beside the uninstall another operator was upgraded to %q, but has %q", after, got)
	}
	if _, err := applier.Get(ctx, objects(t, database)[0]); err != nil {
		t.Errorf("the database after its operator was uninstalled: %v", err)
	}

	a.confirm(ctx, t)
	a.inSync(ctx, t)
	sameAsRendered(ctx, t, applier, a.q.rendered(t), nil)
	if err := applier.AwaitGone(ctx, objects(t, "{apiVersion: v1, kind: Namespace, metadata: {name: my-etcd}}")); err != nil {
		t.Error(err)
	}
}

// argo is Argo CD with the Applications of a workspace.
type argo struct {
	program string
	q       quayside
	cluster *harness.Cluster
	waiting map[string]outcome // operations that wait for a person, by part
}

// parts returns the names by which the two Applications differ, in the order in
// which they are synchronized.
func parts() []string { return []string{"crds", "operators"} }

// manifest returns the file of a part's Application.
func (a *argo) manifest(part string) string {
	return filepath.Join(a.q.dir, "rendered", "argocd", "application-quayside-default-"+part+".yaml")
}

// sources returns the manifests that a part's Application points at, as Argo CD
// reads them.
func (a *argo) sources(t *testing.T, part string) []byte {
	t.Helper()
	text, err := os.ReadFile(a.manifest(part))
	if err != nil {
		t.Fatal(err)
	}
	app := objects(t, string(text))[0]
	path, _, _ := unstructured.NestedString(app.Object, "spec", "source", "path")
	dir := filepath.Join(a.q.dir, filepath.FromSlash(path))
	if _, plain, _ := unstructured.NestedMap(app.Object, "spec", "source", "directory"); plain {
		return directory(t, dir)
	}
	return kustomized(t, dir)
}

// sync runs one operation of a part's Application and returns what came of it.
func (a *argo) sync(ctx context.Context, t *testing.T, part, application, started string) outcome {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, a.sources(t, part), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, a.program, "-kubeconfig", a.cluster.Kubeconfig, "-application", application, "-started", started, file)
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("synchronizing %s: %v\n%s", part, err, log.String())
	}
	var o outcome
	if err := json.Unmarshal(out.Bytes(), &o); err != nil {
		t.Fatal(err)
	}
	for _, reason := range o.Unhealthy {
		t.Errorf("%s: not healthy: %s", part, reason)
	}
	return o
}

// succeeds synchronizes both Applications to the end and returns what came of
// it, by part.
func (a *argo) succeeds(ctx context.Context, t *testing.T) map[string]outcome {
	t.Helper()
	outcomes := map[string]outcome{}
	for _, part := range parts() {
		o := a.sync(ctx, t, part, a.manifest(part), "")
		if o.Phase != "Succeeded" {
			t.Fatalf("%s: the operation is %s: %s\n%+v", part, o.Phase, o.Message, o.Synced)
		}
		outcomes[part] = o
	}
	return outcomes
}

// installs wants a first operation to apply everything, wave by wave.
func (a *argo) installs(ctx context.Context, t *testing.T) {
	t.Helper()
	for part, o := range a.succeeds(ctx, t) {
		if got, want := len(o.Synced), len(objects(t, string(a.sources(t, part)))); got != want {
			t.Errorf("%s: the first sync applied %d objects of %d", part, got, want)
		}
		for i, s := range o.Synced {
			if i > 0 && s.Wave < o.Synced[i-1].Wave {
				t.Errorf("%s: %s of wave %d came after %s of wave %d", part, s.Object, s.Wave, o.Synced[i-1].Object, o.Synced[i-1].Wave)
			}
		}
	}
}

// inSync wants another operation to find nothing to do.
func (a *argo) inSync(ctx context.Context, t *testing.T) {
	t.Helper()
	for part, o := range a.succeeds(ctx, t) {
		for _, s := range o.Synced {
			t.Errorf("%s: %s was out of sync the second time: %s", part, s.Object, s.Message)
		}
	}
}

// uninstall takes two operators away and upgrades another in one commit, and
// wants both Applications to do all of it but to wait for a person with what
// holds data.
func (a *argo) uninstall(ctx context.Context, t *testing.T, applier *harness.Applier, repository repository) {
	t.Helper()
	a.q.remove(t, "subscriptions/etcd.yaml", "subscriptions/vault.yaml")
	a.q.must(t, "resolve", "--offline", "--upgrade")
	a.q.must(t, "render", "--offline")
	repository.commit(t, a.q.dir, "uninstall two, upgrade another")
	a.waiting = map[string]outcome{}
	for _, part := range parts() {
		o := a.sync(ctx, t, part, a.manifest(part), "")
		if o.Phase != "Running" || !strings.HasPrefix(o.Message, "waiting for pruning confirmation") {
			t.Errorf("%s: the operation is %s: %s; want it to wait for a person", part, o.Phase, o.Message)
		}
		a.waiting[part] = o
		// It is still waiting when it is looked at again, whatever else was done.
		if o = a.sync(ctx, t, part, a.manifest(part), o.Started.Format(time.RFC3339)); o.Phase != "Running" {
			t.Errorf("%s: nobody confirmed, and yet the operation is %s: %s", part, o.Phase, o.Message)
		}
	}
	crds := only(a.q.rendered(t), isCRD)
	for _, crd := range crds {
		live, err := applier.Get(ctx, crd)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := live.GetLabels()["quayside.dev/version"], crd.GetLabels()["quayside.dev/version"]; got != want {
			t.Errorf("%s waits for the confirmation of others: it is of version %q, want %q", harness.Name(crd), got, want)
		}
	}
}

// confirm has a person confirm what waits, on the Applications, and wants the
// operations to come to their end.
func (a *argo) confirm(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, part := range slices.Backward(parts()) {
		text, err := os.ReadFile(a.manifest(part))
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
		o := a.sync(ctx, t, part, file, a.waiting[part].Started.Format(time.RFC3339))
		if o.Phase != "Succeeded" {
			t.Errorf("%s: confirmed, and yet the operation is %s: %s", part, o.Phase, o.Message)
		}
	}
}

// directory returns every manifest under dir, as Argo CD reads a plain
// directory.
func directory(t *testing.T, dir string) []byte {
	t.Helper()
	var all bytes.Buffer
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
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

// kustomized returns what kustomize builds from dir.
func kustomized(t *testing.T, dir string) []byte {
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

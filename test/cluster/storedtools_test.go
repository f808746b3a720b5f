package cluster_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
	"github.com/quayside/quayside/test/cluster/olm"
)

// TestStoredVersionsByTools applies the stages of docs/stored-versions.md with GitOps tools, for an operator
// without conversion and an operator with a conversion webhook. In each stage, a second sync must not write the
// CRDs, and the result of the migration must remain.
func TestStoredVersionsByTools(t *testing.T) {
	for name, tool := range tools() {
		t.Run(name, func(t *testing.T) {
			skipIfShort(t, name)
			t.Parallel() // mostly waits; each test has its own servers
			services := olm.NewServices(t)
			s := newToolStorageFleet(t, tool, harness.Start(t, harness.Options{Migrations: true, Services: services.Socket}), services)
			ctx := within(t, 8*time.Minute) // the controller waits about a minute for the next bookmark of a watch
			s.installOld(ctx, t)
			before := s.readObjects(ctx, t)
			s.checkRejected(ctx, t)

			s.applyState(ctx, t, "store")
			s.checkStable(ctx, t, "v1alpha1", "v1")
			s.applyState(ctx, t, "migrate")
			s.awaitMigrations(ctx, t)
			s.checkStable(ctx, t, "v1")
			s.applyState(ctx, t, "")
			s.checkStable(ctx, t, "v1")

			if d := cmp.Diff(before, s.readObjects(ctx, t)); d != "" {
				t.Errorf("objects and their UIDs (-before +after):\n%s", d)
			}
		})
	}
}

// convertedOperator returns an operator with a conversion webhook.
func convertedOperator() droppingOperator {
	return droppingOperator{
		name: "converted", versions: []string{"v1alpha1 served stored", "v1 served"}, hasStoreState: true, hasConversion: true,
		schema: "{type: object, properties: {size: {type: integer}}}", spec: map[string]any{"size": int64(7)},
	}
}

// toolStorageFleet is a workspace whose tree a tool applies.
type toolStorageFleet struct {
	*storageFleet
	tool       tool
	repository repository
	identities map[string]string // of the CRDs
}

func newToolStorageFleet(t *testing.T, tool tool, cluster *harness.Cluster, services *olm.Services) *toolStorageFleet {
	t.Helper()
	s := &toolStorageFleet{tool: tool, repository: newRepository(t)}
	g := gitops{profile: tool.profile(), url: s.repository.url, namespace: tool.at(), automated: tool.profile() == "argocd"}
	s.storageFleet = newStorageFleet(t, cluster, []droppingOperator{droppingOperators()[0], convertedOperator()},
		migrations+"  certificates: secret\n  certificateSecret: {name: \"%s-cert\", caFile: ca.crt}"+g.settings())
	ca, err := services.CA("converted")
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "ca.crt", ca)
	return s
}

// installOld applies the old bundles with the tool, and creates objects in the old version. One of
// the CRDs has a conversion webhook.
func (s *toolStorageFleet) installOld(ctx context.Context, t *testing.T) {
	t.Helper()
	s.quayside.resolveAndRender(t)
	commit := s.repository.commit(t, s.dir, "install")
	s.tool.start(ctx, t, s.cluster, s.repository.url)
	s.tool.follow(ctx, t, "root", "rendered/"+s.tool.profile(), commit)
	for _, d := range s.all {
		s.create(ctx, t, d.objects("v1alpha1"))
	}
	s.identities = map[string]string{}
	for _, crd := range s.definitions(ctx, t) {
		s.identities[crd.GetName()] = string(crd.GetUID())
		strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
		if got, want := strategy == "Webhook", strings.HasPrefix(crd.GetName(), "converted"); got != want {
			t.Errorf("%s is converted by %s", crd.GetName(), strategy)
		}
	}
}

// applyState advances the operators to a stage (see nextState), and waits until the tool has applied the tree.
func (s *toolStorageFleet) applyState(ctx context.Context, t *testing.T, state string) {
	t.Helper()
	s.nextState(t, state)
	s.must(t, "render", "--offline")
	s.tool.awaitCommit(ctx, t, "root", s.repository.commit(t, s.dir, "state "+state))
	awaitRendered(ctx, t, s.applier, s.rendered(t), nil)
}

// checkStable synchronizes again. It checks that the CRDs do not change, that they store objects in v1, and that
// status.storedVersions of each CRD equals stored.
func (s *toolStorageFleet) checkStable(ctx context.Context, t *testing.T, stored ...string) {
	t.Helper()
	written := func() map[string]string {
		out := map[string]string{}
		for _, crd := range s.definitions(ctx, t) {
			out[crd.GetName()] = fmt.Sprint("generation ", crd.GetGeneration(), ", version ", crd.GetResourceVersion())
		}
		return out
	}
	before := written()
	s.tool.syncAll(ctx, t)
	if d := cmp.Diff(before, written()); d != "" {
		t.Errorf("another sync changed CRDs (-before +after):\n%s", d)
	}
	for _, crd := range s.definitions(ctx, t) {
		got, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
		if d := cmp.Diff(stored, got); d != "" {
			t.Errorf("%s: stored versions (-want +got):\n%s", crd.GetName(), d)
		}
		if string(crd.GetUID()) != s.identities[crd.GetName()] {
			t.Errorf("%s was recreated", crd.GetName())
		}
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			if v := v.(map[string]any); v["storage"] != (v["name"] == "v1") {
				t.Errorf("%s: storage of version %s is %v", crd.GetName(), v["name"], v["storage"])
			}
		}
	}
}

// TestStoredVersionsByHand follows the manual steps of docs/stored-versions.md in a cluster without the
// migration API. It uses kubectl and jq if they are installed. To rewrite an object, it applies a manifest with
// only the object's name. After it has rewritten all objects, it can update the CRD's status.
func TestStoredVersionsByHand(t *testing.T) {
	t.Parallel() // has its own servers
	s := newStorageFleet(t, harness.Start(t, harness.Options{}), []droppingOperator{droppingOperators()[0], droppingOperators()[3], droppingOperators()[4]}, "  profile: plain\n")
	ctx := within(t, 3*time.Minute)
	s.install(ctx, t)
	before := s.readObjects(ctx, t)
	s.checkRejected(ctx, t)

	s.nextState(t, "store")
	s.applyRendered(ctx, t)
	s.nextState(t, "migrate")
	s.applyRendered(ctx, t)
	s.nextState(t, "migrate") // nothing rewrites the objects
	was := s.resourceVersions(ctx, t)
	s.rewrite(ctx, t)
	for name, version := range s.resourceVersions(ctx, t) {
		if version == was[name] {
			t.Errorf("%s was not rewritten", name)
		}
	}
	s.nextState(t, "")
	s.applyRendered(ctx, t)
	if d := cmp.Diff(before, s.readObjects(ctx, t)); d != "" {
		t.Errorf("objects and their UIDs (-before +after):\n%s", d)
	}
}

// resourceVersions returns the resourceVersions of the objects by name.
func (s *storageFleet) resourceVersions(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, d := range s.all {
		for _, o := range d.objects("v1") {
			live, err := s.applier.Get(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			out[harness.Name(o)] = live.GetResourceVersion()
		}
	}
	return out
}

// rewrite rewrites all objects and updates the status of their CRDs with the commands in the
// documentation.
func (s *storageFleet) rewrite(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, command := range []string{"kubectl", "jq"} {
		if _, err := exec.LookPath(command); err != nil {
			t.Logf("%s is not installed: the test rewrites the objects itself", command)
			s.rewriteWithout(ctx, t)
			return
		}
	}
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "..", "..", "docs", "stored-versions.md"))
	if err != nil {
		t.Fatal(err)
	}
	const example = "crd=widgets.example.com"
	_, commands, found := strings.Cut(string(page), "```sh\n"+example)
	commands, _, _ = strings.Cut(commands, "```")
	if !found {
		t.Fatal("the page has no such commands")
	}
	for _, crd := range s.definitions(ctx, t) {
		cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", "crd="+crd.GetName()+commands)
		cmd.Env = append(cmd.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// rewriteWithout does the same as rewrite, but without kubectl. A missing namespace is null, as in the output
// of jq.
func (s *storageFleet) rewriteWithout(ctx context.Context, t *testing.T) {
	t.Helper()
	hand, err := harness.NewApplier(s.cluster.RESTConfig, "storage-migration")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range s.all {
		for _, o := range d.objects("v1") {
			var namespace any
			if !d.clusterScoped {
				namespace = o.GetNamespace()
			}
			if _, err := hand.Apply(ctx, []*unstructured.Unstructured{{Object: map[string]any{
				"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": map[string]any{"name": o.GetName(), "namespace": namespace},
			}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, crd := range s.definitions(ctx, t) {
		if err := hand.SetStatus(ctx, crd, map[string]any{"storedVersions": []any{"v1"}}); err != nil {
			t.Fatal(err)
		}
	}
}

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

// TestStoredVersionsByTools has tools apply the states of docs/stored-versions.md, to an
// operator without a conversion and to one whose webhook converts: in each state a
// second sync writes nothing to the definitions, and what the migration did stays.
func TestStoredVersionsByTools(t *testing.T) {
	for name, tool := range tools() {
		t.Run(name, func(t *testing.T) {
			shortly(t, name)
			t.Parallel() // each has servers of its own, and mostly waits
			services := olm.NewServices(t)
			s := newToolStoring(t, tool, harness.Start(t, harness.Options{Migrations: true, Services: services.Socket}), services)
			ctx := within(t, 8*time.Minute) // the controller waits for the next bookmark of a watch, about a minute
			s.starts(ctx, t)
			before := s.read(ctx, t)
			s.refused(ctx, t)

			s.goes(ctx, t, "store")
			s.stays(ctx, t, "v1alpha1", "v1")
			s.goes(ctx, t, "migrate")
			s.migrated(ctx, t)
			s.stays(ctx, t, "v1")
			s.goes(ctx, t, "")
			s.stays(ctx, t, "v1")

			if d := cmp.Diff(before, s.read(ctx, t)); d != "" {
				t.Errorf("objects and their UIDs (-before +after):\n%s", d)
			}
		})
	}
}

// converted is an operator whose webhook is asked for each object of another version
// than the stored one.
func converted() dropping {
	return dropping{
		name: "converted", versions: []string{"v1alpha1 served stored", "v1 served"}, store: true, converts: true,
		schema: "{type: object, properties: {size: {type: integer}}}", spec: map[string]any{"size": int64(7)},
	}
}

// toolStoring is a workspace whose tree a tool applies.
type toolStoring struct {
	*storing
	tool       tool
	repository repository
	identities map[string]string // of the definitions
}

func newToolStoring(t *testing.T, tool tool, cluster *harness.Cluster, services *olm.Services) *toolStoring {
	t.Helper()
	s := &toolStoring{tool: tool, repository: newRepository(t)}
	g := gitops{profile: tool.profile(), url: s.repository.url, at: tool.at(), automated: tool.profile() == "argocd"}
	s.storing = newStoring(t, cluster, []dropping{droppings()[0], converted()},
		migrations+"  certificates: secret\n  certificateSecret: {name: \"%s-cert\", caFile: ca.crt}"+g.settings())
	ca, err := services.CA("converted")
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "ca.crt", ca)
	return s
}

// starts has the tool apply the old bundles, and makes objects, which are stored in the
// old version. One of the definitions is converted by a webhook.
func (s *toolStoring) starts(ctx context.Context, t *testing.T) {
	t.Helper()
	s.quayside.settle(t)
	commit := s.repository.commit(t, s.dir, "install")
	s.tool.start(ctx, t, s.cluster, s.repository.url)
	s.tool.has(ctx, t, "root", "rendered/"+s.tool.profile(), commit)
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

// goes takes a step, and has the tool apply it, and then once more.
func (s *toolStoring) goes(ctx context.Context, t *testing.T, state string) {
	t.Helper()
	s.next(t, state)
	s.must(t, "render", "--offline")
	s.tool.reaches(ctx, t, "root", s.repository.commit(t, s.dir, "state "+state))
	sameAsRendered(ctx, t, s.applier, s.rendered(t), nil)
}

// stays has the tool synchronize once more, and wants that to write nothing to the
// definitions: they store objects in v1, and say that these may lie in some versions.
func (s *toolStoring) stays(ctx context.Context, t *testing.T, stored ...string) {
	t.Helper()
	written := func() map[string]string {
		out := map[string]string{}
		for _, crd := range s.definitions(ctx, t) {
			out[crd.GetName()] = fmt.Sprint("generation ", crd.GetGeneration(), ", version ", crd.GetResourceVersion())
		}
		return out
	}
	before := written()
	s.tool.again(ctx, t)
	if d := cmp.Diff(before, written()); d != "" {
		t.Errorf("another sync wrote to definitions (-before +after):\n%s", d)
	}
	for _, crd := range s.definitions(ctx, t) {
		got, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
		if d := cmp.Diff(stored, got); d != "" {
			t.Errorf("%s: stored versions (-want +got):\n%s", crd.GetName(), d)
		}
		if string(crd.GetUID()) != s.identities[crd.GetName()] {
			t.Errorf("%s was made anew", crd.GetName())
		}
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			if v := v.(map[string]any); v["storage"] != (v["name"] == "v1") {
				t.Errorf("%s: storing objects in %s is %v", crd.GetName(), v["name"], v["storage"])
			}
		}
	}
}

// TestStoredVersionsByHand does in a cluster without the API what docs/stored-versions.md
// has a person do, with kubectl and jq where they are installed: to apply nothing but an
// object's name stores it anew, and once every object was, the definition's status may
// say so.
func TestStoredVersionsByHand(t *testing.T) {
	t.Parallel() // it has servers of its own
	s := newStoring(t, harness.Start(t, harness.Options{}), []dropping{droppings()[0], droppings()[3], droppings()[4]}, "  profile: plain\n")
	ctx := within(t, 3*time.Minute)
	s.install(ctx, t)
	before := s.read(ctx, t)
	s.refused(ctx, t)

	s.next(t, "store")
	s.move(ctx, t)
	s.next(t, "migrate")
	s.move(ctx, t)
	s.next(t, "migrate") // nobody rewrites anything
	was := s.versions(ctx, t)
	s.rewrite(ctx, t)
	for name, version := range s.versions(ctx, t) {
		if version == was[name] {
			t.Errorf("%s is not stored anew", name)
		}
	}
	s.next(t, "")
	s.move(ctx, t)
	if d := cmp.Diff(before, s.read(ctx, t)); d != "" {
		t.Errorf("objects and their UIDs (-before +after):\n%s", d)
	}
}

// versions returns the resourceVersion of each object, by its name.
func (s *storing) versions(ctx context.Context, t *testing.T) map[string]string {
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

// rewrite stores all objects anew and writes so into the status of their definitions, by
// the commands of the page.
func (s *storing) rewrite(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, command := range []string{"kubectl", "jq"} {
		if _, err := exec.LookPath(command); err != nil {
			t.Logf("%s is not installed: what it would do is done without", command)
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

// rewriteWithout does the same without kubectl: a namespace is null where there is none,
// as jq writes it.
func (s *storing) rewriteWithout(ctx context.Context, t *testing.T) {
	t.Helper()
	hand, err := harness.NewApplier(s.cluster.RESTConfig, "storage-migration")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range s.all {
		for _, o := range d.objects("v1") {
			var namespace any
			if !d.cluster {
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

package compare_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/testing/propertytest"
)

// smallTree is a rendered tree of one operator and one cluster.
func smallTree() map[string]string {
	const owned = "labels: {quayside.dev/package: p, quayside.dev/install-namespace: ns}"
	list := func(resources ...string) string { return "resources: [" + strings.Join(resources, ", ") + "]\n" }
	return map[string]string{
		".quayside-files":                                "# Files that quayside wrote.\n",
		"kustomization.yaml":                             list("operators"),
		"operators/kustomization.yaml":                   list("ns.p"),
		"operators/ns.p/kustomization.yaml":              list("deployment-d.yaml", "configmap-c.yaml"),
		"operators/ns.p/deployment-d.yaml":               "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: ns, " + owned + "}\nspec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: example.com/i:1}]}}}\n",
		"operators/ns.p/configmap-c.yaml":                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns, " + owned + "}\ndata: {k: v}\n",
		"clusters.yaml":                                  "- {cluster: one, prefix: clusters/one/, overlays: true}\n",
		"clusters/one/all/generated/kustomization.yaml":  list("../../../../operators"),
		"clusters/one/all/shared/kustomization.yaml":     "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {shared: a}\n",
		"clusters/one/all/extra.yaml":                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: ns}\ndata: {k: a}\n",
		"clusters/one/all/merge.yaml":                    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: ns}\nspec: {template: {spec: {hostNetwork: true}}}\n",
		"clusters/one/all/settings.env":                  "a=1\n",
		"clusters/one/all/base/kustomization.yaml":       list("../generated") + "namePrefix: a-\n",
		"clusters/one/all/base/again/kustomization.yaml": list("../../generated"),
	}
}

// drawOverlay adds a random overlay of the user to files. It may have any combination of the fields of a
// kustomization.
func drawOverlay(t *rapid.T, side string, files map[string]string) {
	pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, side+" "+what) }
	var k strings.Builder
	base := pick("base", "generated", "generated", "base", "base/again")
	k.WriteString("resources:\n- " + base + "\n" + pick("extra", "", "- extra.yaml\n"))
	k.WriteString(pick("patch", "", "",
		"patches:\n- path: merge.yaml\n",
		"patches:\n- target: {kind: Deployment}\n  patch: '- {op: replace, path: /spec/replicas, value: 3}'\n",
		"patches:\n- target: {kind: ConfigMap, name: .*c}\n  patch: '- {op: add, path: /data/x, value: y}'\n",
		"patches:\n- target: {kind: ConfigMap, name: none}\n  patch: '- {op: add, path: /data/x, value: y}'\n",
		"patches:\n- patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, $patch: delete}'\n  target: {kind: ConfigMap, labelSelector: quayside.dev/package=p}\n"))
	for _, feature := range [][]string{
		{"images", "", "", "images: [{name: example.com/i, newTag: '2'}]\n", "images: [{name: example.com/i, newName: evil.example.com/i}]\n"},
		{"prefix", "", "", "", "namePrefix: x-\n"},
		{"labels", "", "", "labels: [{pairs: {team: a}}]\n", "labels: [{pairs: {team: a}, includeSelectors: true}]\n"},
		{"annotations", "", "", "commonAnnotations: {note: a}\n"},
		{"replicas", "", "", "replicas: [{name: d, count: 1}]\n", "replicas: [{name: d, count: 5}]\n"},
		{"components", "", "", "components: [shared]\n"},
		{"generator", "", "", "configMapGenerator: [{name: made, envs: [settings.env]}]\n", "configMapGenerator: [{name: made, literals: [a=1]}]\n"},
		{"namespace", "", "", "", "namespace: other\n"},
	} {
		k.WriteString(pick(feature[0], feature[1:]...))
	}
	files["clusters/one/all/kustomization.yaml"] = k.String()
	const target = "\npatches:\n- target: {group: apps, version: v1, kind: Deployment, name: d, namespace: ns}\n  patch: "
	files["clusters/one/all/generated/kustomization.yaml"] += pick("config", "", "",
		target+"'[{op: add, path: /spec/template/spec/nodeSelector, value: {a: b}}]'\n",
		target+"'- {op: add, path: /spec/template/spec/nodeSelector, value: {a: c}}'\n",
		target+"'- {op: add, path: /spec/template/spec/containers/0/env, value: [{name: A, value: \"1\"}]}'\n",
		target+"'- {op: replace, path: /spec/replicas, value: 2}'\n",
		target+"'- {op: add, path: /metadata/annotations, value: {a: b}}'\n")
	for name, texts := range map[string][]string{
		"clusters/one/all/extra.yaml":                {"k: a", "k: b"},
		"clusters/one/all/settings.env":              {"a=1", "a=2"},
		"clusters/one/all/shared/kustomization.yaml": {"shared: a", "shared: b"},
		"clusters/one/all/merge.yaml":                {"hostNetwork: true", "hostNetwork: false"},
	} {
		files[name] = strings.ReplaceAll(files[name], texts[0], pick(name, texts...))
	}
}

// buildCluster returns the objects that kustomize builds from a cluster's overlay on disk.
func buildCluster(dir, cluster string) (map[string][]byte, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "clusters", cluster, "all"))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, o := range built.Resources() {
		data, err := o.MarshalJSON()
		if err != nil {
			return nil, err
		}
		out[fmt.Sprint(o.GetKind(), " ", o.GetNamespace(), "/", o.GetName())] = data
	}
	return out, nil
}

// TestWhatAClusterGetsIsWhatDiffSaw compares two random overlays of one tree. The report of diff must list
// exactly the objects that differ between the kustomize builds.
func TestWhatAClusterGetsIsWhatDiffSaw(t *testing.T) {
	p := open(t, t.TempDir(), &noteLogger{})
	root := t.TempDir()
	propertytest.LimitChecks(t, 30)
	rapid.Check(t, func(t *rapid.T) {
		var dirs [2]string
		var builds [2]map[string][]byte
		for i, side := range []string{"before", "after"} {
			files := smallTree()
			drawOverlay(t, side, files)
			dirs[i] = filepath.Join(root, side)
			writeTree(t, dirs[i], files)
			var err error
			if builds[i], err = buildCluster(dirs[i], "one"); err != nil {
				t.Skipf("kustomize does not build it: %v", err)
			}
		}
		checkReported(t, p, dirs, builds)
	})
}

// writeTree replaces the contents of a directory with files.
func writeTree(t *rapid.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// checkReported compares two trees. builds are the objects that kustomize builds from them. The report of diff
// must list exactly the objects that differ between the builds.
func checkReported(t rapid.TB, p *workspace.Project, dirs [2]string, builds [2]map[string][]byte) {
	t.Helper()
	want := []string{}
	for _, name := range slices.Sorted(maps.Keys(union(builds[0], builds[1]))) {
		if !bytes.Equal(builds[0][name], builds[1][name]) {
			want = append(want, name)
		}
	}
	if d := cmp.Diff(want, reportedObjects(t, p, dirs)); d != "" {
		t.Errorf("kustomize's builds differ in (-) and diff tells of (+):\n%s", d)
	}
}

// reportedObjects compares two trees, and returns the objects that the report lists, sorted.
func reportedObjects(t rapid.TB, p *workspace.Project, dirs [2]string) []string {
	t.Helper()
	comparison, err := compare.Trees(p, dirs[0], dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	report, err := comparison.Report(context.Background(), time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, o := range report.Operators {
		for _, ref := range slices.Concat(o.Added, o.Changed, o.Removed) {
			got = append(got, fmt.Sprint(ref.Kind, " ", ref.Namespace, "/", ref.Name))
		}
	}
	if report.Empty() != (len(got) == 0) {
		t.Errorf("empty is %v, and %d objects are told to differ", report.Empty(), len(got))
	}
	slices.Sort(got)
	return got
}

func union(a, b map[string][]byte) map[string][]byte {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// TestClustersThatListDifferently draws an old and a new state of two clusters. The clusters share some
// operators and have different config. The report of diff must list the objects, except Installations, that
// differ in the builds of either cluster.
func TestClustersThatListDifferently(t *testing.T) {
	p := open(t, t.TempDir(), &noteLogger{})
	root := t.TempDir()
	clusters := []string{"one", "two"}
	propertytest.LimitChecks(t, 30)
	rapid.Check(t, func(t *rapid.T) {
		var dirs [2]string
		builds := [2]map[string][]byte{{}, {}}
		for i, side := range []string{"before", "after"} {
			files := smallTree()
			second := strings.NewReplacer("name: d,", "name: e,", "name: c, namespace", "name: f, namespace", "package: p", "package: q")
			for _, name := range []string{"deployment-d.yaml", "configmap-c.yaml", "kustomization.yaml"} {
				files["operators/ns.q/"+name] = second.Replace(files["operators/ns.p/"+name])
			}
			third := strings.NewReplacer("name: c, namespace", "name: g, namespace", "package: p", "package: r")
			files["operators/ns.r/configmap-c.yaml"] = third.Replace(files["operators/ns.p/configmap-c.yaml"])
			files["operators/ns.r/kustomization.yaml"] = "resources: [configmap-c.yaml]\n"
			files["clusters.yaml"] = "- {cluster: one, prefix: clusters/one/}\n- {cluster: two, prefix: clusters/two/}\n"
			files["operators/ns.q/kustomization.yaml"] = "resources: [deployment-d.yaml, configmap-c.yaml, installation.yaml]\n"
			files["operators/ns.q/installation.yaml"] = "apiVersion: quayside.dev/v1alpha1\nkind: Installation\nmetadata: {name: q, namespace: ns}\nspec: {version: " + side + "}\n"
			for _, cluster := range clusters {
				lists := rapid.SampledFrom([]string{"p", "q", "p, ../../../operators/ns.q", "p, ../../../operators/ns.r", "q, ../../../operators/ns.r", "q, own.yaml", "p, own.yaml"}).Draw(t, side+" "+cluster)
				text := "resources: [../../../operators/ns." + lists + "]\npatches:\n"
				for _, name := range []string{"d", "e"} {
					site := rapid.SampledFrom([]string{"a", "b"}).Draw(t, side+" "+cluster+" "+name)
					text += "- target: {group: apps, version: v1, kind: Deployment, name: " + name + ", namespace: ns}\n  patch: '- {op: add, path: /spec/template/spec/nodeSelector, value: {site: " + site + "}}'\n"
				}
				files["clusters/"+cluster+"/all/kustomization.yaml"] = text
				files["clusters/"+cluster+"/all/own.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own-" + cluster + ", namespace: ns}\n"
			}
			dirs[i] = filepath.Join(root, side)
			writeTree(t, dirs[i], files)
			for _, cluster := range clusters {
				built, err := buildCluster(dirs[i], cluster)
				if err != nil {
					t.Fatal(err)
				}
				for name, data := range built {
					if !strings.HasPrefix(name, "Installation ") {
						builds[i][cluster+" "+name] = data
					}
				}
			}
		}
		differs := map[string]bool{}
		for name := range union(builds[0], builds[1]) {
			if _, object, _ := strings.Cut(name, " "); !bytes.Equal(builds[0][name], builds[1][name]) {
				differs[object] = true
			}
		}
		if d := cmp.Diff(slices.Sorted(maps.Keys(differs)), slices.Compact(reportedObjects(t, p, dirs)), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("kustomize's builds differ in (-) and diff tells of (+):\n%s", d)
		}
	})
}

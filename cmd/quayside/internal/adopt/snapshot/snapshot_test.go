package snapshot_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/testing/clustertest"
)

type dumpedObject = map[string]any

// readText returns the snapshot of one text.
func readText(t testing.TB, text string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Read("dump", strings.NewReader(text), snapshot.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bodies returns the bodies of all objects.
func bodies(s *snapshot.Snapshot) []k8s.Object {
	var out []k8s.Object
	for _, o := range s.All() {
		out = append(out, o.Body())
	}
	return out
}

// objects draws objects that have distinct names.
func objects(t *rapid.T) []dumpedObject {
	text := rapid.SampledFrom([]string{"", "a", "yes", "1e3", "0o7", "# no", "a: b", "- x", "line\nline\n", "ä\u2028ö", "\"q\" 'q'", "null", " "})
	value := rapid.OneOf(
		rapid.Map(text, func(s string) any { return s }),
		rapid.SampledFrom([]any{true, nil, int64(7), int64(-1 << 40), 1.5, []any{}, dumpedObject{}}),
	)
	n := rapid.IntRange(0, 6).Draw(t, "n")
	out := make([]dumpedObject, n)
	for i := range out {
		meta := dumpedObject{"name": fmt.Sprintf("o%d", i), "uid": fmt.Sprintf("uid-%d", i)}
		if ns := rapid.SampledFrom([]string{"", "ns"}).Draw(t, "namespace"); ns != "" {
			meta["namespace"] = ns
		}
		spec := dumpedObject{}
		for _, key := range []string{"a", "items", "kind", "y"} {
			if rapid.Bool().Draw(t, "has") {
				spec[key] = value.Draw(t, "value")
			}
		}
		spec["list"] = []any{value.Draw(t, "element"), dumpedObject{"items": []any{value.Draw(t, "inner")}}}
		api := rapid.SampledFrom([][2]string{{"v1", "Service"}, {"apps/v1", "Deployment"}, {"x.example/v1", "AllowList"}}).Draw(t, "kind")
		out[i] = dumpedObject{"apiVersion": api[0], "kind": api[1], "metadata": meta, "spec": spec}
	}
	return out
}

// TestForms checks that a snapshot does not depend on the form of its input.
func TestForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := objects(t)
		form := func(name string, fsys fstest.MapFS, path string) []k8s.Object {
			s, err := snapshot.Load(fsys, path, "", snapshot.Selection{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, o := range s.All() {
				if o.Pos.Line == 0 || s.Get(o.Key) != o || s.ByUID(o.UID) != o {
					t.Fatalf("%s: %v is missing", name, o)
				}
				for _, path := range [][]string{nil, {"spec"}, {"spec", "a"}, {"spec", "list"}, {"metadata", "name"}, {"spec", "y", "items"}, {"gone", "a"}} {
					if got, want := o.At(path...), k8s.At(o.Body(), path...); !k8s.Equal(got, want) {
						t.Fatalf("%s: %v is %v, want %v", name, path, got, want)
					}
				}
			}
			return bodies(s)
		}
		list := dumpedObject{"apiVersion": "v1", "items": values(all), "kind": "List", "metadata": dumpedObject{}}
		one, indented := marshal(t, list), new(bytes.Buffer)
		if err := json.Indent(indented, one, "", "  "); err != nil {
			t.Fatal(err)
		}
		asYAML := toYAML(t, list)
		dir, gathered := fstest.MapFS{"dump/empty.yaml": file("---\n")}, fstest.MapFS{"m/x/namespaces/all.yaml": file(""), "m/x/event.json": file("[]")}
		var stream, documents []byte
		for i, o := range all {
			stream = append(append(stream, marshal(t, o)...), ' ')
			documents = append(append(documents, "---\n"...), toYAML(t, o)...)
			dir[fmt.Sprintf("dump/%d/%d.json", i%2, i)] = file(string(marshal(t, o)))
			gathered[fmt.Sprintf("m/x/namespaces/ns/core/%d.yaml", i)] = file(string(toYAML(t, o)))
			gathered["m/x/cluster-scoped-resources/all.json"] = file(string(one)) // each object twice
		}
		want := form("List", fstest.MapFS{"f": file(string(one))}, "f")
		if len(want) != len(all) {
			t.Fatalf("%d of %d objects", len(want), len(all))
		}
		for _, o := range all {
			if !slices.ContainsFunc(want, func(w k8s.Object) bool { return k8s.Equal(w, o) }) {
				t.Fatalf("lost %v", o)
			}
		}
		for name, got := range map[string][]k8s.Object{
			"indented":    form("indented", fstest.MapFS{"f": file(indented.String())}, "f"),
			"YAML":        form("YAML", fstest.MapFS{"f": file(string(asYAML))}, "f"),
			"flow YAML":   form("flow YAML", fstest.MapFS{"f": file("--- " + string(one) + "\n# end\n")}, "f"),
			"stream":      form("stream", fstest.MapFS{"f": file(string(stream))}, "f"),
			"documents":   form("documents", fstest.MapFS{"f": file(string(documents))}, "f"),
			"directory":   form("directory", dir, "dump"),
			"must-gather": form("must-gather", gathered, "m"),
		} {
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("%s:\n%s", name, d)
			}
		}
	})
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func values(in []dumpedObject) []any {
	out := []any{}
	for _, o := range in {
		out = append(out, o)
	}
	return out
}

func marshal(t interface{ Fatal(args ...any) }, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func toYAML(t interface{ Fatal(args ...any) }, v any) []byte {
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestKindOfItems checks that items without a kind get the kind of their list. In lists of the API server,
// items have no kind.
func TestKindOfItems(t *testing.T) {
	for _, text := range []string{
		`{"kind":"DeploymentList","apiVersion":"apps/v1","items":[{"metadata":{"name":"a"}}]}`,
		"apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata:\n    name: a\n",
		"apiVersion: apps/v1\nitems:\n- metadata:\n    name: a\nkind: DeploymentList\nmetadata: {}\n",
	} {
		s := readText(t, text)
		o := s.Get(k8s.Key{Group: "apps", Kind: "Deployment", Name: "a"})
		if o == nil || o.Body().APIVersion() != "apps/v1" || o.Body().Kind() != "Deployment" {
			t.Errorf("%s: got %v", text, bodies(s))
		}
	}
}

// TestSnapshotFaults checks that all faults are reported together, each with its position.
func TestSnapshotFaults(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	for _, c := range []struct{ name, text, want string }{
		{"error/cut", "{\"apiVersion\": \"v1\",\n \"items\": [\n  {\"kind\":", "dump:3:11: malformed JSON: the file ends inside an object"},
		{"error/syntax", "{\"apiVersion\": \"v1\",\n \"kind\": x}", "dump:2:10: malformed JSON: invalid character 'x' at start of value"},
		{"error/name twice", "{\"kind\": \"Pod\", \"kind\": \"Pod\"}", "dump:1:17: malformed JSON: name \"kind\" appears twice in one object"},
		{"error/no kind", "{\"items\": [\n {\"metadata\": {\"name\": \"x\"}}],\n \"kind\": \"List\"}", "dump:1:1: the list has 1 item without a kind"},
		{"error/no object", "{\"kind\": \"Service\", \"metadata\": {}}", "dump:1:1: Service without metadata.name"},
		{"error/no version", "{\"kind\": \"Service\", \"metadata\": {\"name\": \"x\"}}", "dump:1:1: Service without apiVersion"},
		{"error/no list", "{\"kind\": \"Service\", \"items\": []}", "dump:1:1: \"Service\" with items is not a list of objects"},
		{"error/settings", "a: b\n---\nc: d\n", "dump:1:1: the object has no kind: expected the output of 'kubectl get -o json' or '-o yaml'\ndump:3:1: the object has no kind: expected the output of 'kubectl get -o json' or '-o yaml'"},
		{"error/yaml", "kind: List\n---\na: [\n", "dump:4: malformed YAML: did not find expected node content"},
		{"error/item", "apiVersion: v1\nkind: List\nitems:\n- kind: Service\n  apiVersion: v1\n  metadata: {name: a}\n- [x]\n", "dump:7:3: cannot decode the Kubernetes object: not an object"},
		{"error/deep", `{"kind": "Service", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": ` + deep + "}", "dump:1:1: Service x: nested deeper than 100 levels"},
		{"error/two clusters", "kind: Namespace\napiVersion: v1\nmetadata: {name: a, uid: u1}\n---\nkind: Namespace\napiVersion: v1\nmetadata: {name: a, uid: u2}\n", "dump:5:1: Namespace a has a different UID at dump:1:1: the input has objects of two clusters; read one cluster at a time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := snapshot.Read("dump", strings.NewReader(c.text), snapshot.Selection{})
			var list diag.List
			if !errors.As(err, &list) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	_, err := snapshot.Load(fstest.MapFS{}, "dump", "../", snapshot.Selection{})
	if err == nil || !strings.HasPrefix(err.Error(), "../dump: ") {
		t.Errorf("a missing file: %v", err)
	}
}

// TestNewer checks that the newer of two versions of an object is kept.
func TestNewer(t *testing.T) {
	text := func(version, value string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","resourceVersion":"` + version + `"},"spec":{"x":"` + value + `"}}`
	}
	for _, order := range [][2]string{{text("9", "old"), text("10", "new")}, {text("10", "new"), text("9", "old")}, {text("10", "old"), text("10", "new")}} {
		s := readText(t, order[0]+order[1])
		if got := bodies(s); len(got) != 1 || k8s.Text(got[0], "spec", "x") != "new" {
			t.Errorf("%s: got %v", order, got)
		}
	}
}

// TestPruned checks that only unused fields are dropped.
func TestPruned(t *testing.T) {
	for _, c := range []struct{ name, have, want string }{
		{
			"ok/managed fields",
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","managedFields":[{"manager":"x"}],"annotations":{"a":"b","kubectl.kubernetes.io/last-applied-configuration":"{}"}},"spec":{"managedFields":1}}`,
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","annotations":{"a":"b"}},"spec":{"managedFields":1}}`,
		},
		{
			"ok/secret",
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"tls.crt":"C","tls.key":"K","olmCAKey":"A","password":"P"},"stringData":{"p":"P"},"type":"kubernetes.io/tls"}`,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"tls.crt":"C","olmCAKey":"A"},"type":"kubernetes.io/tls"}`,
		},
		{
			"ok/config map",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"binaryData":{"x":"y"},"data":{"x":"y"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"y"}}`,
		},
		{
			"ok/definition",
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{"x":{"y":1}},"status":{"conditions":[],"storedVersions":["v1"]}}`,
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{"x":{"y":1}},"status":{"storedVersions":["v1"]}}`,
		},
		{
			"ok/original",
			`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a","annotations":{"x":"y"}},"spec":{"icon":[],"description":"d","version":"1.0.0"},"status":{"phase":"Succeeded","conditions":[1]}}`,
			`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a","annotations":{"x":"y"}},"spec":{"version":"1.0.0"},"status":{"phase":"Succeeded"}}`,
		},
		{
			"ok/copy",
			`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a","labels":{"olm.copiedFrom":"x"},"annotations":{"x":"y","olm.operatorGroup":"g"}},"spec":{"version":"1.0.0"},"status":{"reason":"Copied","conditions":[1]}}`,
			`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a","labels":{"olm.copiedFrom":"x"},"annotations":{"olm.operatorGroup":"g"}},"status":{"reason":"Copied"}}`,
		},
		{
			"ok/plan",
			`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"InstallPlan","metadata":{"name":"a"},"status":{"plan":[{"resource":{"kind":"Service","manifest":"{}"}}],"bundleLookups":[{"path":"p","properties":"x"}]}}`,
			`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"InstallPlan","metadata":{"name":"a"},"status":{"plan":[{"resource":{"kind":"Service"}}],"bundleLookups":[{"path":"p"}]}}`,
		},
		{
			"ok/operator",
			`{"apiVersion":"operators.coreos.com/v1","kind":"Operator","metadata":{"name":"a"},"status":{"components":{"refs":[{"kind":"Role","conditions":[1]}]}}}`,
			`{"apiVersion":"operators.coreos.com/v1","kind":"Operator","metadata":{"name":"a"},"status":{"components":{"refs":[{"kind":"Role"}]}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(bodies(readText(t, c.want)), bodies(readText(t, c.have))); d != "" {
				t.Error(d)
			}
			var want k8s.Object
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if got := marshal(t, bodies(readText(t, c.have))[0]); string(got) != string(marshal(t, want)) {
				t.Errorf("got %s", got)
			}
		})
	}
	s, err := snapshot.Read("dump", strings.NewReader(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","managedFields":[{"manager":"x"}]}}{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`),
		snapshot.Selection{ManagedFields: true, Keep: func(_, kind string) bool { return kind == "Service" }})
	if err != nil || len(k8s.List(bodies(s)[0], "metadata", "managedFields")) != 1 || len(s.All()) != 1 {
		t.Errorf("%v, %v", bodies(s), err)
	}
}

// TestLive reads a live cluster. It includes kinds that occur only in an InstallPlan.
func TestLive(t *testing.T) {
	server := clustertest.New(t)
	plan := k8s.New("operators.coreos.com/v1alpha1", "InstallPlan", "ns", "install-x")
	plan["status"] = dumpedObject{"plan": []any{dumpedObject{"resource": dumpedObject{"group": "monitoring.example", "version": "v1", "kind": "Monitor", "name": "m"}}}}
	secret := k8s.With(k8s.Label(k8s.New("v1", "Secret", "ns", "cert"), map[string]string{"olm.managed": "true"}), any(dumpedObject{"tls.key": "K", "olmCAKey": "A"}), "data")
	define := func(group, version, kind, plural string) k8s.Object {
		return k8s.With(k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+group), any(dumpedObject{
			"group": group, "scope": "Namespaced", "names": dumpedObject{"kind": kind, "plural": plural},
			"versions": []any{dumpedObject{"name": version, "schema": dumpedObject{"x": "y"}}},
		}), "spec")
	}
	config := k8s.With(k8s.New("v1", "ConfigMap", "ns", "other"), any(dumpedObject{"a": "b"}), "data")
	for _, o := range []k8s.Object{k8s.New("v1", "Namespace", "", "ns"), plan, secret, config, k8s.New("monitoring.example/v1", "Monitor", "ns", "m"), define("monitoring.example", "v1", "Monitor", "monitors"), define("operators.coreos.com", "v1alpha1", "InstallPlan", "installplans")} {
		server.Put(o)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(server.Kubeconfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(cluster.Options{File: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.ReadLive(t.Context(), c, snapshot.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range s.All() {
		got = append(got, o.String())
	}
	want := []string{"CustomResourceDefinition.apiextensions.k8s.io installplans.operators.coreos.com", "CustomResourceDefinition.apiextensions.k8s.io monitors.monitoring.example", "InstallPlan.operators.coreos.com ns/install-x", "Monitor.monitoring.example ns/m", "Namespace ns", "Secret ns/cert"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(dumpedObject{"olmCAKey": "A"}, k8s.Map(s.Get(k8s.Key{Kind: "Secret", Namespace: "ns", Name: "cert"}).Body(), "data")); d != "" {
		t.Error(d)
	}
	if k8s.Items(s.Kind("apiextensions.k8s.io", "CustomResourceDefinition")[0].Body(), "spec", "versions")[0]["schema"] == nil {
		t.Error("a CRD without its schema")
	}
	for _, line := range server.Requests() {
		if !strings.HasPrefix(line, "GET ") {
			t.Errorf("a request other than a read: %s", line)
		}
	}
}

// TestLiveFlux reads HelmReleases and their sources from clusters with old and new versions of Flux.
func TestLiveFlux(t *testing.T) {
	for _, c := range []struct{ releases, sources string }{{"v2beta1", "v1beta2"}, {"v2beta2", "v1beta2"}, {"v2", "v1"}} {
		t.Run(c.releases, func(t *testing.T) {
			server := clustertest.New(t)
			define := func(group, version, kind, plural string) k8s.Object {
				return k8s.With(k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+group), any(dumpedObject{
					"group": group, "scope": "Namespaced", "names": dumpedObject{"kind": kind, "plural": plural}, "versions": []any{dumpedObject{"name": version}},
				}), "spec")
			}
			for _, o := range []k8s.Object{
				define(snapshot.FluxGroup, c.releases, "HelmRelease", "helmreleases"), define(snapshot.FluxSources, c.sources, "HelmRepository", "helmrepositories"),
				k8s.New(snapshot.FluxGroup+"/"+c.releases, "HelmRelease", "ns", "lamp"), k8s.New(snapshot.FluxSources+"/"+c.sources, "HelmRepository", "ns", "charts"),
			} {
				server.Put(o)
			}
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(kubeconfig, []byte(server.Kubeconfig()), 0o600); err != nil {
				t.Fatal(err)
			}
			client, err := cluster.Open(cluster.Options{File: kubeconfig})
			if err != nil {
				t.Fatal(err)
			}
			s, err := snapshot.ReadLive(t.Context(), client, snapshot.Selection{Charts: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Kind(snapshot.FluxGroup, "HelmRelease")) != 1 || len(s.Kind(snapshot.FluxSources, "HelmRepository")) != 1 {
				t.Errorf("got %v, want a HelmRelease and a HelmRepository", s.All())
			}

			// For a plan, the HelmRelease that manages a selected release is read.
			server.Put(k8s.Label(k8s.New("apps/v1", "Deployment", "ns", "lamp"), map[string]string{"app.kubernetes.io/managed-by": "Helm", snapshot.FluxRelease: "lamp", snapshot.FluxReleaseIn: "ns"}))
			record := k8s.Label(k8s.New("v1", "Secret", "ns", "sh.helm.release.v1.lamp.v1"), map[string]string{"owner": "helm", "name": "lamp", "status": "deployed", "version": "1"})
			content := base64.StdEncoding.EncodeToString([]byte(`{"namespace": "ns", "manifest": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: lamp}\n"}`))
			server.Put(k8s.With(record, any(dumpedObject{"release": base64.StdEncoding.EncodeToString([]byte(content))}), "data"))
			if s, err = snapshot.ReadLive(t.Context(), client, snapshot.Selection{Releases: []string{"lamp"}}); err != nil {
				t.Fatal(err)
			}
			if found := s.Kind(snapshot.FluxGroup, "HelmRelease"); len(found) != 1 || len(s.Unread) != 0 {
				t.Errorf("got the HelmReleases %v, unread %v, want one", found, s.Unread)
			}
		})
	}
}

// FuzzRead checks that Read does not panic, and that all positions are within the text.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"List","items":[{"kind":"Service","metadata":{"name":"a"}}]}`,
		"apiVersion: v1\nitems:\n- kind: Service\n  metadata:\n    name: a\nkind: List\n",
		"kind: Secret\nmetadata: {name: a}\ndata: {a: [b]}\n---\n[]\n",
		`{"items":[[]],"kind":`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := snapshot.Read("dump", strings.NewReader(text), snapshot.Selection{})
		if err != nil {
			var list diag.List
			if !errors.As(err, &list) {
				t.Fatalf("%T", err)
			}
			for _, e := range list {
				if e.Pos.File != "dump" || e.Pos.Line > strings.Count(text, "\n")+1 || e.Pos.Col > len(text)+1 {
					t.Errorf("%q: %v", text, e)
				}
			}
			return
		}
		for _, o := range s.All() {
			if o.Body().Key() != o.Key {
				t.Errorf("%q: %v is %v", text, o.Key, o.Body().Key())
			}
		}
		s.CSVs()
		s.InstallPlans()
	})
}

// FuzzRelease reads arbitrary content as a Helm release. Malformed content must be a fault of this release
// only, and must not make Read fail.
func FuzzRelease(f *testing.F) {
	for _, seed := range []string{
		`{"namespace":"a","chart":{"metadata":{"name":"x","version":"1.0.0"}},"config":{"a":[1,{"b":null}]},"manifest":"kind: Service\nmetadata: {name: a}\n","hooks":[{"manifest":"kind: Job\n","events":["pre-install"]}]}`,
		`{"manifest":"a: &a [*a]\n---\n- kind: List\n","config":[]}`,
		"\x1f\x8b\x08", "{", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		content := base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(text))))
		dump := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"sh.helm.release.v1.x.v1","namespace":"a","labels":{"owner":"helm","name":"x","status":"deployed","version":"1"}},"data":{"release":"` + content + `"}}`
		s, err := snapshot.Read("dump", strings.NewReader(dump), snapshot.Selection{Releases: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		releases := s.Releases()
		if len(releases) != 1 || releases[0].Name != "x" || releases[0].Revision != 1 {
			t.Fatalf("%v", releases)
		}
		if r := releases[0]; !utf8.ValidString(r.Fault) {
			t.Errorf("%q: %q", text, r.Fault)
		}
	})
}

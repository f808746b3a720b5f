package format

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/lockfile"
)

// filesOf returns a directory with files. In pairs, paths and contents alternate.
func filesOf(pairs ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return out
}

// objectsOf returns the objects of a release as canonical JSON, sorted.
func objectsOf(t *testing.T, objects []bundle.ReleaseObject) []string {
	t.Helper()
	b, err := bundle.Load(bundle.Release{Objects: objects}.In(nil))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range b.Objects {
		out = append(out, canonical(t, o.Object))
	}
	slices.Sort(out)
	return out
}

func canonical(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	data, err = json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestExpandManifests(t *testing.T) {
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, test := range map[string]struct {
		files fstest.MapFS
		want  string // a part of the error; empty: one ConfigMap
	}{
		"files":         {filesOf("b/a.yaml", config+"---\n", "README.md", "text"), ""},
		"kustomization": {filesOf("kustomization.yaml", "resources: [base]\nnamePrefix: x-\n", "base/kustomization.yaml", "resources: [a.yaml]\n", "base/a.yaml", config), ""},
		"remote base":   {filesOf("kustomization.yaml", "resources: ['https://example.com/x?ref=v1']\n"), "remote resources are not fetched"},
		"outside":       {filesOf("kustomization.yaml", "resources: [../x.yaml]\n"), "is outside"},
		"program":       {filesOf("kustomization.yaml", "generators: [g.yaml]\n", "g.yaml", "apiVersion: v1\nkind: Run\nmetadata: {name: a, annotations: {config.kubernetes.io/function: 'exec: {path: /bin/true}'}}\n"), "program"},
		"nothing":       {filesOf("README.md", "text"), "the release has no objects"},
		"nothing built": {filesOf("kustomization.yaml", "namePrefix: a-\n"), "kustomization"},
		"faults":        {filesOf("a.yaml", "a: [", "b.yaml", "b: ["), "b.yaml"},
	} {
		r, err := expandManifests(t.Context(), test.files, Input{Pin: lockfile.Pin{Namespace: "n"}})
		switch {
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got error %v, want %q", name, err, test.want)
		case test.want == "" && (err != nil || len(r.Objects) != 1):
			t.Errorf("%s: got %d objects and error %v", name, len(r.Objects), err)
		}
	}
}

func TestMoveObjects(t *testing.T) {
	const release = `
apiVersion: v1
kind: Namespace
metadata: {name: lamps}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: lamp, namespace: lamps}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: lamp, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects:
- {kind: ServiceAccount, name: lamp, namespace: lamps}
- {kind: User, name: lamps}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: lamp, annotations: {cert-manager.io/inject-ca-from: lamps/cert}}
webhooks: [{name: a.example.com, clientConfig: {service: {name: lamp, namespace: lamps}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec: {conversion: {webhook: {clientConfig: {service: {namespace: lamps}}}}, description: "namespace: lamps"}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.example.com}
spec: {service: {name: lamp, namespace: lamps}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: lamp, namespace: lamps, labels: {app: lamps}}
spec: {ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: lamps}}}]}]}
`
	move := func(text string) (string, error) {
		r, err := expandManifests(t.Context(), filesOf("a.yaml", text), Input{Pin: lockfile.Pin{Namespace: "lights"}})
		return strings.Join(objectsOf(t, r.Objects), "\n"), err
	}
	want := strings.NewReplacer(
		"metadata: {name: lamps}", "metadata: {name: lights}", "namespace: lamps}", "namespace: lights}", "namespace: lamps,", "namespace: lights,",
		"lamps/cert", "lights/cert", "metadata.name: lamps", "metadata.name: lights",
	).Replace(release)
	r, err := readManifests(filesOf("a.yaml", want), ".")
	if err != nil {
		t.Fatal(err)
	}
	got, err := move(release)
	if diff := cmp.Diff(strings.Join(objectsOf(t, r), "\n"), got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}

	account := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: lamp%s}\n---\n"
	for name, test := range map[string]struct{ text, want string }{
		"argument":   {"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: lamps}, spec: {args: [--watch-namespace=lamps]}}", "spec.args[0]"},
		"variable":   {"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: lamps}, spec: {env: [{name: MY_NAMESPACE, value: lamps}]}}", "spec.env[0].value"},
		"host":       {"{apiVersion: v1, kind: C, metadata: {name: a, namespace: lamps}, spec: {dnsNames: [lamp.lamps.svc.cluster.local]}}", "spec.dnsNames[0]"},
		"text":       {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: lamps}, data: {a: \"x:\\n  namespace: lamps\\n\"}}", "data.a"},
		"several":    {"{apiVersion: v1, kind: A, metadata: {name: a, namespace: x}}\n---\n{apiVersion: v1, kind: A, metadata: {name: a, namespace: z}}", "several namespaces (x, z)"},
		"only words": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: lamps}, data: {a: lamps, b: 'namespace: lamps-2'}}", ""},
		"in place":   {"{apiVersion: v1, kind: A, metadata: {name: a, namespace: lights}, x: {namespace: y}}", ""},
		"by subject": {strings.Replace(account, "%s", "", 1) + "{apiVersion: v1, kind: ClusterRoleBinding, metadata: {name: a}, subjects: [{kind: ServiceAccount, name: lamp, namespace: lamps}], x: {namespace: lamps}}", "x.namespace"},
	} {
		if _, err := move(test.text); test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// TestReleasesInCorpus reads real releases. It compares their objects with the output of kustomize build or,
// for plain files, with the documents in the files.
func TestReleasesInCorpus(t *testing.T) {
	files := releaseFiles(t)
	builds, plain := 0, 0
	compare := func(name string, objects []bundle.ReleaseObject, golden []byte) {
		var want []string
		for line := range bytes.Lines(golden) {
			var o struct{ Object any }
			if err := json.Unmarshal(line, &o); err != nil {
				t.Fatal(err)
			}
			want = append(want, canonical(t, o.Object))
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, objectsOf(t, objects)); diff != "" {
			t.Errorf("%s: %.2000s", name, diff)
		}
	}
	for name, f := range files {
		dir := path.Dir(name)
		if text, ok := strings.CutSuffix(name, ".yaml"); ok && path.Base(dir) == "plain" && files[text+".jsonl"] != nil {
			objects, err := readManifests(fstest.MapFS{"a.yaml": f}, ".")
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			compare(name, objects, files[text+".jsonl"].Data)
			plain++
		}
		if path.Base(name) != "meta.json" {
			continue
		}
		var meta struct {
			Builds map[string]struct{ File, Error string }
		}
		if err := json.Unmarshal(f.Data, &meta); err != nil {
			t.Fatal(err)
		}
		tree, err := files.Sub(dir + "/kustomize")
		if err != nil {
			t.Fatal(err)
		}
		for entry, b := range meta.Builds {
			objects, err := readManifests(tree, entry)
			if (err != nil) != (b.Error != "") {
				t.Errorf("%s %s: got %v, kustomize %q", dir, entry, err, b.Error)
			}
			if err != nil || b.Error != "" {
				continue
			}
			compare(dir+" "+entry, objects, files[path.Join(dir, strings.TrimSuffix(b.File, ".yaml")+".jsonl")].Data)
			builds++
		}
	}
	t.Logf("%d kustomizations and %d files are equal", builds, plain)
}

// releaseFiles returns the files of the releases in the corpus.
func releaseFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	f, err := os.Open(filepath.Join(os.Getenv("QUAYSIDE_CORPUS"), "charts", "releases.tar.zst"))
	if os.Getenv("QUAYSIDE_CORPUS") == "" || errors.Is(err, os.ErrNotExist) {
		t.Skip("QUAYSIDE_CORPUS is not set, or has no releases")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := fstest.MapFS{}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			out[path.Clean(h.Name)] = &fstest.MapFile{Data: data}
		}
	}
}

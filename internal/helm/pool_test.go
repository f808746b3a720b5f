package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/diag"
)

// chartOf returns the files of a chart with the given templates and other files.
func chartOf(files map[string]string) map[string][]byte {
	out := map[string][]byte{"Chart.yaml": []byte("apiVersion: v2\nname: beacon\nversion: 1.2.3\n")}
	for name, text := range files {
		out[name] = []byte(text)
	}
	return out
}

func options() Options {
	return Options{ReleaseName: "rel", Namespace: "ns", KubeVersion: "1.34.0"}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// template templates a chart and returns its objects as "source kind/name", or the error.
func template(t *testing.T, p *Pool, files map[string]string, opt Options) []string {
	t.Helper()
	got, err := p.Template(t.Context(), chartOf(files), opt)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, r := range got.Resources {
		name := r.Object["metadata"].(map[string]any)["name"]
		line := fmt.Sprintf("%s %v/%v", r.Source, r.Object["kind"], name)
		if len(r.Hooks) > 0 {
			line += fmt.Sprintf(" %v %d %v", r.Hooks, r.HookWeight, r.HookDelete)
		}
		out = append(out, line)
	}
	return out
}

// TestTemplate checks the order of the objects, hooks, lists, subcharts and errors.
func TestTemplate(t *testing.T) {
	p := newPool(t)
	for name, c := range map[string]struct {
		files map[string]string
		opt   func(*Options)
		want  []string
	}{
		"order of kinds, crds first, hooks last": {
			files: map[string]string{
				"templates/a.yaml":    "kind: Zebra\nmetadata: {name: z}\n---\nkind: Deployment\nmetadata: {name: d}\n---\n# nothing\n---\n" + configMap,
				"templates/b.yaml":    "kind: Job\nmetadata:\n  name: j\n  annotations: {helm.sh/hook: 'pre-install, Pre-Upgrade', helm.sh/hook-weight: -3, helm.sh/hook-delete-policy: 'before-hook-creation,hook-succeeded'}\n",
				"crds/c.yaml":         "kind: CustomResourceDefinition\nmetadata: {name: c}\n",
				"templates/NOTES.txt": "hello {{ .Release.Name }}",
			},
			want: []string{
				"beacon/crds/c.yaml CustomResourceDefinition/c",
				"beacon/templates/a.yaml ConfigMap/a", "beacon/templates/a.yaml Deployment/d", "beacon/templates/a.yaml Zebra/z",
				"beacon/templates/b.yaml Job/j [pre-install pre-upgrade] -3 [before-hook-creation hook-succeeded]",
			},
		},
		"list": {
			files: map[string]string{"templates/a.yaml": "kind: List\nitems:\n- {kind: A, metadata: {name: x}}\n- {kind: B, metadata: {name: w}}\n"},
			want:  []string{"beacon/templates/a.yaml A/x", "beacon/templates/a.yaml B/w"},
		},
		"values": {
			files: map[string]string{"values.yaml": "name: default\n", "templates/a.yaml": "kind: A\nmetadata: {name: {{ .Values.name }}-{{ .Release.Namespace }}}\n"},
			opt:   func(o *Options) { o.Values = map[string]any{"name": "mine"} },
			want:  []string{"beacon/templates/a.yaml A/mine-ns"},
		},
		"subchart by condition": {
			files: map[string]string{
				"Chart.yaml":                  "apiVersion: v2\nname: beacon\nversion: 1.2.3\ndependencies: [{name: sub, version: 1.x, condition: sub.enabled}]\n",
				"values.yaml":                 "sub: {enabled: false}\n",
				"charts/sub/Chart.yaml":       "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
				"charts/sub/templates/a.yaml": configMap,
			},
			want: nil,
		},
		"missing subchart": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: beacon\nversion: 1.2.3\ndependencies: [{name: sub, version: 1.x}]\n"},
			want:  []string{"beacon/Chart.yaml: chart beacon 1.2.3: dependencies are missing in charts/: sub\n  hint: in the chart's directory, run 'helm dependency build'"},
		},
		"API versions": {
			files: map[string]string{"templates/a.yaml": `{{ if and (.Capabilities.APIVersions.Has "x/v1/X") (not (.Capabilities.APIVersions.Has "apps/v1")) }}` + configMap + "{{ end }}"},
			opt:   func(o *Options) { o.APIVersions = []string{"x/v1/X"} },
			want:  []string{"beacon/templates/a.yaml ConfigMap/a"},
		},
		"Helm's API versions": {
			files: map[string]string{"templates/a.yaml": `{{ if .Capabilities.APIVersions.Has "apps/v1" }}` + configMap + "{{ end }}"},
			want:  []string{"beacon/templates/a.yaml ConfigMap/a"},
		},
		"Kubernetes version": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: beacon\nversion: 1.2.3\nkubeVersion: '>=1.35'\n"},
			want:  []string{"beacon/Chart.yaml: chart beacon 1.2.3: the chart requires Kubernetes >=1.35, and does not support v1.34.0"},
		},
		"failing template": {
			files: map[string]string{"templates/a.yaml": "a: 1\nb: {{ fail \"set x\" }}\n"},
			want:  []string{"beacon/templates/a.yaml:2:6: chart beacon 1.2.3: set x"},
		},
		"failing first line": {
			files: map[string]string{"templates/a.yaml": `b: {{ fail "set x" }}`},
			want:  []string{"beacon/templates/a.yaml:1:6: chart beacon 1.2.3: set x"},
		},
		"failing helper": {
			files: map[string]string{"templates/a.yaml": `{{ include "f" . }}`, "templates/_b.tpl": "{{ define \"f\" }}\n{{ required \"set y\" .Values.y }}{{ end }}"},
			want:  []string{"beacon/templates/a.yaml:1:3: chart beacon 1.2.3: set y"},
		},
		"failing notes": {
			files: map[string]string{"templates/NOTES.txt": `{{ fail "no" }}`},
			want:  []string{"beacon/templates/NOTES.txt:1:3: chart beacon 1.2.3: no"},
		},
		"syntax error": {
			files: map[string]string{"templates/a.yaml": "\n{{ if }}"},
			want:  []string{"beacon/templates/a.yaml:2: chart beacon 1.2.3: missing value for if"},
		},
		"no YAML": {
			files: map[string]string{"templates/a.yaml": "a: b: c"},
			want:  []string{"beacon/templates/a.yaml: chart beacon 1.2.3: the template renders invalid YAML: yaml: mapping values are not allowed in this context"},
		},
		"a template in crds": {
			files: map[string]string{"crds/a.yaml": "kind: A\nmetadata:\n  {{ with .Values.x }}\n  a: b\n"},
			want:  []string{"beacon/crds/a.yaml: chart beacon 1.2.3: the file, in which Helm executes no template, has invalid YAML: yaml: line 3: did not find expected key"},
		},
		"schema": {
			files: map[string]string{"values.yaml": "size: 1\n", "values.schema.json": `{"properties": {"size": {"type": "string"}}}`},
			want:  []string{"beacon/values.schema.json: chart beacon 1.2.3: values do not match the schema: - at '/size': got number, want string"},
		},
		"no semantic version": {
			files: map[string]string{"Chart.yaml": "name: beacon\nversion: devel\n"},
			want:  []string{`Chart.yaml:2:10: version "devel" of chart beacon is not a semantic version`},
		},
		"library": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: beacon\nversion: 1.2.3\ntype: library\n"},
			want:  []string{"beacon/Chart.yaml: chart beacon 1.2.3: a chart of type library cannot be installed"},
		},
		"YAML 1.1": {
			files: map[string]string{"templates/a.yaml": "kind: A\nmetadata: {name: '{{ .Values.size }}'}\n", "values.yaml": "size: 1000000\n"},
			want:  []string{"beacon/templates/a.yaml A/1e+06"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			opt := options()
			if c.opt != nil {
				c.opt(&opt)
			}
			if d := cmp.Diff(c.want, template(t, p, c.files, opt)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestNotices checks the notices that are returned together with the objects.
func TestNotices(t *testing.T) {
	got, err := newPool(t).Template(t.Context(), chartOf(map[string]string{
		"templates/a.yaml": `{{ if not (lookup "v1" "Secret" "ns" "s") }}` + configMap + "{{ end }}",
		"templates/b.yaml": "kind: CustomResourceDefinition\nmetadata: {name: old, annotations: {helm.sh/hook: crd-install}}\n",
		"values.yaml":      "a: {b: 1}\n",
	}), Options{ReleaseName: "rel", Namespace: "ns", KubeVersion: "1.34.0", Values: map[string]any{"a": "text"}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"beacon/templates/a.yaml"}, got.Lookups); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{`CustomResourceDefinition old in beacon/templates/b.yaml (unknown hook "crd-install")`}, got.Skipped); d != "" {
		t.Error(d)
	}
}

// TestNumbers checks the types of numbers.
func TestNumbers(t *testing.T) {
	got, err := newPool(t).Template(t.Context(), chartOf(map[string]string{
		"templates/a.yaml": "kind: A\nmetadata: {name: a}\nints: [1, 0o17, 9007199254740993, -1]\nfloats: [1.5, 1e3]\nyes: [yes, on, 0777]\n",
	}), options())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"kind": "A", "metadata": map[string]any{"name": "a"},
		"ints": []any{int64(1), int64(15), int64(9007199254740993), int64(-1)}, "floats": []any{1.5, int64(1000)},
		"true": []any{true, true, int64(511)},
	}
	if d := cmp.Diff(want, got.Resources[0].Object); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestDeterminism checks that a chart that generates values is an error. The hint must name a value to set instead.
func TestDeterminism(t *testing.T) {
	p := newPool(t)
	for name, c := range map[string]struct{ values, text, want string }{
		"password": {
			"auth: {existingSecret: '', password: ''}\n",
			"{{ if not .Values.auth.existingSecret }}kind: Secret\nmetadata: {name: s}\nstringData: {pw: {{ randAlphaNum 1 }}}\n{{ end }}",
			"beacon/templates/a.yaml: chart beacon 1.2.3: not deterministic: Secret s: /stringData/pw differs each time the chart is rendered\n  hint: set the value auth.existingSecret",
		},
		"year": {"", "kind: A\nmetadata: {name: s, annotations: {at: '{{ now | date \"2006\" }}'}}\n", "/metadata/annotations/at differs"},
		"dice": {"", "kind: A\nmetadata: {name: s, size: {{ randInt 0 2 }}}\n", "/metadata/size differs"},
		"certificate": {
			"webhook: {certManager: {enabled: false}}\n",
			"{{ if not .Values.webhook.certManager.enabled }}{{ $ca := genCA \"x\" 10 }}kind: Secret\nmetadata: {name: s}\ndata: {tls.crt: {{ $ca.Cert | b64enc }}, tls.key: x}\n{{ end }}",
			"Secret s: /data/tls.crt differs each time the chart is rendered\n  hint: set the value webhook.certManager.enabled",
		},
		"many keys":           {"", "kind: A\nmetadata: {name: s}\nkeys:\n{{ range until 200 }}- {{ genPrivateKey \"rsa\" | sha256sum }}\n{{ end }}", "A s: /keys/0 differs each time the chart is rendered"}, // RSA keys would need minutes
		"signed certificates": {"", "{{ $ca := genCA \"x\" 10 }}kind: A\nmetadata: {name: s}\ncerts:\n{{ range until 200 }}- {{ (genSignedCert \"y\" nil (list \"y\") 10 $ca).Key | sha256sum }}\n- {{ (genSelfSignedCert \"y\" nil nil 10).Cert | sha256sum }}\n{{ end }}", "A s: /certs/0 differs each time the chart is rendered"},
		"number of objects":   {"", "{{ range until (randInt 1 3) }}\n---\nkind: A\nmetadata: {name: s}\n{{ end }}", "renders 1 objects, and 2 when it is rendered again"},
		"unused":              {"", "{{ $x := randAlphaNum 5 }}kind: A\nmetadata: {name: s}\n", "beacon/templates/a.yaml A/s"},
		"keys":                {"", "kind: A\nmetadata: {name: s}\nk: {{ dict \"a\" 1 \"b\" 2 \"c\" 3 | keys | join \",\" }}\nv: {{ dict \"a\" 1 \"b\" 2 \"c\" 3 | values | join \",\" }}\n", "beacon/templates/a.yaml A/s"},
	} {
		t.Run(name, func(t *testing.T) {
			got := template(t, p, map[string]string{"templates/a.yaml": c.text, "values.yaml": c.values}, options())
			if !strings.Contains(strings.Join(got, "\n"), c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestContext checks that a cancelled context ends the child, and that the pool works afterwards.
func TestContext(t *testing.T) {
	p := newPool(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Template(ctx, chartOf(nil), options()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := template(t, p, map[string]string{"templates/a.yaml": configMap}, options()); len(got) != 1 {
		t.Error(got)
	}
}

// TestProgram checks the error for a program that is not a chart server.
func TestProgram(t *testing.T) {
	if _, err := NewPool("/bin/true").Template(t.Context(), chartOf(nil), options()); err == nil || !strings.Contains(err.Error(), "does not template charts") {
		t.Error(err)
	}
}

// pack returns a chart archive with these entries, in order.
func pack(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range entries {
		data := h.PAXRecords["content"]
		h.PAXRecords = nil
		h.Size = int64(len(data))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// regular returns an entry for a file.
func regular(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, PAXRecords: map[string]string{"content": content}}
}

func TestReadArchive(t *testing.T) {
	chart := regular("beacon/Chart.yaml", "name: beacon\n")
	for name, c := range map[string]struct {
		entries []tar.Header
		want    string // files, or a part of the error
	}{
		"plain":             {[]tar.Header{{Name: "beacon/", Typeflag: tar.TypeDir}, chart, regular("beacon/templates/a.yaml", "a")}, "Chart.yaml templates/a.yaml"},
		"./":                {[]tar.Header{regular("./beacon/Chart.yaml", "")}, "Chart.yaml"},
		"Windows":           {[]tar.Header{chart, regular(`beacon\templates\a.yaml`, "a")}, "Chart.yaml templates/a.yaml"},
		"no Chart.yaml":     {[]tar.Header{regular("beacon/values.yaml", "")}, "has no Chart.yaml"},
		"no directory":      {[]tar.Header{regular("Chart.yaml", "")}, `"Chart.yaml" is not in the directory of the chart`},
		"two directories":   {[]tar.Header{chart, regular("other/x", "")}, `two top directories: "beacon" and "other"`},
		"symbolic link":     {[]tar.Header{chart, {Name: "beacon/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, `"beacon/x" is not a regular file`},
		"hard link":         {[]tar.Header{chart, {Name: "beacon/x", Typeflag: tar.TypeLink, Linkname: "beacon/Chart.yaml"}}, `"beacon/x" is not a regular file`},
		"device":            {[]tar.Header{chart, {Name: "beacon/x", Typeflag: tar.TypeChar}}, `"beacon/x" is not a regular file`},
		"absolute":          {[]tar.Header{chart, regular("/beacon/x", "")}, `"/beacon/x" is not a path within the chart`},
		"out":               {[]tar.Header{chart, regular("beacon/../../x", "")}, "is not a path within the chart"},
		"out, Windows":      {[]tar.Header{chart, regular(`beacon\..\..\x`, "")}, "is not a path within the chart"},
		"drive":             {[]tar.Header{chart, regular("beacon/c:/x", "")}, "is not a path within the chart"},
		"repeated":          {[]tar.Header{chart, chart}, `"Chart.yaml" occurs twice`},
		"deep":              {[]tar.Header{chart, regular("beacon/"+strings.Repeat("d/", 50)+"x", "")}, "more than 20 directories"},
		"compression ratio": {[]tar.Header{chart, regular("beacon/x", strings.Repeat("\x00", 20<<20))}, "suspicious compression ratio"},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := ReadArchive(bytes.NewReader(pack(t, c.entries...)))
			got := strings.Join(slices.Sorted(maps.Keys(files)), " ")
			if err != nil {
				got = err.Error()
			}
			if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzReadArchive checks that an archive gives files within the limits or an error.
func FuzzReadArchive(f *testing.F) {
	f.Add(pack(f, regular("beacon/Chart.yaml", "name: beacon\nversion: 1.0.0\n")))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, data []byte) {
		files, err := ReadArchive(bytes.NewReader(data))
		if err != nil {
			return
		}
		for name := range files {
			if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
				t.Errorf("path %q", name)
			}
		}
	})
}

// FuzzReadMetadata checks that a Chart.yaml gives a name and a version, or an error.
func FuzzReadMetadata(f *testing.F) {
	f.Add([]byte("apiVersion: v2\nname: beacon\nversion: 1.0.0\nappVersion: 1.10\nmaintainers: [{name: a}]\nannotations: {a: 1}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ReadMetadata(map[string][]byte{"Chart.yaml": data})
		if err == nil && (m.Name == "" || m.Version == "") {
			t.Errorf("%+v", m)
		}
	})
}

func TestReadMetadata(t *testing.T) {
	got, err := ReadMetadata(map[string][]byte{"Chart.yaml": []byte(`apiVersion: v2
name: beacon
version: v1.2
appVersion: 1.10
kubeVersion: ">= 1.25"
deprecated: true
description: |
  Lights
  a beacon
keywords: [light, 5]
sources: [https://example.com]
maintainers: [{name: Ada, email: ada@example.com}]
annotations: {a: 1, b: x}
dependencies: [{name: sub, version: 1.x, repository: "https://example.com", alias: s, condition: s.enabled}]
more: ignored
`)})
	if err != nil {
		t.Fatal(err)
	}
	want := Metadata{
		Name: "beacon", Version: "v1.2", AppVersion: "1.1", KubeVersion: ">= 1.25", Deprecated: true, Description: "Lights a beacon",
		Keywords: []string{"light", "5"}, Sources: []string{"https://example.com"}, Maintainers: []Maintainer{{Name: "Ada", Email: "ada@example.com"}},
		Annotations: map[string]string{"a": "1", "b": "x"}, Dependencies: []Dependency{{"sub", "1.x", "https://example.com", "s", "s.enabled"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	_, err = ReadMetadata(map[string][]byte{"Chart.yaml": []byte("name: a/b\nversion: 1.0.0\n")})
	if fault := diag.FaultOf(err); fault.Position != "Chart.yaml:1:7" {
		t.Errorf("%+v", fault)
	}
}

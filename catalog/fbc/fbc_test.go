package fbc

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// smallObjects returns one package that sets every field.
func smallObjects() []string {
	csv := base64.StdEncoding.EncodeToString([]byte(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},` +
		`"spec":{"displayName":"A one","description":"# A\nlong","installModes":[{"type":"AllNamespaces","supported":true}]}}`))
	return []string{
		`{"schema": "olm.package", "name": "a", "defaultChannel": "stable", "description": "an A", "icon": {"base64data": "eA==", "mediatype": "image/png"}}`,
		`{"schema": "olm.channel", "package": "a", "name": "stable", "entries": [
  {"name": "a.v2", "replaces": "a.v1", "skips": ["a.v0"], "skipRange": "<1.5.0"},
  {"name": "a.v1"}
]}`,
		`{"name": "a.v2", "package": "a", "schema": "olm.bundle", "image": "example.com/a@sha256:2", "properties": [
  {"value": {"packageName": "a", "version": "2.0.0"}, "type": "olm.package"},
  {"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": "K"}},
  {"type": "olm.csv.metadata", "value": {
    "annotations": {"description": "short", "operatorframework.io/suggested-namespace": "a-ns", "other.io/x": "dropped"},
    "crdDescriptions": {"owned": [{"name": "ks.g", "version": "v1", "kind": "K"}]},
    "description": "a very long text", "displayName": "A", "keywords": ["k"], "maturity": "stable", "minKubeVersion": "1.20.0",
    "provider": {"name": "P"},
    "installModes": [{"type": "OwnNamespace", "supported": true}, {"type": "AllNamespaces", "supported": true}, {"type": "MultiNamespace", "supported": false}]
  }}
], "relatedImages": [{"name": "", "image": "example.com/x"}]}`,
		`{"schema": "olm.bundle", "package": "a", "name": "a.v1", "properties": [
  {"type": "olm.package", "value": {"packageName": "a", "version": "1.0.0"}},
  {"type": "olm.bundle.object", "value": {"data": "` + csv + `"}},
  {"type": "olm.bundle.object", "value": {"data": "` + base64.StdEncoding.EncodeToString([]byte("kind: Service\n")) + `"}}
]}`,
		`{"schema": "olm.deprecations", "package": "a", "entries": [
  {"reference": {"schema": "olm.bundle", "name": "a.v1"}, "message": "old"},
  {"reference": {"schema": "olm.package"}, "message": "gone"}
]}`,
		`{"schema": "io.openshift.operators.lifecycles.v1alpha1", "package": "a", "versions": [
  {"name": "1.0", "phases": [{"name": "Full support", "startDate": "2025-01-01", "endDate": "2025-06-30"}]},
  {"name": "2.0", "phases": [
    {"name": "Full support", "startDate": "2025-07-01", "endDate": "2025-12-31"},
    {"name": "Maintenance support", "startDate": "2026-01-01", "endDate": "2026-12-31"}
  ], "platformCompatibility": [{"name": "openshift", "versions": ["4.18", "4.20"]}, {"name": "other", "versions": ["1.0"]}]}
]}`,
		`{"schema": "example.com.other", "entries": 7, "properties": "x", "name": ["free"]}`,
	}
}

func smallContent() catalog.Content {
	return catalog.Content{Others: []catalog.OtherSchema{{Schema: "example.com.other"}}, Packages: []catalog.PackageData{{
		Name: "a", DefaultChannel: "stable", Description: "an A",
		Channels: []catalog.ChannelData{{Name: "stable", Entries: []catalog.EntryData{
			{Name: "a.v2", Replaces: "a.v1", Skips: []string{"a.v0"}, SkipRange: "<1.5.0"}, {Name: "a.v1"},
		}}},
		Bundles: []catalog.BundleData{
			{
				Name: "a.v1", Embedded: true,
				Properties: []catalog.Property{{Type: "olm.package", Value: []byte(`{"packageName":"a","version":"1.0.0"}`)}},
				Metadata: catalog.Metadata{
					Known: true, DisplayName: "A one", Description: "A",
					InstallModes: []catalog.InstallMode{catalog.AllNamespaces},
				},
			},
			{
				Name: "a.v2", Image: "example.com/a@sha256:2",
				Properties: []catalog.Property{
					{Type: "olm.package", Value: []byte(`{"packageName":"a","version":"2.0.0"}`)},
					{Type: "olm.gvk", Value: []byte(`{"group":"g","version":"v1","kind":"K"}`)},
				},
				RelatedImages: []catalog.RelatedImage{{Image: "example.com/x"}},
				Metadata: catalog.Metadata{
					Known: true, DisplayName: "A", Description: "short", Provider: "P", MinKubeVersion: "1.20.0", Maturity: "stable",
					InstallModes: []catalog.InstallMode{catalog.AllNamespaces, catalog.OwnNamespace}, Keywords: []string{"k"},
					Annotations: map[string]string{"operatorframework.io/suggested-namespace": "a-ns"}, Owned: []string{"ks.g"},
				},
			},
		},
		Deprecations: []catalog.DeprecationData{
			{Schema: "olm.bundle", Name: "a.v1", Message: "old"}, {Schema: "olm.package", Message: "gone"},
		},
		Lifecycles: []catalog.LifecycleData{{Versions: []catalog.SupportedVersion{
			{Name: "1.0", Phases: []catalog.SupportPhase{{Name: "Full support", Start: "2025-01-01", End: "2025-06-30"}}},
			{
				Name: "2.0", Phases: []catalog.SupportPhase{
					{Name: "Full support", Start: "2025-07-01", End: "2025-12-31"}, {Name: "Maintenance support", Start: "2026-01-01", End: "2026-12-31"},
				},
				Platforms: []catalog.SupportedPlatform{{Name: "openshift", Version: "4.18"}, {Name: "openshift", Version: "4.20"}, {Name: "other", Version: "1.0"}},
			},
		}}},
	}}}
}

func noPos() cmp.Options {
	return cmp.Options{cmpopts.IgnoreTypes(diag.Pos{}, catalog.Span{}), cmpopts.EquateEmpty()}
}

func TestDecode(t *testing.T) {
	got, err := Decode("c.json", strings.NewReader(strings.Join(smallObjects(), "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(smallContent(), got, noPos()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	p := got.Packages[0]
	for _, tt := range []struct {
		what      string
		got, want diag.Pos
	}{
		{"package", p.Pos, diag.Pos{File: "c.json", Line: 1, Col: 1}},
		{"channel", p.Channels[0].Pos, diag.Pos{File: "c.json", Line: 2, Col: 1}},
		{"entry", p.Channels[0].Entries[1].Pos, diag.Pos{File: "c.json", Line: 4, Col: 3}},
		{"bundle", p.Bundles[0].Pos, diag.Pos{File: "c.json", Line: 17, Col: 1}},
		{"deprecation", p.Deprecations[0].Pos, diag.Pos{File: "c.json", Line: 23, Col: 3}},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: position %s, want %s", tt.what, tt.got, tt.want)
		}
	}
}

// TestLayouts distributes the same objects over files in many ways.
func TestLayouts(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		files := fstest.MapFS{".indexignore": {Data: []byte("*.md\n/skipped/\n")}, "README.md": {Data: []byte("# no catalog")}, "skipped/x": {Data: []byte("?")}}
		files[".git/HEAD"], files["a/.git"] = &fstest.MapFile{Data: []byte("?")}, &fstest.MapFile{Data: []byte("gitdir: elsewhere")}
		objects := smallObjects()
		rnd.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		for _, o := range objects {
			name := fmt.Sprintf("%c/%d.json", 'a'+rune(rnd.IntN(2)), rnd.IntN(3))
			if files[name] == nil {
				files[name] = &fstest.MapFile{}
			}
			files[name].Data = append(files[name].Data, o...)
		}
		got, err := LoadFS(files)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(smallContent(), got, noPos()); d != "" {
			t.Fatalf("seed %d: -want +got\n%s", seed, d)
		}
	}
}

func TestEncodeDecode(t *testing.T) {
	want := smallContent()
	want.Others = nil // not encoded
	manifests := func(pkg, bundle string) ([][]byte, error) {
		return Objects(fstest.MapFS{"c": {Data: []byte(strings.Join(smallObjects(), ""))}}, pkg, bundle)
	}
	var first bytes.Buffer
	if err := Encode(&first, want, manifests); err != nil {
		t.Fatal(err)
	}
	got, err := Decode("c", bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, noPos()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	var second bytes.Buffer
	if err := Encode(&second, got, manifests); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("encoded again:\n%s\nwant\n%s", second.Bytes(), first.Bytes())
	}
	lost := errors.New("lost")
	if err := Encode(&second, want, func(string, string) ([][]byte, error) { return nil, lost }); !errors.Is(err, lost) {
		t.Errorf("failing manifests: got %v, want the same error", err)
	}
}

func TestObjects(t *testing.T) {
	fsys := fstest.MapFS{
		"b/catalog.json":  {Data: []byte(strings.Join(smallObjects(), "\n"))},
		"a/catalog.yaml":  {Data: []byte("---\nschema: olm.bundle\nname: c.v1\npackage: c\nproperties:\n- type: olm.bundle.object\n  value:\n    ref: objects/x.txt\n- type: olm.bundle.object\n  value: {data: eHg=}\n")},
		"a/.indexignore":  {Data: []byte("*.txt\n")},
		"a/objects/x.txt": {Data: []byte("\x00raw")},
	}
	for _, tt := range []struct {
		pkg, bundle string
		want        []string
	}{
		{"a", "a.v2", nil},
		{"a", "a.v1", []string{"", "kind: Service\n"}},
		{"c", "c.v1", []string{"\x00raw", "xx"}},
	} {
		got, err := Objects(fsys, tt.pkg, tt.bundle)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(tt.want) {
			t.Fatalf("%s: got %d manifests, want %d", tt.bundle, len(got), len(tt.want))
		}
		for i, w := range tt.want {
			if w != "" && string(got[i]) != w {
				t.Errorf("%s[%d]: got %q, want %q", tt.bundle, i, got[i], w)
			}
		}
	}
	if _, err := Objects(fsys, "a", "a.v9"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing bundle: got %v", err)
	}
}

// TestMetadataFields sets each field of olm.csv.metadata, as defined in operator-registry
// (alpha/property, CSVMetadata), and checks which fields are decoded.
func TestMetadataFields(t *testing.T) {
	for _, f := range []struct {
		name, value string
		read        bool
	}{
		{"annotations", `{"operatorframework.io/suggested-namespace":"a"}`, true},
		{"apiServiceDefinitions", `{"owned":[{"group":"g","version":"v1","kind":"K","name":"ks"}]}`, false}, // the property olm.gvk has the same content
		{"crdDescriptions", `{"owned":[{"name":"ks.g","version":"v1","kind":"K"}]}`, true},
		{"description", `"long"`, true},
		{"displayName", `"K"`, true},
		{"installModes", `[{"type":"OwnNamespace","supported":true}]`, true},
		{"keywords", `["k"]`, true},
		{"labels", `{"operatorframework.io/arch.amd64":"supported"}`, false}, // only shown in consoles
		{"links", `[{"name":"n","url":"u"}]`, false},
		{"maintainers", `[{"name":"n","email":"e"}]`, false},
		{"maturity", `"stable"`, true},
		{"minKubeVersion", `"1.30.0"`, true},
		{"nativeAPIs", `[{"group":"g","version":"v1","kind":"K"}]`, false}, // no catalog provides native APIs
		{"provider", `{"name":"n","url":"u"}`, true},
		{"Annotations", `{"operatorframework.io/suggested-namespace":"a"}`, false},
		{"installmodes", `[{"type":"OwnNamespace","supported":true}]`, false},
	} {
		text := `{"schema":"olm.bundle","package":"a","name":"a.v1","properties":[{"type":"olm.csv.metadata","value":{"` + f.name + `":` + f.value + `}}]}`
		c, err := Decode("f", strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		if got := !cmp.Equal(c.Packages[0].Bundles[0].Metadata, catalog.Metadata{Known: true}); got != f.read {
			t.Errorf("%s: decoded %v, want %v: %+v", f.name, got, f.read, c.Packages[0].Bundles[0].Metadata)
		}
	}
}

// TestMetadata decodes the metadata of a bundle.
func TestMetadata(t *testing.T) {
	csv := base64.StdEncoding.EncodeToString([]byte(`{"kind":"ClusterServiceVersion","spec":{"displayName":"embedded"}}`))
	object := `{"type":"olm.bundle.object","value":{"data":"` + csv + `"}}`
	odd := base64.StdEncoding.EncodeToString([]byte(`{"kind":"ClusterServiceVersion","metadata":[],"spec":{"displayName":7,"provider":[],"keywords":{},"installModes":"x","customresourcedefinitions":{"owned":[1]}}}`))
	wrong := `{"type":"olm.bundle.object","value":{"data":"` + odd + `"}}`
	property := `{"type":"olm.csv.metadata","value":{"displayName":"said","description":"\n# Long\nmore","annotations":{"description":"","olm.a":"` + strings.Repeat("a", 1023) + `","olm.b":"` + strings.Repeat("b", 1024) + `","c":"c"},` +
		`"crdDescriptions":{"owned":[{"name":"b"},{"name":"a"},{"name":"b"}]}}}`
	want := catalog.Metadata{Known: true, DisplayName: "said", Description: "Long", Owned: []string{"a", "b"}, Annotations: map[string]string{"olm.a": strings.Repeat("a", 1023)}}
	for _, tt := range []struct {
		properties []string
		want       catalog.Metadata
		embedded   bool
	}{
		{[]string{property}, want, false},
		{[]string{property, object}, want, true},
		{[]string{object, property}, want, true},
		{[]string{object}, catalog.Metadata{Known: true, DisplayName: "embedded"}, true},
		{[]string{wrong}, catalog.Metadata{Known: true, InstallModes: []catalog.InstallMode{}}, true},
		{nil, catalog.Metadata{}, false},
	} {
		text := `{"schema":"olm.bundle","package":"a","name":"a.v1","properties":[` + strings.Join(tt.properties, ",") + `]}`
		c, err := Decode("f", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		b := c.Packages[0].Bundles[0]
		if d := cmp.Diff(tt.want, b.Metadata); d != "" {
			t.Errorf("%s: -want +got\n%s", tt.properties, d)
		}
		if b.Embedded != tt.embedded || (b.Span.Size == int64(len(text))) != tt.embedded || !tt.embedded && b.Span.Size > 0 {
			t.Errorf("%s: embedded %t, position %v", tt.properties, b.Embedded, b.Span)
		}
		var out strings.Builder
		if err := Encode(&out, c, func(_, _ string) ([][]byte, error) { return [][]byte{[]byte("x")}, nil }); err != nil || strings.Contains(out.String(), "olm.csv.metadata") {
			t.Errorf("encoded with manifests, %v:\n%s", err, out.String())
		}
	}
}

// TestObjectsOfNamesakes checks that bundles with the same name in different packages are
// distinguished, in any order of files and fields.
func TestObjectsOfNamesakes(t *testing.T) {
	manifest := func(pkg string) string { return "kind: Service # of " + pkg + "\n" }
	one := func(pkg string) []string {
		data := base64.StdEncoding.EncodeToString([]byte(manifest(pkg)))
		return []string{
			`"schema":"olm.bundle","package":"` + pkg + `","name":"x.v1","properties":[{"type":"olm.bundle.object","value":{"data":"` + data + `"}}]`,
			`"properties":[{"value":{"data":"` + data + `"},"type":"olm.bundle.object"}],"name":"x.v1","package":"` + pkg + `","schema":"olm.bundle"`,
		}
	}
	for i := range 4 {
		a, b := "{"+one("a")[i/2]+"}", "{"+one("b")[i%2]+"}"
		for _, files := range []fstest.MapFS{
			{"1.json": {Data: []byte(a)}, "2.json": {Data: []byte(b)}},
			{"1.json": {Data: []byte(b)}, "2.json": {Data: []byte(a)}},
			{"1.json": {Data: []byte(a + "\n" + b)}},
			{"1.json": {Data: []byte(b + "\n" + a)}},
			{"1.yaml": {Data: []byte("---\n" + a + "\n---\n" + b)}},
		} {
			for _, pkg := range []string{"a", "b"} {
				got, err := Objects(files, pkg, "x.v1")
				if err != nil || len(got) != 1 || string(got[0]) != manifest(pkg) {
					t.Errorf("package %q: got %q, %v, from %v", pkg, got, err, files)
				}
			}
			if got, err := Objects(files, "c", "x.v1"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("package without the bundle: got %q, %v", got, err)
			}
		}
	}
}

// TestObjectsOf checks that a bundle is found by its position, even in a file without other valid
// content, and by a search if the position is wrong.
func TestObjectsOf(t *testing.T) {
	const one = "schema: olm.bundle\nname: c.v1\npackage: c\nimage: x\nproperties:\n- type: olm.package\n  value: {packageName: c, version: 1.0.0}\n- type: olm.bundle.object\n  value: {data: eHg=}\n"
	const rest = "---\nschema: olm.package\nname: c\ndefaultChannel: d\n---\nschema: olm.channel\npackage: c\nname: d\nentries:\n- name: c.v1\n"
	plain := strings.Replace(strings.Join(smallObjects(), "\n"), `{"name": "a.v2"`, "  \n{\"name\": \"a.v2\"", 1)
	for name, tt := range map[string]struct {
		file   string
		bundle string
	}{
		"JSON":                        {plain, "a.v1"},
		"JSON in one line":            {strings.ReplaceAll(plain, "\n", ""), "a.v1"},
		"JSON with a byte order mark": {"\uFEFF" + plain, "a.v1"},
		"YAML":                        {"# c\n" + rest + "---\n" + one, "c.v1"},
		"YAML first":                  {one + rest, "c.v1"},
		"YAML with a byte order mark": {"\uFEFF" + one + rest, "c.v1"},
		"YAML of another style":       {rest + "--- {schema: olm.bundle, name: c.v1, package: c, image: x, properties: [{type: olm.package, value: {packageName: c, version: 1.0.0}}, {type: olm.bundle.object, value: {data: eHg=}}]}\n", "c.v1"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{"x/file": {Data: []byte(tt.file)}}
			content, err := LoadFS(fsys)
			if err != nil {
				t.Fatal(err)
			}
			cat, err := catalog.New(content)
			if err != nil {
				t.Fatal(err)
			}
			b, ok := cat.Packages()[0].Bundle(tt.bundle)
			if !ok {
				t.Fatal("the bundle is missing")
			}
			want, err := Objects(fsys, b.Package().Name(), b.Name())
			if err != nil {
				t.Fatal(err)
			}
			at := b.Span()
			for i := range fsys["x/file"].Data {
				if int64(i) < at.Offset || int64(i) >= at.Offset+at.Size {
					fsys["x/file"].Data[i] = '?'
				}
			}
			got, err := ObjectsOf(fsys, b)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			moved := fstest.MapFS{"x/file": {Data: []byte("\n\n")}, "y": {Data: []byte(tt.file)}}
			if got, err = ObjectsOf(moved, b); err != nil || !cmp.Equal(want, got) {
				t.Errorf("wrong position: got %q, %v", got, err)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"ok/empty", map[string]string{"a.json": "", "b.yaml": "\n---\n# nothing\n"}, ""},
		{"ok/byte order mark", map[string]string{"a.json": "\uFEFF {\"schema\":\"x\"}{\"schema\":\"y\"}", "b.yaml": "\uFEFFschema: x\n---\nschema: z\n"}, ""},
		{"ok/directives", map[string]string{"b.yaml": "%YAML 1.1\n# c\n---\nschema: x\n...\n%YAML 1.1\n---\nschema: z\n"}, ""},
		{"ok/Windows line endings", map[string]string{"b.yaml": "---\r\nschema: x\r\n---\r\nschema: z\r\n"}, ""},
		{"ok/text after the marker", map[string]string{"b.yaml": "--- {schema: x}\n--- # c\nschema: z\n---"}, ""},
		{
			"error/several faults",
			map[string]string{
				"b.json": "{\"schema\":\"olm.package\",\n \"name\": 7}\n{\"name\":\"x\"}\n[1]\n{\"schema\":\"olm.bundle\",\"name\":\"b\"",
				"a.yaml": "schema: olm.channel\nname: c\nentries: [{name: x, skips: none}]\n---\nname: x\n---\na: [}\nb: 1\n",
			},
			`a.yaml:1:1: olm.channel "c" has no field package
a.yaml:3:28: entries[0].skips: expected an array, got a string
a.yaml:5:1: object has no schema
a.yaml:7: malformed YAML: did not find expected node content
b.json:2:10: name: expected a string, got a number
b.json:3:1: object has no schema
b.json:4:1: expected a JSON object, got an array
b.json:5:34: malformed JSON: the file ends inside an object`,
		},
		{
			"error/duplicate name",
			map[string]string{"a.json": "{\"schema\":\"olm.package\",\n\"name\":\"a\",\"name\":\"b\"}"},
			`a.json:2:12: malformed JSON: name "name" appears twice in one object`,
		},
		{
			"error/deprecations without a package",
			map[string]string{"a.json": `{"schema":"olm.deprecations","entries":[{"reference":{"schema":"olm.package"},"message":"m"}]}`},
			`a.json:1:1: olm.deprecations "" has no field package`,
		},
		{
			"error/second deprecations",
			map[string]string{"a.json": `{"schema":"olm.deprecations","package":"a"}{"schema":"olm.deprecations","package":"a"}`},
			`a.json:1:44: duplicate olm.deprecations of package "a": first at a.json:1:1`,
		},
		{
			"error/base64",
			map[string]string{"a.json": `{"schema":"olm.bundle","package":"a","name":"b","properties":[{"type":"olm.bundle.object","value":{"data":"###"}}]}`},
			`a.json:1:99: bundle "b": olm.bundle.object: illegal base64 data at input byte 0`,
		},
		{
			"error/in lists",
			map[string]string{"a.json": `{"schema":"olm.bundle","package":"a","name":"b","properties":[{"value":{"ref":1},"type":"olm.bundle.object"},{"type":1,"value":2}],"relatedImages":[{"name":"x"},{"image":[]}]}`},
			`a.json:1:63: properties[0].value.ref: expected a string, got a number
a.json:1:118: properties[1].type: expected a string, got a number
a.json:1:171: relatedImages[1].image: expected a string, got an array`,
		},
		{"error/no catalog", map[string]string{"README.md": "# words\nand words\n"}, `README.md:2:1: expected a mapping, got "and words"`},
		{"error/file name", map[string]string{"a\n::error::x.json": "{}"}, `a ::error::x.json: file name "a\n::error::x.json" contains the character U+000A, which is not allowed in names`},
		{"error/ignore", map[string]string{".indexignore": strings.Repeat("a", 1001)}, ".: .indexignore: too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for name, data := range tt.files {
				fsys[name] = &fstest.MapFile{Data: []byte(data)}
			}
			_, err := LoadFS(fsys)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestSymlink(t *testing.T) {
	_, err := LoadFS(fstest.MapFS{"a.json": {Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}})
	if err == nil || !strings.Contains(err.Error(), "a.json: symbolic links in a catalog are not followed") {
		t.Errorf("got %v", err)
	}
}

// TestIgnore checks that .indexignore has the same meaning as in operator-registry. Both use go-git, in which
// only "^" negates a character class.
func TestIgnore(t *testing.T) {
	for _, tt := range []struct {
		rules, name string
		want        bool
	}{
		{"*.md", "a/b/README.md", true},
		{"/a.md", "b/a.md", false},
		{"/a.md", "a.md", true},
		{"a/b", "a/b", true},
		{"a/b", "x/a/b", false},
		{"**/b", "x/a/b", true},
		{"a/**", "a/x/y", true},
		{"a/**", "b/a", false},
		{"a/**/z", "a/z", true},
		{"dir/", "dir", false},
		{"dir/", "x/dir/y", true},
		{"*.md\n!keep.md", "keep.md", false},
		{"!keep.md\n*.md", "keep.md", true},
		{"dir/\n!dir/keep.md", "dir/keep.md", false},
		{`\#x`, "#x", true},
		{"#x", "#x", false},
		{"  #x", "#x", false},
		{"a?c", "abc", true},
		{"a?c", "a/c", false},
		{"[^a]x", "bx", true},
		{"[^a]x", "ax", false},
		{"[!a]x", "bx", false},
		{"[!a]x", "!x", true},
		{"[a-c]x", "bx", true},
		{"[a", "[a", false},
		{"  x  ", "x", true},
		{"a+b", "aab", false},
	} {
		var r ignoreRules
		if err := r.load(fstest.MapFS{".indexignore": {Data: []byte(tt.rules)}}, "."); err != nil {
			t.Fatal(err)
		}
		if got := r.match(tt.name); got != tt.want {
			t.Errorf("%q on %q: got %t, want %t", tt.rules, tt.name, got, tt.want)
		}
	}
}

func TestIgnoreOfADirectory(t *testing.T) {
	text := []byte(strings.Join(smallObjects(), "\n"))
	for name, ignored := range map[string]bool{"a/x.txt": true, "a/b/x.txt": true, "b/x.txt": false, "x.txt": false} {
		files := fstest.MapFS{"a/.indexignore": {Data: []byte("*.txt\n")}, "catalog.json": {Data: text}, name: {Data: []byte("no catalog")}}
		if _, err := LoadFS(files); (err == nil) != ignored {
			t.Errorf("%s: %v", name, err)
		}
	}
}

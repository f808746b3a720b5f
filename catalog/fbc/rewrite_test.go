package fbc

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	sigs "sigs.k8s.io/yaml"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/yamlnode"
)

// checkSameJSON checks that the fast path and the full parser convert a document to the same JSON. It reports
// whether the fast path supports the document.
func checkSameJSON(t *testing.T, text []byte) bool {
	t.Helper()
	limits := yamlnode.Limits{Bytes: maxDocument, Depth: maxDepth, Nodes: maxNodes}
	var fast yamlnode.Reader
	got, err := fast.Read("f", 1, text, limits, nil)
	want, fault := (&yamlnode.Reader{Slow: true}).Read("f", 1, text, limits, nil)
	if err != nil || fault != nil || len(got) != 1 || len(want) != 1 || !bytes.Equal(got[0].JSON, want[0].JSON) {
		t.Errorf("full parser: %d documents, %v; fast path: %d, %v; for\n%.2000s", len(want), fault, len(got), err, text)
	}
	return fast.Quick > 0
}

// TestYAMLSkipsUnusedFields checks that fields that the decoder ignores are not converted to JSON.
func TestYAMLSkipsUnusedFields(t *testing.T) {
	const text = `schema: olm.bundle
icon:
  base64data: xx
properties:
- type: olm.csv.metadata
  value:
    annotations:
      alm-examples: |-
        []
      capabilities: Basic Install
      description: short
      olm.x: z
    crdDescriptions:
      owned:
      - kind: A
        name: as.example.com
      required:
      - name: bs.example.com
    description: long
    displayName: D
    installModes:
    - supported: true
      type: OwnNamespace
    keywords:
    - k
    links:
    - url: u
    maturity: alpha
    minKubeVersion: 1.2.3
    provider:
      name: p
      url: u
- value:
    links: []
  type: other
- type: olm.csv.metadata
  value:
    customresourcedefinitions:
      owned:
      - name: as.example.com
        version: v1
`
	const want = `{"properties":[{"type":"olm.csv.metadata","value":{` +
		`"annotations":{"capabilities":"Basic Install","description":"short","olm.x":"z"},` +
		`"crdDescriptions":{"owned":[{"name":"as.example.com"}]},"description":"long","displayName":"D",` +
		`"installModes":[{"supported":true,"type":"OwnNamespace"}],"keywords":["k"],"maturity":"alpha","minKubeVersion":"1.2.3","provider":{"name":"p"}}},` +
		`{"type":"other","value":{"links":[]}},` +
		`{"type":"olm.csv.metadata","value":{"customresourcedefinitions":{"owned":[{"name":"as.example.com"}]}}}],"schema":"olm.bundle"}`
	for _, slow := range []bool{false, true} {
		got, err := (&yamlnode.Reader{Slow: slow}).Read("f", 1, []byte(text), yamlnode.Limits{}, newCodecs().document())
		if err != nil || len(got) != 1 {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, string(got[0].JSON)); d != "" && !slow { // the slow path skips fields only after the type
			t.Error(d)
		}
	}
}

// convertToYAML converts every nth object of a JSON stream with emit. The first is object number first%nth.
func convertToYAML(tb testing.TB, data []byte, first, nth int, emit func([]byte) ([]byte, error)) [][]byte {
	tb.Helper()
	var docs [][]byte
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for i := 0; ; i++ {
		object, err := dec.ReadValue()
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			tb.Fatal(err)
		}
		if i%nth != first%nth {
			continue
		}
		text, err := emit(object)
		if err != nil {
			tb.Fatal(err)
		}
		docs = append(docs, text)
	}
}

// encodeWideYAML returns YAML with the indentation and line breaks of yaml.v3.
func encodeWideYAML(object []byte) ([]byte, error) {
	var v any
	if err := yaml.Unmarshal(object, &v); err != nil {
		return nil, err
	}
	return yaml.Marshal(v)
}

// everyFile calls the function each with the content of every file.
func everyFile(tb testing.TB, fsys fs.FS, each func(data []byte)) {
	tb.Helper()
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err == nil {
			each(data)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// TestRewriterReadsCatalogs compares the fast path with the full parser. The input is a part of the full-size
// catalogs, converted to YAML by two emitters.
func TestRewriterReadsCatalogs(t *testing.T) {
	nth := 1000
	if *whole {
		nth = 100
	}
	for _, archive := range []string{"full-slim.tar.zst", "full.tar.zst"} {
		all, taken, i := 0, 0, 0
		everyFile(t, corpusCatalog(t, archive), func(data []byte) {
			i++
			if !bytes.HasPrefix(data, []byte("{")) {
				return
			}
			for j, emit := range []func([]byte) ([]byte, error){sigs.JSONToYAML, encodeWideYAML} {
				for _, doc := range convertToYAML(t, data, i+j, nth, emit) {
					all++
					if checkSameJSON(t, doc) {
						taken++
					}
				}
			}
		})
		t.Logf("%s: the fast path supports %d of %d documents", archive, taken, all)
		if all == 0 || taken < all*98/100 {
			t.Errorf("%s: the fast path supports %d of %d documents", archive, taken, all)
		}
	}
}

// TestRewriterReadsManifests compares both parsers with the manifests of the bundles in the corpus.
func TestRewriterReadsManifests(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not set")
	}
	all, taken, files := 0, 0, 0
	everyFile(t, os.DirFS(filepath.Join(root, "bundles")), func(data []byte) {
		if files++; !isSampled(files, 10) {
			return
		}
		var docs yamlnode.Stream
		docs.Reset(bytes.NewReader(data), 0, maxDocument)
		for {
			doc, _, err := docs.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			all += len(doc)
			if checkSameJSON(t, doc) {
				taken += len(doc)
			}
		}
	})
	t.Logf("the fast path supports %d of %d bytes", taken, all)
	if all == 0 || taken < all*8/10 {
		t.Errorf("the fast path supports %d of %d bytes", taken, all)
	}
}

// TestCatalogsAreTheSameAsYAML decodes packages as JSON and as YAML in the style of opm.
func TestCatalogsAreTheSameAsYAML(t *testing.T) {
	const nth = 40
	packages := 0
	everyFile(t, corpusCatalog(t, "full-slim.tar.zst"), func(data []byte) {
		if packages++; packages%nth != 0 {
			return
		}
		text := bytes.Join(convertToYAML(t, data, 0, 1, sigs.JSONToYAML), []byte("---\n"))
		want, err := Decode("f", bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode("f", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		canonical := cmp.Transformer("canonical", func(p catalog.Property) [2]string {
			value := jsontext.Value(bytes.Clone(p.Value))
			if err := value.Canonicalize(); err != nil {
				t.Fatal(err)
			}
			return [2]string{p.Type, string(value)}
		})
		if d := cmp.Diff(want, got, noPos(), canonical); d != "" {
			t.Errorf("-JSON +YAML\n%s", d)
		}
	})
}

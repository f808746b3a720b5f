package fbc

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	sigs "sigs.k8s.io/yaml"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/blockyaml"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// sameJSON fails where the rewriter makes other JSON of a document than the
// full parser, and where it wants less to be right of what it passes over. It
// reports whether the rewriter takes the document.
func sameJSON(t tester, text []byte) bool {
	t.Helper()
	var all rewriter
	all.reset()
	taken := new(blockyaml.Walker).Walk(text, &all)
	if some := (passer{}); new(blockyaml.Walker).Walk(text, some) != taken {
		t.Errorf("taken: %t, and without its fields: %t\n%.2000s", taken, !taken, text)
	}
	if !taken || all.odd || all.out[0] != '{' {
		return false
	}
	docs, err := yamlnode.Documents("f", text, yamlnode.Limits{Bytes: maxDocument, Depth: maxDepth, Nodes: maxNodes})
	if err != nil || len(docs) != 1 {
		t.Errorf("the full parser finds %d documents, %v, the fast one %s in\n%.2000s", len(docs), err, all.out, text)
		return true
	}
	want, err := yamlnode.JSON(docs[0])
	if err != nil || !bytes.Equal(want, all.out) {
		t.Errorf("the full parser: %v\n%s\nthe fast one\n%s\nof\n%.2000s", err, want, all.out, text)
	}
	at := (&diag.Lines{Text: text, Line: 1}).Pos(all.at)
	if at.Line != docs[0].Line || at.Col != docs[0].Column {
		t.Errorf("begins at %v, the full parser says %d:%d, in\n%.2000s", at, docs[0].Line, docs[0].Column, text)
	}
	return true
}

// tester is what testing.TB and rapid.T have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
}

// passer is a Sink that wants nothing.
type passer struct{}

func (passer) Open(byte, int)   {}
func (passer) Close(byte)       {}
func (passer) Key([]byte) bool  { return false }
func (passer) Text([]byte, int) {}
func (passer) Word([]byte, int) {}
func (passer) Plain(s []byte, at int, _ bool) bool {
	var r rewriter
	r.reset()
	return r.Plain(s, at, false)
}

func yamlTexts() []string {
	return []string{
		"a: b\n", "a:\n  b: c\n  d:\n  - e\n  - f: g\n    h: i\n", "z: 1\ny1: 2\na: {}\nb: []\nB: 3\n", "a10: 1\na9: 2\n'':\n  x: y\n",
		"a: |\n  x\n   y\n\n  z\n\nb: |-\n  x\n\nc: |+\n  x\n\n\nd: >\n  x\n  y\n\n  z\ne: >-\n\n  x\nf: |2\n   x\n\n",
		"a: x\n  y\n\n  z\nb: 'it''s\n  so'\nc: \"a\\nb\\\n  \\ c\n  d \n\n  e\"\n", "a: \"\\x41\\u00e9\\U0001F600\\u2028\\0\\e\\t\\\"\"\nb: é\u00a0x\n",
		"a: ~\nb:\nc: null\nd: Null\ne: yes\nf: 'yes'\ng: 0x1F\nh: 0o17\ni: 017\nj: 1_000\nk: 1e3\nl: .5\nm: -1\nn: +1\no: 0b11\np: 1.2.3\nq: 1.2\nr: 2001-01-01\ns: 12345678901234567890\nt: 123456789012345678901234567890\nu: 0.1.2\nv: 1..2\nw: -.inf.x\nx1: =\nx2: <<x\n",
		"# c\n---\n# d\na: b # e\nc: 'd' # e\n", "---\na: 1", "a: |\n  x", "a: 1\na: 2\n", "a:\n  b: 1\n  b: 2\n", "a: .inf\n", "a: .nan\n", "a: &x b\nc: *x\n", "a: !!str 1\n", "a: b: c\n", "a: [1]\n", "a: x\n # c\n  y\n",
		"a: x#y\nb: x #y\nc: x:y\nd: http://x\ne: x:\n", "a: -x\nb: :x\nc: ?x\nd: ?\n", "a: 'x\ty'\n", "a: x\ty\n", "a: |\n  x\ty\n", "\ta: b\n", "a:\n\t b\n", "a: b\r\n", "\"a\": 1\n'b\"': 2\n", "a: \"x\n---\n  y\"\n", "...\n", "text\n", "- a\n",
		"a:\n-\n  b: c\n-\n- - d\n  - e\n", "<<:\n  a: b\n", "a:\n  x\n", "a:\n    'x'\n", "a: >+\n  x\n\n  y\n\nb: c\n", "a: |\n\n\n  x\nb: c\n", "a: |\n# c\n", "a: |-\n  x\n # c\nb: c\n", "a: |+\n    x\n\nb:\n", "a: |+\n  x\n#\nb: c\n", "a: \"\\\n  x\\\n  y\"\n", "1.5.0: a\n1: b\n", "a:\n  'a#': 1\n  'a\"': 2\n", "y: 1\n",
	}
}

func TestRewriterWritesTheJSONOfTheFullParser(t *testing.T) {
	for _, text := range yamlTexts() {
		sameJSON(t, []byte(text))
	}
	for _, text := range blockSeeds() {
		sameJSON(t, []byte(text))
	}
	if !sameJSON(t, []byte(yamlTexts()[0])) {
		t.Error("the simplest text is not taken")
	}
}

// TestRewriterTypesScalars reads every word by itself, as value and as key.
func TestRewriterTypesScalars(t *testing.T) {
	taken := 0
	for _, word := range words() {
		for _, form := range []string{"a: %s\n", "a:\n- %s\n- b\n", "a: %s # c\n", "a:\n  %s\n", "%s: a\n", "'%s': a\n", "\"%s\": a\n", "a: '%s'\n", "a: \"%s\"\n", "a: |\n  %s\n", "a: >\n  %s\n"} {
			if sameJSON(t, []byte(strings.ReplaceAll(form, "%s", word))) {
				taken++
			}
		}
	}
	if all := 11 * len(words()); taken < all*2/3 {
		t.Errorf("%d of %d are taken", taken, all)
	}
}

func TestRewriterPassesOverWhatTheDecoderDoes(t *testing.T) {
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
	r := rewriter{root: newForms().document()}
	r.reset()
	if !new(blockyaml.Walker).Walk([]byte(text), &r) || r.odd {
		t.Fatal("not taken")
	}
	if d := cmp.Diff(want, string(r.out)); d != "" {
		t.Error(d)
	}
}

// asYAML returns a stream of JSON objects as the documents that an emitter
// makes of every nth of them.
func asYAML(tb testing.TB, data []byte, first, nth int, emit func([]byte) ([]byte, error)) [][]byte {
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

// wide writes YAML with the indentation and the line breaks of yaml.v3.
func wide(object []byte) ([]byte, error) {
	var v any
	if err := yaml.Unmarshal(object, &v); err != nil {
		return nil, err
	}
	return yaml.Marshal(v)
}

// everyFile calls each with the content of every file.
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

// TestRewriterReadsCatalogs turns a part of the full-size catalogs into YAML,
// as two emitters write it.
func TestRewriterReadsCatalogs(t *testing.T) {
	nth := 400
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
			for j, emit := range []func([]byte) ([]byte, error){sigs.JSONToYAML, wide} {
				for _, doc := range asYAML(t, data, i+j, nth, emit) {
					all++
					if sameJSON(t, doc) {
						taken++
					}
				}
			}
		})
		t.Logf("%s: %d of %d documents are taken", archive, taken, all)
		if all == 0 || taken < all*98/100 {
			t.Errorf("%s: %d of %d documents are taken", archive, taken, all)
		}
	}
}

// TestRewriterReadsManifests reads the manifests of the corpus's bundles.
func TestRewriterReadsManifests(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not set")
	}
	all, taken, files := 0, 0, 0
	everyFile(t, os.DirFS(filepath.Join(root, "bundles")), func(data []byte) {
		if files++; !part(files, 4) {
			return
		}
		var docs documents
		docs.reset(bytes.NewReader(data), 0)
		for {
			doc, _, err := docs.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			all += len(doc)
			if sameJSON(t, doc) {
				taken += len(doc)
			}
		}
	})
	t.Logf("%d of %d bytes are taken", taken, all)
	if all == 0 || taken < all*8/10 {
		t.Errorf("%d of %d bytes are taken", taken, all)
	}
}

// TestCatalogsAreTheSameAsYAML reads packages as they are and as opm would
// write them in YAML.
func TestCatalogsAreTheSameAsYAML(t *testing.T) {
	const nth = 40
	packages := 0
	everyFile(t, corpusCatalog(t, "full-slim.tar.zst"), func(data []byte) {
		if packages++; packages%nth != 0 {
			return
		}
		text := bytes.Join(asYAML(t, data, 0, 1, sigs.JSONToYAML), []byte("---\n"))
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

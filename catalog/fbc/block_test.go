package fbc

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
)

// checkBothPaths compares the results of decoding text with and without the fast path. It returns the
// number of documents that were decoded by the fast path.
func checkBothPaths(t *testing.T, text []byte) (fast int) {
	t.Helper()
	var contents [2]catalog.Content
	var faults [2]string
	for i := range 2 {
		b := newBuilder()
		b.yaml.Slow = i == 0
		if err := b.read("f.yaml", bytes.NewReader(text), nil); err != nil {
			faults[i] = err.Error()
		}
		c, err := b.content()
		fast, contents[i], faults[i] = b.yaml.Quick, c, faults[i]+"\n"+fmt.Sprint(err)
	}
	if faults[0] != faults[1] {
		t.Errorf("full parser: %s\nblock parser: %s\nfor\n%.2000s", faults[0], faults[1], text)
	}
	if d := cmp.Diff(contents[0], contents[1]); d != "" {
		t.Errorf("content (-full +block):\n%s\nfor\n%.2000s", d, text)
	}
	return fast
}

func blockSeeds() []string {
	return []string{
		"---\nschema: olm.package\nname: a\ndefaultChannel: stable\ndescription: |\n  - x\n  entries:\n---\nschema: olm.channel\npackage: a\nname: stable\nentries:\n- name: a.v1.0.0\n  skips:\n  - a.v0\n- name: a.v1.1.0\n  replaces: a.v1.0.0\n  skipRange: '>=0.1.0\n    <1.1.0'\n",
		"schema: olm.channel\npackage: a\nentries:\n  - skipRange: \"- name\n- x\"\n    name: b\n  -\n    name: c\n",
		"schema: olm.channel\nentries:\n# c\n- name: a\n\n- name: b\nname: stable\npackage: a\n", "  schema: olm.channel\n  entries:\n  - name: a\n  name: s\n  package: a\n",
		"schema: olm.bundle\nname: a.v1\npackage: a\nimage: q\nproperties:\n- type: olm.package\n  value:\n    packageName: a\n    version: 1.0.0\n- type: x\n  value: {b: 1}\n- type: n\n  value: 1.50\n- type: big\n  value: 123456789012345678901234567890\n- type: oct\n  value: 0777\n- type: yes\n  value: yes\n- type: date\n  value: 2001-01-01\n- type: inf\n  value: .inf\n",
		"schema: olm.bundle\nname: 1\npackage: a\n", "schema: olm.bundle\nname: ~\nname: a\n", "schema: 1\n", "name: a\n", "schema: olm.channel\nname: s\npackage: p\nentries:\n  a: b\n", "schema: olm.channel\nname: s\npackage: p\nentries: []\n",
		"schema: olm.deprecations\npackage: a\nentries:\n- reference:\n    schema: olm.package\n  message: |\n    gone\n", "schema: olm.package\nname: \"\\u00e9\\u2028\"\n", "- schema: olm.package\n", "schema: olm.channel\nname: s\npackage: p\nentries:\n- - name: a\n- name: b\n",
		"schema: olm.bundle\npackage: a\nproperties:\n- value:\n    version: 1.0.0\n    packageName: a\n  type: olm.package\n- value:\n    description: x\n    annotations:\n      description: y\n      olm.z: |\n        w\n    installModes:\n    - type: OwnNamespace\n      supported: true\n  type: olm.csv.metadata\n- type: olm.gvk\n  value:\n    version: v1\n    kind: K\n    group: g\nname: a.v1\n",
		"schema: olm.deprecations\npackage: a\nentries: []\n---\nschema: olm.deprecations\npackage: b\nentries:\n- message: 1\n---\nschema: olm.deprecations\npackage: a\nentries:\n- message: x\n---\nschema: olm.deprecations\npackage: b\n",
		"schema: olm.bundle\nname: a\nproperties:\n- type: x\n- type: y\n  value:\n", "schema: olm.bundle\nname: a\npackage: a\nproperties:\n- type: olm.csv.metadata\n  value:\n    description: \"" + strings.Repeat("é\\u2028", 3000) + "\"\n    displayName: 1\n",
		"schema: olm.bundle\npackage: 2001-01-01\nname: 1.2\n", "schema: olm.bundle\npackage: 2001-01-01\nname: 1.2.3\nimage: null\n", "schema: olm.package\nname: " + strings.Repeat("a", 1030) + "\n", "schema: olm.channel\npackage: a\nname: c\nentries:\n- null\n- a\n", "schema: 2001-01-01\nname: a\n", "schema: olm.package\nname: a\ndescription: >-\n  x\n  y\ndefaultChannel: 'it''s\n\n  so'\n...\nname: b\n",
	}
}

// TestBlockParserAgreesWithFullParser compares the block parser with the full parser.
func TestBlockParserAgreesWithFullParser(t *testing.T) {
	for _, seed := range blockSeeds() {
		checkBothPaths(t, []byte(seed))
	}
	if fast := checkBothPaths(t, []byte(blockSeeds()[0])); fast != 2 {
		t.Errorf("%d of 2 plain documents use the fast path", fast)
	}
}

// TestBlockReadsTheCorpus compares both parsers with catalogs of the corpus.
func TestBlockReadsTheCorpus(t *testing.T) {
	fsys := corpusCatalog(t, "community-v4.20.tar.zst")
	all, fast, files := 0, 0, 0
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, "ml") {
			return err
		}
		if files++; !isSampled(files, 10) {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		fast += checkBothPaths(t, text)
		all += 1 + bytes.Count(bytes.TrimPrefix(text, []byte("---\n")), []byte("\n---\n"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d documents use the fast path", fast, all)
	if all == 0 || fast < all*9/10 {
		t.Errorf("only %d of %d documents use the fast path", fast, all)
	}
}

func FuzzBlock(f *testing.F) {
	for _, seed := range blockSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkBothPaths(t, text) })
}

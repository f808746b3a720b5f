package bundle

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"
)

// checkBlock fails if the block parser reads data and the full parser reads it
// otherwise. It reports whether the block parser reads it.
func checkBlock(t *testing.T, data []byte) bool {
	t.Helper()
	got, ok := decodeBlock(data)
	if !ok {
		return false
	}
	want, err := decodeFull("f", data)
	if err != nil {
		t.Errorf("the full parser says %v, the block parser reads %#v from\n%s", err, got, data)
		return true
	}
	if len(want)+len(got) > 0 && !reflect.DeepEqual(want, got) {
		t.Errorf("%s\nfrom\n%.2000s", cmp.Diff(want, got), data)
	}
	return true
}

func TestBlockParserReadsTheCorpusAsTheFullOne(t *testing.T) {
	read, total := 0, 0
	for _, dir := range corpusBundles(t) {
		files, err := filepath.Glob(filepath.Join(dir, "manifests", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			total += len(data)
			if checkBlock(t, data) {
				read += len(data)
			} else {
				t.Logf("%7d bytes beyond it: %s", len(data), file)
			}
		}
	}
	t.Logf("reads %d of %d bytes", read, total)
	if read < total*8/10 {
		t.Errorf("reads only %d of %d bytes", read, total)
	}
}

func blockTexts() []string {
	return []string{
		"a: b\n", "a:\n  b: c\n  d:\n  - e\n  - f: g\n    h: i\n", "a:\n- b\n-\n  - c\n- - d\n  - e\n-\n", "a: |\n  x\n   y\n\n  z\n\nb: |-\n  x\n\nc: |+\n  x\n\n\nd: >\n  x\n  y\n\n  z\n",
		"a: x\n  y\n\n  z\nb: 'it''s\n  so'\nc: \"a\\nb\\\n  \\ c\n  d\"\n", "a: {}\nb: []\nc: # d\nd: e # f\ne: ~\n", "---\na: 1\n---\n# nothing\n---\nb: -1.5\n", "a: =\nb: y\nc: 0777\nd: 1e3\ne: 2001-01-01\nf: 1_0\ng: <<\n",
		"a: b: c\n", "a: \"b\" c\n", "\"a\": 1\n'b': 2\n", "a: 1\na: 2\n", "a:\n    b: 1\n  c: 2\n", "- a\n- b: c\n", "a: |\n\n  x\n", "a: |\n\nb: c\n", "a: 'x' # c\nb: x#y\n", "a: - b\n", "a: ? b\n", "a: x\n # c\n  y\n", "a: |\n x\n# c\n y\n",
		"a: b\n\tc: d\n", "text\n", "a: ''\nb: \"\"\n", "a: |-\n  \n  x\n", "a: x \n  y \nb: \"x \n  y\"\n", "a:\n  text\n  more\n", "a:\n- |\n  x\n- >-\n  y\n  z\n", "a: -b\nc: :d\ne: ?f\n",
		"a: \"\\x41\\u00e9\\U0001F600\"\n", "a: \"x\n\n  y\"\n", "y: 1\n", "1: a\n", "a : b\n", "a: [1]\n", "a: &x b\nc: *x\n", "a: !!str 1\n", "%YAML 1.1\n---\na: b\n", "a: b\n...\n", "a: |2\n   x\n", "a: |2-\n\n   x\n    y\n  z\n\nb: |+1\n   \n x\n  \nc:\n- |2\n    x\n- - |1\n    y\n", "a: |2\n x\n", "a: |2\nb: c\n", "a: |0\n  x\n", "a: >1\n x\n y\n", "--- |1\n x\n", "a: |12\n            x\n", "a:\n  b: |9\n             x\n", "a:\n# c\n  b: d\n# e\nf: g\n",
		"c: \"b\\/a\"\n", ".inf: a\n", "18446744073709551615: a\n",
	}
}

func TestBlockParserIsExactOrGivesUp(t *testing.T) {
	for _, text := range blockTexts() {
		checkBlock(t, []byte(text))
	}
}

// TestKeysAreThoseOfTheAPIServer compares with the reader that kubectl and the
// API server share.
func TestKeysAreThoseOfTheAPIServer(t *testing.T) {
	for _, key := range []string{
		"a", "'1'", "1", "-1", "0x10", "1.5", "1e10", "1e100", "0.1", ".inf", "+.inf", "-.inf", ".nan", "yes", "off", "y", "true", "~",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "2001-01-01", "{a: b}", "[a]",
	} {
		text := []byte(key + ": x\n")
		var want map[string]any
		refused := sigsyaml.Unmarshal(text, &want)
		got, err := decodeYAML("f", text)
		switch {
		case (err != nil) != (refused != nil):
			t.Errorf("%s: got %v, want %v", key, err, refused)
		case err == nil && !cmp.Equal([]any{want}, got):
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
}

func FuzzBlockParser(f *testing.F) {
	for _, text := range blockTexts() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkBlock(t, data) })
}

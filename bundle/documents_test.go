package bundle

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/yamlnode"
)

// corpusManifests returns the manifests of the corpus by path.
func corpusManifests(tb testing.TB) map[string][]byte {
	tb.Helper()
	out := map[string][]byte{}
	for _, dir := range corpusBundles(tb) {
		files, err := filepath.Glob(filepath.Join(dir, "manifests", "*"))
		if err != nil {
			tb.Fatal(err)
		}
		for _, file := range files {
			if out[file], err = os.ReadFile(file); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return out
}

// decodeLikeAPIServer decodes documents with the decoder of kubectl and the API server.
func decodeLikeAPIServer(tb testing.TB, data []byte) []map[string]any {
	tb.Helper()
	var out []map[string]any
	var docs yamlnode.Stream
	docs.Reset(bytes.NewReader(data), 0, 1<<30)
	for {
		doc, _, err := docs.Next()
		if err != nil {
			return out
		}
		text, err := sigsyaml.YAMLToJSON(doc)
		if err != nil {
			tb.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			tb.Fatal(err)
		}
		if m != nil {
			out = append(out, m)
		}
	}
}

var whole = flag.Bool("whole", false, "read every file of the corpus, not only a quarter") //nolint:gochecknoglobals // a flag

// TestCorpusIsReadAsByTheAPIServer decodes the corpus with this package and with the API server's decoder, and
// compares the results. It ignores the types of numbers.
func TestCorpusIsReadAsByTheAPIServer(t *testing.T) {
	all := corpusManifests(t)
	for i, file := range slices.Sorted(maps.Keys(all)) {
		if !*whole && i%4 != 0 {
			continue
		}
		data := all[file]
		docs, err := decodeDocuments("f", data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		text, err := json.Marshal(docs)
		if err != nil {
			t.Fatal(err)
		}
		var got []map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(decodeLikeAPIServer(t, data), got); d != "" {
			t.Errorf("%s: -API server +bundle\n%s", file, d)
		}
	}
}

// TestKeysAreThoseOfTheAPIServer compares decoded keys with the result of the decoder of kubectl and the API
// server.
func TestKeysAreThoseOfTheAPIServer(t *testing.T) {
	for _, key := range []string{
		"a", "'1'", "1", "-1", "0x10", "1.5", "1e10", "1e100", "0.1", ".inf", "+.inf", "-.inf", ".nan", "yes", "off", "y", "true", "~",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "2001-01-01", "{a: b}", "[a]",
	} {
		text := []byte(key + ": x\n")
		var want map[string]any
		refused := sigsyaml.Unmarshal(text, &want)
		got, err := decodeDocuments("f", text)
		switch {
		case (err != nil) != (refused != nil):
			t.Errorf("%s: got %v, want %v", key, err, refused)
		case err == nil && !cmp.Equal([]map[string]any{want}, got):
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
}

package lockfile

import (
	"encoding/json"
	"math/rand"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestSchemas parses a lock of every released schema. The -update flag does not rewrite these files. After the
// first release, an incompatible change of the format needs a new schema, and a parser for both schemas.
func TestSchemas(t *testing.T) {
	const file = "testdata/schema-1.lock"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(file, text)
	if err != nil {
		t.Fatalf("%v\nbefore the first release, write the new checksums:\n%s", err, cmp.Diff(string(text), updateChecksums(t, string(text))))
	}
	if len(f.Namespaces) == 0 || len(f.Pins) == 0 || len(f.Leaving) == 0 {
		t.Errorf("%d Namespaces, %d pins, %d leaving", len(f.Namespaces), len(f.Pins), len(f.Leaving))
	}
	if got := Format(f); string(got) != string(text) {
		t.Errorf("%s is formatted as\n%s", file, got)
	}
	shown := regexp.MustCompile(`(?m)^(?:- |  )(\w+):`).FindAllStringSubmatch(string(text), -1)
	for _, field := range yamlnode.Fields(reflect.TypeFor[Pin]()) {
		if !slices.ContainsFunc(shown, func(m []string) bool { return m[1] == field.Name }) {
			t.Errorf("%s does not set %s, but must set every field", file, field.Name)
		}
	}
	newer := strings.Replace(string(text), "schema: 1", "schema: 3", 1)
	if _, err := Parse("f", []byte(newer)); err == nil || !strings.Contains(err.Error(), "written by a newer quayside (schema 3; this version supports 1)") {
		t.Errorf("a newer schema: %v", err)
	}
}

// updateChecksums returns a lock with the correct checksum in each block.
func updateChecksums(t *testing.T, text string) string {
	docs, err := yamlnode.Documents("f", []byte(text), yamlnode.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	_, pins := yamlnode.Field(docs[0], "pins")
	for _, block := range pins.Content {
		sum, err := checksumOf(block)
		if err != nil {
			t.Fatal(err)
		}
		_, old := yamlnode.Field(block, "checksum")
		text = strings.ReplaceAll(text, old.Value, sum)
	}
	return text
}

// TestChecksumIsOfValues checks that checksums do not depend on quotes, the order of keys, and line breaks.
func TestChecksumIsOfValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"a", "no", "1.0", "a: b", "ünï", "x\ny", "1e3", "~", "\"", "0x1F", "😀"})
		config, _ := json.Marshal(map[string]any{
			"n": rapid.SampledFrom([]any{1, 1.5, -0.25, 1e21, 9007199254740991, 9007199254740993, json.Number("123456789012345678901"), true, nil}).Draw(t, "n"),
			"s": text.Draw(t, "s"), "l": []any{text.Draw(t, "l"), map[string]any{"z": 1, "a": 2}},
		})
		want := New([]Pin{{
			Namespace: "a", Package: "p", Version: "1.0.0", Bundle: text.Draw(t, "bundle"), Hold: text.Draw(t, "hold"), Config: config,
			WatchNamespaces: rapid.SliceOfDistinct(text, func(s string) string { return s }).Draw(t, "watch"),
			Catalog:         Catalog{ID: catalog.ID{Name: "c"}, Source: text.Draw(t, "source")},
			Properties:      []catalog.Property{{Type: "t", Value: config}},
		}})
		docs, err := yamlnode.Documents("f", Format(want), yamlnode.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		restyle(docs[0], random)
		other, err := yaml.Marshal(docs[0])
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse("f", other)
		if err != nil {
			t.Fatalf("%v\n%s", err, other)
		}
		if string(Format(got)) != string(Format(want)) {
			t.Errorf("got %s want %s", Format(got), Format(want))
		}
	})
}

// restyle changes the style of a document but not its values: quotes of strings, flow or block style
// of mappings and lists, and the order of keys.
func restyle(n *yaml.Node, random *rand.Rand) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.ShortTag() == "!!str" {
			n.Style = []yaml.Style{yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle, n.Style}[random.Intn(3)]
		}
	case yaml.MappingNode, yaml.SequenceNode:
		n.Style = []yaml.Style{yaml.FlowStyle, 0}[random.Intn(2)]
		if n.Kind == yaml.MappingNode {
			random.Shuffle(len(n.Content)/2, func(i, j int) {
				n.Content[2*i], n.Content[2*j] = n.Content[2*j], n.Content[2*i]
				n.Content[2*i+1], n.Content[2*j+1] = n.Content[2*j+1], n.Content[2*i+1]
			})
		}
	default: // documents and aliases have no style
	}
	for _, child := range n.Content {
		restyle(child, random)
	}
}

// TestLargeIntegers checks that large integers that are equal as float64 have different checksums.
func TestLargeIntegers(t *testing.T) {
	sums := map[catalog.Digest]bool{}
	for _, n := range []string{"9007199254740992", "9007199254740993", "12345678901234567890", "12345678901234567891"} {
		sums[(Pin{Config: []byte(`{"n":` + n + `}`)}).Checksum()] = true
	}
	if len(sums) != 4 {
		t.Errorf("%d different checksums of four integers", len(sums))
	}
	for n, asText := range map[string]bool{
		"0": false, "-1": false, "9007199254740991": false, "-9007199254740991": false,
		"9007199254740992": true, "-9007199254740992": true, "12345678901234567890": true, "-12345678901234567890": true,
	} {
		number, text := Pin{Config: []byte(`{"n":` + n + `}`)}, Pin{Config: []byte(`{"n":"` + n + `"}`)}
		if got := number.Checksum() == text.Checksum(); got != asText {
			t.Errorf("the checksum of %s equals that of the same string: %v", n, got)
		}
	}
	if !regexp.MustCompile(`^sha256:`).MatchString(string((Pin{}).Checksum())) {
		t.Error("the checksum of an empty value is not a digest")
	}
}

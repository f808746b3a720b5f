package yamlnode_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

type inner struct {
	Name  string            `json:"name"`
	Count int               `json:"count"`
	On    *bool             `json:"enabled"`
	Tags  []string          `json:"tags"`
	Map   map[string]string `json:"map"`
}

type outer struct {
	Kind string          `json:"kind"`
	Spec inner           `json:"spec"`
	Raw  json.RawMessage `json:"raw"`
	Open inner           `json:"open" yamlnode:"open"`
}

func TestDecode(t *testing.T) {
	docs, err := yamlnode.Documents("a.yaml", []byte(`
kind: A
spec: {name: m, count: 0x10, enabled: yes, tags: [a, b], map: {k: v}}
raw: {b: [1.50, ~], a: 18446744073709551616}
open: {name: x, other: 1}
`), yamlnode.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var got outer
	if err := yamlnode.Decode("a.yaml", docs[0], &got); err != nil {
		t.Fatal(err)
	}
	yes := true
	want := outer{
		Kind: "A",
		Spec: inner{Name: "m", Count: 16, On: &yes, Tags: []string{"a", "b"}, Map: map[string]string{"k": "v"}},
		Raw:  json.RawMessage(`{"a":18446744073709551616,"b":[1.5,null]}`),
		Open: inner{Name: "x"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestErrors pins the message and the position of each fault.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"unknown field":   {"kind: A\nspec:\n  nam_: x\n", `f:3:3: unknown field "nam_" in spec (did you mean "name"?)`},
		"all at once":     {"kin: A\nspec: {count: x, tags: a}\n", "f:1:1: unknown field \"kin\" (did you mean \"kind\"?)\nf:2:15: spec.count: expected an integer, got \"x\"\nf:2:24: spec.tags: expected a list, got \"a\""},
		"number":          {"kind: 1.30\n", `f:1:7: kind: expected a string, got the number 1.30 (put it in quotes)`},
		"boolean":         {"spec: {name: no}\n", `f:1:14: spec.name: expected a string, got the boolean no (put it in quotes)`},
		"duplicate":       {"kind: A\nspec: {}\nkind: B\n", `f:3:1: key "kind" appears twice, first on line 1`},
		"duplicate json":  {`{"kind":"A","kind":"B"}`, `f:1:13: key "kind" appears twice, first on line 1`},
		"syntax":          {"kind: [A\nb: c\n", `f:2: malformed YAML: did not find expected ',' or ']'`},
		"syntax later":    {"a: b\nkind: [A\nb: c\n", `f:2: malformed YAML: did not find expected ',' or ']'`},
		"syntax first":    {"a: }\nb: c\n", `f:1: malformed YAML: did not find expected node content`},
		"indent":          {"a:\n  b: c\n d: e\n", `f:3: malformed YAML: did not find expected key`},
		"tab":             {"spec:\n\tname: x\n", `f:2: malformed YAML: found character that cannot start any token`},
		"anchor":          {"kind: *a\n", `f:1:7: malformed YAML: unknown anchor "a"`},
		"self":            {"raw: &a [*a]\n", `f:1:10: anchor "a" contains itself`},
		"list root":       {"- a\n", `f:1:1: expected a mapping, got a list`},
		"text root":       {"---\nhello\n", `f:2:1: expected a mapping, got "hello"`},
		"not utf-8":       {"kind: A\nspec: \xff\n", `f:2:7: not UTF-8`},
		"wide characters": {"kind: \"äöü\"\nopen: {\"ä\": 1, name: 2}\n", `f:2:23: open.name: expected a string, got the number 2 (put it in quotes)`},
		"depth":           {"raw: " + strings.Repeat("[", 101) + strings.Repeat("]", 101) + "\n", `f:1:105: nested deeper than 100 levels`},
		"infinity":        {"raw: {a: .inf}\n", `f:1:10: .inf cannot be represented in JSON`},
		"merge":           {"spec: {<<: 3}\n", `f:1:8: a merge key needs a mapping, got the number 3`},
		"key":             {"? [a]\n: b\n", `f:1:3: expected a scalar as key, got a list`},
	} {
		docs, err := yamlnode.Documents("f", []byte(c.in), yamlnode.Limits{})
		if err == nil {
			var v outer
			err = yamlnode.Decode("f", docs[0], &v)
		}
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [", i, i)
		b.WriteString(strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", ") + "]\n")
	}
	_, err := yamlnode.Documents("bomb.yaml", []byte(b.String()), yamlnode.Limits{})
	want := "bomb.yaml:7:10: more than 2000000 values, counting each use of an alias"
	if fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestLimits(t *testing.T) {
	lim := yamlnode.Limits{Bytes: 40, Nodes: 5}
	for in, want := range map[string]string{
		strings.Repeat("#", 41): "f: 41 bytes exceed the limit of 40",
		"a: [1,2,3,4,5,6]":      "f: more than 5 values",
		`{"a":[1,2,3,4]}`:       "f:1:11: more than 5 values",
	} {
		if _, err := yamlnode.Documents("f", []byte(in), lim); fmt.Sprint(err) != want {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

func TestManyFaults(t *testing.T) {
	var keys strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	docs, err := yamlnode.Documents("f", []byte(keys.String()), yamlnode.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	err = yamlnode.Decode("f", docs[0], &outer{})
	if got := strings.Count(fmt.Sprint(err), "\n"); got != yamlnode.MaxFaults {
		t.Errorf("%d lines of unknown fields, want %d", got, yamlnode.MaxFaults)
	}
	_, err = yamlnode.Documents("f", []byte(keys.String()+keys.String()), yamlnode.Limits{})
	if got := strings.Count(fmt.Sprint(err), "\n"); got != yamlnode.MaxFaults {
		t.Errorf("%d lines of keys that appear twice, want %d", got, yamlnode.MaxFaults)
	}
}

func TestMergeKeys(t *testing.T) {
	docs, err := yamlnode.Documents("f", []byte("a: &a {x: 1, w: 1}\nb: &b {w: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\n"), yamlnode.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	_, c := yamlnode.Field(docs[0], "c")
	got, err := yamlnode.JSON(c)
	if want := `{"w":1,"x":3,"z":2}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestOffsetPositions(t *testing.T) {
	docs, err := (&yamlnode.Reader{}).Read("f", 1, []byte("b: x\na:\n- 1\n-  {c: é}\n"), yamlnode.Limits{}, nil)
	if err != nil || len(docs) != 1 || string(docs[0].JSON) != `{"a":[1,{"c":"é"}],"b":"x"}` {
		t.Fatalf("got %v, %v", docs, err)
	}
	for offset, want := range map[int][2]int{0: {1, 1}, 1: {2, 1}, 5: {3, 1}, 6: {3, 3}, 8: {4, 4}, 9: {4, 5}, 13: {4, 8}, 20: {1, 1}, 24: {1, 4}} {
		if got := docs[0].Pos(offset); got != (diag.Pos{File: "f", Line: want[0], Col: want[1]}) {
			t.Errorf("position of %s: got %v, want %v", docs[0].JSON[offset:], got, want)
		}
	}
}

func TestDocumentsStream(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"yaml":         {"---\n# none\n---\na: 1\n...\n---\nb: 2\n---\nnull\n", []string{`{"a":1}`, `{"b":2}`}},
		"json":         {`{"a":1}` + "\n" + `{"b":"\ud83d\ude00\/"}`, []string{`{"a":1}`, `{"b":"😀/"}`}},
		"flow yaml":    {"{a: 1,\n b: yes}\n", []string{`{"a":1,"b":true}`}},
		"tabs in json": {"{\n\t\"a\":\t[1,\t2]\n}", []string{`{"a":[1,2]}`}},
		"byte order":   {"\uFEFFa: 1\n", []string{`{"a":1}`}},
		"empty":        {"", nil},
	} {
		docs, err := yamlnode.Documents("f", []byte(c.in), yamlnode.Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, d := range docs {
			b, err := yamlnode.JSON(d)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			got = append(got, string(b))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}

// TestScalars compares the JSON of scalars with that of the API server's decoder.
func TestScalars(t *testing.T) {
	for _, s := range []string{
		"yes", "No", "on", "OFF", "y", "N", "true", "~", "null", "Null", "''", `"1"`, "1", "-0", "+3", "0777", "0o17", "0b101", "0xff", "1_000",
		"08", "1.0", "1.50", "-.5", "1e3", "1e-7", "1E400", ".5", "1.", "9223372036854775808", "18446744073709551615", "2001-01-01", "2001-12-14t21:59:43Z", "1:30", "=",
		"v1.2.3", "1.2.3", "0x", "!!str 1", "!!int '3'", "!!float 3", "!!binary aGk=", "!x 1", "|\n  a\n  b", "'yes'", "- ", "<html>&", "1__0", "_1", "-", "+", ".", "..",
	} {
		in := []byte("a: " + s + "\n")
		want, wantErr := sigsyaml.YAMLToJSON(in)
		docs, err := yamlnode.Documents("f", in, yamlnode.Limits{})
		var got []byte
		if err == nil {
			got, err = yamlnode.JSON(docs[0])
		}
		if (err != nil) != (wantErr != nil) {
			t.Errorf("%s: got %s, %v, want %s, %v", s, got, err, want, wantErr)
			continue
		}
		var g, w any
		if err == nil && (json.Unmarshal(got, &g) != nil || json.Unmarshal(want, &w) != nil || !cmp.Equal(g, w)) {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	}
}

func TestPositions(t *testing.T) {
	for _, in := range []string{"spec:\n  channels:\n  - a\n  - b\n", "{\"spec\": {\n  \"channels\": [\"a\",\n  \"b\"]}}"} {
		docs, err := yamlnode.Documents("f", []byte(in), yamlnode.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := yamlnode.Positions("f", docs[0])
		lines := strings.Split(in, "\n")
		for path, char := range map[string]string{"spec.channels[0]": "a", "spec.channels[1]": "b"} {
			p := got[path]
			if p == (diag.Pos{}) || !strings.HasPrefix(strings.TrimPrefix(lines[p.Line-1][p.Col-1:], `"`), char) {
				t.Errorf("%s: position of %s: %v", in, path, p)
			}
		}
	}
}

func FuzzDocuments(f *testing.F) {
	for _, s := range []string{"a: &x [1, *x]", "a: b\n---\n{c: d}", `{"a": [1, {"b": null}]}`, "a: {<<: {b: 1}}", "? a\n: b\r- c", "ä: \u2028b\n", "a: !!int x", "{\"a\":1}{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		docs, err := yamlnode.Documents("f", in, yamlnode.Limits{Bytes: 1 << 16, Depth: 50, Nodes: 10000})
		lines := strings.Split(string(in), "\n")
		inside := func(p diag.Pos) {
			if p.Line < 0 || p.Line > len(lines) || p.Line > 0 && p.Col > len(lines[p.Line-1])+1 {
				t.Errorf("%v is outside of the file", p)
			}
		}
		if err != nil {
			var faults diag.List
			errors.As(err, &faults)
			for _, e := range faults {
				inside(e.Pos)
			}
			return
		}
		for _, d := range docs {
			for _, p := range yamlnode.Positions("f", d) {
				inside(p)
			}
			b, err := yamlnode.JSON(d)
			if err != nil {
				continue
			}
			again, err := yamlnode.Documents("f", b, yamlnode.Limits{})
			if err != nil || len(again) != 1 {
				t.Fatalf("%s cannot be parsed again: %v", b, err)
			}
			if b2, err := yamlnode.JSON(again[0]); err != nil || string(b2) != string(b) {
				t.Errorf("canonical %s became %s, %v", b, b2, err)
			}
		}
	})
}

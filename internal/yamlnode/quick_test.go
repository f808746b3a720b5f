package yamlnode

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/diag"
)

// tester is the common part of testing.TB and rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkFastPath compares the fast path with the full parser. It reports an error if JSON, objects or
// positions differ, or if the fast path rejects the text when a filter excludes all fields. It
// returns whether the fast path supports the text as one document.
func checkFastPath(t tester, text []byte) bool {
	t.Helper()
	checkFastObjects(t, text)
	lim := Limits{}.orDefaults()
	read := func(filter *Filter) (*Document, bool) {
		r := Reader{}
		r.walker.Depth, r.walker.Nodes = lim.Depth, lim.Nodes
		r.writer.reset(filter)
		taken := r.walker.Walk(text, &r.writer)
		return &Document{JSON: r.writer.out, places: r.writer.places, lines: diag.Lines{Text: text, Line: 1}}, taken
	}
	got, taken := read(nil)
	if _, some := read(&Filter{Field: func([]byte) (*Filter, bool) { return nil, false }}); taken && !some {
		t.Errorf("not supported with a filter: %.2000s", text)
	}
	if !taken || got.JSON[0] != '{' {
		return false
	}
	docs, err := (&Reader{Slow: true}).Read("", 1, text, lim, nil)
	if err != nil || len(docs) != 1 {
		t.Errorf("full parser: %d documents, %v; fast path: %s; text:\n%.2000s", len(docs), err, got.JSON, text)
		return true
	}
	want := &docs[0]
	if !bytes.Equal(want.JSON, got.JSON) {
		t.Errorf("full parser:\n%s\nfast path:\n%s\ntext:\n%.2000s", want.JSON, got.JSON, text)
		return true
	}
	if len(want.places) != len(got.places) {
		t.Errorf("%d places, %d by the fast parser, in\n%.2000s", len(want.places), len(got.places), text)
	}
	for _, p := range want.places {
		if want, got := want.Pos(p.offset), got.Pos(p.offset); want != got {
			t.Errorf("position of %.40s: full parser %v, fast path %v; text:\n%.2000s", docs[0].JSON[p.offset:], want, got, text)
			break
		}
	}
	return true
}

// checkFastObjects compares the objects in a text, and reports whether the fast path supports the
// text.
func checkFastObjects(t tester, text []byte) bool {
	t.Helper()
	all := false
	for _, lim := range []Limits{{}, {Repeated: true}} {
		got, taken := quickObjects(text, lim.orDefaults())
		if !taken {
			continue
		}
		all = true
		want, err := slowObjects("", text, lim)
		if err != nil || len(want)+len(got) > 0 && !reflect.DeepEqual(want, got) {
			t.Errorf("full parser: %v\n%#v\nfast path:\n%#v\ntext:\n%.2000s", err, want, got, text)
		}
	}
	return all
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

func moreTexts() []string {
	return []string{
		"a: b\n", "a:\n  b: c\n  d:\n  - e\n  - f: g\n    h: i\n", "a:\n- b\n-\n  - c\n- - d\n  - e\n-\n", "a: |\n  x\n   y\n\n  z\n\nb: |-\n  x\n\nc: |+\n  x\n\n\nd: >\n  x\n  y\n\n  z\n",
		"a: x\n  y\n\n  z\nb: 'it''s\n  so'\nc: \"a\\nb\\\n  \\ c\n  d\"\n", "a: {}\nb: []\nc: # d\nd: e # f\ne: ~\n", "---\na: 1\n---\n# nothing\n---\nb: -1.5\n", "a: =\nb: y\nc: 0777\nd: 1e3\ne: 2001-01-01\nf: 1_0\ng: <<\n",
		"a: b: c\n", "a: \"b\" c\n", "\"a\": 1\n'b': 2\n", "a: 1\na: 2\n", "a:\n    b: 1\n  c: 2\n", "- a\n- b: c\n", "a: |\n\n  x\n", "a: |\n\nb: c\n", "a: 'x' # c\nb: x#y\n", "a: - b\n", "a: ? b\n", "a: x\n # c\n  y\n", "a: |\n x\n# c\n y\n",
		"a: b\n\tc: d\n", "text\n", "a: ''\nb: \"\"\n", "a: |-\n  \n  x\n", "a: x \n  y \nb: \"x \n  y\"\n", "a:\n  text\n  more\n", "a:\n- |\n  x\n- >-\n  y\n  z\n", "a: -b\nc: :d\ne: ?f\n",
		"a: \"\\x41\\u00e9\\U0001F600\"\n", "a: \"x\n\n  y\"\n", "y: 1\n", "1: a\n", "a : b\n", "a: [1]\n", "a: &x b\nc: *x\n", "a: !!str 1\n", "%YAML 1.1\n---\na: b\n", "a: b\n...\n", "a: |2\n   x\n", "a: |2-\n\n   x\n    y\n  z\n\nb: |+1\n   \n x\n  \nc:\n- |2\n    x\n- - |1\n    y\n", "a: |2\n x\n", "a: |2\nb: c\n", "a: |0\n  x\n", "a: >1\n x\n y\n", "--- |1\n x\n", "a: |12\n            x\n", "a:\n  b: |9\n             x\n", "a:\n# c\n  b: d\n# e\nf: g\n",
		"c: \"b\\/a\"\n", ".inf: a\n", "18446744073709551615: a\n",
	}
}

func jsonTexts() []string {
	return []string{
		`{"a":1,"b":[true,null,-0,1.50,1e3,1E400,12345678901234567890,"\u00e9\ud83d\ude00\/"]}`, "{\n\t\"a\": {},\n\t\"b\": []}\n{\"c\": \"d\"}", `{"a":1,"a":2}`, `{"a":"\ud800"}`,
		`{"a":1}x`, `{"a":1}null`, `{"a":1}[]`, `{"a":`, `{a: b}`, `{"a":1,}`, `{"<<":{"a":1}}`, `{"a":01}`, `{"a":+1}`, `{"a":-}`, `{"a" "b"}`, `{"":{"b":[{"c":[]}]}}`, `{"a":1]`, `{"a"}`, `{1:2}`, "{\"a\":\"\x01\"}", `{"a":9007199254740993.0,"b":-1.5e-7}`,
	}
}

func TestQuickEqualsFullParser(t *testing.T) {
	for _, text := range slices.Concat(yamlTexts(), moreTexts(), jsonTexts()) {
		checkFastPath(t, []byte(text))
	}
	for _, text := range []string{yamlTexts()[0], "z: {}\na:\n- 1\n- b: c\n"} {
		if !checkFastPath(t, []byte(text)) {
			t.Errorf("%q is not supported by the fast path", text)
		}
	}
}

// TestQuickTypesScalars checks each element of words as a value and as a key.
func TestQuickTypesScalars(t *testing.T) {
	taken := 0
	for _, word := range words() {
		for _, form := range []string{"a: %s\n", "a:\n- %s\n- b\n", "a: %s # c\n", "a:\n  %s\n", "%s: a\n", "'%s': a\n", "\"%s\": a\n", "a: '%s'\n", "a: \"%s\"\n", "a: |\n  %s\n", "a: >\n  %s\n"} {
			if checkFastPath(t, []byte(strings.ReplaceAll(form, "%s", word))) {
				taken++
			}
		}
	}
	if all := 11 * len(words()); taken < all*2/3 {
		t.Errorf("the fast path supports %d of %d", taken, all)
	}
}

// TestQuickObjects checks which texts the fast path supports.
func TestQuickObjects(t *testing.T) {
	for text, want := range map[string]bool{
		"a: 1\nb: [x]\n":      false,
		"# said\n---\na: b\n": true,
		"a: 1\nb: -1\nc: 1.50\nd: 1e3\ne: 0777\nf: 12_3\n":  true,
		"a: yes\nb: off\nc: ~\nd:\ne: Null\nf: y\n":         true,
		"a: 18446744073709551616\nb: 9223372036854775808\n": true,
		"a: 2024-01-01\nb: 1.2.3\nc: 0x1F\nd: 10m\ne: =\n":  true,
		"a: .inf\n": false,
		"a: |\n  x\n   y\n\nb: >-\n  x\n  y\nc: 'it''s'\n": true,
		"a: \"\\u00e4\\x41\\n\"\nb: \"<>&\\u2028\"\n":      true,
		"a: b\na: c\n":                 false,
		"a: b\n---\nc: d\n":            true,
		"a: b\n---\n- d\n":             false,
		"a: b\n---\n---\n~\n---\nc: d": true,
		"a: b\n--- {c: d}\n":           false,
		"- a\n":                        false,
		"":                             true,
		"a: &x b\nc: *x\n":             false,
		"a: \xff\n":                    false,
		"a:\n- b: c\n  d: {}\n- []\n":  true,
		strings.Repeat("a: [\n", 3):    false,
		nested(99):                     true,
		nested(100):                    false,
		`{"a":1}` + "\n" + `{"b":[]}`:  true,
		`{"a":1,"a":2}`:                true, // where keys may be repeated
		`{"a":` + strings.Repeat("[", 98) + strings.Repeat("]", 98) + "}":   true,
		`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}": false,
	} {
		if got := checkFastObjects(t, []byte(text)); got != want {
			t.Errorf("%.80q: supported %t, want %t", text, got, want)
		}
	}
}

// nested returns a mapping with this number of nested mappings.
func nested(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()[:b.Len()-1] + " x\n"
}

// TestQuickKeepsTheLimits checks both parsers at the limits and just above.
func TestQuickKeepsTheLimits(t *testing.T) {
	for _, text := range []string{"a: b\nc:\n- d\n- e: ~\n  f:\n", `{"a":"b","c":["d",{"e":null,"f":null}]}`, "a: b\n---\nc:\n- d\n- e: f\n  g: h\n"} {
		nodes := 0
		for ; nodes < 100; nodes++ {
			_, quick := quickObjects([]byte(text), Limits{Nodes: nodes}.orDefaults())
			_, err := Documents("f", []byte(text), Limits{Nodes: nodes})
			if nodes > 0 && err == nil && !quick || quick && nodes > 0 && nodes < 10 {
				t.Errorf("%q: with %d values: %t, and %v", text, nodes, quick, err)
			}
			if quick && nodes > 0 {
				break
			}
		}
		for depth := 1; depth < 6; depth++ {
			_, quick := quickObjects([]byte(text), Limits{Depth: depth}.orDefaults())
			if _, err := Documents("f", []byte(text), Limits{Depth: depth}); quick != (err == nil) {
				t.Errorf("%q: %d levels: %t, and %v", text, depth, quick, err)
			}
		}
	}
}

// TestFilter checks that both parsers omit the parts that the filter excludes.
func TestFilter(t *testing.T) {
	opened := 0
	filter := &Filter{Open: func() { opened++ }, Field: func(name []byte) (*Filter, bool) {
		return &Filter{Items: &Filter{Text: func(s []byte) []byte { return s[:1] }}}, string(name) != "b"
	}}
	for _, slow := range []bool{false, true} {
		docs, err := (&Reader{Slow: slow}).Read("f", 7, []byte("c: yes\nb: [] # no\na:\n- text\n- {}\n"), Limits{}, filter)
		if err != nil || len(docs) != 1 || string(docs[0].JSON) != `{"a":["t",{}],"c":true}` || docs[0].Pos(1) != (diag.Pos{File: "f", Line: 9, Col: 1}) || docs[0].Pos(6) != (diag.Pos{File: "f", Line: 10, Col: 3}) {
			t.Errorf("slow %t: got %v, %v", slow, docs, err)
		}
	}
	if opened != 2 {
		t.Errorf("opened %d times", opened)
	}
	_, err := (&Reader{}).Read("f", 7, []byte("a: b\nb: .inf\n"), Limits{}, filter)
	if want := "f:8:4: .inf cannot be represented in JSON"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzQuick(f *testing.F) {
	for _, text := range slices.Concat(yamlTexts(), moreTexts(), jsonTexts()) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkFastPath(t, text) })
}

// TestRepeated checks that the last value of a repeated key wins if repeated keys are allowed.
func TestRepeated(t *testing.T) {
	for _, text := range []string{"a: 1\nb: 2\na: 3\n", "{a: 1, b: 2, a: 3}", `{"a":1,"b":2,"a":3}`, "x: &x {c: d}\na: 1\nb: 2\n<<: *x\na: 3\n"} {
		got, err := Objects("f", []byte(text), Limits{Repeated: true})
		if err != nil || len(got) != 1 || got[0]["a"] != int64(3) || got[0]["b"] != int64(2) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
		if _, err := Objects("f", []byte(text), Limits{}); err == nil || !strings.Contains(err.Error(), `key "a" appears twice, first on line `) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

package blockyaml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorder is a Sink that records its calls. It wants all keys that do not begin with x.
type recorder struct{ strings.Builder }

func (s *recorder) Open(kind byte, at int)   { fmt.Fprintf(s, "%c%d ", kind, at) }
func (s *recorder) Close(kind byte)          { fmt.Fprintf(s, "%c ", kind) }
func (s *recorder) Text(text []byte, at int) { fmt.Fprintf(s, "%q%d ", text, at) }
func (s *recorder) Word(text []byte, at int) { fmt.Fprintf(s, "%s@%d ", text, at) }
func (s *recorder) Key(name []byte, _ int) bool {
	fmt.Fprintf(s, "%s: ", name)
	return !strings.HasPrefix(string(name), "x")
}

func (s *recorder) Plain(text []byte, at int, wanted bool) bool {
	fmt.Fprintf(s, "%s?%d,%t ", text, at, wanted)
	return string(text) != ".nan"
}

func walker() *Walker { return &Walker{Depth: 100, Nodes: 10_000} }

func TestWalk(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"mapping", "a: b\nc:\n  d: 'e'\n", `{0 a: "b"3 c: {10 d: "e"13 } } `},
		{"sequence", "- a\n- - b\n  - c\n-\n  d: e\n- f:\n- {}\n", `[0 "a"2 [6 "b"8 "c"14 ] {20 d: "e"23 } {27 f: null@29 } {32 } ] `},
		{"behind a marker and comments", "# a\n\n---\n# b\na: b # c\n", `{13 a: "b"16 } `},
		{"words", "a: true\nb: 12\nc: ~\nd:\ne: null\nf: -1\ng: yes\nh: 1.2.3\ni: 1.2\n", `{0 a: true@3 b: 12@11 c: null@17 d: null@21 e: null@25 f: -1?33,true g: yes?39,true h: "1.2.3"46 i: 1.2?55,true } `},
		{"strings over lines", "a: b\n  c\n\n  d\ne: 'f\n  ''g'\nh: \"i\\\n  \\ j\\x41\"\n", `{0 a: "b c\nd"3 e: "f 'g"17 h: "i jA"30 } `},
		{"nested strings over lines", "a:\n  b: c\n    d\n  e: f\n  # g\nh: i\n  # j\n", `{0 a: {5 b: "c d"8 e: "f"21 } h: "i"32 } `},
		{"numbers", "a: 0\nb: 017\nc: 12345678901234567\nd: 123456789012345678\n", `{0 a: 0@3 b: 017?8,true c: 12345678901234567@15 d: 123456789012345678?36,true } `},
		{"blocks", "a: |\n  b\n   c\n\n  d\n\ne: >-\n  f\n  g\n\n  h\ni: |2+\n   j\n\n", `{0 a: "b\n c\n\nd\n"3 e: "f g\nh"23 i: " j\n\n"42 } `},
		{"what is not wanted", "x:\n  a: |\n    b\n  c: .5\nd: e\n", `{0 x: .5?21,false d: "e"27 } `},
		{"no line break at the end", "a: b", `{0 a: "b"3 } `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got recorder
			if !walker().Walk([]byte(tt.text), &got) {
				t.Fatal("beyond the parser")
			}
			if d := cmp.Diff(tt.want, got.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestWalkGivesUp checks that unsupported text is rejected, also in the unwanted value of a
// field x.
func TestWalkGivesUp(t *testing.T) {
	for _, text := range []string{
		"a: &b c\n", "a: *b\n", "a: !!str b\n", "a: [b]\n", "a: {b: c}\n", "a: b: c\n", "a: 'b\n", "a: 'b' c\n", "a: \"\\q\"\n", "a: \"b\\/c\"\n", "a: \"\\ud800\"\n",
		"a: 1\na: 2\n", "b: 1\na: 2\nb: 3\n", "a:\n  b: 1\n c: 2\n", "- a\nb: c\n", "a: b\tc\n", "a: b\r\n", "a: \x01\n", "a: \xff\n", "a: \u2028\n", "a: \u0085\n", "a: \ufeff\n",
		"a: |3\n  b\n", "a: >\n   b\n    c\n", "a: |\n  \n  b\n", "? a\n", "1: a\n", "a: .nan\n", "a: b\n # c\n  d\n", "a: b\n\n# c\n  d\n", "a: b # c\n  d\n", "a: |\n  b",
		strings.Repeat("- ", 200) + "a\n", strings.Repeat("k", 2000) + ": a\n",
	} {
		lines := strings.SplitAfter(text, "\n")
		below := "x:\n  " + strings.Join(lines[:len(lines)-1], "  ") + lines[len(lines)-1]
		if lines[len(lines)-1] != "" {
			below = "x:\n  " + strings.Join(lines, "  ")
		}
		for _, text := range []string{text, below} {
			if walker().Walk([]byte(text), &recorder{}) {
				t.Errorf("takes %q", text)
			}
		}
	}
	for _, text := range []string{"", "\n", "# a\n", "---\n", "a: \"\n---\n  \"\n", "%YAML 1.1\n---\na: b\n", "a: b\n---\n", "a: b\n...\n", "--- a\n"} {
		if walker().Walk([]byte(text), &recorder{}) {
			t.Errorf("takes %q", text)
		}
	}
}

// TestManyKeys checks mappings with unsorted keys, below and above the limit of a linear search.
func TestManyKeys(t *testing.T) {
	for _, n := range []int{2, 31, 32, 33, 34, 1000} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "k%d:\n  a: b\n", n-i)
		}
		if !walker().Walk([]byte(text.String()), &recorder{}) {
			t.Errorf("%d keys are beyond the parser", n)
		}
		for _, k := range []int{1, n/2 + 1, n} {
			if walker().Walk([]byte(text.String()+fmt.Sprintf("k%d: c\n", k)), &recorder{}) {
				t.Errorf("of %d keys, k%d appears twice", n, k)
			}
		}
	}
}

// TestSimple tries every byte at every offset.
func TestSimple(t *testing.T) {
	for _, size := range []int{1, 8, 31, 32, 33, 70} {
		for at := range size {
			for c := range 256 {
				text := []byte(strings.Repeat("a", size-1) + "\n")
				text[at] = byte(c)
				tabs, ok := isSimple(text)
				want := c == '\n' || c == '\t' || c >= ' ' && c < 0x7f
				if ok != want || ok && tabs != (c == '\t') {
					t.Fatalf("%q: %t, tabs %t", text, ok, tabs)
				}
			}
		}
	}
	for text, want := range map[string]bool{"é": true, "\u2027": true, "\u2028": false, "\u0085": false, "\ufeff": false, "\u00a0": true, "\xc3": false} {
		for _, before := range []string{"", strings.Repeat("b", 40)} {
			if _, ok := isSimple([]byte(before + text + "\n")); ok != want {
				t.Errorf("%q: %t", before+text, ok)
			}
		}
	}
}

// FuzzWalk checks that Walk accepts the same texts with and without unwanted keys.
func FuzzWalk(f *testing.F) {
	for _, text := range []string{
		"a: b\nx:\n  - c: 'd'\n    e: \"f\\n\"\n  - |\n    g\n", "a: b\n  c\nd: >-\n  e\n\n  f\n", "- a\n- b: 1\n- 0x10\n- {}\n", "---\na: 1\nb: 2\na: 3\n", "x: .nan\n", "a: |+\n b\n\n# c\nd: e",
		"\n---\n\n---\na", "a: \"b\\/c\"\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, some := walker().Walk(text, &recorder{}), walker().Walk(text, passer{})
		if all != some {
			t.Errorf("accepted: %t, without wanted keys: %t", all, some)
		}
	})
}

// passer is a Sink that wants no keys.
type passer struct{}

func (passer) Open(byte, int)                     {}
func (passer) Close(byte)                         {}
func (passer) Key([]byte, int) bool               { return false }
func (passer) Text([]byte, int)                   {}
func (passer) Word([]byte, int)                   {}
func (passer) Plain(s []byte, _ int, _ bool) bool { return string(s) != ".nan" }

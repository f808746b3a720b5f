package sanitize_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/sanitize"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"two  blanks stay":           "two  blanks stay",
		"a\n\t b\r\nc\u2028d\u00a0e": "a b c d e",
		"\x1b[31mred\x07\x00":        `\u001b[31mred\u0007\u0000`,
		"\u202egpj.exe\u200b":        `\u202egpj.exe\u200b`,
		"C1 \u009b2J":                `C1 \u009b2J`,
		"tag \U000e0041":             `tag \udb40\udc41`,
		"filler \u3164, \ufdd0":      `filler \u3164, \ufdd0`,
		"\xff\xfe":                   "��",
		"ä, 日本, ⚠️, e\u0301":         "ä, 日本, ⚠️, e\u0301",
		"x ##[error]y ##VSO[task.z]": `x \u0023#[error]y \u0023#VSO[task.z]`,
		"## heading ##teamcity[x":    `## heading \u0023#teamcity[x`,
		"::error::within a line":     "::error::within a line",
	} {
		if got := sanitize.Line(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	in := "::error::a\n  ::warning::b\n\tc ::d\n\r::e\x1b[31m"
	want := "\\u003a:error::a\n  \\u003a:warning::b\n\tc ::d\n\\u000d\\u003a:e\\u001b[31m"
	if got := sanitize.Lines(in); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"short", 5, "short"}, {"longer", 5, "lo…"}, {"ääää", 6, "ä…"}, {"ääää", 7, "ää…"}, {"日", 3, "日"}, {"日本", 5, "…"}, {"  a\n", 4, "  a\n"},
	} {
		if got := sanitize.Truncate(c.in, c.n); got != c.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestClip(t *testing.T) {
	if got := sanitize.TruncateLine("  a\n\nb\x00 ", 8); got != `a b\u…` {
		t.Errorf("got %q", got)
	}
}

func TestName(t *testing.T) {
	for _, good := range []string{"stable", "4.x / beta", "Fast", "日本"} {
		if err := sanitize.CheckName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{" a", "a\t", "a\nb", "a\x1b[m", "a\u202eb", "a\u2028b", "a\u200db", "\xff", "a\u00a0"} {
		if sanitize.CheckName(bad) == nil {
			t.Errorf("%q is accepted as a name", bad)
		}
	}
}

func TestMarkdown(t *testing.T) {
	for in, want := range map[string]string{
		"a <b> [c](d) `e`":               "a \\<b\\> \\[c\\]\\(d\\) \\`e\\`",
		"@org/team fixes #1 and GH-2":    "@&#8203;org/team fixes #&#8203;1 and GH-&#8203;2",
		"https://a.example, www.b.c":     "https:&#8203;//a.example, www.&#8203;b.c",
		"\n# heading":                    "#&#8203; heading",
		"- list":                         `\- list`,
		"12. list":                       `12\. list`,
		"--- 1. not at the start 2) - =": `\--- 1. not at the start 2\) - =`,
		"3) list":                        `3\) list`,
		"1.2.3 stays readable":           `1\.2.3 stays readable`,
	} {
		if got := sanitize.Markdown(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://github.com/org/repo":                    "https://github.com/org/repo",
		"http://a.example/b?c=d#e":                       "http://a.example/b?c=d#e",
		"https://a.example/b)[x](y":                      "https://a.example/b%29%5Bx%5D%28y",
		"https://a.example/\" onclick=x":                 "https://a.example/%22%20onclick=x",
		"https://a.example/@org/team":                    "https://a.example/%40org/team",
		"https://user:secret@a.example/b":                "",
		"https://a.example/\u202eb":                      "",
		"javascript:alert(1)":                            "",
		"github.com/org/repo":                            "",
		"https://":                                       "",
		"https://a.example/" + strings.Repeat("b", 2000): "",
	} {
		if got := sanitize.URL(in); got != want {
			t.Errorf("URL(%q) = %q, want %q", in, got, want)
		}
	}
	if got := sanitize.Link("a_b", "https://a.example"); got != `[a\_b](https://a.example)` {
		t.Errorf("got %s", got)
	}
	if got := sanitize.Link("a", "nowhere"); got != "a" {
		t.Errorf("got %s", got)
	}
}

func TestCode(t *testing.T) {
	for in, want := range map[string]string{" \n": "", "a": "`a`", "a`b": "`` a`b ``", "``\n### x": "``` `` ### x ```"} {
		if got := sanitize.Code(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestHTML(t *testing.T) {
	if got, want := sanitize.HTML("</b>\n<script>\"@me\" &#1"), "&lt;/b&gt; &lt;script&gt;&quot;@&#8203;me&quot; &amp;#&#8203;1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCommit(t *testing.T) {
	in := "stable\nSigned-off-by: me [skip ci] ***NO_CI*** @a closes #1, GH-1, !2, https://b.example/issues/1"
	want := `stable Signed-off-by: me \u005bskip ci] \u002a\u002a\u002aNO_CI\u002a\u002a\u002a \u0040a closes \u00231, GH\u002d1, \u00212, https\u003a//b.example/issues/1`
	if got := sanitize.Commit(in); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := &sanitize.Writer{To: &out, Colors: true}
	for _, s := range []string{"\x1b[1;31mred\x1b[0m ", "::still in the line\n", "  ", "::error::x\x1b[2J\x1b[8m\n"} {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("%q: %d, %v", s, n, err)
		}
	}
	want := "\x1b[1;31mred\x1b[0m ::still in the line\n  \\u003a:error::x\\u001b[2J\\u001b[8m\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// FuzzInert checks the guarantees of the package for any text.
func FuzzInert(f *testing.F) {
	for _, s := range []string{"", "a\nb", "\x1b]8;;x\x07", "\u202e", "::error", "##[x]", "```", "1. - #", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, got := range map[string]string{
			"Line": sanitize.Line(s), "TruncateLine": sanitize.TruncateLine(s, 40), "Markdown": sanitize.Markdown(s), "Code": sanitize.Code(s), "HTML": sanitize.HTML(s), "Commit": sanitize.Commit(s),
			"URL": sanitize.URL("https://a.example/" + s), "Link": sanitize.Link(s, s),
		} {
			if strings.ContainsAny(got, "\n\t") {
				t.Errorf("%s(%q) has several lines: %q", name, s, got)
			}
			checkInert(t, name, got)
		}
		lines := sanitize.Lines(s)
		checkInert(t, "Lines", strings.NewReplacer("\n", "", "\t", "").Replace(lines))
		for line := range strings.Lines(lines) {
			if strings.HasPrefix(strings.TrimSpace(line), "::") {
				t.Errorf("Lines(%q) has a command: %q", s, line)
			}
		}
		if len(sanitize.TruncateLine(s, 40)) > 40 {
			t.Errorf("TruncateLine(%q, 40) is longer", s)
		}
		if again := sanitize.Line(sanitize.Line(s)); again != sanitize.Line(s) {
			t.Errorf("Line(%q) changes when it is done again: %q", s, again)
		}
		whole, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		if json.Unmarshal(whole, &before) != nil || json.Unmarshal([]byte(sanitize.Lines(string(whole))), &after) != nil || before != after {
			t.Errorf("the JSON of %q decodes as %q", s, after)
		}
	})
}

// checkInert checks that a text has no workflow commands and no invisible characters. The tables of package
// unicode define these characters.
func checkInert(t *testing.T, name, got string) {
	t.Helper()
	for _, r := range got {
		if !unicode.IsGraphic(r) && unicode.In(r, unicode.C, unicode.Z) {
			t.Errorf("%s gives %U in %q", name, r, got)
		}
	}
	if !utf8.ValidString(got) || strings.Contains(got, "##[") || strings.Contains(got, "##vso[") {
		t.Errorf("%s gives %q", name, got)
	}
}

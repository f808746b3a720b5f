package fbc

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
	sigs "sigs.k8s.io/yaml"
)

// words are texts that a reader or a writer of YAML can get wrong.
func words() []string {
	return []string{
		"", " ", "a", "yes", "No", "on", "y", "~", "null", "true", "0", "-1", "+1", "017", "0x1F", "0o7", "0b1", "1_0", "1e3", "1.5", ".5", "5.", "1.2.3", ".inf", ".NaN",
		"12345678901234567890", "2001-01-01", "2001-01-01T10:00:00Z", "=", "<<", "- a", "-", "--", "---", "...", "a: b", "a:", ":a", "#", "# a", "a #b", "a#b", "?", "? a", "*a", "&a", "!a", "|", ">", "%a", "@a", "`a", "{", "}", "[a]", "{}", "[]",
		"\"", "'", "\\", "a\"b", "it's", "a\nb", "a\nb\n", "a\n\nb\n\n\n", "\n", "\na", " a\nb", "a\n b", "a \nb", "a\tb", "\ta", "a\r\nb", "trailing ", " leading", "é", "😀", "\u00a0", "\u2028", "\ufeff", "\x00", "\x1b", "\x7f", "\u0085",
		"several words in a row that are longer than eighty columns, so that emitters break the line somewhere within",
		"several: words in a row # that are longer than eighty columns, so that emitters break the line, and need quotes",
		"- lines of a list that are longer than eighty columns, so that emitters break the line\n- \n\n  and 'quotes' \"too\"\n",
		strings.Repeat("x", 200), strings.Repeat("many words ", 30), strings.Repeat("a\\b \"c\" ", 30), "https://example.com/a?b=c#d", "quay.io/a/b@sha256:0123", ">=1.0.0 <2.0.0", "olm.bundle", "schema",
	}
}

// anyValue draws a value of JSON.
func anyValue(t *rapid.T, depth int) any {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0, 1:
		return rapid.SampledFrom(words()).Draw(t, "text")
	case 2:
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words()), 0, 6).Draw(t, "parts"), rapid.SampledFrom([]string{"", " ", "\n", "\n\n"}).Draw(t, "between"))
	case 3:
		return rapid.SampledFrom([]any{nil, true, false, 0, -1, 1.5, 1e30, 123456789012345678}).Draw(t, "other")
	case 4:
		list := make([]any, rapid.IntRange(0, 4).Draw(t, "items"))
		for i := range list {
			list[i] = anyValue(t, depth-1)
		}
		return list
	default:
		return anyMapping(t, depth)
	}
}

func anyMapping(t *rapid.T, depth int) map[string]any {
	m := map[string]any{}
	for range rapid.IntRange(0, 5).Draw(t, "fields") {
		key := rapid.OneOf(rapid.StringMatching(`[a-zB-D_$/0-9.-]{1,6}`), rapid.SampledFrom(words())).Draw(t, "key")
		m[key] = anyValue(t, depth-1)
	}
	return m
}

// TestRewriterReadsWhatEmittersWrite makes up values, and reads them as
// emitters write them.
func TestRewriterReadsWhatEmittersWrite(t *testing.T) {
	all, taken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		value := anyMapping(t, 4)
		for _, emit := range []func(any) ([]byte, error){sigs.Marshal, func(v any) ([]byte, error) { return yaml.Marshal(v) }} {
			text, err := emit(value)
			if err != nil {
				continue // it does not read what it writes of "\x7f"
			}
			all++
			if sameJSON(t, text) {
				taken++
			}
		}
	})
	t.Logf("%d of %d documents are taken", taken, all)
	if taken < all/4 {
		t.Errorf("only %d of %d documents are taken", taken, all)
	}
}

// TestRewriterReadsWhatPeopleWrite puts lines together that make sense by
// accident only.
func TestRewriterReadsWhatPeopleWrite(t *testing.T) {
	starts := []string{"", "a:", "b:", "a10:", "c", "- ", "-", "- - ", "- a: ", "'k': ", "\"k\":", "# ", "? ", "1: ", "schema: "}
	ends := []string{"", " |", " |-", " >", " >-", " |2", " |+1", " # c", " 'x", "y'", " \"x", "y\"", " \\", " 'x' # c", " x", " x # c", " x:", " {}", " []", " [x]", " x  ", " ''", " 'it''s'", " \"\\n\""}
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 8).Draw(t, "lines") {
			text.WriteString(strings.Repeat(" ", rapid.IntRange(0, 4).Draw(t, "indent")))
			text.WriteString(rapid.SampledFrom(starts).Draw(t, "start"))
			text.WriteString(rapid.OneOf(rapid.SampledFrom(ends), rapid.Map(rapid.SampledFrom(words()), func(s string) string { return " " + s })).Draw(t, "end"))
			text.WriteString("\n")
		}
		if sameJSON(t, []byte(text.String())) {
			taken++
		}
	})
	t.Logf("%d documents are taken", taken)
}

// TestStringsAreSpelledAsTheFullParserDoes compares with encoding/json, which
// the full parser writes with.
func TestStringsAreSpelledAsTheFullParserDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.SampledFrom(words())).Draw(t, "s")
		var want strings.Builder
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got := string(appendText(nil, []byte(s))) + "\n"; got != want.String() {
			t.Errorf("got %s, want %s", got, want.String())
		}
	})
}

func FuzzRewriter(f *testing.F) {
	for _, text := range yamlTexts() {
		f.Add([]byte(text))
	}
	for _, text := range blockSeeds() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { sameJSON(t, text) })
}

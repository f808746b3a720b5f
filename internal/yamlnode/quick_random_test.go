package yamlnode

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
	sigs "sigs.k8s.io/yaml"
)

// words are texts that YAML decoders or encoders often handle incorrectly.
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

// anyValue draws a JSON value.
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

// TestQuickReadsEmitterOutput draws values and checks the fast path on the output of
// emitters.
func TestQuickReadsEmitterOutput(t *testing.T) {
	all, taken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		value := anyMapping(t, 4)
		for _, emit := range []func(any) ([]byte, error){sigs.Marshal, func(v any) ([]byte, error) { return yaml.Marshal(v) }} {
			text, err := emit(value)
			if err != nil {
				continue // the emitter cannot encode "\x7f" correctly
			}
			all++
			if checkFastPath(t, text) {
				taken++
			}
		}
	})
	t.Logf("the fast path supports %d of %d documents", taken, all)
	if taken < all/4 {
		t.Errorf("the fast path supports only %d of %d documents", taken, all)
	}
}

// author writes YAML like a person: in any style, with any indentation, and with occasional
// errors.
type author struct {
	*rapid.T
	strings.Builder
}

func (w *author) pick(some ...string) string { return rapid.SampledFrom(some).Draw(w.T, "of") }

// value writes the value after a colon or a dash in column col.
func (w *author) value(v any, col int) {
	inner := col + rapid.IntRange(1, 4).Draw(w.T, "indent")
	pad := strings.Repeat(" ", inner)
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			w.WriteString(w.pick(" {}\n", "\n", " {}  # c\n"))
			return
		}
		w.WriteString(w.pick("\n", "\n", " # c\n", "\n\n"))
		for k, e := range v {
			quote := w.pick("", "", "", "'", "\"")
			w.WriteString(w.pick("", "", "", "\n", "# c\n", pad+"# c\n") + pad + quote + k + quote + ":")
			w.value(e, inner)
		}
	case []any:
		if len(v) == 0 {
			w.WriteString(w.pick(" []\n", "\n", " [ ]\n"))
			return
		}
		if w.pick("", "-") == "" {
			pad, inner = pad[:max(col, 0)], max(col, 0)
		}
		w.WriteString("\n")
		for _, e := range v {
			w.WriteString(pad + "-")
			w.value(e, inner)
		}
	case string:
		w.text(v, pad)
	default:
		text, _ := json.Marshal(v)
		w.WriteString(" " + string(text) + w.pick("", "", " ", " # c") + "\n")
	}
}

// text writes a string in any style.
func (w *author) text(s, pad string) {
	broken := strings.ReplaceAll(strings.ReplaceAll(s, "\n", "\n\n"+pad), "  ", w.pick("  ", " \n"+pad))
	switch w.pick("plain", "plain", "'", "\"", "json", "|", ">") {
	case "plain":
		w.WriteString(" " + broken + "\n")
	case "'":
		w.WriteString(" '" + strings.ReplaceAll(broken, "'", "''") + "'\n")
	case "\"":
		w.WriteString(" \"" + broken + "\"\n")
	case "json":
		text, _ := json.Marshal(s)
		w.WriteString(" " + strings.ReplaceAll(string(text), " ", w.pick(" ", " ", " \n"+pad, " \\\n"+pad)) + "\n")
	case "|":
		w.WriteString(w.pick(" |", " |-", " |+", " |2", " |1-") + "\n" + pad + strings.ReplaceAll(s, "\n", "\n"+pad) + "\n")
	default:
		w.WriteString(w.pick(" >", " >-", " >+") + "\n" + pad + broken + "\n")
	}
}

// TestQuickReadsHandwrittenYAML draws values and checks the fast path on hand-written YAML,
// sometimes with an error.
func TestQuickReadsHandwrittenYAML(t *testing.T) {
	taken, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := author{T: t}
		w.value(anyMapping(t, 3), -1)
		text := []byte(w.String())
		if w.pick("", "", "slip") != "" && len(text) > 0 {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text = append(text[:at:at], append([]byte(w.pick("", " ", "\n", ":", "\t", "#", "'", "-")), text[at+1:]...)...)
		}
		all++
		if checkFastPath(t, text) {
			taken++
		}
	})
	t.Logf("the fast path supports %d of %d documents", taken, all)
	if taken < all/20 {
		t.Errorf("the fast path supports only %d of %d documents", taken, all)
	}
}

// TestStringsAreEncodedLikeEncodingJSON compares strings with encoding/json, because earlier
// checksums were computed from its output.
func TestStringsAreEncodedLikeEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.SampledFrom(words())).Draw(t, "s")
		var want strings.Builder
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got := appendString(nil, []byte(s)); string(got)+"\n" != want.String() {
			t.Errorf("got %s, want %s", got, want.String())
		}
	})
}

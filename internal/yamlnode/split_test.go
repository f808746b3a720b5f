package yamlnode

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// TestStream cuts a stream that arrives at once, byte by byte, or together with its io.EOF.
func TestStream(t *testing.T) {
	type document struct {
		Text   string
		Line   int
		Offset int64
	}
	large := "b: " + strings.Repeat("x", 600<<10) + "\n"
	for _, tt := range []struct {
		in   string
		want []document
	}{
		{"", nil},
		{"a: b", []document{{"a: b", 1, 7}}},
		{"---\na: b\n---\nc: d\n", []document{{"---\na: b\n", 1, 7}, {"---\nc: d\n", 3, 16}}},
		{"# c\n%YAML 1.1\n---\na: b\n--- # d\nc: d\n", []document{{"# c\n%YAML 1.1\n---\na: b\n", 1, 7}, {"--- # d\nc: d\n", 5, 30}}},
		{"a: b\n...\nc: d\n...", []document{{"a: b\n...\n", 1, 7}, {"c: d\n...", 3, 16}}},
		{"a: b\n----\n--\n...c\n ---\n---", []document{{"a: b\n----\n--\n...c\n ---\n", 1, 7}, {"---", 6, 30}}},
		{"---\n---\r\n---\n", []document{{"---\n", 1, 7}, {"---\r\n", 2, 11}, {"---\n", 3, 16}}},
		{large + "---\n" + large, []document{{large, 1, 7}, {"---\n" + large, 2, 7 + int64(len(large))}}},
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)), "with its end": iotest.DataErrReader(strings.NewReader(tt.in)),
		} {
			var docs Stream
			docs.Reset(r, 7, 1<<20)
			var got []document
			for {
				text, line, err := docs.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, document{string(text), line, docs.Offset})
			}
			if !cmp.Equal(tt.want, got) {
				t.Errorf("%.50q %s: -want +got\n%.2000s", tt.in, name, cmp.Diff(tt.want, got))
			}
		}
	}
	var docs Stream
	docs.Reset(io.MultiReader(strings.NewReader("a: b\n---\nc: d\n"), iotest.ErrReader(io.ErrClosedPipe)), 0, 1<<20)
	if text, _, err := docs.next(); string(text) != "a: b\n" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if text, line, err := docs.next(); text != nil || line != 2 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %q, %d, %v", text, line, err)
	}
}

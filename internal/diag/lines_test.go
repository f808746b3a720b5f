package diag_test

import (
	"testing"

	"github.com/quayside/quayside/internal/diag"
)

// TestErrorIsOneLine checks that an error is one line, whatever its text, and that a nested
// list keeps its lines.
func TestErrorIsOneLine(t *testing.T) {
	at := diag.Pos{File: "a\n::error::x", Line: 3}
	one := diag.Errorf(at, "name %s\nb:1: forged\x1b[2J", "\u202e")
	want := `a ::error::x:3: name \u202e b:1: forged\u001b[2J`
	if got := one.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	inner := diag.List{diag.Errorf(diag.Pos{File: "c"}, "x\ny"), diag.Errorf(diag.Pos{File: "d"}, "z")}
	if got, want := diag.Errorf(diag.Pos{File: "w"}, "catalog: %w", inner.Err()).Error(), "w: catalog: c: x y\nd: z"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLinesDrop reads a text in parts. Positions in the parts must be the positions in the whole text.
func TestLinesDrop(t *testing.T) {
	text := "one\ntwo\n\nthree, which is long\r\nfour"
	whole := diag.Lines{File: "f", Text: []byte(text), Line: 1}
	const piece = 5
	for dropped := range len(text) {
		part := diag.Lines{File: "f", Line: 1}
		base := 0
		for read := 0; read < len(text); read += piece {
			part.Text = append(part.Text, text[read:min(read+piece, len(text))]...)
			n := min(dropped-base, len(part.Text))
			part.Drop(n)
			base += n
			for _, at := range []int{base + len(part.Text), base} { // also backwards
				if got, want := part.Pos(at-base), whole.Pos(at); got != want {
					t.Fatalf("%d dropped, offset %d: got %v, want %v", dropped, at, got, want)
				}
			}
		}
	}
}

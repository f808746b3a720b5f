package diag_test

import (
	"testing"

	"github.com/quayside/quayside/internal/diag"
)

// TestLinesAreTheLists shows that a fault is one line whatever it is about, and
// that a list inside of one keeps its lines.
func TestLinesAreTheLists(t *testing.T) {
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

package diag_test

import (
	"testing"

	"github.com/quayside/quayside/internal/diag"
)

// TestWords checks the functions in words.go with arguments at the limits of their ranges.
func TestWords(t *testing.T) {
	for _, c := range []struct{ what, got, want string }{
		{"one", diag.Count(1, "hop"), "1 hop"},
		{"none", diag.Count(0, "hop"), "0 hops"},
		{"as many as there is room for", diag.Some([]string{"a", "b", "c"}, 3), "a, b, c"},
		{"one more", diag.Some([]string{"a", "b", "c", "d"}, 3), "a, b, c and 1 more"},
		{"a field of none", diag.Member("", "spec"), "spec"},
		{"an item of a field", diag.Item(diag.Member("spec", "catalogs"), 0), "spec.catalogs[0]"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
}

package bundle

import (
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/yamlnode"
)

// TestEmptyDocuments checks, for both parsers, that the number of allocations does not grow with the number of
// empty documents. Too many documents that are not empty must be rejected.
func TestEmptyDocuments(t *testing.T) {
	for _, last := range []string{"a: 1\n", "a: &x 1\n"} {
		allocations := func(n int) float64 {
			data := []byte(strings.Repeat("---\n", n) + last)
			return testing.AllocsPerRun(2, func() {
				if docs, err := decodeDocuments("f", data); err != nil || len(docs) != 1 {
					t.Errorf("%d: %v, %v", n, docs, err)
				}
			})
		}
		if few, many := allocations(10), allocations(50_000); many > few+1000 { // the race detector clears pools at random
			t.Errorf("%q: %v allocations for 10, %v for 50000", last, few, many)
		}
	}
	if _, err := decodeDocuments("f", []byte(strings.Repeat("--- ~ # &\n", yamlnode.MaxDocuments+2))); err == nil || !strings.Contains(err.Error(), "more than 100000 documents") {
		t.Errorf("got %v", err)
	}
}

package kobj_test

import (
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/kobj"
)

// TestFit keeps a name of exactly the limit, and cuts one of a byte more.
func TestFit(t *testing.T) {
	for length, whole := range map[int]bool{62: true, 63: true, 64: false, 300: false} {
		name := strings.Repeat("n", length)
		got := kobj.Fit(name, kobj.MaxLabel)
		if whole != (got == name) || len(got) > kobj.MaxLabel || !whole && len(got) != kobj.MaxLabel {
			t.Errorf("%d bytes: got %q of %d", length, got, len(got))
		}
	}
}

// TestSuffixed cuts the base where the two are longer than 63 bytes without
// their dash, as OLM v1 does.
func TestSuffixed(t *testing.T) {
	for length, want := range map[int]int{58: 63, 59: 64, 60: 63, 80: 63} {
		got := kobj.Suffixed(strings.Repeat("n", length), "cert")
		if len(got) != want || !strings.HasSuffix(got, "n-cert") {
			t.Errorf("%d bytes: got %q of %d", length, got, len(got))
		}
	}
}

package k8s_test

import (
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/k8s"
)

// TestFit checks that a name at the limit is kept, and a longer one is truncated.
func TestFit(t *testing.T) {
	for length, whole := range map[int]bool{62: true, 63: true, 64: false, 300: false} {
		name := strings.Repeat("n", length)
		got := k8s.Fit(name, k8s.MaxLabel)
		if whole != (got == name) || len(got) > k8s.MaxLabel || !whole && len(got) != k8s.MaxLabel {
			t.Errorf("%d bytes: got %q of %d", length, got, len(got))
		}
	}
}

// TestSuffixed checks that the base is truncated if base and suffix together, without the dash,
// are longer than 63 bytes, as in OLM v1.
func TestSuffixed(t *testing.T) {
	for length, want := range map[int]int{58: 63, 59: 64, 60: 63, 80: 63} {
		got := k8s.Suffixed(strings.Repeat("n", length), "cert")
		if len(got) != want || !strings.HasSuffix(got, "n-cert") {
			t.Errorf("%d bytes: got %q of %d", length, got, len(got))
		}
	}
}

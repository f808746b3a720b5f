package gate_test

import (
	"testing"
	"time"

	"github.com/quayside/quayside/internal/health/gate"
)

// TestShares parses and formats shares, and rejects invalid ones.
func TestShares(t *testing.T) {
	for in, want := range map[string]string{
		"100%": "100%", "99%": "99%", "99.5%": "99.5%", "99.50%": "99.5%", "0.001%": "0.001%", "066.667%": "66.667%",
	} {
		s, err := gate.ParseShare(in)
		if err != nil || s.String() != want {
			t.Errorf("%s: got %s, %v, want %s", in, s, err, want)
		}
		if again, err := gate.ParseShare(s.String()); err != nil || again != s {
			t.Errorf("%s: read again: %s, %v", in, again, err)
		}
	}
	for _, in := range []string{"", "%", "99", "0%", "0.000%", "100.001%", "101%", "-1%", "+1%", ".5%", "5.%", "1.2345%", "1e2%", "99 %", "99%%", "0x1%", "99999999999999999999%"} {
		if s, err := gate.ParseShare(in); err == nil {
			t.Errorf("%q: got %s", in, s)
		}
	}
}

// TestSpans parses durations and formats them without zero units.
func TestSpans(t *testing.T) {
	for in, want := range map[string]string{
		"24h": "24h", "90m": "1h30m", "0s": "0s", "1h0m30s": "1h0m30s", "10m": "10m", "100h": "100h", "500ms": "500ms", "3d": "72h",
	} {
		s, err := gate.ParseSpan(in)
		if err != nil || s.String() != want {
			t.Errorf("%s: got %s, %v, want %s", in, s, err, want)
		}
	}
	for _, in := range []string{"", "1w", "d", "-1d", "1.5d", "24", "-1h", "h"} {
		if s, err := gate.ParseSpan(in); err == nil {
			t.Errorf("%q: got %s", in, s)
		}
	}
	if got := time.Duration(gate.DefaultCriteria().Within); got != 24*time.Hour {
		t.Errorf("by default an observation may be %s old", got)
	}
}

package garbage

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// percent returns what the collector goes by.
func percent() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return int(s[0].Value.Uint64())
}

func TestOneCollectionIsPutOff(t *testing.T) {
	t.Setenv("GOGC", "")
	if !putOff() {
		t.Fatal("nothing was done")
	}
	if got := percent(); got != early && got != usual { // usual, if a collection came at once
		t.Fatalf("got %d percent, want %d", got, early)
	}
	for end := time.Now().Add(10 * time.Second); percent() != usual; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("got %d percent after a collection, want %d", percent(), usual)
		}
	}
}

func TestTheUserWins(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := percent()
	if putOff() || percent() != before {
		t.Errorf("got %d percent, want %d as before", percent(), before)
	}
}

package garbage

import (
	"runtime"
	"runtime/debug"
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
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	if !putOff() {
		t.Fatal("nothing was done")
	}
	if got := percent(); got != early && got != usual { // usual, if a collection came at once
		t.Fatalf("got %d percent, want %d", got, early)
	}
	for end := time.Now().Add(time.Minute); percent() != usual; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("got %d percent after a collection, want %d", percent(), usual)
		}
	}
}

func TestTheUserWins(t *testing.T) {
	const told = 50
	defer debug.SetGCPercent(debug.SetGCPercent(told))
	if putOff() || percent() != told {
		t.Errorf("got %d percent, want %d as told", percent(), told)
	}
}

func TestSpare(t *testing.T) {
	for before, after := range map[int]int{usual: sparse, early: early, 33: 33} {
		was := debug.SetGCPercent(before)
		CollectMore()
		if got := debug.SetGCPercent(was); got != after {
			t.Errorf("%d percent became %d, want %d", before, got, after)
		}
	}
}

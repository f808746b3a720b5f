package garbage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// percent returns the current value of GOGC.
func percent() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return int(s[0].Value.Uint64())
}

func TestOneCollectionIsPutOff(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	if !delayCollection() {
		t.Fatal("nothing was done")
	}
	if got := percent(); got != early && got != usual { // usual after an early collection
		t.Fatalf("got %d percent, want %d", got, early)
	}
	for end := time.Now().Add(time.Minute); percent() != usual; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("got %d percent after a collection, want %d", percent(), usual)
		}
	}
}

func TestTheUserWins(t *testing.T) {
	const set = 50
	defer debug.SetGCPercent(debug.SetGCPercent(set))
	if delayCollection() || percent() != set {
		t.Errorf("got %d percent, want %d as told", percent(), set)
	}
}

func TestSpare(t *testing.T) {
	for before, after := range map[int]int{usual: sparse, early: early, 33: 33} {
		old := debug.SetGCPercent(before)
		CollectMore()
		if got := debug.SetGCPercent(old); got != after {
			t.Errorf("%d percent became %d, want %d", before, got, after)
		}
	}
}

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

// TestDelayCollection checks that the first collection is delayed, and that GOGC is restored afterwards.
func TestDelayCollection(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	if !delayCollection() {
		t.Fatal("the collection was not delayed")
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

// TestUserSettingIsKept checks that a GOGC set by the user is not changed.
func TestUserSettingIsKept(t *testing.T) {
	const set = 50
	defer debug.SetGCPercent(debug.SetGCPercent(set))
	if delayCollection() || percent() != set {
		t.Errorf("got %d percent, want the %d set by the user", percent(), set)
	}
}

func TestCollectMore(t *testing.T) {
	for before, after := range map[int]int{usual: sparse, early: early, 33: 33} {
		old := debug.SetGCPercent(before)
		CollectMore()
		if got := debug.SetGCPercent(old); got != after {
			t.Errorf("%d percent became %d, want %d", before, got, after)
		}
	}
}

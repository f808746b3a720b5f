package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
)

// TestSyncCoversTraces reads recorded events of clusters in which the real OLM was started. `adopt run` waits
// before it checks a started OLM. All deletions by OLM or the garbage collector must occur in the first half of
// this time.
func TestSyncCoversTraces(t *testing.T) {
	cmd, _, err := cli.Commands(parts()).Find([]string{"adopt", "run"})
	check(t, err)
	wait, err := time.ParseDuration(cmd.Flag("olm-sync").DefValue)
	check(t, err)
	top := t.TempDir()
	clitest.Unpack(t, filepath.Join(clitest.Corpus(t), "olm-clusters.tar.zst"), top)
	names, err := filepath.Glob(filepath.Join(top, "exp/*.json"))
	check(t, err)
	starts, deleted := 0, 0
	for _, name := range names {
		var trace struct {
			Events []struct {
				T    float64
				Type string
				Key  []any
			}
		}
		data, err := os.ReadFile(name)
		check(t, err)
		if json.Unmarshal(data, &trace) != nil {
			continue // a trace of several parts
		}
		begun := 0.0
		for _, e := range trace.Events {
			after := time.Duration((e.T - begun) * float64(time.Second))
			switch {
			case e.Type == "STEP" && slices.Contains(e.Key, any("OLM started")):
				begun = e.T
				starts++
			case e.Type == "DELETED" && begun > 0 && e.T > begun && e.Key[0] != "Pod":
				if deleted++; after > wait/2 {
					t.Errorf("%s: %v was deleted %s after the start", name, e.Key, after)
				}
			}
		}
	}
	if starts < 5 || deleted < 20 {
		t.Errorf("%d starts of OLM, %d deletions", starts, deleted)
	}
}

package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSequencesFindFaults checks that TestSequences fails if the program lacks one of the rules. It runs only
// in make nights, because each rule needs a separate build.
func TestSequencesFindFaults(t *testing.T) {
	if os.Getenv("QUAYSIDE_NIGHTS") == "" {
		t.Skip("a build for each rule: runs in make nights")
	}
	const rule = "(s *State) (Findings, error) {\n"
	for name, c := range map[string]struct {
		file, want string
		without    map[string]string // functions that return only this
	}{
		// The second function must be disabled, too: otherwise commands would never choose a bundle that is ahead.
		"promotion":       {"promotion.go", "is ahead of", map[string]string{"checkPromotion" + rule: "nil, nil", "(u *Upstream) Refusal(namespace, pkg, bundle string) string {\n": `""`}},
		"deleted lock":    {"declarations.go", `does not report "but HEAD has it"`, map[string]string{"checkDeletedLock" + rule: "nil, nil"}},
		"freshness":       {"declarations.go", "render does not report the deleted declaration", map[string]string{"checkFreshness" + rule: "nil, nil"}},
		"ignored":         {"ignored.go", `does not report "[not-in-git]"`, map[string]string{"checkIgnored" + rule: "nil, nil"}},
		"unused overlays": {"unused_overlays.go", `does not report "[unused-overlay]"`, map[string]string{"checkUnusedOverlays" + rule: "nil, nil"}},
	} {
		t.Run(name, func(t *testing.T) {
			program := buildWithout(t, c.file, c.without)
			cmd := exec.Command(program, "-test.run=^TestSequences$", "-rapid.checks=1000", "-rapid.nofailfile", "-rapid.shrinktime=0s")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) {
				t.Errorf("the sequences do not notice the fault: %v\n%s", err, out)
			}
		})
	}
}

// buildWithout builds the tests of this package. In this build, each function that without names,
// in a file of package rules, always returns the given value.
func buildWithout(t *testing.T, file string, without map[string]string) string {
	dir := t.TempDir()
	source, err := filepath.Abs(filepath.Join("..", "rules", file))
	check(t, err)
	text := read(t, filepath.Dir(source), file)
	for head, value := range without {
		if !strings.Contains(text, "func "+head) {
			t.Fatalf("%s has no %q", file, head)
		}
		text = strings.Replace(text, "func "+head, "func "+head+"\treturn "+value+"\n", 1)
	}
	put(t, dir, file, text)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: filepath.Join(dir, file)}})
	check(t, err)
	put(t, dir, "overlay.json", string(overlay))
	program := filepath.Join(dir, "cli.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

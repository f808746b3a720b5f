package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSequencesFindFaults builds the tests with a rule that returns no finding, and checks that
// TestSequences fails. It runs in make nights, because each rule needs a build.
func TestSequencesFindFaults(t *testing.T) {
	if os.Getenv("QUAYSIDE_NIGHTS") == "" {
		t.Skip("a build for each rule: runs in make nights")
	}
	for rule, c := range map[string]struct{ file, want string }{
		"checkPromotion":      {"promotion.go", "is ahead of"},
		"checkDeletedLock":    {"declarations.go", `does not report "but HEAD has it"`},
		"checkFreshness":      {"declarations.go", "render does not report the deleted declaration"},
		"checkIgnored":        {"ignored.go", `does not report "[not-in-git]"`},
		"checkUnusedOverlays": {"unused_overlays.go", `does not report "[unused-overlay]"`},
	} {
		t.Run(rule, func(t *testing.T) {
			program := buildWithout(t, rule, c.file)
			cmd := exec.Command(program, "-test.run=^TestSequences$", "-rapid.checks=1000", "-rapid.nofailfile", "-rapid.shrinktime=0s")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) {
				t.Errorf("the sequences do not notice the fault: %v\n%s", err, out)
			}
		})
	}
}

// buildWithout builds the tests of this package with a rule that returns no finding.
func buildWithout(t *testing.T, rule, file string) string {
	dir := t.TempDir()
	source, err := filepath.Abs(filepath.Join("..", "rules", file))
	check(t, err)
	head := "func " + rule + "(s *State) (Findings, error) {\n"
	text := read(t, filepath.Dir(source), file)
	if !strings.Contains(text, head) {
		t.Fatalf("%s has no %q", file, head)
	}
	put(t, dir, file, strings.Replace(text, head, head+"\tif s != nil {\n\t\treturn nil, nil\n\t}\n", 1))
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

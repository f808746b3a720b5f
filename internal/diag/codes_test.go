package diag

import (
	"slices"
	"testing"
)

// TestCodes checks that codes are unique and sorted by step and ID.
func TestCodes(t *testing.T) {
	seen := map[string]bool{}
	steps := []Step{Resolving, Rendering, OtherStep}
	last := Code{Step: Resolving}
	for _, c := range Codes() {
		if seen[c.ID] || c.ID == "" || c.Meaning == "" || !slices.Contains(steps, c.Step) {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
		if slices.Index(steps, c.Step) < slices.Index(steps, last.Step) || c.Step == last.Step && c.ID <= last.ID {
			t.Errorf("%q is listed after %q", c.ID, last.ID)
		}
		last = c
	}
}

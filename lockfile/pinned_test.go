package lockfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quayside/quayside/lockfile"
)

// TestNoNoise checks that an invalid block causes only one error, and no error about its checksum.
func TestNoNoise(t *testing.T) {
	text := string(lockfile.Format(lockWithNamespaces()))
	for what, edit := range map[string][2]string{
		"catalog":   {"source: oci:catalogs/hub,", "sauce: x,"},
		"Namespace": {"  labels:\n    a: \"\"\n", "  lables:\n    a: \"\"\n"},
		"pin":       {"  installMode: OwnNamespace\n", "  installMode: Nowhere\n"},
	} {
		in := strings.Replace(text, edit[0], edit[1], 1)
		if in == text {
			t.Fatalf("%q is not in the lock", edit[0])
		}
		_, err := lockfile.Parse("quayside.lock", []byte(in))
		if got := fmt.Sprint(err); err == nil || strings.Contains(got, "\n") || strings.Contains(got, "checksum") {
			t.Errorf("%s: got %s", what, got)
		}
	}
}

// TestMoved checks that a change of only the bundle name or only the version is of kind Moved.
func TestMoved(t *testing.T) {
	for what, change := range map[string]func(*lockfile.Pin){
		"version": func(p *lockfile.Pin) { p.Version = "9.9.9" },
		"bundle":  func(p *lockfile.Pin) { p.Bundle = "other" },
	} {
		next := sampleLock()
		change(&next.Pins[1])
		got := lockfile.Diff(sampleLock(), next)
		if len(got) != 1 || got[0].Kind != lockfile.Moved || fmt.Sprint(got[0].Fields) != "["+what+"]" {
			t.Errorf("%s: got %v", what, got)
		}
	}
}

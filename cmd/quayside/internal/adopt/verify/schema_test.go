package verify_test

import (
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
)

// TestSchema checks that evidence of another schema version is rejected. The error must contain both versions.
func TestSchema(t *testing.T) {
	text, err := (&verify.Evidence{Namespace: "ops"}).Format()
	if err != nil {
		t.Fatal(err)
	}
	if e, err := verify.Parse("f", text); err != nil || e.Namespace != "ops" {
		t.Errorf("%v %v", e, err)
	}
	other := strings.Replace(string(text), `"schema": 1`, `"schema": 2`, 1)
	if _, err := verify.Parse("f", []byte(other)); err == nil || !strings.Contains(err.Error(), "f has schema 2; this version supports 1") {
		t.Errorf("schema 2: %v", err)
	}
}

package edit_test

import (
	"testing"

	"github.com/quayside/quayside/internal/testing/propertytest"
)

// TestMain fixes the seed of the property tests.
func TestMain(m *testing.M) { propertytest.Main(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

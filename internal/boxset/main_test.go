package boxset

import (
	"testing"

	"github.com/quayside/quayside/internal/testing/propertytest"
)

// TestMain fixes the seed of the property tests.
func TestMain(m *testing.M) {
	propertytest.FixSeed(1)
	m.Run()
}

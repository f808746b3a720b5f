package diff

import (
	"testing"

	"github.com/quayside/quayside/internal/testing/propertytest"
)

// TestMain fixes the seed of the property tests and changes the number of their inputs.
func TestMain(m *testing.M) {
	propertytest.DefaultChecks(40)
	propertytest.Main(m)
}

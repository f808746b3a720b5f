package window

import (
	"testing"

	"github.com/quayside/quayside/internal/testing/propertytest"
)

// TestMain fixes the seed of the property tests.
func TestMain(m *testing.M) { propertytest.Main(m) }

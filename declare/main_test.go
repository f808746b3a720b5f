package declare_test

import (
	"testing"

	"github.com/quayside/quayside/internal/testing/charttest"
	"github.com/quayside/quayside/internal/testing/propertytest"
)

func TestMain(m *testing.M) {
	charttest.Serve()
	propertytest.Main(m)
}

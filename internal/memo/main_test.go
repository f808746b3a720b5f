package memo_test

import (
	"testing"

	"github.com/quayside/quayside/internal/testing/propertytest"
)

func TestMain(m *testing.M) { propertytest.Main(m) }

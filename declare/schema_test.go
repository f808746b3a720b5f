package declare_test

import (
	"testing"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/testing/goldentest"
)

func TestGoldenSchemaIsShipped(t *testing.T) {
	goldentest.Compare(t, "../schema/subscription.schema.json", declare.Schema())
}

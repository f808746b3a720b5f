package lockfile_test

import (
	"testing"

	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/lockfile"
)

func TestGoldenSchemaIsShipped(t *testing.T) {
	goldentest.Compare(t, "../schema/lock.schema.json", lockfile.JSONSchema())
}

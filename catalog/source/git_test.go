package source

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/catalog/charts"
)

// TestLimitedFiles checks the size limit for a release that is a file, a directory or a kustomization.
func TestLimitedFiles(t *testing.T) {
	half := &fstest.MapFile{Data: bytes.Repeat([]byte("#"), charts.MaxArchive/2+1)}
	commit := fstest.MapFS{
		"one.yaml":                 {Data: bytes.Repeat([]byte("#"), charts.MaxArchive+1)},
		"plain/a.yaml":             half,
		"plain/b.yaml":             half,
		"built/kustomization.yaml": {Data: []byte("resources: [../base]\n")},
		"base/kustomization.yaml":  {Data: []byte("resources: [a.yaml, b.yaml]\n")},
		"base/a.yaml":              half,
		"base/b.yaml":              half,
		"small/a.yaml":             half,
	}
	for at, tooLarge := range map[string]bool{"one.yaml": true, "plain": true, "built": true, "small": false} {
		_, err := limitedFiles(commit, at)
		if got := err != nil && strings.Contains(err.Error(), "MiB of manifests"); got != tooLarge {
			t.Errorf("%s: too large is %t (%v), want %t", at, got, err, tooLarge)
		}
	}
}

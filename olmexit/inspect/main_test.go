package inspect_test

import (
	"path/filepath"
	"testing"

	"github.com/quayside/quayside/internal/app/workspace"
)

// env returns an environment with its own store, and without temporary directories.
func env(t testing.TB) workspace.Env {
	cache := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(cache, "no", "such", "directory"))
	getenv := func(key string) string {
		if key == "XDG_CACHE_HOME" {
			return cache
		}
		return ""
	}
	return workspace.Env{Getenv: getenv, Version: "test", Offline: true}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

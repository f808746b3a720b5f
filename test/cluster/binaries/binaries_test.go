package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// module creates a module with one program, and changes to its directory.
func module(t *testing.T) (root string, target Target) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module github.com/quayside/quayside/test/cluster\n",
		"go.sum":          "",
		"cmd/one/main.go": "package main\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(root, "cmd"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return root, Target{Name: "one", Program: "one", Package: "./cmd/one", module: "."}
}

func TestKeyFollowsEveryInput(t *testing.T) {
	root, target := module(t)
	seen := map[string]string{}
	note := func(what string) {
		t.Helper()
		key, err := target.key(root)
		if err != nil {
			t.Fatal(err)
		}
		if other, has := seen[key]; has {
			t.Errorf("%s: the same key as %s", what, other)
		}
		seen[key] = what
	}
	note("as written")
	for _, name := range []string{"go.mod", "go.sum", "cmd/one/main.go"} {
		file, err := os.OpenFile(filepath.Join(root, name), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString("// more\n"); err != nil {
			t.Fatal(err)
		}
		file.Close()
		note("after a change of " + name)
	}
	if err := os.WriteFile(filepath.Join(root, "cmd/one/two.go"), []byte("package main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	note("with another source")
	target.setters = []string{"example.com/version"}
	note("with other linker flags")
}

func TestKeyIsStable(t *testing.T) {
	root, target := module(t)
	one, err := target.key(root)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := target.key(root); err != nil || two != one {
		t.Errorf("got %q and then %q, %v", one, two, err)
	}
}

func TestFindNothing(t *testing.T) {
	root, _ := module(t)
	for _, dir := range []string{"cmd/testcluster", "fluxsource"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Find("control-plane"); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("got error %v, want ErrNotBuilt", err)
	}
	if _, err := Find("no-such-thing"); err == nil || errors.Is(err, ErrNotBuilt) {
		t.Errorf("got error %v, want one about the name", err)
	}
}

func TestRootOutsideTheModule(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Root(); err == nil {
		t.Error("found a module outside of one")
	}
}

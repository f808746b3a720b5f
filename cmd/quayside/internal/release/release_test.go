package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBillOfMaterials(t *testing.T) {
	text, err := billOfMaterials(&debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Path: "github.com/quayside/quayside", Version: "v1.2.3+dirty"},
		Deps: []*debug.Module{
			{Path: "github.com/Some/module", Version: "v2.0.0", Sum: "h1:1KrZg61W6TWSxuNZ37Xy49ps13NUovb66QLprthtwi4="},
			{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new", Version: "v1.1.0"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Metadata     struct{ Component struct{ Purl string } }
		Components   []struct{ Purl string }
		Dependencies []struct{ DependsOn []string }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if want := "pkg:golang/github.com/quayside/quayside@v1.2.3%2Bdirty"; d.Metadata.Component.Purl != want {
		t.Errorf("the program is %q, want %q", d.Metadata.Component.Purl, want)
	}
	want := []string{"pkg:golang/std@1.26.8", "pkg:golang/github.com/some/module@v2.0.0", "pkg:golang/example.com/new@v1.1.0"}
	if len(d.Components) != len(want) || len(d.Dependencies) != 1 || strings.Join(d.Dependencies[0].DependsOn, " ") != strings.Join(want, " ") {
		t.Fatalf("got %+v", d)
	}
	for i, c := range d.Components {
		if c.Purl != want[i] {
			t.Errorf("component %d is %q, want %q", i, c.Purl, want[i])
		}
	}
	if hash := "d4aad983ad56e93592c6e359dfb5f2e3da6cd77354a2f6fae902e9aed86dc22e"; strings.Count(string(text), hash) != 1 {
		t.Errorf("the hash %s is not listed once:\n%s", hash, text)
	}
}

// TestVerbs tests the command lines of .goreleaser.yaml.
func TestVerbs(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), []string{"man", dir, "v1.2.3", "2026-02-28T23:30:00-01:00"}, ""); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "man1", "quayside-resolve.1"))
	if want := testPages(t)["man1/quayside-resolve.1"]; err != nil || string(page) != string(want) {
		t.Errorf("got %q, %v, want %q", page, err, want)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bom.json")
	if err := run(t.Context(), []string{"bom", program, file}, ""); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "pkg:golang/github.com/spf13/cobra@v") {
		t.Errorf("got %q, %v", text, err)
	}
	for _, args := range []string{"", "man " + dir, "build", "check a b c"} {
		if err := run(t.Context(), strings.Fields(args), ""); err == nil || err.Error() != usage {
			t.Errorf("%q: got %v", args, err)
		}
	}
}

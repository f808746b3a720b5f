package helm

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestReadDirectory checks .helmignore, hidden templates and links.
func TestReadDirectory(t *testing.T) {
	read := func(fsys fstest.MapFS) string {
		files, err := ReadDirectory(fsys)
		if err != nil {
			return err.Error()
		}
		return strings.Join(slices.Sorted(maps.Keys(files)), " ")
	}
	fsys := fstest.MapFS{
		"Chart.yaml": {}, ".helmignore": {Data: []byte("# comment\n*.bak\nci/\n/top.txt\nsub/x.txt\n")},
		"a.bak": {}, "deep/b.bak": {}, "ci/values.yaml": {}, "top.txt": {}, "deep/top.txt": {}, "sub/x.txt": {}, "deep/sub/x.txt": {},
		"templates/a.yaml": {}, "templates/.hidden": {},
	}
	if got, want := read(fsys), ".helmignore Chart.yaml deep/sub/x.txt deep/top.txt templates/a.yaml"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	fsys[".helmignore"] = &fstest.MapFile{Data: []byte("**/x\n")}
	if got, want := read(fsys), `reading .helmignore: unsupported pattern "**/x"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := read(fstest.MapFS{"values.yaml": {}}), "chart directory has no Chart.yaml"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

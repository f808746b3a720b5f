package filetree

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
)

func TestMount(t *testing.T) {
	m := Mount(map[string]fs.FS{
		"a": fstest.MapFS{"x/y": {Data: []byte("1")}},
		"b": fstest.MapFS{"z": {Data: []byte("2")}},
	})
	if err := fstest.TestFS(m, "a/x/y", "b/z"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"c", "c/d", "a/z"} {
		_, err := m.Open(name)
		var perr *fs.PathError
		if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &perr) || perr.Path != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.Open("../a"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("outside: %v", err)
	}
}

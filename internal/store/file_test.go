package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFiles(t *testing.T) {
	s := open(t)
	if _, _, err := s.OpenFile("thing", "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: error %v", err)
	}
	fill := func(text string) func(*os.File) error {
		return func(f *os.File) error {
			_, err := io.WriteString(f, text)
			return err
		}
	}
	for _, text := range []string{"one", "another"} {
		if err := s.PutFile("thing", "a", fill(text)); err != nil {
			t.Fatal(err)
		}
		f, size, err := s.OpenFile("thing", "a")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		f.Close()
		if err != nil || string(got) != text || size != int64(len(text)) {
			t.Errorf("got %q of %d bytes, error %v", got, size, err)
		}
	}
	broken := errors.New("broken pipe")
	if err := s.PutFile("thing", "a", func(*os.File) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if f, size, err := s.OpenFile("thing", "a"); err != nil || size != int64(len("another")) {
		t.Errorf("after a fault: %d bytes, error %v", size, err)
	} else {
		f.Close()
	}
	if left := files(t, s); len(left) != 1 {
		t.Errorf("got files %q, want one", left)
	}
}

// TestFilesArePruned writes more files than the limit. The most recently used files must remain.
func TestFilesArePruned(t *testing.T) {
	s := open(t)
	nothing := func(*os.File) error { return nil }
	for i := range maxFiles {
		if err := s.PutFile("thing", fmt.Sprint(i), nothing); err != nil {
			t.Fatal(err)
		}
		path, err := s.recordPath("thing", fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Duration(100+i) * time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	f, _, err := s.OpenFile("thing", fmt.Sprint(maxFiles-1)) // the oldest
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := s.PutFile("thing", "new", nothing); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(s.Dir(), "records", "thing", "*"))
	if err != nil || len(left) != maxFiles {
		t.Errorf("%d files, error %v", len(left), err)
	}
	for key, want := range map[string]bool{"new": true, fmt.Sprint(maxFiles - 1): true, fmt.Sprint(maxFiles - 2): false, "0": true} {
		f, _, err := s.OpenFile("thing", key)
		if (err == nil) != want {
			t.Errorf("file %s: %v", key, err)
		}
		if err == nil {
			f.Close()
		}
	}
}

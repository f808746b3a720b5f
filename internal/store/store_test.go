package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *Store, data string) string {
	t.Helper()
	digest := DigestOf([]byte(data))
	if err := s.Put(t.Context(), digest, strings.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	return digest
}

// files returns the paths of all files in the store.
func files(t *testing.T, s *Store) []string {
	t.Helper()
	var got []string
	err := filepath.WalkDir(s.Dir(), func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(s.Dir(), p)
			got = append(got, filepath.ToSlash(rel))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestPutGet(t *testing.T) {
	s := open(t)
	if _, err := os.Stat(s.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open created the directory: %v", err)
	}
	digest := put(t, s, "hello")
	got, err := s.Read(digest, 10)
	if err != nil || string(got) != "hello" {
		t.Errorf("Read: %q, %v", got, err)
	}
	if _, err := s.Read(digest, 4); err == nil {
		t.Error("Read beyond its limit: no error")
	}
	if n, err := s.Size(digest); n != 5 || err != nil {
		t.Errorf("Size: %d, %v", n, err)
	}
	if got := files(t, s); len(got) != 1 || got[0] != "blobs/sha256/"+digest[7:] {
		t.Errorf("files: %q", got)
	}
	info, err := os.Stat(filepath.Join(s.Dir(), "blobs", "sha256", digest[7:]))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := s.Put(t.Context(), digest, failing{}, 10); err != nil {
		t.Errorf("Put of an existing blob reads: %v", err)
	}
	if err := s.Remove(digest); err != nil || s.Has(digest) {
		t.Errorf("Remove: %v", err)
	}
	if err := s.Remove(digest); err != nil {
		t.Errorf("Remove twice: %v", err)
	}
	if _, err := s.Get(digest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get after Remove: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestPutRefuses(t *testing.T) {
	digest := DigestOf([]byte("hello"))
	tests := []struct {
		name, digest string
		r            io.Reader
		limit        int64
		want         string
	}{
		{"other content", digest, strings.NewReader("hellO"), 10, "digest mismatch: the content is sha256:"},
		{"truncated", digest, strings.NewReader("hell"), 10, "digest mismatch: the content is sha256:"},
		{"too large", digest, strings.NewReader("hello"), 4, "larger than 4 bytes"},
		{"read error", digest, io.MultiReader(strings.NewReader("he"), failing{}), 10, "broken pipe"},
		{"traversal", "sha256:../../../etc/passwd", strings.NewReader(""), 10, "must be sha256:"},
		{"upper case", "sha256:" + strings.ToUpper(digest[7:]), strings.NewReader("hello"), 10, "must be sha256:"},
		{"other algorithm", "sha512:" + digest[7:], strings.NewReader("hello"), 10, "must be sha256:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t)
			err := s.Put(t.Context(), tt.digest, tt.r, tt.limit)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if got := files(t, s); len(got) != 0 {
				t.Errorf("leftover files: %q", got)
			}
		})
	}
}

func TestFlippedBit(t *testing.T) {
	s := open(t)
	data := strings.Repeat("operators ", 100_000)
	digest := put(t, s, data)
	path := filepath.Join(s.Dir(), "blobs", "sha256", digest[7:])
	raw := []byte(data)
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := s.Get(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	_, err = io.Copy(io.Discard, r)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Digest != digest {
		t.Fatalf("got %v, want a CorruptError", err)
	}
	if s.Has(digest) {
		t.Error("the damaged blob still exists")
	}
	put(t, s, data)
	if got, err := s.Read(digest, 1<<30); err != nil || string(got) != data {
		t.Errorf("after fetching again: %v", err)
	}
}

func TestTruncatedAtRest(t *testing.T) {
	s := open(t)
	digest := put(t, s, "hello")
	if err := os.Truncate(filepath.Join(s.Dir(), "blobs", "sha256", digest[7:]), 3); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := s.Read(digest, 10); !errors.As(err, &corrupt) {
		t.Errorf("got %v, want a CorruptError", err)
	}
}

func TestSymbolicLinks(t *testing.T) {
	s := open(t)
	digest := put(t, s, "hello")
	path := filepath.Join(s.Dir(), "blobs", "sha256", digest[7:])
	secret := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("hello"), 0o600), os.Remove(path), os.Symlink(secret, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(digest); err == nil {
		t.Error("Get followed a symbolic link")
	}
	if s.Has(digest) {
		t.Error("Has accepts a symbolic link")
	}

	other := open(t)
	if err := errors.Join(os.MkdirAll(other.Dir(), 0o700), os.Symlink(t.TempDir(), filepath.Join(other.Dir(), "blobs"))); err != nil {
		t.Fatal(err)
	}
	if err := other.Put(t.Context(), digest, strings.NewReader("hello"), 10); err == nil {
		t.Error("Put wrote through a symbolic link")
	}
}

func TestConcurrentPuts(t *testing.T) {
	s := open(t)
	data := bytes.Repeat([]byte("x"), 1<<20)
	digest := DigestOf(data)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if err := s.Put(t.Context(), digest, bytes.NewReader(data), 1<<20); err != nil {
				t.Error(err)
			}
			if got, err := s.Read(digest, 1<<20); err != nil || !bytes.Equal(got, data) {
				t.Errorf("Read: %d bytes, %v", len(got), err)
			}
		})
	}
	wg.Wait()
	if got := files(t, s); len(got) != 1 {
		t.Errorf("leftover files: %q", got)
	}
}

// TestOpenWhileReplaced opens a file many times, while another goroutine replaces it. Every call must
// succeed.
func TestOpenWhileReplaced(t *testing.T) {
	dir := t.TempDir()
	path, next := filepath.Join(dir, "file"), filepath.Join(dir, "next")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for range 2000 {
			if err := errors.Join(os.WriteFile(next, []byte("x"), 0o600), os.Rename(next, path)); err != nil {
				t.Error(err)
			}
		}
	})
	for opened := 0; ; opened++ {
		select {
		case <-done:
			wg.Wait()
			return
		default:
		}
		f, err := openRegular(path)
		if err != nil {
			t.Errorf("after %d: %v", opened, err)
			wg.Wait()
			return
		}
		f.Close()
	}
}

// runUntilMiddle runs a test in a separate process, with an additional environment variable. It returns when
// the process reports that it has reached the middle of the test. kill kills the process.
func runUntilMiddle(t *testing.T, test, variable string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), variable)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// TestKilled runs this test binary as another process and kills it while it writes a blob.
func TestKilled(t *testing.T) {
	data := strings.Repeat("y", 1<<20)
	digest := DigestOf([]byte(data))
	if dir := os.Getenv("STORE_TEST_WRITER"); dir != "" {
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		slow := io.MultiReader(strings.NewReader(data[:1<<19]), announcing{})
		t.Fatal(s.Put(t.Context(), digest, slow, 1<<20))
	}
	s := open(t)
	runUntilMiddle(t, "TestKilled", "STORE_TEST_WRITER="+s.Dir())()

	if s.Has(digest) {
		t.Error("half a blob is accepted")
	}
	left := files(t, s)
	if len(left) != 1 || !strings.HasPrefix(left[0], "tmp/") {
		t.Fatalf("expected one temporary file, got %q", left)
	}
	put(t, s, data)
	if got, err := s.Read(digest, 1<<20); err != nil || string(got) != data {
		t.Errorf("Read: %v", err)
	}
	old := time.Now().Add(-2 * staleAge)
	if err := os.Chtimes(filepath.Join(s.Dir(), filepath.FromSlash(left[0])), old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.Dir()); err != nil {
		t.Fatal(err)
	}
	if got := files(t, s); len(got) != 1 || !strings.HasPrefix(got[0], "blobs/") {
		t.Errorf("the stale temporary file stays: %q", got)
	}
}

// announcing is a reader that reports the first Read on standard output and then waits until the process is
// killed. It sleeps, because the Go runtime ends a process whose goroutines are all blocked.
type announcing struct{}

func (announcing) Read([]byte) (int, error) {
	fmt.Fprintln(os.Stdout, "in the middle")
	time.Sleep(time.Hour)
	return 0, io.EOF
}

func TestRecords(t *testing.T) {
	s := open(t)
	if _, err := s.Record("tag", "quay.io/x/y:v1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no record: %v", err)
	}
	for _, want := range []string{"one", "two"} {
		if err := s.PutRecord("tag", "quay.io/x/y:v1", []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Record("tag", "quay.io/x/y:v1"); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	for _, kind := range []string{"", "../x", "A", "a/b"} {
		if err := s.PutRecord(kind, "k", nil); err == nil {
			t.Errorf("kind %q: no error", kind)
		}
	}
	if err := s.PutRecord("tag", "k", make([]byte, maxRecord+1)); err == nil {
		t.Error("a huge record: no error")
	}
}

// TestUnusable opens stores at unusable paths. Such a store must be empty, errors of writes must contain the
// path, and temporary files must still work.
func TestUnusable(t *testing.T) {
	if _, err := Open(""); err == nil {
		t.Error("no directory: no error")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := []string{file, filepath.Join(file, "below")}
	if os.Getuid() != 0 { // permissions do not restrict root
		for _, mode := range []fs.FileMode{0, 0o500} {
			dir := t.TempDir()
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, dir, filepath.Join(dir, "below"))
		}
	}
	for _, dir := range dirs {
		s, err := Open(dir)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		digest := DigestOf([]byte("x"))
		_, getErr := s.Get(digest)
		_, recordErr := s.Record("tag", "x")
		if getErr == nil || recordErr == nil || s.Has(digest) || s.Remove(digest) != nil {
			t.Errorf("%s: unexpected content: %v, %v", dir, getErr, recordErr)
		}
		for _, err := range []error{s.Put(t.Context(), digest, strings.NewReader("x"), 1), s.PutRecord("tag", "x", nil)} {
			if err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want an error that names %s", err, dir)
			}
		}
		f, err := s.Temp("x-")
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			t.Error(err)
		}
	}
}

package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// noise returns bytes that do not repeat.
func noise(n int) []byte {
	data := make([]byte, n)
	for i, x := 0, uint32(7); i < n; i++ {
		x = x*1664525 + 1013904223
		data[i] = byte(x >> 24)
	}
	return data
}

// rest returns an opener of data from where the store asks, which breaks after
// that many bytes, and the places that it was asked for.
func rest(data []byte, after int) (open func(int64) (io.Reader, int64, error), asked *[]int64) {
	asked = new([]int64)
	return func(have int64) (io.Reader, int64, error) {
		*asked = append(*asked, have)
		if end := int(have) + after; end < len(data) {
			return io.MultiReader(bytes.NewReader(data[have:end]), failing{}), have, nil
		}
		return bytes.NewReader(data[have:]), have, nil
	}, asked
}

func TestFetchGoesOn(t *testing.T) {
	s := open(t)
	data := noise(500_000)
	digest := DigestOf(data)
	size := int64(len(data))
	get, asked := rest(data, 200_000)
	for range 2 {
		if err := s.Fetch(t.Context(), digest, size, get); err == nil || err.Error() != "broken pipe" {
			t.Fatalf("got %v, want what the reader said", err)
		}
		if s.Has(digest) {
			t.Fatal("half a blob is taken for a whole one")
		}
	}
	again, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Fetch(t.Context(), digest, size, get); err != nil {
		t.Fatal(err)
	}
	if want := []int64{0, 200_000, 400_000}; !slices.Equal(*asked, want) {
		t.Errorf("asked from %d, want %d", *asked, want)
	}
	if got, err := s.Read(digest, size); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if left := files(t, s); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
	if err := s.Fetch(t.Context(), digest, size, func(int64) (io.Reader, int64, error) { return nil, 0, errors.New("asked") }); err != nil {
		t.Errorf("what is there is fetched: %v", err)
	}
}

// TestFetchFaults leaves half a blob that goes on in some way.
func TestFetchFaults(t *testing.T) {
	data := noise(300_000)
	other := bytes.Clone(data)
	other[250_000] ^= 1
	digest, size := DigestOf(data), int64(len(data))
	unreachable := errors.New("unreachable")
	for _, tt := range []struct {
		name string
		open func(have int64) (io.Reader, int64, error)
		want string // in the error; empty: the blob is there
		left int64  // bytes of the half blob that the next fetch finds
	}{
		{"goes on", func(have int64) (io.Reader, int64, error) { return bytes.NewReader(data[have:]), have, nil }, "", 0},
		{"begins anew", func(int64) (io.Reader, int64, error) { return bytes.NewReader(data), 0, nil }, "", 0},
		{"cannot be reached", func(int64) (io.Reader, int64, error) { return nil, 0, unreachable }, "unreachable", 100_000},
		{"other bytes", func(have int64) (io.Reader, int64, error) { return bytes.NewReader(other[have:]), have, nil }, "the content is not what the digest names", 0},
		{"other bytes from the start", func(int64) (io.Reader, int64, error) { return bytes.NewReader(other), 0, nil }, "the content is not what the digest names", 0},
		{"too many bytes", func(have int64) (io.Reader, int64, error) {
			return io.MultiReader(bytes.NewReader(data[have:]), strings.NewReader("more")), have, nil
		}, "longer than its 300000 bytes", 0},
		{"too few bytes", func(have int64) (io.Reader, int64, error) { return bytes.NewReader(data[have:200_000]), have, nil }, "truncated: 200000 of 300000", 200_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t)
			half, _ := rest(data, 100_000)
			if err := s.Fetch(t.Context(), digest, size, half); err == nil {
				t.Fatal("half a blob is a whole one")
			}
			err := s.Fetch(t.Context(), digest, size, tt.open)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if s.Has(digest) != (tt.want == "") {
				t.Errorf("the blob is there: %v", s.Has(digest))
			}
			var left int64
			if info, err := os.Stat(filepath.Join(s.Dir(), "partial", digest[7:])); err == nil {
				left = info.Size()
			}
			if left != tt.left {
				t.Errorf("%d bytes are left, want %d", left, tt.left)
			}
		})
	}
}

// TestFetchAtRest finds in the place of half a blob what does not belong there.
func TestFetchAtRest(t *testing.T) {
	data := noise(300_000)
	digest := DigestOf(data)
	for name, there := range map[string][]byte{
		"other bytes":        bytes.Repeat([]byte("x"), 100_000),
		"the size, not it":   bytes.Repeat([]byte("x"), len(data)),
		"more than the blob": bytes.Repeat([]byte("x"), len(data)+1000),
		"all of it":          data,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			if err := errors.Join(os.MkdirAll(filepath.Join(s.Dir(), "partial"), 0o700), os.WriteFile(filepath.Join(s.Dir(), "partial", digest[7:]), there, 0o600)); err != nil {
				t.Fatal(err)
			}
			get, asked := rest(data, len(data))
			err := s.Fetch(t.Context(), digest, int64(len(data)), get)
			var mismatch *MismatchError
			if name == "other bytes" {
				if !errors.As(err, &mismatch) {
					t.Errorf("got %v, want a MismatchError", err)
				}
				err = s.Fetch(t.Context(), digest, int64(len(data)), get) // from the start
			}
			if err != nil {
				t.Error(err)
			}
			if name == "all of it" && len(*asked) > 0 {
				t.Errorf("asked for %d", *asked)
			}
			if got, err := s.Read(digest, 1<<20); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	t.Run("a symbolic link", func(t *testing.T) {
		s := open(t)
		victim := filepath.Join(t.TempDir(), "victim")
		err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.MkdirAll(filepath.Join(s.Dir(), "partial"), 0o700),
			os.Symlink(victim, filepath.Join(s.Dir(), "partial", digest[7:])))
		if err != nil {
			t.Fatal(err)
		}
		get, _ := rest(data, len(data))
		if err := s.Fetch(t.Context(), digest, int64(len(data)), get); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(victim); err != nil || string(got) != "precious" {
			t.Errorf("the link was followed: %q, %v", got, err)
		}
	})
}

// TestFetchTogether has many fetch one blob at once, each of whom breaks off
// now and then.
func TestFetchTogether(t *testing.T) {
	s := open(t)
	data := noise(1 << 20)
	digest := DigestOf(data)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			get, _ := rest(data, 150_000+10_000*i)
			for range 20 {
				err := s.Fetch(t.Context(), digest, int64(len(data)), get)
				if err == nil {
					break
				}
				if err.Error() != "broken pipe" {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, err := s.Read(digest, 1<<20); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if left := files(t, s); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
}

// TestFetchInUse fetches what another process is in the middle of: it is not
// disturbed, and what it has when it is killed is gone on with.
func TestFetchInUse(t *testing.T) {
	data := noise(1 << 20)
	digest, size := DigestOf(data), int64(1<<20)
	if dir := os.Getenv("STORE_TEST_FETCHER"); dir != "" {
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Fatal(s.Fetch(t.Context(), digest, size, func(have int64) (io.Reader, int64, error) {
			return io.MultiReader(bytes.NewReader(data[have:1<<19]), announcing{}), have, nil
		}))
	}
	s := open(t)
	kill := inTheMiddle(t, "TestFetchInUse", "STORE_TEST_FETCHER="+s.Dir())
	get, asked := rest(data, 100_000)
	if err := s.Fetch(t.Context(), digest, size, get); err == nil {
		t.Error("half a blob is a whole one")
	}
	s.prunePartials(0, 0)
	kill()

	get, then := rest(data, len(data))
	if err := s.Fetch(t.Context(), digest, size, get); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(*asked, []int64{0}) || !slices.Equal(*then, []int64{1 << 19}) {
		t.Errorf("asked from %d while it ran, from %d once it was dead; want 0 and %d", *asked, *then, 1<<19)
	}
	if got, err := s.Read(digest, size); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestPartialsArePruned(t *testing.T) {
	s := open(t)
	half := func(i int) string {
		data := noise(200_000 + i)
		get, _ := rest(data, 100_000)
		if err := s.Fetch(t.Context(), DigestOf(data), int64(len(data)), get); err == nil {
			t.Fatal("half a blob is a whole one")
		}
		path := filepath.Join(s.Dir(), "partial", DigestOf(data)[7:])
		at := time.Now().Add(time.Duration(i-1000) * time.Minute)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var paths []string
	for i := range maxPartials + 5 {
		paths = append(paths, half(i))
	}
	there := func() (n int) {
		for _, p := range paths {
			if _, err := os.Stat(p); err == nil {
				n++
			}
		}
		return n
	}
	if n := there(); n < maxPartials || n > maxPartials+1 {
		t.Errorf("%d are kept, want %d", n, maxPartials)
	}
	if s.prunePartials(maxPartials, 10*100_000+1); there() != 10 {
		t.Errorf("%d are kept of 10 that there is room for", there())
	}
	if _, err := os.Stat(paths[len(paths)-1]); err != nil {
		t.Error("the newest is gone")
	}
	old := time.Now().Add(-2 * partialAge)
	if err := os.Chtimes(paths[len(paths)-1], old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.Dir()); err != nil || there() != 9 {
		t.Errorf("%d are kept, one of them too old: %v", there(), err)
	}
	get, _ := rest(noise(leastPartial*2), leastPartial-1)
	if err := s.Fetch(t.Context(), DigestOf(noise(leastPartial*2)), leastPartial*2, get); err == nil {
		t.Error("half a blob is a whole one")
	}
	if left := len(files(t, s)); left != 9 {
		t.Errorf("%d files: a few bytes are kept", left)
	}
}

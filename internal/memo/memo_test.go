package memo_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/memo"
)

// file is a file in memory.
type file struct {
	data   []byte
	writes int
	fault  error
}

func (f *file) read() ([]byte, error) { return slices.Clone(f.data), f.fault }

func (f *file) write(data []byte) error {
	if f.fault != nil {
		return f.fault
	}
	f.data = slices.Clone(data)
	f.writes++
	return nil
}

func (f *file) open(version string) *memo.Results { return memo.New(version, f.read, f.write) }

// ask calls Remember for an input, and returns whether the result was computed.
func ask(t interface{ Fatalf(string, ...any) }, r *memo.Results, name, input string) (computed bool) {
	got, err := memo.Remember(r, name, []byte(input), func() ([]string, error) {
		computed = true
		return []string{name, input}, nil
	})
	if err != nil || !slices.Equal(got, []string{name, input}) {
		t.Fatalf("result of %s for %q: %q, %v", name, input, got, err)
	}
	return computed
}

func TestRemember(t *testing.T) {
	f := &file{}
	first := f.open("v1")
	if !ask(t, first, "a", "x") || ask(t, first, "a", "x") {
		t.Fatal("a result is not remembered in one run")
	}
	first.Save()
	first.Save()
	if f.writes != 1 {
		t.Fatalf("written %d times, although nothing changed", f.writes)
	}
	second := f.open("v1")
	if ask(t, second, "a", "x") {
		t.Fatal("a result is not remembered by the next run")
	}
	for _, other := range [][2]string{{"a", "y"}, {"b", "x"}, {"ax", ""}, {"", "ax"}} {
		if !ask(t, second, other[0], other[1]) {
			t.Fatalf("the result for %q is that of another input", other)
		}
	}
	if !ask(t, f.open("v2"), "a", "x") {
		t.Fatal("a result of another version is used")
	}
	if !ask(t, nil, "a", "x") {
		t.Fatal("no result without Results")
	}
}

func TestErrorsAreNotRemembered(t *testing.T) {
	f := &file{}
	fault := errors.New("fault")
	for range 2 {
		calls := 0
		r := f.open("v1")
		_, err := memo.Remember(r, "a", nil, func() (int, error) { calls++; return 1, fault })
		if !errors.Is(err, fault) || calls != 1 {
			t.Fatalf("%v after %d calls", err, calls)
		}
		r.Save()
	}
}

// TestUnavailable uses a file that can be neither read nor written.
func TestUnavailable(t *testing.T) {
	f := &file{fault: errors.New("read-only")}
	r := f.open("v1")
	if !ask(t, r, "a", "x") || ask(t, r, "a", "x") {
		t.Fatal("results are not remembered in memory")
	}
	r.Save()
}

// TestUnusedStay checks that results of other commands remain, unless results of this command fill the file.
func TestUnusedStay(t *testing.T) {
	f := &file{}
	large := make([]byte, memo.MaxSize/2)
	put := func(input string) (computed bool) {
		r := f.open("v1")
		defer r.Save()
		_, err := memo.Remember(r, "large", []byte(input), func() ([]byte, error) { computed = true; return large, nil })
		if err != nil {
			t.Fatal(err)
		}
		return computed
	}
	r := f.open("v1")
	ask(t, r, "a", "x")
	r.Save()
	put("first")
	if ask(t, f.open("v1"), "a", "x") {
		t.Fatal("an unused result is lost, although there is room")
	}
	put("second")
	if len(f.data) > memo.MaxSize {
		t.Fatalf("%d bytes exceed the limit", len(f.data))
	}
	if put("second") {
		t.Fatal("the last result is lost")
	}
}

// TestFull computes a result that does not fit into a file. Remember must not store it, and Save must write
// nothing.
func TestFull(t *testing.T) {
	f := &file{}
	for range 2 {
		r := f.open("v1")
		got, err := memo.Remember(r, "large", nil, func() ([]byte, error) { return make([]byte, memo.MaxSize), nil })
		if err != nil || len(got) != memo.MaxSize {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		r.Save()
	}
	if f.writes > 0 {
		t.Fatalf("written %d times", f.writes)
	}
}

// TestConcurrentCommands saves results of two commands that ran at the same time. Both results must remain.
func TestConcurrentCommands(t *testing.T) {
	f := &file{}
	first, second := f.open("v1"), f.open("v1")
	ask(t, first, "a", "x")
	ask(t, second, "a", "y")
	first.Save()
	second.Save()
	if r := f.open("v1"); ask(t, r, "a", "x") || ask(t, r, "a", "y") {
		t.Fatal("a result of one of the commands is lost")
	}
}

// TestDamagedProperty changes a file at random. A damaged file has no effect on results.
func TestDamagedProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &file{}
		r := f.open("v1")
		for i := range rapid.IntRange(1, 5).Draw(t, "results") {
			ask(t, r, "a", fmt.Sprint(i))
		}
		r.Save()
		switch at := rapid.IntRange(0, len(f.data)-1).Draw(t, "at"); rapid.IntRange(0, 2).Draw(t, "damage") {
		case 0:
			f.data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 1:
			f.data = f.data[:at]
		default:
			f.data = slices.Insert(f.data, at, rapid.Byte().Draw(t, "more"))
		}
		r = f.open("v1")
		if !ask(t, r, "a", "0") {
			t.Fatal("a damaged file is used")
		}
		r.Save()
		if ask(t, f.open("v1"), "a", "0") {
			t.Fatal("the damaged file was not replaced")
		}
	})
}

// TestSameBytes saves the same results, which contain maps, in different orders. The files must have the same bytes.
func TestSameBytes(t *testing.T) {
	type place struct{ Line, Column int }
	var first []byte
	for run := range 10 {
		f := &file{}
		r := f.open("v1")
		for _, i := range rand.New(rand.NewPCG(1, uint64(run))).Perm(50) {
			want := map[place]place{{i, 1}: {1, i}, {i, 2}: {2, i}, {i, 3}: {3, i}}
			put := func() (map[place]place, error) { return want, nil }
			if _, err := memo.Remember(r, "places", []byte{byte(i)}, put); err != nil {
				t.Fatal(err)
			}
			if got, found := memo.Find[map[place]place](r, "places", []byte{byte(i)}); !found || !maps.Equal(got, want) {
				t.Fatalf("%v instead of %v", got, want)
			}
		}
		r.Save()
		if first == nil {
			first = f.data
		}
		if !bytes.Equal(f.data, first) {
			t.Fatal("the bytes depend on the order of calls")
		}
	}
}

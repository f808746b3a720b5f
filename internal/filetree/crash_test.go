package filetree

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The child's part of the tests below: write one of two trees over and over,
// or once under a limit of the size of files.
func TestMain(m *testing.M) {
	dir := os.Getenv("FILETREE_CHILD")
	if dir == "" {
		if err := flag.Set("rapid.seed", "1"); err != nil { // =0 takes a fresh one
			panic(err)
		}
		os.Exit(m.Run())
	}
	if os.Getenv("FILETREE_LIMIT") != "" {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 10, Max: 1 << 10}); err != nil {
			panic(err)
		}
		if err := Write(dir, generation(9)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(7)
		}
		os.Exit(0)
	}
	once := os.Getenv("FILETREE_ONCE") != ""
	for i := 0; !once || i == 0; i++ {
		if err := Write(dir, generation(i%2)); err != nil {
			panic(err)
		}
	}
}

// generation returns one of several trees that share no content.
func generation(n int) *Tree {
	t := New()
	for i := range 40 {
		if err := t.Add(fmt.Sprintf("d%d/f%d-%d", i%7, i, n*(i%2)), bytes.Repeat([]byte{byte('a' + n)}, 5000)); err != nil {
			panic(err)
		}
	}
	return t
}

func child(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), append(env, "FILETREE_CHILD="+dir)...)
	return cmd
}

func TestKilledWriteLeavesAWholeTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, generation(0)); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "d1/mine", "m")
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	seen := map[int]int{}
	for round := range rounds {
		cmd := child(t, dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(5+17*round%40) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		got := files(t, dir)
		if got["d1/mine"] != "m" {
			t.Fatal("the user's file is gone")
		}
		delete(got, "d1/mine")
		n := slices.IndexFunc([]int{0, 1}, func(n int) bool {
			want := map[string]string{}
			for name, data := range generation(n).All() {
				want[name] = string(data)
			}
			return maps.Equal(got, want)
		})
		if n < 0 {
			t.Fatalf("neither tree: %v", slices.Sorted(maps.Keys(got)))
		}
		seen[n]++
	}
	t.Logf("found the trees %v times", seen)
}

func TestFullDiskLeavesTheOldTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, generation(0)); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	cmd := child(t, dir, "FILETREE_LIMIT=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), filepath.Join(dir, "d0", "f0-0")) {
		t.Errorf("got %v %s, want an error that names the file", err, out)
	}
	if d := cmp.Diff(before, files(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestRecoveryAfterACrashBetweenTwoRenames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, generation(0)); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "mine", "m")
	if err := os.Rename(dir, sibling(dir)+"old"); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, generation(1)); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); got["mine"] != "m" || len(got) != 41 {
		t.Errorf("got %v", slices.Sorted(maps.Keys(got)))
	}
}

// TestDirectoryThatCannotBeRenamed writes file by file, and finishes what was
// broken off after any number of files, before the same tree or another is written.
func TestDirectoryThatCannotBeRenamed(t *testing.T) {
	want := tree(t, map[string]string{"a": "2", "d/x": "2", "d/y/z": "2", "s": "new", "t": "new"})
	other := tree(t, map[string]string{"a": "3", "d/y/z": "3", "s": "new"})
	for i := range 24 {
		stop, next, wanted := i/2, want, map[string]string{"a": "2", "d/x": "2", "d/y/z": "2", "s": "new", "t": "new", "mine": "m"}
		if i%2 == 1 {
			next, wanted = other, map[string]string{"a": "3", "d/y/z": "3", "s": "new", "mine": "m"}
		}
		dir := filepath.Join(t.TempDir(), "out")
		if err := Write(dir, tree(t, map[string]string{"a/b": "1", "d/x": "1", "gone/f": "1", "s": "old", "u": "old"})); err != nil {
			t.Fatal(err)
		}
		put(t, dir, "mine", "m")
		p, err := newPlan(dir, want)
		if err != nil {
			t.Fatal(err)
		}
		commit := sibling(dir) + commitSuffix
		if err := os.Mkdir(commit, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := p.build(commit); err != nil {
			t.Fatal(err)
		}
		if stop > 0 { // else the process is killed at once
			left, killed := stop-1, errors.New("killed")
			move = func(from, to string) error {
				if left == 0 {
					return killed
				}
				left--
				return moveFile(from, to)
			}
			err := finish(dir)
			move = moveFile
			if err != nil && !errors.Is(err, killed) {
				t.Fatal(err)
			}
		}
		if err := Write(dir, next); err != nil {
			t.Fatal(err)
		}
		got := files(t, dir)
		if d := cmp.Diff(wanted, got); d != "" {
			t.Errorf("stopped after %d files: %s", stop, d)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".out*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

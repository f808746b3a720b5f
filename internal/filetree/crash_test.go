package filetree

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/testing/propertytest"
)

// TestMain runs the tests. In a child process that a test starts, it instead writes two trees alternately
// until it is killed, or one tree with a limit on the size of files.
func TestMain(m *testing.M) {
	dir := os.Getenv("FILETREE_CHILD")
	if dir == "" {
		propertytest.FixSeed(1)
		os.Exit(m.Run())
	}
	if os.Getenv("FILETREE_LIMIT") != "" {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 10, Max: 1 << 10}); err != nil {
			panic(err)
		}
		if err := Write(dir, generationTree(9)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(7)
		}
		os.Exit(0)
	}
	once := os.Getenv("FILETREE_ONCE") != ""
	for i := 0; !once || i == 0; i++ {
		if err := Write(dir, generationTree(i%2)); err != nil {
			panic(err)
		}
	}
}

// generationTree returns one of several trees that share no content.
func generationTree(n int) *Tree {
	t := New()
	for i := range 40 {
		if err := t.Add(fmt.Sprintf("d%d/f%d-%d", i%7, i, n*(i%2)), bytes.Repeat([]byte{byte('a' + n)}, 5000)); err != nil {
			panic(err)
		}
	}
	return t
}

func childCommand(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), append(env, "FILETREE_CHILD="+dir)...)
	return cmd
}

// TestKilledWrite kills a process during Write. It checks that all files are complete, that the
// user's file remains, and that the next Write of either tree completes that tree.
func TestKilledWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, generationTree(0)); err != nil {
		t.Fatal(err)
	}
	putFile(t, dir, "d1/mine", "m")
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		cmd := childCommand(t, dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(5+17*round%40) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for name, data := range files(t, dir) {
			if !isTemporary(name) && name != "d1/mine" && data != strings.Repeat("a", 5000) && data != strings.Repeat("b", 5000) {
				t.Fatalf("round %d: %s holds %d bytes", round, name, len(data))
			}
		}
		if err := Write(dir, generationTree(round%2)); err != nil {
			t.Fatal(err)
		}
		if got := files(t, dir); len(got) != 41 || got["d1/mine"] != "m" {
			t.Fatalf("round %d: %v", round, slices.Sorted(maps.Keys(got)))
		}
	}
}

// TestInterrupted replaces a random tree by another and stops Write after every possible number of
// operations. One path is a file in one tree and a directory in the other. The next Write, which writes the
// same tree or a third tree, must complete its tree and keep the user's files.
func TestInterrupted(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	defer func() { _ = checks.Value.Set(before) }()
	if err := checks.Value.Set("10"); err != nil { // each check stops about thirty times
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		top, err := os.MkdirTemp("", "filetree-interrupted-") //nolint:usetesting // one for each check, not for the test
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(top)
		before, want, other := drawTree(t), drawTree(t), drawTree(t)
		swapped := rapid.Bool().Draw(t, "swapped")
		for at := range 2 {
			tree, file, dir := []*Tree{before, want}[at], "swap/-a", "swap"
			if (at == 0) == swapped {
				file, dir = "swap", "other/swap"
			}
			_, _ = tree.Add(file, []byte("1")), tree.Add(dir+"/deep/b", []byte("1"))
		}
		foreign := map[string]string{"mine": "m", "a/mine": "m", "b/c/mine": "m"}
		for i, of := 0, 1; i/2 <= of; i++ {
			n, next := i/2, []*Tree{want, other}[i%2]
			dir := filepath.Join(top, fmt.Sprint(i))
			if err := Write(dir, before); err != nil {
				t.Fatal(err)
			}
			store(t, dir, foreign)
			p, err := newPlan(OpenUserDir(dir), want)
			if err != nil {
				t.Fatal(err)
			}
			steps, _ := p.steps()
			if of = len(steps); p.done {
				steps, of = nil, 0
			}
			for _, s := range steps[:n] {
				if err := s.do(p.root); err != nil {
					t.Fatal(err)
				}
			}
			p.close()
			for name, data := range snapshot(t, dir) {
				old, wanted := before.withIndexes().files[name], want.withIndexes().files[name]
				if !isTemporary(name) && !isIndex(name) && data != foreign[name] && data != string(old) && data != string(wanted) {
					t.Fatalf("after %d of %d steps %s holds %q", n, of, name, data)
				}
			}
			if err := Write(dir, next); err != nil {
				t.Fatalf("after %d of %d steps: %v", n, of, err)
			}
			model := maps.Clone(foreign)
			for name, data := range next.withIndexes().All() {
				model[name] = string(data)
			}
			if d := cmp.Diff(model, snapshot(t, dir)); d != "" {
				t.Fatalf("after %d of %d steps (-model +written):\n%s", n, of, d)
			}
		}
	})
}

func TestFullDiskKeepsOldTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, generationTree(0)); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	cmd := childCommand(t, dir, "FILETREE_LIMIT=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), filepath.Join(dir, "d0")+string(filepath.Separator)) {
		t.Errorf("got %v %s, want an error that names the file", err, out)
	}
	if d := cmp.Diff(before, files(t, dir)); d != "" {
		t.Error(d)
	}
}

// TestLeftoversOfWriteFile checks that WriteFile removes the temporary files of killed runs, and no other
// files.
func TestLeftoversOfWriteFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has locks of directories")
	}
	dir := t.TempDir()
	for _, name := range []string{"lock", ".lock.ABCDEFGHIJKLMNOPQRSTUVWXYZ", ".lock.mine", ".lock2.ABCDEFGHIJKLMNOPQRSTUVWXYZ"} {
		putFile(t, dir, name, "x")
	}
	if written, err := WriteFile(filepath.Join(dir, "lock"), []byte("x")); err != nil || written {
		t.Fatal(written, err)
	}
	if got := slices.Sorted(maps.Keys(files(t, dir))); !slices.Equal(got, []string{".lock.mine", ".lock2.ABCDEFGHIJKLMNOPQRSTUVWXYZ", "lock"}) {
		t.Errorf("left: %q", got)
	}
	var writers sync.WaitGroup
	for i := range 20 {
		writers.Go(func() {
			for n := range 20 {
				if _, err := WriteFile(filepath.Join(dir, "lock"), []byte(fmt.Sprint(i, n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}

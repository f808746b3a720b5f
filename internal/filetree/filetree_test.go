package filetree

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func tree(t testing.TB, files map[string]string) *Tree {
	t.Helper()
	out := New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		add := out.Add
		data, starter := strings.CutPrefix(files[name], "starter:")
		if starter {
			add = out.AddStarter
		}
		if err := add(name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	got, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range got.All() {
		if name != Index {
			out[name] = string(data)
		}
	}
	return out
}

func put(t testing.TB, dir, name, data string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAddRefuses(t *testing.T) {
	cases := map[string][]string{
		"error/duplicate":          {"a/b", "a/b"},
		"error/case of a file":     {"a/b", "a/B"},
		"error/case of a folder":   {"a/b", "A/c"},
		"error/file is a folder":   {"a", "a/b"},
		"error/folder is a file":   {"a/b", "a"},
		"error/parent":             {"a", "../b"},
		"error/absolute":           {"a", "/b"},
		"error/root":               {"a", "."},
		"error/empty":              {"a", ""},
		"error/backslash":          {"a", `b\c`},
		"error/newline":            {"a", "b\nc"},
		"error/not clean":          {"a", "b/./c"},
		"error/trailing separator": {"a", "b/"},
	}
	for name, add := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New()
			if err := tr.Add(add[0], nil); err != nil {
				t.Fatal(err)
			}
			if err := tr.Add(add[1], nil); err == nil {
				t.Errorf("Add(%q) after %q succeeded", add[1], add[0])
			}
		})
	}
}

func TestFS(t *testing.T) {
	tr := tree(t, map[string]string{"a/b/c.yaml": "1", "a/d.yaml": "22", "e": ""})
	if err := fstest.TestFS(tr.FS(), "a/b/c.yaml", "a/d.yaml", "e"); err != nil {
		t.Error(err)
	}
}

func TestWriteKeepsWhatIsTheUsers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, tree(t, map[string]string{"a/x": "1", "a/y": "2", "c/start": "starter:s", "c/gone": "starter:g", "d/only": "3"})); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "a/mine", "m")
	put(t, dir, "new/deep/mine", "m")
	put(t, dir, "c/start", "edited")
	put(t, dir, "a/x", "edited by hand")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, tree(t, map[string]string{"a/x": "1", "a/z": "4", "c/start": "starter:other"})); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a/x": "1", "a/z": "4", "a/mine": "m", "new/deep/mine": "m", "c/start": "edited"}
	if d := cmp.Diff(want, files(t, dir)); d != "" {
		t.Error(d)
	}
	if target, err := os.Readlink(filepath.Join(dir, "link")); err != nil || target != "/etc/passwd" {
		t.Errorf("link: got %q, %v", target, err)
	}
	if fi, err := os.Stat(filepath.Join(dir, "empty")); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("empty: got %v, %v", fi, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "d")); err == nil {
		t.Error("the directory of a pruned file is still there")
	}
}

func TestWriteKeepsAnEditedStarterThatIsNoLongerWanted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, tree(t, map[string]string{"k": "starter:1", "l": "starter:1"})); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "k", "edited")
	if err := Write(dir, tree(t, map[string]string{"x": "1"})); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"k": "edited", "x": "1"}, files(t, dir)); d != "" {
		t.Error(d)
	}
}

func TestWriteLeavesAloneWhatIsEqual(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	want := tree(t, map[string]string{"a/x": "1", "s": "starter:1"})
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("an equal tree was written again")
	}
}

func TestWriteErrors(t *testing.T) {
	cases := map[string]struct {
		prepare func(dir string)
		want    map[string]string
		names   string
	}{
		"error/the user's file in the way":        {func(d string) { put(t, d, "b/f", "mine") }, map[string]string{"b/f": "1"}, "b/f"},
		"error/the user's folder in the way":      {func(d string) { put(t, d, "b/f/g", "mine") }, map[string]string{"b/f": "1"}, "b/f"},
		"error/the user's file is a folder of us": {func(d string) { put(t, d, "b", "mine") }, map[string]string{"b/f": "1"}, "b"},
		"error/the user's link in the way":        {func(d string) { _ = os.Symlink("/", filepath.Join(d, "b")) }, map[string]string{"b/f": "1"}, "b"},
		"error/read-only folder":                  {func(d string) { _ = os.Chmod(filepath.Join(d, "a"), 0o555) }, map[string]string{"a/x": "2"}, "a/x"},
		"error/read-only root":                    {func(d string) { _ = os.Chmod(d, 0o555) }, map[string]string{"a/x": "2"}, "out"},
		"error/named pipe":                        {func(d string) { _ = syscall.Mkfifo(filepath.Join(d, "p"), 0o600) }, map[string]string{"a/x": "2"}, "p"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			if err := Write(dir, tree(t, map[string]string{"a/x": "1"})); err != nil {
				t.Fatal(err)
			}
			c.prepare(dir)
			before := files(t, dir)
			err := Write(dir, tree(t, c.want))
			_ = os.Chmod(dir, 0o755)
			if err == nil || !strings.Contains(err.Error(), filepath.FromSlash(c.names)) {
				t.Errorf("got %v, want an error that names %s", err, c.names)
			}
			if d := cmp.Diff(before, files(t, dir)); d != "" {
				t.Error(d)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".out*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, tree(t, map[string]string{"same": "1", "differs": "1", "extra": "1", "start": "starter:1"})); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "mine", "m")
	put(t, dir, "start", "edited")
	have, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	got := Diff(have, tree(t, map[string]string{"same": "1", "differs": "2", "missing": "1", "start": "starter:1"}))
	want := []Change{{"differs", Differs}, {"extra", Extra}, {"missing", Missing}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := Diff(have, tree(t, map[string]string{"same": "1", "differs": "1", "extra": "1", "start": "starter:1"})); len(got) != 0 {
		t.Errorf("an equal tree: got %v", got)
	}
}

// The child's part of the tests below: write one of two trees over and over,
// or once under a limit of the size of files.
func TestMain(m *testing.M) {
	dir := os.Getenv("FILETREE_CHILD")
	if dir == "" {
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
	for i := 0; ; i++ {
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
	for range rounds {
		cmd := child(t, dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(5+rand.IntN(40)) * time.Millisecond)
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
// broken off after any number of files.
func TestDirectoryThatCannotBeRenamed(t *testing.T) {
	want := tree(t, map[string]string{"a": "2", "d/x": "2", "d/y/z": "2", "s": "starter:new", "t": "starter:new"})
	for stop := range 7 {
		dir := filepath.Join(t.TempDir(), "out")
		if err := Write(dir, tree(t, map[string]string{"a/b": "1", "d/x": "1", "gone/f": "1", "s": "starter:old", "u": "starter:old"})); err != nil {
			t.Fatal(err)
		}
		put(t, dir, "mine", "m")
		put(t, dir, "s", "edited")
		put(t, dir, "u", "edited")
		p, err := newPlan(dir, want)
		if err != nil {
			t.Fatal(err)
		}
		commit := sibling(dir) + commitSuffix
		if err := os.Mkdir(commit, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := p.build(commit); err != nil {
			t.Fatal(err)
		}
		own, err := parseIndex(p.index)
		if err != nil {
			t.Fatal(err)
		}
		if err := removeStale(dir, own); err != nil {
			t.Fatal(err)
		}
		for i, name := range append(sortedNames(own), Index) {
			if i == stop {
				break // the process is killed here
			}
			if err := moveFile(filepath.Join(commit, name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := Write(dir, want); err != nil {
			t.Fatal(err)
		}
		got := files(t, dir)
		if d := cmp.Diff(map[string]string{"a": "2", "d/x": "2", "d/y/z": "2", "s": "edited", "t": "new", "u": "edited", "mine": "m"}, got); d != "" {
			t.Errorf("stopped after %d files: %s", stop, d)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".out*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestReadLeavesLinksOut(t *testing.T) {
	got, err := Read(fstest.MapFS{"a": {Data: []byte("1")}, "l": {Mode: fs.ModeSymlink, Data: []byte("a")}})
	if err != nil || got.Len() != 1 {
		t.Errorf("got %d files, %v", got.Len(), err)
	}
}

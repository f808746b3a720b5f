package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKilledRender kills render at many moments. Every file must have its old or its new content,
// and a completed run must write the whole tree.
func TestKilledRender(t *testing.T) {
	dir := quickstart(t)
	before := snapshot(t, filepath.Join(dir, "rendered"))
	mustRun(t, dir, "resolve", "--offline", "--upgrade")
	after := func() string {
		done := t.TempDir()
		check(t, os.CopyFS(done, os.DirFS(dir)))
		mustRun(t, done, "render", "--offline")
		return strings.ReplaceAll(snapshot(t, filepath.Join(done, "rendered")), done, dir)
	}()
	if before == after {
		t.Fatal("the upgrade changes no file")
	}
	cache := t.TempDir()
	old, between, killed := 0, 0, 0
	for wait := time.Millisecond; ; wait += wait/8 + 200*time.Microsecond {
		cmd := exec.Command("quayside", "-C", dir, "render", "--offline")
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
		check(t, cmd.Start())
		time.Sleep(wait)
		_ = cmd.Process.Kill()
		err := cmd.Wait()
		if err != nil {
			killed++
		}
		now := snapshot(t, filepath.Join(dir, "rendered"))
		switch now {
		case before:
			old++
		case after:
			if err == nil {
				t.Logf("killed %d times, %d of them before the tree was replaced, %d within", killed, old, between)
				checkNoTemporaryFiles(t, dir)
				return
			}
		default: // between two renames
			between++
			if line := foreignLine(now, before, after); line != "" {
				t.Fatalf("killed after %v: a file is as neither before nor after: %s", wait, line)
			}
		}
		if wait > 30*time.Second {
			t.Fatal("render does not finish")
		}
	}
}

// foreignLine returns the first line of the text now that is in neither of the texts before and
// after, or "" if there is none. It ignores temporary files.
func foreignLine(now, before, after string) string {
	known := map[string]bool{}
	for line := range strings.Lines(before + after) {
		known[line] = true
	}
	for line := range strings.Lines(now) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !known[line] && !strings.HasPrefix(filepath.Base(name), ".") {
			return line
		}
	}
	return ""
}

// checkNoTemporaryFiles fails the test if a completed run left temporary files of an earlier run.
func checkNoTemporaryFiles(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && e.Name() != ".cache" {
			t.Errorf("leftover temporary file %s", e.Name())
		}
	}
}

// TestFullDisk renders to a full disk and to a read-only disk. The error must name the cause, and
// no file may change.
func TestFullDisk(t *testing.T) {
	if err := exec.Command("unshare", "-m", "true").Run(); err != nil {
		t.Skipf("unshare -m: %v", err)
	}
	from := quickstart(t)
	disk := t.TempDir()
	script := `set -eu
mount -t tmpfs -o size=8m tmpfs "$DISK"
cp -R "$FROM/." "$DISK"
if [ "$COMMAND" = render ]; then quayside -C "$DISK" resolve --offline --upgrade; fi >/dev/null 2>&1
case $FAULT in
full) dd if=/dev/zero of="$DISK/fill" bs=4096 2>/dev/null || true ;;
read-only) mount -o remount,ro "$DISK" ;;
esac
sums() { (cd "$DISK" && find . -type f -exec sha256sum {} + | sort); }
sums >"$OUT/before"
code=0
quayside -C "$DISK" "$COMMAND" --offline $FLAGS >/dev/null 2>"$OUT/stderr" || code=$?
sums >"$OUT/after"
cmp "$OUT/before" "$OUT/after"
echo "$code"
`
	for _, c := range []struct{ name, fault, command, flags, want string }{
		{"error/full disk, tree", "full", "render", "", "no space left on device"},
		{"error/full disk, lock", "full", "resolve", "--upgrade", "no space left on device"},
		{"error/read-only, tree", "read-only", "render", "", "read-only file system"},
		{"error/read-only, lock", "read-only", "resolve", "--upgrade", "read-only file system"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := t.TempDir()
			cmd := exec.Command("unshare", "-m", "sh", "-c", script)
			cmd.Env = append(os.Environ(), "FAULT="+c.fault, "DISK="+disk, "FROM="+from, "OUT="+out,
				"COMMAND="+c.command, "FLAGS="+c.flags, "XDG_CACHE_HOME="+t.TempDir())
			got, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			stderr := read(t, out, "stderr")
			if strings.TrimSpace(string(got)) != "2" || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, disk) {
				t.Errorf("exit code %s: %s", got, stderr)
			}
			t.Log(stderr)
		})
	}
}

package browse_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/browse"
)

func TestFind(t *testing.T) {
	for _, c := range []struct{ name, goos, env, there, want string }{
		{"linux", "linux", "DISPLAY=:0", "xdg-open wslview", "xdg-open"},
		{"wayland", "linux", "WAYLAND_DISPLAY=w", "xdg-open", "xdg-open"},
		{"windows below", "linux", "WSL_DISTRO_NAME=d", "wslview", "wslview"},
		{"mac", "darwin", "", "open", "open"},
		{"windows", "windows", "", "rundll32", "rundll32"},
		{"bsd", "freebsd", "DISPLAY=:0", "xdg-open", "xdg-open"},
		{"named", "linux", "BROWSER=firefox --private-window", "firefox xdg-open", "firefox"},
		{"named, the first that is there", "linux", "BROWSER=lynx %s:firefox", "firefox", "firefox"},
		{"named, on windows", "windows", `BROWSER=C:\f.exe;x`, `C:\f.exe`, `C:\f.exe`},
		{"named and not there", "linux", "BROWSER=lynx, DISPLAY=:0", "xdg-open", `error: BROWSER is "lynx", which is no program that is installed`},
		{"no screen", "linux", "", "xdg-open", "error: there is no screen"},
		{"nothing installed", "linux", "DISPLAY=:0", "", "error: xdg-open is not installed"},
		{"unknown", "plan9", "DISPLAY=:0", "xdg-open", "error: BROWSER names no program, and what opens pages on plan9 is not known"},
		{"in CI", "linux", "CI=true, DISPLAY=:0, BROWSER=firefox", "firefox xdg-open", `error: CI is "true": nobody looks`},
		{"CI denied", "darwin", "CI=false", "open", "open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{}
			for _, kv := range strings.Split(c.env, ", ") {
				if key, value, ok := strings.Cut(kv, "="); ok {
					env[key] = value
				}
			}
			got, err := browse.Find(c.goos, func(key string) string { return env[key] }, func(name string) (string, error) {
				for _, there := range strings.Fields(c.there) {
					if there == name {
						return name, nil
					}
				}
				return "", errors.New("not there")
			})
			if wanted, fails := strings.CutPrefix(c.want, "error: "); fails {
				if err == nil || !strings.HasPrefix(err.Error(), wanted) {
					t.Errorf("got %v, want %s", err, wanted)
				}
				return
			}
			if err != nil || got.Name != c.want {
				t.Errorf("got %q, %v, want %q", got.Name, err, c.want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are shell scripts")
	}
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	opener := func(browser string) browse.Opener {
		o, err := browse.Find("linux", func(key string) string { return map[string]string{"BROWSER": browser}[key] }, func(name string) (string, error) { return name, nil })
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	said := filepath.Join(dir, "said")
	echo := script("echo", `for a in "$@"; do echo "[$a]"; done >`+said)
	for browser, want := range map[string]string{
		echo:                     "[ADDRESS]\n",
		echo + " --new-window":   "[--new-window]\n[ADDRESS]\n",
		echo + " --app=%s --two": "[--app=ADDRESS]\n[--two]\n",
	} {
		if err := opener(browser).Open(filepath.Join(dir, "a b#1?.html")); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(said)
		if err != nil {
			t.Fatal(err)
		}
		if want = strings.ReplaceAll(want, "ADDRESS", "file://"+filepath.ToSlash(dir)+"/a%20b%231%3F.html"); string(data) != want {
			t.Errorf("%s: got %q, want %q", browser, data, want)
		}
	}
	if err := opener(script("fails", "exit 3")).Open("x.html"); err == nil || !strings.HasSuffix(err.Error(), "fails: exit status 3") {
		t.Errorf("got %v", err)
	}
	if err := opener(filepath.Join(dir, "absent")).Open("x.html"); err == nil || !strings.HasPrefix(err.Error(), "starting ") {
		t.Errorf("got %v", err)
	}
	began := time.Now()
	if err := opener(script("stays", "exec sleep 20")).Open("x.html"); err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("a browser that stays: %v after %v", err, time.Since(began))
	}
}

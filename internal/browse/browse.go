// Package browse has a file shown in the browser of whoever sits at the machine, by
// what the system has for that.
//
// It starts no browser where nobody looks at one: in CI, and without a screen. Start
// from [Find].
package browse

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/filetree"
)

// Opener is a program that shows a page.
type Opener struct {
	Name string   // its path
	args []string // before the address, or with %s in its place
}

// Find returns what opens pages on an operating system, as GOOS names it: what BROWSER
// names (programs with their arguments, split at colons or, on Windows, semicolons: the
// first that there is), else the system's own. The error says why nothing can, or ought
// to. find looks up a program as [exec.LookPath] does.
func Find(goos string, getenv func(string) string, find func(string) (string, error)) (Opener, error) {
	if ci := getenv("CI"); ci != "" && ci != "false" && ci != "0" {
		return Opener{}, fmt.Errorf("CI is %q: nobody looks at a browser here", ci)
	}
	if names := getenv("BROWSER"); names != "" {
		separator := map[bool]string{true: ";", false: ":"}[goos == "windows"]
		for _, command := range strings.Split(names, separator) {
			if words := strings.Fields(command); len(words) > 0 {
				if path, err := find(words[0]); err == nil {
					return Opener{path, words[1:]}, nil
				}
			}
		}
		return Opener{}, fmt.Errorf("BROWSER is %q, which is no program that is installed", names)
	}
	for _, own := range systems() {
		if !slices.Contains(own.on, goos) {
			continue
		}
		if own.screen && getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "" && getenv("WSL_DISTRO_NAME") == "" {
			return Opener{}, errors.New("there is no screen (neither DISPLAY nor WAYLAND_DISPLAY is set), and BROWSER names no program")
		}
		for _, words := range own.commands {
			if path, err := find(words[0]); err == nil {
				return Opener{path, words[1:]}, nil
			}
		}
		return Opener{}, fmt.Errorf("%s is not installed, and BROWSER names no other program", own.commands[0][0])
	}
	return Opener{}, fmt.Errorf("BROWSER names no program, and what opens pages on %s is not known", goos)
}

// system is what some operating systems open pages with: the first of commands that
// there is.
type system struct {
	on       []string
	screen   bool // only where a variable names one
	commands [][]string
}

func systems() []system {
	return []system{
		{[]string{"darwin"}, false, [][]string{{"open"}}},
		{[]string{"windows"}, false, [][]string{{"rundll32", "url.dll,FileProtocolHandler"}}},
		{[]string{"linux", "freebsd", "openbsd", "netbsd"}, true, [][]string{{"xdg-open"}, {"wslview"}}},
	}
}

// Keep writes a page into a file that is its owner's alone where it is new, and returns
// the file's name. Where that is empty it is a temporary one, called after what.
func Keep(file, what string, page []byte) (string, error) {
	if file == "" {
		dir, err := os.MkdirTemp("", "quayside-"+what+"-*")
		if err != nil {
			return "", err
		}
		file = filepath.Join(dir, what+".html")
	}
	_, err := filetree.WriteFileMode(file, page, 0o600)
	return file, err
}

// patience is how long an opener may take to fail. One that runs on is a browser.
const patience = 3 * time.Second

// Open shows a file, whose path may be relative. The browser is not waited for.
func (o Opener) Open(file string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	// A directory may be called like an option, or have characters that end an address.
	path := filepath.ToSlash(abs)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	cmd := exec.Command(o.Name, o.arguments((&url.URL{Scheme: "file", Path: path}).String())...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", o.Name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
	case <-time.After(patience):
	}
	return nil
}

// arguments returns what the program is started with to show an address.
func (o Opener) arguments(address string) []string {
	out := slices.Clone(o.args)
	for i, arg := range out {
		if strings.Contains(arg, "%s") {
			out[i] = strings.ReplaceAll(arg, "%s", address)
			return out
		}
	}
	return append(out, address)
}

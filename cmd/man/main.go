// Man writes the manual pages of quayside, with version and date of the commit that it
// was built of. The same commit gives the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/quayside/quayside/cmd/quayside/manual"
	"github.com/quayside/quayside/internal/filetree"
)

func main() {
	dir := flag.String("o", "dist/man", "`directory` to write into, as man looks for pages: man -M dist/man quayside")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	version, made, err := commit()
	if err != nil {
		return err
	}
	pages, err := manual.Pages(version, made)
	if err != nil {
		return err
	}
	for name, page := range pages {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if _, err := filetree.WriteFile(file, page); err != nil {
			return err
		}
	}
	return nil
}

// commit returns version and time of the commit that this program was built of.
func commit() (version string, made time.Time, err error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", made, errors.New("this program was built without modules")
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			made, err = time.Parse(time.RFC3339, s.Value)
			return info.Main.Version, made, err
		}
	}
	return "", made, errors.New("this program does not know its commit: run it with -buildvcs=true in a clone of the repository, with git installed")
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gobuild"
)

// writeManual writes the manual pages into a directory, as a release of this program's commit
// contains them.
func writeManual(dir string) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program was built without modules")
	}
	commit, err := gobuild.CommitOf(info, true)
	if err != nil {
		return err
	}
	pages, err := manualPages(commit.Version, commit.Time)
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

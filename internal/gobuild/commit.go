package gobuild

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"
)

// Homepage is the URL of the sources, and License their license.
const (
	Homepage = "https://github.com/quayside/quayside"
	License  = "Apache-2.0"
)

// Quayside returns the options to compile quayside for a platform, for releases and for the
// image for CI. The program records its commit.
func Quayside(platform, to string, stderr io.Writer) Compilation {
	return Compilation{
		Source: "./cmd/quayside", Platform: platform, To: to, Stderr: stderr,
		Flags: []string{"-buildvcs=true", "-tags", "kustomize_disable_go_plugin_support"},
	}
}

// Commit is the commit that a program was built from.
type Commit struct {
	Version  string // "1.2.3"
	Revision string // "4f3e…": hash of the commit
	Time     time.Time
}

// CommitIn returns the commit recorded in a compiled program, with the checks of [CommitOf].
func CommitIn(program []byte, snapshot bool) (Commit, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return Commit{}, err
	}
	return CommitOf(info, snapshot)
}

// CommitOf returns the commit that a program was built from. The error is set if the program has
// no recorded commit, or, unless snapshot is true, if it was built with uncommitted changes:
// such a build cannot be reproduced.
func CommitOf(info *debug.BuildInfo, snapshot bool) (Commit, error) {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := info.Main.Version
	committed, err := time.Parse(time.RFC3339, settings["vcs.time"])
	switch {
	case err != nil || version == "" || version == "(devel)":
		return Commit{}, errors.New("unknown commit: build with git installed in a clone of the repository, not in a linked worktree")
	case settings["vcs.modified"] == "true" && !snapshot:
		return Commit{}, fmt.Errorf("%s has changes that are not committed: commit them, or build a -snapshot", version)
	}
	return Commit{strings.TrimPrefix(version, "v"), settings["vcs.revision"], committed}, nil
}

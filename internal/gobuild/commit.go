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

// Homepage is where the sources are, and License what they may be used by.
const (
	Homepage = "https://github.com/quayside/quayside"
	License  = "Apache-2.0"
)

// Quayside returns how the program is compiled that releases and the image for CI
// have: it knows its commit.
func Quayside(platform, to string, stderr io.Writer) Options {
	return Options{
		Source: "./cmd/quayside", Platform: platform, To: to, Stderr: stderr,
		Flags: []string{"-buildvcs=true", "-tags", "kustomize_disable_go_plugin_support"},
	}
}

// Commit is what a program was built from.
type Commit struct {
	Version  string // "1.2.3"
	Revision string // "4f3e…": the commit's own name
	Time     time.Time
}

// CommitIn returns the commit that a compiled program says it was built from, as
// [CommitOf] does.
func CommitIn(program []byte, snapshot bool) (Commit, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return Commit{}, err
	}
	return CommitOf(info, snapshot)
}

// CommitOf returns the commit that a program was built from. It refuses a program that
// does not know it and, unless it is to be a snapshot, one with changes that were not
// committed: nobody could build it again.
func CommitOf(info *debug.BuildInfo, snapshot bool) (Commit, error) {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := info.Main.Version
	made, err := time.Parse(time.RFC3339, settings["vcs.time"])
	switch {
	case err != nil || version == "" || version == "(devel)":
		return Commit{}, errors.New("the program does not know its commit: build in a clone of the repository, with git installed")
	case settings["vcs.modified"] == "true" && !snapshot:
		return Commit{}, fmt.Errorf("%s has changes that are not committed: commit them, or build a -snapshot", version)
	}
	return Commit{strings.TrimPrefix(version, "v"), settings["vcs.revision"], made}, nil
}

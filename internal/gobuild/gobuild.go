// Package gobuild compiles programs of this module for other platforms, with the
// same bytes on every machine: without C, without paths, for the least processor of
// each kind. What others are to have is built from a commit, and from nothing else.
//
// Start from [Compile], [Quayside] and [CommitOf].
package gobuild

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Options says what to compile.
type Options struct {
	Source   string    // a package: "./cmd/quayside"
	Platform string    // "linux/amd64"
	To       string    // the file to write; it is written over
	Flags    []string  // more flags of go build
	Stderr   io.Writer // what the compiler says
}

// Compile writes a program to a file and returns what is in it.
func Compile(ctx context.Context, o Options) ([]byte, error) {
	system, arch, _ := strings.Cut(o.Platform, "/")
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", o.To}, o.Flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, o.Source)...) //nolint:gosec // a package of ours
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off", "GOFLAGS=")
	cmd.Stderr = o.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("compiling %s for %s: %w", o.Source, o.Platform, err)
	}
	return os.ReadFile(o.To)
}

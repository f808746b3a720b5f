// Package gobuild compiles the programs of this module for other platforms. The result has the
// same bytes on every machine: no cgo, no paths, and the minimum processor of each architecture.
// Published programs are built only from a commit.
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

// Compilation configures a compilation.
type Compilation struct {
	Source   string    // package: "./cmd/quayside"
	Platform string    // "linux/amd64"
	To       string    // output file, which Compile overwrites
	Flags    []string  // additional flags of go build
	Stderr   io.Writer // output of the compiler
}

// Compile compiles a program to a file and returns the content of the file.
func Compile(ctx context.Context, o Compilation) ([]byte, error) {
	system, arch, _ := strings.Cut(o.Platform, "/")
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", o.To}, o.Flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, o.Source)...) //nolint:gosec // the package is part of this module
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off", "GOFLAGS=")
	cmd.Stderr = o.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("compiling %s for %s: %w", o.Source, o.Platform, err)
	}
	return os.ReadFile(o.To)
}

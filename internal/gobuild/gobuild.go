// Package gobuild compiles this module's programs for other platforms, with the same bytes on
// every machine: without cgo, without paths, for the minimum processor of each architecture.
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
	Source   string    // a package: "./cmd/quayside"
	Platform string    // "linux/amd64"
	To       string    // output file, which is overwritten
	Flags    []string  // more flags of go build
	Stderr   io.Writer // output of the compiler
}

// Compile writes a program to a file and returns the file's content.
func Compile(ctx context.Context, o Compilation) ([]byte, error) {
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

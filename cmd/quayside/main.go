// Quayside resolves, locks and renders Kubernetes operators into Git.
package main

import (
	"os"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	_ "github.com/quayside/quayside/cmd/quayside/internal/garbage"
	"github.com/quayside/quayside/cmd/quayside/internal/parts"
)

func main() {
	stderr := os.Stderr
	// For each build, kustomize writes notes about deprecated fields to os.Stderr, without the names of files.
	// quayside hides these notes, and reports deprecated fields as warnings.
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		os.Stderr = null
	}
	os.Exit(cli.Main(parts.All(), os.Args[1:], os.Stdin, os.Stdout, stderr, os.Environ()))
}

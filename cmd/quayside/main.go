// Quayside resolves, locks and renders Kubernetes operators into Git.
package main

import (
	"os"

	"github.com/quayside/quayside/cmd/quayside/cli"
	_ "github.com/quayside/quayside/cmd/quayside/garbage"
	"github.com/quayside/quayside/cmd/quayside/parts"
)

func main() {
	os.Exit(cli.Main(parts.All(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}

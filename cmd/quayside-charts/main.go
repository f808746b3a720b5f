// Quayside-charts templates Helm charts for quayside, which starts it and writes charts to its standard
// input. It is a separate program, because Helm's packages would make the start of every command of quayside
// slower by a fifth.
package main

import (
	"fmt"
	"os"

	"github.com/quayside/quayside/internal/helm/engine"
)

func main() {
	if !engine.Asked() {
		fmt.Fprintln(os.Stderr, "quayside-charts is started by quayside, to template Helm charts. It has no options.")
		os.Exit(2)
	}
	os.Exit(engine.Serve(os.Stdin, os.Stdout))
}

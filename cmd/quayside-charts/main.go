// Quayside-charts executes the templates of Helm charts. quayside starts this program and writes
// charts to its standard input. The program is separate, because Helm's packages would slow down
// the start of every command of quayside by a fifth.
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

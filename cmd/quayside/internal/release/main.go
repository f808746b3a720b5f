// Release performs the steps of a release that goreleaser does not: it writes the manual pages and the bills of
// materials, and signs the checksums. .goreleaser.yaml calls it. It also verifies a release. The same arguments
// and files result in the same bytes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

const usage = `usage:
  release man DIRECTORY VERSION TIME   write the manual pages, in the layout of man
  release bom PROGRAM FILE             write the bill of materials of a Go program
  release sign KEY FILE BUNDLE         sign a file with a private key, with its password in COSIGN_PASSWORD
  release check DIRECTORY KEY          verify the checksums of a release and their signature with a public key`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv("COSIGN_PASSWORD"))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run performs the step that args[0] names.
func run(ctx context.Context, args []string, password string) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch {
	case verb == "man" && len(args) == 3:
		return writeManual(args[0], args[1], args[2])
	case verb == "bom" && len(args) == 2:
		return writeBOM(args[0], args[1])
	case verb == "sign" && len(args) == 3:
		return signFile(ctx, args[0], password, args[1], args[2])
	case verb == "check" && len(args) == 2:
		return verifyRelease(args[0], args[1])
	}
	return errors.New(usage)
}

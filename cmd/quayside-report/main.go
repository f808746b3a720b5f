// Quayside-report says in the cluster whether what quayside rendered is there
// and healthy: it writes the status of Installations and nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code)
}

// run is the program. It returns 0 when it was told to end, 2 for what is
// wrong with the command line, and 1 for everything else.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case o.version:
		fmt.Fprintln(stdout, "quayside-report "+version())
		return 0
	}
	limitMemory(getenv)
	log := logger(stderr, o.level)
	if err := watch(ctx, o, log); err != nil {
		log.Error(err, "quayside-report ends")
		return 1
	}
	return 0
}

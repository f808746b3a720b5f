// Quayside-report runs in a cluster. It checks whether the rendered objects exist and are healthy,
// and writes the result to the status of Installations. It changes nothing else.
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
	code := runReporter(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code)
}

// runReporter runs the program. It returns 0 after a signal, 2 for an invalid
// command line, and 1 for other errors.
func runReporter(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	o, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case o.version:
		fmt.Fprintln(stdout, "quayside-report "+moduleVersion())
		return 0
	}
	limitMemory(getenv)
	log := newLogger(stderr, o.level)
	if err := watch(ctx, o, log); err != nil {
		log.Error(err, "quayside-report stopped")
		return 1
	}
	return 0
}

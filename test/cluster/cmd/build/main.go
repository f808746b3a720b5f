// Command build builds the servers for tests into the cache.
//
//	build [-check] [target ...]
//
// It builds the named targets, or all targets if none is named, and prints their
// directories. With -check it builds nothing, and exits with 1 if a target is missing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/quayside/quayside/test/cluster/binaries"
)

func main() {
	check := flag.Bool("check", false, "build nothing; exit 1 when a target is missing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, flag.Args(), *check, os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, binaries.ErrNotBuilt):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(ctx context.Context, names []string, check bool, out, log io.Writer) error {
	targets, err := chooseTargets(names)
	if err != nil {
		return err
	}
	for _, t := range targets {
		dir, err := binaries.Find(t.Name)
		if errors.Is(err, binaries.ErrNotBuilt) && !check {
			fmt.Fprintf(log, "building %s: several minutes, once for every version of its sources\n", t.Name)
			began := time.Now()
			dir, err = binaries.Build(ctx, t, log)
			fmt.Fprintf(log, "built %s in %s\n", t.Name, time.Since(began).Round(time.Second))
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, dir)
	}
	return nil
}

func chooseTargets(names []string) ([]binaries.Target, error) {
	if len(names) == 0 {
		return binaries.Targets(), nil
	}
	var targets []binaries.Target
	for _, name := range names {
		t, err := binaries.Lookup(name)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

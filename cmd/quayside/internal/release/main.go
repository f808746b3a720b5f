// Release builds the files of a quayside release: an archive for each platform, checksums, a
// bill of materials, and the manifests for Homebrew and krew. It does not publish them. The
// same commit and Go version give the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	o := options{stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	var checkDir, keyFile, manDir string
	flag.StringVar(&o.dir, "o", "dist/release", "new `directory`")
	flag.StringVar(&o.url, "url", "https://github.com/quayside/quayside/releases/download", "base `address` of the releases' files")
	flag.BoolVar(&o.snapshot, "snapshot", false, "also build uncommitted changes")
	flag.StringVar(&o.signKey, "sign", "", "sign the checksums with the private key in this `file`, with its password in COSIGN_PASSWORD")
	flag.StringVar(&checkDir, "check", "", "build nothing; verify the checksums of the release in this `directory` and their signature")
	flag.StringVar(&keyFile, "key", "cosign.pub", "with -check, the public key's `file`")
	flag.StringVar(&manDir, "man", "", "write only the manual pages to this `directory`, in the layout of man: man -M dist/man quayside")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	run := o.run
	switch {
	case checkDir != "":
		run = func(context.Context) error { return checkWithKeyFile(checkDir, keyFile) }
	case manDir != "":
		run = func(context.Context) error { return writeManual(manDir) }
	}
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

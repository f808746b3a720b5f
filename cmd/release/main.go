// Release builds what a release of quayside consists of: an archive for each
// platform, their checksums, a bill of materials, and the manifests of Homebrew and
// krew. It publishes nothing. The same commit and the same Go give the same bytes.
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
	var checked, public string
	flag.StringVar(&o.dir, "o", "dist/release", "`directory` to make anew")
	flag.StringVar(&o.url, "url", "https://github.com/quayside/quayside/releases/download", "`address` below which a release's files will lie, by version")
	flag.BoolVar(&o.snapshot, "snapshot", false, "build what was not committed, too")
	flag.StringVar(&o.signKey, "sign", "", "sign the checksums with the private key in this `file`, whose password is in COSIGN_PASSWORD")
	flag.StringVar(&checked, "check", "", "build nothing: hold the release in this `directory` against its checksums, and those against their signature")
	flag.StringVar(&public, "key", "cosign.pub", "with -check, the public key's `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	run := o.run
	if checked != "" {
		run = func(context.Context) error { return checkWith(checked, public) }
	}
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

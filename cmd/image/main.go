// Image builds images of quayside's programs for every platform, without Docker: the image of
// the reporter, which contains only the program, and the image for CI, which adds quayside to
// an image with git. It writes an OCI layout, and can push it. The same sources, base and Go
// version give the same bytes.
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
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: image [flags] {reporter | ci}")
		flag.PrintDefaults()
	}
	flag.StringVar(&o.layout, "o", "", "`directory` of the new OCI layout (default: dist/ and the image's name)")
	flag.StringVar(&o.push, "push", "", "also push it to this `image`, with the logins of 'docker login' and 'podman login'")
	flag.StringVar(&o.base, "base", "", "the base `image` of the CI image: an OCI layout (oci:DIR), or a registry image with a digest")
	flag.BoolVar(&o.snapshot, "snapshot", false, "also build uncommitted changes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

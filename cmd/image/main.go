// Image builds images of quayside's programs, for every platform and without Docker:
// the reporter's, which holds the program alone, and the one for CI, which holds
// quayside on top of an image that has git. The programs are compiled, packed, and
// written to an OCI layout, from where the image can be pushed. The same sources, the
// same base and the same Go give the same bytes.
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
	flag.StringVar(&o.layout, "o", "", "`directory` of the OCI layout, which is made anew (default: dist/ and the image's name)")
	flag.StringVar(&o.push, "push", "", "push it to this `image` as well, with the logins of 'docker login' and 'podman login'")
	flag.StringVar(&o.base, "base", "", "the `image` that the one for CI stands on: an OCI layout (oci:DIR), or one of a registry by its digest")
	flag.BoolVar(&o.snapshot, "snapshot", false, "build what was not committed, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// Report-image builds the reporter's image, for every platform and without
// Docker: quayside-report is compiled for each, packed alone into an image, and
// written to an OCI layout, from where it can be pushed. The same sources and
// the same Go give the same bytes.
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
	flag.StringVar(&o.layout, "o", "dist/quayside-report", "`directory` of the OCI layout, which is made anew")
	flag.StringVar(&o.push, "push", "", "push it to this `image` as well, with the logins of 'docker login' and 'podman login'")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "report-image:", err)
		os.Exit(1)
	}
}

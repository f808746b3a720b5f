package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quayside/quayside/internal/gobuild"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/registry"
)

const (
	program = "quayside-report"
	sources = "./cmd/quayside-report"
	user    = "65532:65532" // that of other images without a shell
)

func platforms() []string { return []string{"linux/amd64", "linux/arm64"} }

type options struct {
	layout, push   string
	stdout, stderr io.Writer
	getenv         func(string) string
}

// run builds the image, writes it, pushes it where that is asked for, and
// prints what to name it by.
func (o options) run(ctx context.Context) error {
	tmp, err := os.MkdirTemp("", program)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	programs := map[string][]byte{}
	for _, p := range platforms() {
		if programs[p], err = gobuild.Compile(ctx, gobuild.Options{Source: sources, Platform: p, To: filepath.Join(tmp, program), Stderr: o.stderr}); err != nil {
			return err
		}
	}
	digest, err := write(programs, o.layout)
	if err != nil {
		return err
	}
	if o.push == "" {
		fmt.Fprintf(o.stdout, "oci:%s@%s\n", o.layout, digest)
		fmt.Fprintf(o.stderr, "push it with one of\n  make image PUSH=registry.example.com/%[1]s:latest\n  crane push %[2]s registry.example.com/%[1]s:latest\n"+
			"  skopeo copy --all oci:%[2]s docker://registry.example.com/%[1]s:latest\nand name it by its digest in spec.reporter.image of quayside.yaml\n", program, o.layout)
		return nil
	}
	return o.upload(ctx, tmp)
}

// write makes the layout anew, with nothing in it but the image, and returns the
// image's digest. A directory that is something else stays as it is.
func write(programs map[string][]byte, layout string) (string, error) {
	image, err := registry.PackProgram(programs, registry.ProgramOptions{
		Name: program, User: user,
		Labels: map[string]string{"org.opencontainers.image.title": program},
	})
	if err != nil {
		return "", err
	}
	if entries, err := os.ReadDir(layout); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(layout, "oci-layout")); err != nil {
			return "", fmt.Errorf("%q is not empty and no OCI layout", layout)
		}
		if err := os.RemoveAll(layout); err != nil {
			return "", err
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return image.Digest(), image.WriteLayout(layout, "")
}

// upload pushes the layout and prints the image's reference by digest.
func (o options) upload(ctx context.Context, tmp string) error {
	blobs, err := store.Open(filepath.Join(tmp, "store"))
	if err != nil {
		return err
	}
	client := &registry.Client{Store: blobs, Credentials: registry.DefaultCredentials(o.getenv), CertDirs: registry.DefaultCertDirs(o.getenv)}
	done, err := client.Upload(ctx, "oci:"+o.layout, o.push)
	if err != nil {
		return err
	}
	name := o.push
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name = name[:i]
	}
	fmt.Fprintf(o.stdout, "%s@%s\n", name, done.Digest)
	return nil
}

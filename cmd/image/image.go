package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gobuild"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/registry"
)

const user = "65532:65532" // that of other images without a shell

func platforms() []string { return []string{"linux/amd64", "linux/arm64"} }

// recipe is one image that can be built.
type recipe struct {
	name    string // of the image
	compile func(platform, to string, stderr io.Writer) gobuild.Options
	image   program
	needs   []string // programs of the base; nil: it stands on none
	target  string   // of the Makefile
	next    string   // what to do with the image's reference
}

func recipes() map[string]recipe {
	return map[string]recipe{
		"reporter": {
			name: "quayside-report",
			compile: func(platform, to string, stderr io.Writer) gobuild.Options {
				return gobuild.Options{Source: "./cmd/quayside-report", Platform: platform, To: to, Stderr: stderr}
			},
			image:  program{path: "quayside-report", user: user, labels: map[string]string{"org.opencontainers.image.title": "quayside-report"}},
			target: "image", next: "name it by its digest in spec.reporter.image of quayside.yaml",
		},
		"ci": {
			name: "quayside-ci", compile: gobuild.Quayside,
			image:  program{path: "usr/local/bin/quayside", user: user, dir: "work", env: []string{"HOME=/tmp"}},
			needs:  []string{"usr/bin/git"},
			target: "image-ci", next: "name it by its digest in your pipelines",
		},
	}
}

type options struct {
	layout, push   string
	base           string
	snapshot       bool
	stdout, stderr io.Writer
	getenv         func(string) string
}

// run builds the image that the argument names, writes it, pushes it where that is
// asked for, and prints what to name it by.
func (o options) run(ctx context.Context, args []string) error {
	r, err := o.recipe(args)
	if err != nil {
		return err
	}
	if o.layout == "" {
		o.layout = filepath.Join("dist", r.name)
	}
	if err := o.free(); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", r.name)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	programs := map[string][]byte{}
	for _, p := range platforms() {
		if programs[p], err = gobuild.Compile(ctx, r.compile(p, filepath.Join(tmp, r.name), o.stderr)); err != nil {
			return err
		}
	}
	if r.needs != nil {
		commit, err := gobuild.CommitIn(programs[platforms()[0]], o.snapshot)
		if err != nil {
			return err
		}
		r.image.labels = labels(commit)
	}
	client, err := o.client(tmp)
	if err != nil {
		return err
	}
	digest, err := o.write(ctx, client, tmp, r, programs)
	if err != nil {
		return err
	}
	if o.push != "" {
		return o.upload(ctx, client)
	}
	fmt.Fprintf(o.stdout, "oci:%s@%s\n", o.layout, digest)
	fmt.Fprintf(o.stderr, "push it with one of\n  make %[4]s PUSH=registry.example.com/%[1]s:latest\n  crane push %[2]s registry.example.com/%[1]s:latest\n"+
		"  skopeo copy --all oci:%[2]s docker://registry.example.com/%[1]s:latest\nand %[3]s\n", r.name, o.layout, r.next, r.target)
	return nil
}

// recipe returns the recipe that the arguments name.
func (o options) recipe(args []string) (recipe, error) {
	if len(args) != 1 {
		return recipe{}, errors.New("which image? one of reporter, ci")
	}
	r, ok := recipes()[args[0]]
	switch {
	case !ok:
		return r, fmt.Errorf("there is no image %q: it is one of reporter, ci", args[0])
	case r.needs != nil && o.base == "":
		return r, fmt.Errorf("on what does it stand? -base names an image with /%s", strings.Join(r.needs, ", /"))
	case r.needs == nil && o.base != "":
		return r, fmt.Errorf("the image %q stands on no other: leave out -base", args[0])
	}
	return r, nil
}

// labels returns what the image for CI says of itself.
func labels(c gobuild.Commit) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "quayside",
		"org.opencontainers.image.source":   gobuild.Homepage,
		"org.opencontainers.image.licenses": gobuild.License,
		"org.opencontainers.image.version":  c.Version,
		"org.opencontainers.image.revision": c.Revision,
	}
}

// free refuses a directory that is something else than a layout.
func (o options) free() error {
	if err := filetree.Replaceable(o.layout, "oci-layout", "an OCI layout"); err != nil {
		return fmt.Errorf("%q: %w", o.layout, err)
	}
	return nil
}

// write makes the layout anew, with nothing in it but the image, and returns the
// image's digest. Until all of it is written, the old one stays.
func (o options) write(ctx context.Context, client *registry.Client, tmp string, r recipe, programs map[string][]byte) (string, error) {
	var on *base
	var err error
	if r.needs != nil {
		if on, err = openBase(ctx, client, o.base, tmp, r.needs); err != nil {
			return "", err
		}
	}
	index, err := r.image.pack(programs, on)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(o.layout), 0o755); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(filepath.Dir(o.layout), "."+filepath.Base(o.layout)+".*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	if err := os.Chmod(made, 0o755); err != nil {
		return "", err
	}
	root, err := layout.Write(made, empty.Index)
	if err == nil {
		err = root.AppendIndex(index)
	}
	if err != nil {
		return "", err
	}
	if err := o.free(); err != nil {
		return "", err
	}
	if err := os.RemoveAll(o.layout); err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	return digest.String(), os.Rename(made, o.layout)
}

func (o options) client(tmp string) (*registry.Client, error) {
	blobs, err := store.Open(filepath.Join(tmp, "store"))
	if err != nil {
		return nil, err
	}
	return &registry.Client{Store: blobs, Credentials: registry.DefaultCredentials(o.getenv), CertDirs: registry.DefaultCertDirs(o.getenv)}, nil
}

// upload pushes the layout and prints the image's reference by digest.
func (o options) upload(ctx context.Context, client *registry.Client) error {
	done, err := client.Upload(ctx, "oci:"+o.layout, o.push)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.stdout, registry.ByDigest(o.push, done.Digest))
	return nil
}

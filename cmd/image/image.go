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
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
)

const user = "65532:65532" // nonroot in distroless images

func imagePlatforms() []string { return []string{"linux/amd64", "linux/arm64"} }

// recipe describes an image to build.
type recipe struct {
	name    string // name of the image
	compile func(platform, to string, stderr io.Writer) gobuild.Compilation
	image   program
	needs   []string // programs that the base must have; nil: no base
	target  string   // Makefile target
	next    string   // hint for using the image's reference
}

func imageRecipes() map[string]recipe {
	return map[string]recipe{
		"reporter": {
			name: "quayside-report",
			compile: func(platform, to string, stderr io.Writer) gobuild.Compilation {
				return gobuild.Compilation{Source: "./cmd/quayside-report", Platform: platform, To: to, Stderr: stderr}
			},
			image:  program{path: "quayside-report", user: user, labels: map[string]string{"org.opencontainers.image.title": "quayside-report"}},
			target: "image", next: "use its digest in spec.reporter.image of quayside.yaml",
		},
		"ci": {
			name: "quayside-ci", compile: gobuild.Quayside,
			image:  program{path: "usr/local/bin/quayside", user: user, dir: "work", env: []string{"HOME=/tmp"}},
			needs:  []string{"usr/bin/git"},
			target: "image-ci", next: "use its digest in your pipelines",
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

// run builds the image named by the arguments, writes it, pushes it with -push, and prints its
// reference.
func (o options) run(ctx context.Context, args []string) error {
	r, err := o.recipe(args)
	if err != nil {
		return err
	}
	if o.layout == "" {
		o.layout = filepath.Join("dist", r.name)
	}
	if err := o.checkLayout(); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", r.name)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	programs := map[string][]byte{}
	for _, p := range imagePlatforms() {
		if programs[p], err = gobuild.Compile(ctx, r.compile(p, filepath.Join(tmp, r.name), o.stderr)); err != nil {
			return err
		}
	}
	if r.needs != nil {
		commit, err := gobuild.CommitIn(programs[imagePlatforms()[0]], o.snapshot)
		if err != nil {
			return err
		}
		r.image.labels = imageLabels(commit)
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

// recipe returns the recipe named by the arguments.
func (o options) recipe(args []string) (recipe, error) {
	if len(args) != 1 {
		return recipe{}, errors.New("missing argument: reporter or ci")
	}
	r, ok := imageRecipes()[args[0]]
	switch {
	case !ok:
		return r, fmt.Errorf("unknown image %q: must be one of reporter, ci", args[0])
	case r.needs != nil && o.base == "":
		return r, fmt.Errorf("missing -base: an image with /%s", strings.Join(r.needs, ", /"))
	case r.needs == nil && o.base != "":
		return r, fmt.Errorf("the image %q has no base: omit -base", args[0])
	}
	return r, nil
}

// imageLabels returns the labels of the image for CI.
func imageLabels(c gobuild.Commit) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "quayside",
		"org.opencontainers.image.source":   gobuild.Homepage,
		"org.opencontainers.image.licenses": gobuild.License,
		"org.opencontainers.image.version":  c.Version,
		"org.opencontainers.image.revision": c.Revision,
	}
}

// checkLayout returns an error if o.layout exists and is not an OCI layout.
func (o options) checkLayout() error {
	if err := filetree.CheckReplaceable(filetree.OpenUserDir(o.layout).FS(), "oci-layout", "an OCI layout"); err != nil {
		return fmt.Errorf("%q: %w", o.layout, err)
	}
	return nil
}

// write replaces the layout with one that contains only the image, and returns the image's
// digest. It removes the old layout only after the new one is complete.
func (o options) write(ctx context.Context, client *oci.Client, tmp string, r recipe, programs map[string][]byte) (string, error) {
	var from *base
	var err error
	if r.needs != nil {
		if from, err = openBase(ctx, client, o.base, tmp, r.needs); err != nil {
			return "", err
		}
	}
	index, err := r.image.pack(programs, from)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(o.layout), 0o755); err != nil {
		return "", err
	}
	tmpLayout, err := os.MkdirTemp(filepath.Dir(o.layout), "."+filepath.Base(o.layout)+".*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmpLayout)
	if err := os.Chmod(tmpLayout, 0o755); err != nil {
		return "", err
	}
	root, err := layout.Write(tmpLayout, empty.Index)
	if err == nil {
		err = root.AppendIndex(index)
	}
	if err != nil {
		return "", err
	}
	if err := o.checkLayout(); err != nil {
		return "", err
	}
	if err := os.RemoveAll(o.layout); err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	return digest.String(), os.Rename(tmpLayout, o.layout)
}

func (o options) client(tmp string) (*oci.Client, error) {
	blobs, err := store.Open(filepath.Join(tmp, "store"))
	if err != nil {
		return nil, err
	}
	return &oci.Client{Store: blobs, Credentials: oci.DefaultCredentials(o.getenv), CertDirs: oci.DefaultCertDirs(o.getenv)}, nil
}

// upload pushes the layout and prints the image's reference by digest.
func (o options) upload(ctx context.Context, client *oci.Client) error {
	pushed, err := client.Upload(ctx, "oci:"+o.layout, o.push)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.stdout, oci.ByDigest(o.push, pushed.Digest))
	return nil
}

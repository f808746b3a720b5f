// Image builds the container images of quayside for every platform, without Docker: the image of the reporter,
// and an image for CI, which adds quayside to a base image with Git. It writes an OCI layout and can push the
// image. The same sources, base image and Go version result in the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
)

func main() {
	o := options{stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	flag.StringVar(&o.layout, "o", "", "`directory` of the new OCI layout (default: dist/ and the image's name)")
	flag.StringVar(&o.push, "push", "", "also push it to this `image`, with the logins of 'docker login' and 'podman login'")
	flag.StringVar(&o.base, "base", "", "the base `image` of the CI image: an OCI layout (oci:DIR), or a registry image with a digest")
	flag.BoolVar(&o.snapshot, "snapshot", false, "also build uncommitted changes")
	flag.Parse()
	o.compile = o.goBuild
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

type options struct {
	layout, push, base string
	snapshot           bool
	stdout, stderr     io.Writer
	getenv             func(string) string
	compile            func(ctx context.Context, r recipe, p v1.Platform, to string) ([]byte, error)
}

func imagePlatforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
}

// recipe describes an image to build.
type recipe struct {
	name, source string // image name, and Go package of the program
	beside       string // Go package of a program in the same directory; empty: none
	path, dir    string // path of the program (the entrypoint), and working directory, in the image
	env          []string
	needs        string // path of a program that the base image must contain; empty: no base image
	labels       map[string]string
}

// recipe returns the recipe for the image that args names.
func (o options) recipe(args []string) (recipe, error) {
	labels := map[string]string{"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://github.com/quayside/quayside"}
	switch name := strings.Join(args, " "); {
	case name == "reporter" && o.base != "":
		return recipe{}, errors.New("the image \"reporter\" has no base: omit -base")
	case name == "reporter":
		return recipe{name: "quayside-report", source: "./cmd/quayside-report", path: "quayside-report", labels: labels}, nil
	case name != "ci":
		return recipe{}, fmt.Errorf("unknown image %q: must be one of reporter, ci", name)
	case o.base == "":
		return recipe{}, errors.New("missing -base: an image with /usr/bin/git")
	}
	return recipe{"quayside-ci", "./cmd/quayside", "./cmd/quayside-charts", "usr/local/bin/quayside", "work", []string{"HOME=/tmp"}, "usr/bin/git", labels}, nil
}

// run builds the image that args names, writes it as the OCI layout o.layout, and prints its reference. With
// -push, it also pushes the image. It replaces an existing layout only after the build has succeeded.
func (o options) run(ctx context.Context, args []string) error {
	r, err := o.recipe(args)
	if err != nil {
		return err
	}
	if o.layout == "" {
		o.layout = filepath.Join("dist", r.name)
	}
	if err := filetree.CheckReplaceable(filetree.OpenUserDir(o.layout).FS(), "oci-layout", "an OCI layout"); err != nil {
		return fmt.Errorf("%q: %w", o.layout, err)
	}
	tmp, err := os.MkdirTemp("", r.name)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	blobs, err := store.Open(filepath.Join(tmp, "store"))
	if err != nil {
		return err
	}
	client := &oci.Client{Store: blobs, Credentials: oci.DefaultCredentials(o.getenv), CertDirs: oci.DefaultCertDirs(o.getenv)}
	index, err := o.build(ctx, client, tmp, r)
	if err != nil {
		return err
	}
	next := filepath.Join(tmp, "layout")
	if _, err := layout.Write(next, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index})); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(o.layout), os.CopyFS(o.layout, os.DirFS(next))); err != nil {
		return err
	}
	digest, err := index.Digest()
	reference := "oci:" + o.layout + "@" + digest.String()
	if err == nil && o.push != "" {
		_, err = client.Upload(ctx, "oci:"+o.layout, o.push)
		reference = oci.ByDigest(o.push, digest.String())
	}
	if err == nil {
		fmt.Fprintln(o.stdout, reference)
	}
	return err
}

// build returns an image index with one image for each platform. The same programs and base image result in the
// same bytes.
func (o options) build(ctx context.Context, client *oci.Client, tmp string, r recipe) (v1.ImageIndex, error) {
	var base v1.ImageIndex
	var err error
	if r.needs != "" {
		if base, err = o.openBase(ctx, client, tmp, r.labels); err != nil {
			return nil, err
		}
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range imagePlatforms() {
		programs := map[string][]byte{}
		for name, source := range r.programs() {
			if programs[name], err = o.compile(ctx, r.of(source), p, filepath.Join(tmp, "program")); err != nil {
				return nil, fmt.Errorf("compiling %s for %s: %w", source, p, err)
			}
		}
		image, err := r.image(p, programs, base)
		if err != nil {
			return nil, fmt.Errorf("packing for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p}})
	}
	return index, nil
}

// programs returns the Go package of each program, by the path of the program in the image.
func (r recipe) programs() map[string]string {
	out := map[string]string{r.path: r.source}
	if r.beside != "" {
		out[path.Join(path.Dir(r.path), path.Base(r.beside))] = r.beside
	}
	return out
}

// of returns a copy of the recipe whose program is built from source.
func (r recipe) of(source string) recipe {
	r.source = source
	return r
}

// goBuild compiles the program for a platform, with the flags of .goreleaser.yaml, and returns the binary. It
// adds the commit to the image labels. If there are uncommitted changes, it builds the CI image only with
// -snapshot.
func (o options) goBuild(ctx context.Context, r recipe, p v1.Platform, to string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-tags=kustomize_disable_go_plugin_support", "-ldflags=-s -w", "-o", to, r.source)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Architecture, "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off", "GOFLAGS=")
	cmd.Stderr = o.stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(to)
	if err != nil {
		return nil, err
	}
	built := map[string]string{}
	for _, s := range info.Settings {
		built[s.Key] = s.Value
	}
	if built["vcs.modified"] != "false" && r.needs != "" && !o.snapshot {
		return nil, fmt.Errorf("%s has no commit, or changes that are not committed: commit them, or build a -snapshot", info.Main.Version)
	}
	r.labels["org.opencontainers.image.title"], r.labels["org.opencontainers.image.revision"] = path.Base(r.path), built["vcs.revision"]
	r.labels["org.opencontainers.image.version"] = strings.TrimPrefix(info.Main.Version, "v")
	return os.ReadFile(to)
}

// openBase opens the base image: a local OCI layout, or a registry image with a digest, which it
// first copies into tmp. It adds the name and digest of the base image to labels.
func (o options) openBase(ctx context.Context, client *oci.Client, tmp string, labels map[string]string) (v1.ImageIndex, error) {
	src, err := oci.ParseReference(o.base)
	if err != nil {
		return nil, err
	}
	dir := src.Name
	switch {
	case src.Kind == oci.Layout && src.Tag == "" && src.Digest == "":
	case src.Kind == oci.Remote && src.Digest != "":
		dir, labels["org.opencontainers.image.base.name"] = filepath.Join(tmp, "base"), src.Name
		if _, err := client.Vendor(ctx, filetree.OpenUserDir(dir), []oci.VendoredImage{{Name: src.String(), Digest: src.Digest}}, oci.VendorOptions{Mirror: true}); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%s: must be a registry image with a digest (a tag can be moved), or a layout with one image (oci:DIR)", src)
	}
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	list, err := root.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%s: the layout must contain exactly one image", src))
	}
	labels["org.opencontainers.image.base.digest"] = list.Manifests[0].Digest.String()
	return root.ImageIndex(list.Manifests[0].Digest)
}

// image returns the image for a platform, with the layers of the base image and a layer with the programs. From
// the configuration of the base image, it keeps only the environment variables.
func (r recipe) image(p v1.Platform, programs map[string][]byte, base v1.ImageIndex) (v1.Image, error) {
	image, err := r.baseImage(p, base)
	if err != nil {
		return nil, err
	}
	kind := types.OCILayer
	if format, err := image.MediaType(); err == nil && format == types.DockerManifestSchema2 {
		kind = types.DockerLayer
	}
	layer, err := r.layer(programs, kind)
	if err != nil {
		return nil, err
	}
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "quayside"}}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{OS: p.OS, Architecture: p.Architecture, RootFS: config.RootFS, History: config.History, Config: v1.Config{
		Entrypoint: []string{"/" + r.path}, User: "65532:65532", WorkingDir: "/" + r.dir, Labels: r.labels, Env: r.environment(config.Config.Env),
	}})
}

// baseImage returns the base image for a platform, or an empty image if base is nil. It verifies
// the image, which must contain the program r.needs.
func (r recipe) baseImage(p v1.Platform, base v1.ImageIndex) (v1.Image, error) {
	if base == nil {
		return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), nil
	}
	images, err := partial.FindImages(base, match.Platforms(p))
	if err != nil || len(images) != 1 {
		return nil, errors.Join(err, fmt.Errorf("the base has %d images for this platform, expected one", len(images)))
	}
	if err := validate.Image(images[0]); err != nil {
		return nil, err
	}
	files := mutate.Extract(images[0])
	defer files.Close()
	for tr := tar.NewReader(files); ; {
		switch h, err := tr.Next(); {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("the base has no /%s, which the program needs", r.needs)
		case err != nil:
			return nil, err
		case path.Clean(h.Name) == r.needs && h.Typeflag != tar.TypeDir && h.Mode&0o111 != 0:
			return images[0], nil
		}
	}
}

// layer returns a layer with the programs and the working directory.
func (r recipe) layer(programs map[string][]byte, kind types.MediaType) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	var errs []error
	if r.dir != "" {
		errs = append(errs, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: r.dir + "/", Mode: 0o755, Format: tar.FormatPAX}))
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		errs = append(errs, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(programs[name])), Mode: 0o755, Format: tar.FormatPAX}))
		_, err := w.Write(programs[name])
		errs = append(errs, err)
	}
	if err := errors.Join(append(errs, w.Close())...); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(kind))
}

// environment returns env, the variables of the base image, extended by the variables of the recipe. It adds
// the directory of the program to PATH.
func (r recipe) environment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "HOME=") }) // HOME of the base image is not writable for the user of this image
	own := "/" + path.Dir(r.path)
	for i, v := range env {
		if dirs, ok := strings.CutPrefix(v, "PATH="); ok && !slices.Contains(strings.Split(dirs, ":"), own) {
			env[i] = "PATH=" + own + ":" + dirs
		}
	}
	return append(env, r.env...)
}

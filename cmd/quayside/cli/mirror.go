package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/registry"
)

type mirrorOptions struct {
	*app
	output   format
	parallel int
	dryRun   bool
	sets     string
	from     string
}

func newMirror(a *app) *cobra.Command {
	o := &mirrorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "mirror {<registry[/path]> | oci:<directory>}",
		Short: "Copy every image that the lock needs to a registry or a directory",
		Long: doc(`
			Copy every image that quayside.lock needs, with all its platforms and byte for
			byte, to a registry: quay.io/org/name becomes registry/path/org/name. An image
			that is named by digest alone is tagged after its digest, so that the registry
			keeps it. The signatures of an image go with it, whether they lie below a tag of
			their own, as cosign has them, or refer to the image.

			To carry the images to a place without a network, copy them to an OCI layout
			directory, and there from it to a registry with --from. Then no other registry is
			asked for anything.

			What is there already is not sent again: a copy that broke off is carried on by
			the same command. Nothing is removed. One image that cannot be copied does not
			keep the others back; all that failed are told at the end.

			With --mirror-set a file says where the images went, as ImageDigestMirrorSet and
			ImageTagMirrorSet, for the cluster to apply and for spec.mirrors of quayside.yaml.
			References in the lock stay what they are.`),
		Example: examples(`
			quayside mirror registry.example.com/mirror --dry-run
			quayside mirror registry.example.com/mirror --dry-run --mirror-set mirrors.yaml

			# over a gap
			quayside mirror oci:/media/stick/images --dry-run
			quayside mirror --from /media/stick/images registry.example.com/mirror --dry-run`),
		Args: oneArg("a registry, or oci: and a directory"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().IntVar(&o.parallel, "parallel", 4, "copy `N` images at once")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would be copied where")
	cmd.Flags().StringVar(&o.from, "from", "", "take the images from the layout `DIRECTORY` that they were copied to")
	cmd.Flags().StringVar(&o.sets, "mirror-set", "", "write the mirror sets to `FILE`")
	addOutput(cmd, &o.output)
	return cmd
}

// mirrorCopy is one image and where it goes.
type mirrorCopy struct {
	Image  string `json:"image"`
	From   string `json:"from"` // what is asked for: by digest where that is known
	To     string `json:"to"`
	Digest string `json:"digest,omitempty"`
	State  string `json:"state"` // planned, copied, present, failed
	Bytes  int64  `json:"bytes"` // sent
	Error  string `json:"error,omitempty"`

	Signatures int `json:"signatures"` // that went with it, or were there

	name           string // in full
	source, target string // repositories; the target is empty for a layout
	byTag          bool
	err            error
}

func (o *mirrorOptions) run(cmd *cobra.Command, prefix string) error {
	if o.parallel < 1 || o.parallel > 64 {
		return usagef(cmd, "--parallel %d: want a number from 1 to 64", o.parallel)
	}
	s, err := o.open()
	if err != nil {
		return err
	}
	lock, err := s.needLock()
	if err != nil {
		return err
	}
	layout, isLayout := strings.CutPrefix(prefix, "oci:")
	if isLayout && (layout == "" || o.sets != "") {
		return usagef(cmd, "%q: want a directory after oci:, and no --mirror-set, for a directory is no mirror", prefix)
	}
	copies, err := planMirror(lockImages(lock), prefix)
	if err != nil {
		return err
	}
	if !o.dryRun {
		p := &porter{}
		if p.client, err = s.client(false); err != nil {
			return err
		}
		if isLayout {
			p.to = o.argPath(layout)
		}
		if o.from != "" {
			p.loadFrom(o.argPath(o.from), isLayout)
		}
		o.copyAll(cmd.Context(), p, copies)
	}
	if o.sets != "" {
		data, err := mirrorSets(copies)
		if err != nil {
			return err
		}
		if _, err := writeFile(o.argPath(o.sets), data); err != nil {
			return err
		}
	}
	return o.finish(copies)
}

// planMirror says where each image goes. Two images that would get the same
// name are an error, and so is a name that is none.
func planMirror(images []lockImage, prefix string) ([]mirrorCopy, error) {
	base := ""
	if !strings.HasPrefix(prefix, "oci:") {
		to, err := registry.ParseSource("image:" + strings.TrimSuffix(prefix, "/") + "/x")
		if err != nil || strings.Contains(prefix, "@") {
			return nil, fmt.Errorf("%q is not a registry, or a registry and a path", prefix)
		}
		base = strings.TrimSuffix(to.Name, "/x")
	}
	var errs []error
	taken := map[string]mirrorCopy{}
	copies := []mirrorCopy{}
	for _, im := range images {
		src, err := registry.ParseSource("image:" + im.Image)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w (needed by %s)", err, strings.Join(im.Operators, ", ")))
			continue
		}
		c := planCopy(im, src, prefix, base)
		if other, ok := taken[c.To]; ok && other.From != c.From {
			errs = append(errs, fmt.Errorf("%s and %s would both become %s", other.Image, c.Image, c.To))
			continue
		}
		taken[c.To] = c
		copies = append(copies, c)
	}
	return copies, errors.Join(errs...)
}

// planCopy says where one image goes: below base, or to the layout that prefix
// names.
func planCopy(im lockImage, src registry.Source, prefix, base string) mirrorCopy {
	c := mirrorCopy{Image: im.Image, Digest: im.Digest, State: "planned", name: src.String(), source: src.Name, byTag: src.Digest == ""}
	tag := src.Tag
	if tag == "" { // not sha256-…, below which registries list what refers to the image
		tag = strings.Replace(src.Digest, "sha256:", "image-", 1)
	}
	if im.Digest != "" {
		src.Digest, src.Tag = im.Digest, ""
	}
	c.From = src.String()
	if base == "" {
		c.To = prefix + ":" + c.name
		return c
	}
	_, path, _ := strings.Cut(src.Name, "/")
	c.target = base + "/" + path
	c.To = c.target + ":" + tag
	return c
}

func (o *mirrorOptions) finish(copies []mirrorCopy) error {
	v := struct {
		Images []mirrorCopy `json:"images"`
	}{copies}
	err := o.print(o.output, v, func(io.Writer) error {
		t := &table{head: []string{"state", "from", "to"}}
		for _, c := range copies {
			t.add(c.State, c.From, c.To)
		}
		return t.write(o.out)
	})
	errs := []error{err}
	for _, c := range copies {
		errs = append(errs, c.err)
	}
	return errors.Join(errs...)
}

// mirrorSets returns the mirror sets as YAML: where each repository went.
func mirrorSets(copies []mirrorCopy) ([]byte, error) {
	type entry struct {
		Source  string   `json:"source"`
		Mirrors []string `json:"mirrors"`
	}
	var digests, tags []entry
	for _, c := range copies {
		e := entry{c.source, []string{c.target}}
		digests = append(digests, e)
		if c.byTag {
			tags = append(tags, e)
		}
	}
	var out bytes.Buffer
	for _, set := range []struct {
		kind, field string
		entries     []entry
	}{{"ImageDigestMirrorSet", "imageDigestMirrors", digests}, {"ImageTagMirrorSet", "imageTagMirrors", tags}} {
		slices.SortFunc(set.entries, func(a, b entry) int { return strings.Compare(a.Source, b.Source) })
		set.entries = slices.CompactFunc(set.entries, func(a, b entry) bool { return a.Source == b.Source })
		if len(set.entries) == 0 {
			continue
		}
		data, err := yaml.Marshal(map[string]any{
			"apiVersion": "config.openshift.io/v1", "kind": set.kind,
			"metadata": map[string]any{"name": "quayside"},
			"spec":     map[string]any{set.field: set.entries},
		})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", data)
	}
	return out.Bytes(), nil
}

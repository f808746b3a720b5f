package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

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
}

func newMirror(a *app) *cobra.Command {
	o := &mirrorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "mirror <registry[/path]>",
		Short: "Copy every image that the lock needs to a registry",
		Long: doc(`
			Copy every image that quayside.lock needs, with all its platforms and byte for
			byte, to a registry: quay.io/org/name becomes registry/path/org/name. An image
			that is named by digest alone is tagged after its digest, so that the registry
			keeps it.

			What the registry holds already is not sent again: a copy that broke off is
			carried on by the same command. One image that cannot be copied does not keep
			the others back; all that failed are told at the end.

			With --mirror-set a file says where the images went, as ImageDigestMirrorSet and
			ImageTagMirrorSet, for the cluster to apply and for spec.mirrors of quayside.yaml.
			References in the lock stay what they are.`),
		Example: examples(`
			quayside mirror registry.example.com/mirror --dry-run
			quayside mirror registry.example.com/mirror --dry-run --mirror-set mirrors.yaml`),
		Args: oneArg("a registry"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().IntVar(&o.parallel, "parallel", 4, "copy `N` images at once")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would be copied where")
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

	source, target string // repositories
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
	copies, err := planMirror(lockImages(lock), prefix)
	if err != nil {
		return err
	}
	if !o.dryRun {
		client, err := s.client(false)
		if err != nil {
			return err
		}
		o.copyAll(cmd.Context(), client, copies)
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
	to, err := registry.ParseSource("image:" + strings.TrimSuffix(prefix, "/") + "/x")
	if err != nil || strings.Contains(prefix, "@") {
		return nil, fmt.Errorf("%q is not a registry, or a registry and a path", prefix)
	}
	base := strings.TrimSuffix(to.Name, "/x")
	var errs []error
	taken := map[string]mirrorCopy{}
	copies := []mirrorCopy{}
	for _, im := range images {
		src, err := registry.ParseSource("image:" + im.Image)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w (needed by %s)", err, strings.Join(im.Operators, ", ")))
			continue
		}
		_, path, _ := strings.Cut(src.Name, "/")
		c := mirrorCopy{Image: im.Image, Digest: im.Digest, State: "planned", source: src.Name, target: base + "/" + path, byTag: src.Digest == ""}
		tag := src.Tag
		if tag == "" {
			tag = strings.Replace(src.Digest, ":", "-", 1)
		}
		if im.Digest != "" {
			src.Digest, src.Tag = im.Digest, ""
		}
		c.From, c.To = src.String(), c.target+":"+tag
		if other, ok := taken[c.To]; ok && other.From != c.From {
			errs = append(errs, fmt.Errorf("%s and %s would both become %s", other.Image, c.Image, c.To))
			continue
		}
		taken[c.To] = c
		copies = append(copies, c)
	}
	return copies, errors.Join(errs...)
}

// copyAll copies as many images at a time as asked for.
func (o *mirrorOptions) copyAll(ctx context.Context, client *registry.Client, copies []mirrorCopy) {
	said := newPulls(o.talk)
	client.Progress = said.show
	slots := make(chan struct{}, o.parallel)
	var wait sync.WaitGroup
	for i := range copies {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			c := &copies[i]
			done, err := client.Upload(ctx, "image:"+c.From, c.To)
			c.Digest, c.Bytes, c.err = done.Digest, done.Bytes, err
			switch {
			case err != nil:
				c.State, c.Error = "failed", err.Error()
			case done.Present:
				c.State = "present"
			default:
				c.State = "copied"
			}
			said.note("%s %s (%.1f MB)", c.State, c.To, float64(c.Bytes)/1e6)
		})
	}
	wait.Wait()
	o.talk.done()
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

package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/registry/mirror"
)

type mirrorOptions struct {
	*app
	parallel int
	check    bool
	sets     string
	from     string
}

func newMirror(a *app) *cobra.Command {
	o := &mirrorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "mirror {<registry[/path]> | oci:<directory>}",
		Short: "Copy every image that the lock and the clusters need to a registry or a directory",
		Long: doc(`
			Copy every image that 'quayside images' lists, with all its platforms and byte for
			byte, to a registry: quay.io/org/name becomes registry/path/org/name. An image
			that is referred to by digest alone is tagged after its digest, so that the
			registry keeps it. An image's signatures are copied with it, whether they have a
			tag of their own, as cosign makes them, or refer to the image.

			To carry the images to a place without a network, copy them to an OCI layout
			directory, and from there to a registry with --from. No other registry is
			contacted then.

			--check lists what would be copied where, without copying it.

			What is already there is not sent again: run the same command to continue an
			interrupted copy. Nothing is removed. An image that cannot be copied does not
			stop the others; all failures are reported at the end.

			--mirror-set writes a file that says where the images went, as
			ImageDigestMirrorSet and ImageTagMirrorSet, to be applied to the cluster and
			listed under spec.mirrors in quayside.yaml. References in the lock do not
			change.`),
		Example: examples(`
			# what would be copied?
			quayside mirror registry.example.com/mirror --check

			# copy it, and say to the cluster where it is
			quayside mirror registry.example.com/mirror --mirror-set mirrors.yaml

			# across an air gap
			quayside mirror oci:/media/stick/images
			quayside mirror --from /media/stick/images registry.example.com/mirror`),
		Args:              wantArgs("a registry, or oci: and a directory"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().IntVar(&o.parallel, "parallel", 4, "copy `N` images at once")
	cmd.Flags().BoolVar(&o.check, "check", false, "copy and write nothing: list what would be copied where; exit with 1 if anything would")
	cmd.Flags().StringVar(&o.from, "from", "", "take the images from the layout `DIRECTORY` that they were copied to")
	cmd.Flags().StringVar(&o.sets, "mirror-set", "", "write the mirror sets to `FILE`")
	addOutput(cmd, a, nil, mirrorView{})
	return cmd
}

// mirrorView is what `quayside mirror` prints.
type mirrorView struct {
	Images []mirror.Copy `json:"images"`
}

func (o *mirrorOptions) run(cmd *cobra.Command, prefix string) error {
	if o.parallel < 1 || o.parallel > 64 {
		return usagef(cmd, "--parallel %d: want a number from 1 to 64", o.parallel)
	}
	o.offline, o.layout = o.from != "", o.argPath(o.from) // until the images are sent
	s, lock, err := o.locked()
	if err != nil {
		return err
	}
	layout, toLayout := strings.CutPrefix(prefix, "oci:")
	if !toLayout {
		layout = ""
	}
	if toLayout && (layout == "" || o.sets != "") {
		return usagef(cmd, "%q: want a directory after oci:, and no --mirror-set, for a directory is no mirror", prefix)
	}
	if o.check && o.sets != "" {
		return usagef(cmd, "--check writes nothing: leave out --mirror-set")
	}
	images, err := state.Images(cmd.Context(), s, lock)
	if err != nil {
		return err
	}
	copies, err := mirror.Plan(images, prefix)
	if err != nil {
		return err
	}
	if o.check {
		return o.compare(cmd.Context(), s, copies, layout)
	}
	if err := o.carry(cmd.Context(), s, copies, layout); err != nil {
		return err
	}
	if o.sets != "" {
		data, err := mirror.Sets(copies)
		if err != nil {
			return err
		}
		if _, err := filetree.WriteFile(o.argPath(o.sets), data); err != nil {
			return err
		}
	}
	return o.finish(copies)
}

// compare says which images are not where they are to be.
func (o *mirrorOptions) compare(ctx context.Context, s *project.Project, copies []mirror.Copy, layout string) error {
	client, err := s.NewClient(false)
	if err != nil {
		return err
	}
	there, err := s.NewClient(false)
	if err != nil {
		return err
	}
	there.Dir = "" // the layout's path is complete
	mirror.NewPorter(client, o.argPath(o.from), o.argPath(layout)).Check(ctx, copies, o.parallel, there)
	o.talk.Done()
	planned := 0
	for _, c := range copies {
		if c.State == mirror.Planned {
			planned++
		}
	}
	if err := o.finish(copies); err != nil || planned == 0 {
		return err
	}
	return &project.DiffersError{Msg: diag.Count(planned, "image") + " to copy"}
}

// carry copies the images, to a layout where one is named.
func (o *mirrorOptions) carry(ctx context.Context, s *project.Project, copies []mirror.Copy, layout string) error {
	client, err := s.NewClient(false)
	if err != nil {
		return err
	}
	done, bytes := 0, int64(0) // what became of each image is printed at the end
	mirror.NewPorter(client, o.argPath(o.from), o.argPath(layout)).Carry(ctx, copies, o.parallel, func(c *mirror.Copy) {
		done, bytes = done+1, bytes+c.Bytes
		if tenth := (len(copies) + 9) / 10; done%tenth == 0 && done < len(copies) {
			o.talk.NoteBetween("%d of %s done (%.1f MB)", done, diag.Count(len(copies), "image"), float64(bytes)/1e6)
		}
	})
	o.talk.Done()
	return nil
}

func (o *mirrorOptions) finish(copies []mirror.Copy) error {
	t := &terminal.Table{Head: []string{"state", "from", "to"}}
	var errs []error
	for _, c := range copies {
		t.Add(string(c.State), c.From, c.To)
		errs = append(errs, c.Err)
	}
	return errors.Join(o.printTable(mirrorView{copies}, t), errors.Join(errs...))
}

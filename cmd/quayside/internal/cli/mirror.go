package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/terminal"
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
		Short: "Copy all images of the lock and the clusters to a registry or a directory",
		Long: Doc(`
			Copy every image of 'quayside images' to a registry, with all platforms and signatures,
			byte for byte: quay.io/org/name is copied to registry/path/org/name. Images without a
			tag get a tag with their digest, so that the registry does not delete them.

			For a network without internet access, copy the images to an OCI layout directory first,
			and from there to the registry with --from. With --from, no other registry is contacted.

			Images that the target already has are not copied again: to continue an interrupted
			copy, repeat the command. Nothing is deleted. If an image cannot be copied, the others
			are copied, and all errors are reported at the end.

			--mirror-set writes an ImageDigestMirrorSet and an ImageTagMirrorSet for the new
			locations; for the name registries.yaml, the file of k3s and RKE2, and for certs.d, a
			directory with a hosts.toml of containerd for each registry. Give the files to the
			cluster, and list them in spec.mirrors of quayside.yaml. References in the lock do not
			change.

			Exit codes: 0 done; 1 with --check, there are images to copy; 2 an error.`),
		Example: Examples(`
			# list the images to copy
			quayside mirror registry.example.com/mirror --check

			# copy them, and write the mirror sets for the cluster
			quayside mirror registry.example.com/mirror --mirror-set mirrors.yaml

			# across an air gap
			quayside mirror oci:/media/stick/images
			quayside mirror --from /media/stick/images registry.example.com/mirror`),
		Args:              WantArgs("a registry, or oci: and a directory"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().IntVar(&o.parallel, "parallel", 4, "copy `N` images in parallel")
	cmd.Flags().BoolVar(&o.check, "check", false, "copy nothing; list the images to copy and their targets, and exit with 1 if there are any")
	cmd.Flags().StringVar(&o.from, "from", "", "copy the images from this layout `DIRECTORY`")
	cmd.Flags().StringVar(&o.sets, "mirror-set", "", "write the mirror sets to `FILE`, or to registries.yaml or certs.d")
	addOutput(cmd, a, nil, mirrorView{})
	return cmd
}

// mirrorView is the output of `quayside mirror`.
type mirrorView struct {
	Images []inventory.ImageCopy `json:"images"`
}

func (o *mirrorOptions) run(cmd *cobra.Command, prefix string) error {
	if o.parallel < 1 || o.parallel > 64 {
		return Usagef(cmd, "--parallel %d: must be a number from 1 to 64", o.parallel)
	}
	o.offline, o.layout = o.from != "", o.argPath(o.from) // settings of the client that reads the workspace; copyImages uses other clients
	s, lock, err := o.openLocked()
	if err != nil {
		return err
	}
	layout, toLayout := strings.CutPrefix(prefix, "oci:")
	if !toLayout {
		layout = ""
	}
	if toLayout && (layout == "" || o.sets != "") {
		return Usagef(cmd, "%q: a directory target must be oci:DIRECTORY, and cannot be used with --mirror-set, because clusters cannot pull from a directory", prefix)
	}
	if o.check && o.sets != "" {
		return Usagef(cmd, "--check cannot be used with --mirror-set")
	}
	images, messages, err := compare.Images(cmd.Context(), s, lock)
	if o.logMessages(messages); err != nil {
		return err
	}
	copies, err := inventory.PlanCopies(images, prefix)
	if err != nil {
		return err
	}
	if o.check {
		return o.checkTarget(cmd.Context(), s, copies, layout)
	}
	if err := o.copyImages(cmd.Context(), s, copies, layout); err != nil {
		return err
	}
	if o.sets != "" {
		dir, base := filetree.NamedFile(o.argPath(o.sets))
		files, err := inventory.NewMirrorFiles(base, copies)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if _, err := dir.WriteFile(name, files[name]); err != nil {
				return err
			}
		}
	}
	return o.printCopies(copies)
}

// checkTarget prints the images, and returns an error if an image is missing at the target.
func (o *mirrorOptions) checkTarget(ctx context.Context, s *workspace.Project, copies []inventory.ImageCopy, layout string) error {
	client, err := s.NewClient(false)
	if err != nil {
		return err
	}
	target, err := s.NewClient(false)
	if err != nil {
		return err
	}
	target.Lookup = nil // without Lookup, the OCI layout may be outside of the workspace
	inventory.NewCopier(client, o.argPath(o.from), o.argPath(layout)).Check(ctx, copies, o.parallel, target)
	o.log.Done()
	planned := 0
	for _, c := range copies {
		if c.State == inventory.CopyPlanned {
			planned++
		}
	}
	if err := o.printCopies(copies); err != nil || planned == 0 {
		return err
	}
	return &workspace.DiffersError{Msg: diag.Count(planned, "image") + " to copy"}
}

// copyImages copies images to layout, or to a registry if layout is empty. It stores errors in the
// copies.
func (o *mirrorOptions) copyImages(ctx context.Context, s *workspace.Project, copies []inventory.ImageCopy, layout string) error {
	client, err := s.NewClient(false)
	if err != nil {
		return err
	}
	done, bytes := 0, int64(0)
	inventory.NewCopier(client, o.argPath(o.from), o.argPath(layout)).Copy(ctx, copies, o.parallel, func(c *inventory.ImageCopy) {
		done, bytes = done+1, bytes+c.Bytes
		if tenth := (len(copies) + 9) / 10; done%tenth == 0 && done < len(copies) {
			o.log.NoteDuringPull("%d of %s done (%.1f MB)", done, diag.Count(len(copies), "image"), float64(bytes)/1e6)
		}
	})
	o.log.Done()
	return nil
}

// printCopies prints the copies with their states. It returns an error for the copies that failed.
func (o *mirrorOptions) printCopies(copies []inventory.ImageCopy) error {
	t := &terminal.Table{Head: []string{"state", "from", "to"}}
	var errs []error
	for _, c := range copies {
		t.Add(string(c.State), c.From, c.To)
		errs = append(errs, c.Err)
	}
	return errors.Join(o.printTable(mirrorView{copies}, t), errors.Join(errs...))
}

package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/lockfile"
)

type imagesOptions struct {
	*app
	inspect bool
}

func newImages(a *app) *cobra.Command {
	o := &imagesOptions{app: a}
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List every image that the lock and the clusters need",
		Long: Doc(`
			List every image that quayside.lock and the clusters need: the catalogs and bundles that
			quayside reads, the images that the operators run, and the images that your patches,
			components and resources add to overlays. If only some clusters use an image, they are
			listed. Images that their registry no longer serves are marked as gone.

			quayside builds the overlays over the rendered tree if it is up to date with the lock,
			else over the rendered lock. --inspect gets digests, platforms and sizes from the
			registries.

			-o imageset prints an ImageSetConfiguration for oc-mirror with exactly these images.

			-o cyclonedx prints a bill of materials (CycloneDX 1.6) with operators, catalogs and
			images, their digests, package URLs and dependencies. The output is reproducible.`),
		Example: Examples(`
			quayside images
			quayside images -o imageset
			quayside images -o cyclonedx`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.output == "cyclonedx" && o.inspect {
				return Usagef(cmd, "--inspect cannot be used with --output cyclonedx")
			}
			return o.run(cmd.Context())
		},
	}
	addOutput(cmd, a, []string{"imageset", "cyclonedx"}, inventory.ImageList{})
	addAll(cmd, a)
	cmd.Flags().BoolVar(&o.inspect, "inspect", false, "get the digest, the platforms and the size of each image from the registries")
	addOffline(cmd, o.app)
	return cmd
}

func (o *imagesOptions) run(ctx context.Context) error {
	s, lock, err := o.openLocked()
	if err != nil {
		return err
	}
	images, messages, err := compare.Images(ctx, s, lock)
	if o.logMessages(messages); err != nil {
		return err
	}
	l := inventory.ImageList{Images: append([]inventory.Image{}, images...)}
	if o.inspect {
		client, err := s.Client()
		if err != nil {
			return err
		}
		if err := l.Inspect(ctx, client, o.log.Progress); err != nil {
			return err
		}
		o.log.Done()
	}
	var data []byte
	switch o.output {
	case "imageset":
		data, err = inventory.NewImageSetConfiguration(l.Images)
	case "cyclonedx":
		var d *inventory.BOM
		if d, err = newBOM(s, lock, images); err == nil {
			data, err = d.Text()
		}
	default:
		return o.printTable(l, imageTable(&l))
	}
	if err != nil {
		return err
	}
	_, err = o.out.Write(data)
	return err
}

// collectBOM returns the bill of materials of a lock, including the images that clusters run.
func (a *app) collectBOM(ctx context.Context, p *workspace.Project, lock *lockfile.File) (*inventory.BOM, error) {
	images, messages, err := compare.Images(ctx, p, lock)
	if a.logMessages(messages); err != nil {
		return nil, err
	}
	return newBOM(p, lock, images)
}

// newBOM returns the bill of materials of a lock and its images.
func newBOM(p *workspace.Project, lock *lockfile.File, images []inventory.Image) (*inventory.BOM, error) {
	return inventory.NewBOM(cmp.Or(p.Settings.Name, "quayside"), lock, images)
}

func imageTable(l *inventory.ImageList) *terminal.Table {
	t := &terminal.Table{Head: []string{"image", "role", "operators"}}
	hasClusters := slices.ContainsFunc(l.Images, func(im inventory.Image) bool { return im.Clusters != nil })
	if hasClusters {
		t.Head = append(t.Head, "clusters")
	}
	hasGone := slices.ContainsFunc(l.Images, func(im inventory.Image) bool { return im.Gone != "" })
	if hasGone {
		t.Head = append(t.Head, "gone")
	}
	if l.Inspected {
		t.Head = append(t.Head, "digest", "platforms")
	}
	for _, im := range l.Images {
		row := []string{im.Image, strings.Join(im.Roles, ","), strings.Join(im.Operators, ",")}
		if hasClusters {
			row = append(row, strings.Join(im.Clusters, ","))
		}
		if hasGone {
			row = append(row, goneText(im))
		}
		if l.Inspected {
			row = append(row, im.Digest, strings.Join(im.Platforms, ","))
		}
		t.Add(row...)
	}
	return t
}

// goneText returns the text for an image that its registry no longer serves, or "".
func goneText(im inventory.Image) string {
	switch {
	case im.Gone == "":
		return ""
	case im.Successor == "":
		return "no successor"
	}
	return "use " + im.Successor
}

package compare

import (
	"context"
	"encoding/json"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Images returns the images of a lock, and the other images that clusters run, such as images in
// the user's patches and resources. It uses the tree on disk if that is up to date with the
// lock, or else the rendered lock. Images from a mirror have their original names.
func Images(ctx context.Context, p *workspace.Project, lock *lockfile.File) ([]inventory.Image, error) {
	c, s, err := currentSide(ctx, p, lock)
	if err != nil {
		return nil, err
	}
	base, err := s.baseState()
	if err != nil {
		return nil, err
	}
	original, err := mirroredImages(p, lock)
	if err != nil {
		return nil, err
	}
	var shares []inventory.ClusterImages
	type location struct {
		file     *byte // start of the raw data, which identifies the file
		document int
	}
	known := map[location][]string{}
	images := func(o *diff.Object) []string {
		if len(o.Raw) == 0 {
			return o.Images()
		}
		key := location{&o.Raw[0], o.Document}
		list, is := known[key]
		if !is {
			list = o.Images()
			known[key] = list
		}
		return list
	}
	err = c.forEachGroup(s, s.clusters(), base, func(got groupState) error {
		x := inventory.ClusterImages{Clusters: got.clusters}
		for _, pin := range got.state.Pins {
			x.Operators = append(x.Operators, pin.Key())
		}
		for i := range got.state.Objects {
			o := &got.state.Objects[i]
			for _, image := range images(o) {
				if name, ok := original[image]; ok {
					image = name
				}
				x.Runs = append(x.Runs, inventory.RunningImage{Image: image, Operator: o.Operator})
			}
		}
		shares = append(shares, x)
		return nil
	})
	return inventory.ListImages(lock, shares), err
}

// mirroredImages returns the original names of the images that rendering replaces with
// mirrors, by their names in the mirror.
func mirroredImages(p *workspace.Project, lock *lockfile.File) (map[string]string, error) {
	mirrors, err := p.RenderMirrors()
	if err != nil || len(mirrors) == 0 {
		return nil, err
	}
	out := map[string]string{}
	add := func(image string) {
		name := imageref.Split(image).String()
		if at := render.Mirrored(name, mirrors); at != name {
			out[at] = name
		}
	}
	addConfig := func(data []byte) {
		var config map[string]any
		if len(data) == 0 || json.Unmarshal(data, &config) != nil {
			return // rendering reports the fault
		}
		for _, env := range k8s.Items(config, "env") {
			add(k8s.Text(env, "value"))
		}
	}
	for _, image := range inventory.ListImages(lock, nil) {
		add(image.Image)
	}
	for _, pin := range lock.Pins {
		addConfig(pin.Config)
	}
	for _, cluster := range p.Settings.Clusters {
		addConfig(cluster.Config)
	}
	return out, nil
}

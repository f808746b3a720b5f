package state

import (
	"context"
	"encoding/json"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry/mirror"
	"github.com/quayside/quayside/render"
)

// Images returns every image that a lock needs, and every one that a cluster
// runs beyond it: what a patch, a component or a resource of the user's sets
// there. The tree is the one in the workspace where that is what the lock says,
// else what the lock renders to. What a cluster pulls from a mirror has the name
// that it is mirrored by.
func Images(ctx context.Context, p *project.Project, lock *lockfile.File) ([]mirror.Image, error) {
	c, s, err := standing(ctx, p, lock)
	if err != nil {
		return nil, err
	}
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	original, err := originals(p, lock)
	if err != nil {
		return nil, err
	}
	var shares []mirror.Share
	type place struct {
		file     *byte // of what no overlay changes
		document int
	}
	known := map[place][]string{}
	images := func(o *diff.Object) []string {
		if len(o.Raw) == 0 {
			return o.Images()
		}
		at := place{&o.Raw[0], o.Document}
		list, is := known[at]
		if !is {
			list = o.Images()
			known[at] = list
		}
		return list
	}
	err = c.alone(s, base, func(got gets) error {
		x := mirror.Share{Clusters: got.clusters}
		for _, pin := range got.state.Pins {
			x.Operators = append(x.Operators, pin.Key())
		}
		for i := range got.state.Objects {
			o := &got.state.Objects[i]
			for _, image := range images(o) {
				if name, ok := original[image]; ok {
					image = name
				}
				x.Runs = append(x.Runs, mirror.Run{Image: image, Operator: o.Operator})
			}
		}
		shares = append(shares, x)
		return nil
	})
	return mirror.Images(lock, shares), err
}

// originals returns, by where clusters pull them from, the images that rendering
// has them pull from a mirror.
func originals(p *project.Project, lock *lockfile.File) (map[string]string, error) {
	mirrors, err := p.RenderMirrors()
	if err != nil || len(mirrors) == 0 {
		return nil, err
	}
	out := map[string]string{}
	note := func(image string) {
		name := imageref.Split(image).String()
		if at := render.Mirrored(name, mirrors); at != name {
			out[at] = name
		}
	}
	noteConfig := func(data []byte) {
		var config map[string]any
		if len(data) == 0 || json.Unmarshal(data, &config) != nil {
			return // rendering reports the fault
		}
		for _, env := range kobj.Items(config, "env") {
			note(kobj.Text(env, "value"))
		}
	}
	for _, image := range mirror.Images(lock, nil) {
		note(image.Image)
	}
	for _, pin := range lock.Pins {
		noteConfig(pin.Config)
	}
	for _, cluster := range p.Settings.Clusters {
		noteConfig(cluster.Config)
	}
	return out, nil
}

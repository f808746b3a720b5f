package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Images returns the images that a lock needs. It also returns other images that the clusters run, such as
// images in the user's patches. An image from a mirror has its original name. Images uses the tree on disk if
// the tree is up to date with the lock. Otherwise it renders the lock.
func Images(ctx context.Context, p *workspace.Project, lock *lockfile.File) ([]inventory.Image, []Message, error) {
	c, s, err := currentSide(ctx, p, lock)
	if err != nil {
		return nil, c.TakeMessages(), err
	}
	base, err := s.BaseState()
	if err != nil {
		return nil, c.TakeMessages(), err
	}
	mirrors, err := p.RenderMirrors()
	if err != nil {
		return nil, c.TakeMessages(), err
	}
	original := lockedImages(p, lock, mirrors)
	if !hasOnlyImages(base, original) { // the tree on disk may have the images of other mirrors
		if s, err = c.render(ctx, s, lock, false); err != nil {
			return nil, c.TakeMessages(), err
		}
		if base, err = s.BaseState(); err != nil {
			return nil, c.TakeMessages(), err
		}
	}
	var shares []inventory.ClusterImages
	type location struct {
		file     *byte // address of the file content, which identifies the file
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
	err = s.ForEachGroup(s.Clusters(), base, func(got fleet.Group) error {
		x := inventory.ClusterImages{Clusters: got.Clusters}
		for _, pin := range got.State.Pins {
			x.Operators = append(x.Operators, pin.Key())
		}
		for i := range got.State.Objects {
			o := &got.State.Objects[i]
			for _, image := range images(o) {
				if name, ok := original[image]; ok {
					image = name
				} else {
					image = render.Original(image, mirrors)
				}
				x.Runs = append(x.Runs, inventory.RunningImage{Image: image, Operator: o.Operator})
			}
		}
		shares = append(shares, x)
		return nil
	})
	list := inventory.ListImages(lock, shares)
	for _, im := range list {
		if _, err := oci.ParseReference("image:" + im.Image); err != nil {
			c.messages = append(c.messages, Message{Warnings: p.Waive([]diag.Warning{{
				Subject: strings.Join(im.Operators, ", "), Code: "related-image", Msg: fmt.Sprintf("%s: no registry can have this image: %v", strings.Join(im.Operators, ", "), err),
			}})})
		}
	}
	return list, c.TakeMessages(), err
}

// hasOnlyImages reports whether names has a key for every image of the operators in a state.
func hasOnlyImages(state diff.State, names map[string]string) bool {
	for i := range state.Objects {
		o := &state.Objects[i]
		if o.Operator != "" && slices.ContainsFunc(o.Images(), func(image string) bool { return names[image] == "" }) {
			return false
		}
	}
	return true
}

// lockedImages returns the images in the lock, in the config of pins, and in the config of
// clusters. It maps the name in the tree, which may be that of a mirror, to the original name.
func lockedImages(p *workspace.Project, lock *lockfile.File, mirrors []render.Mirror) map[string]string {
	out := map[string]string{}
	add := func(image string) {
		name := imageref.Split(image).String()
		out[render.Mirrored(name, mirrors)] = name
	}
	addConfig := func(data []byte) {
		var config map[string]any
		if len(data) == 0 || json.Unmarshal(data, &config) != nil {
			return // render reports this error
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
	return out
}

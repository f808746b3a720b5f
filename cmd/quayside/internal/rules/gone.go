package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/render"
)

// checkGoneImages returns a warning for each image that a cluster pulls although its registry no longer serves
// it. There is no warning if a mirror or an overlay replaces the image.
func checkGoneImages(s *State) (Findings, error) {
	clusters, err := s.clustersWithGoneImages()
	if err != nil {
		return nil, err
	}
	var out Findings
	for _, image := range slices.Sorted(maps.Keys(clusters)) {
		why, successor, _ := imageref.FindGone(image)
		msg := "image " + image + " is gone: " + why
		if in := clusters[image]; len(in) < len(s.Settings.Clusters) {
			msg += " (cluster " + diag.Some(in, 5) + ")"
		}
		if successor != "" {
			msg += fmt.Sprintf(": replace it with {name: %s, newName: %s} in the field images of an overlay", imageref.Split(image).Name(), successor)
		}
		out = append(out, s.accept(Finding{Severity: Warning, Code: "image-gone", Subject: image, Msg: msg}))
	}
	return out, nil
}

// clustersWithGoneImages returns the gone images that clusters pull after overlays, each with the names of
// these clusters.
func (s *State) clustersWithGoneImages() (map[string][]string, error) {
	rendered := slices.ContainsFunc(s.Settings.Clusters, func(c profile.Cluster) bool { return len(c.HelmValues) > 0 }) ||
		slices.ContainsFunc(s.Rendered.Objects, func(o render.Rendered) bool { return len(goneImages(o.Object)) > 0 })
	patches := func(string) fleet.Patch { return nil }
	if len(s.Overlays) > 0 {
		f, err := s.Fleet()
		if err != nil {
			return nil, err
		}
		patches = f.Patches()
	}
	out := map[string][]string{}
	equal := map[string][]string{} // gone images of equal clusters
	for _, c := range s.Settings.Clusters {
		key := c.Shared()
		if len(s.Overlays[c.Name]) > 0 {
			key = c.Name
		}
		if _, seen := equal[key]; !seen && (rendered || key == c.Name) {
			var err error
			if equal[key], err = s.goneIn(c.Name, patches(c.Name), rendered); err != nil {
				return nil, err
			}
		}
		for _, image := range equal[key] {
			out[image] = append(out[image], c.Name)
		}
	}
	return out, nil
}

// goneIn returns the gone images of a cluster, sorted. If rendered is true, it also examines the objects that
// overlays leave unchanged.
func (s *State) goneIn(cluster string, patch fleet.Patch, rendered bool) ([]string, error) {
	var images []string
	for _, o := range patch {
		images = append(images, goneImages(o)...)
	}
	if rendered {
		operators, _, err := s.Rendered.ClusterObjects(cluster)
		if err != nil {
			return nil, err
		}
		for _, operator := range operators {
			for _, o := range operator.Objects {
				if _, changed := patch[o.Key()]; !changed {
					images = append(images, goneImages(o)...)
				}
			}
		}
	}
	slices.Sort(images)
	return slices.Compact(images), nil
}

// goneImages returns the gone images of the containers of a workload.
func goneImages(o k8s.Object) []string {
	var out []string
	for _, c := range k8s.Containers(k8s.PodSpec(o)) {
		image := k8s.Text(c, "image")
		if _, _, gone := imageref.FindGone(image); gone {
			out = append(out, image)
		}
	}
	return out
}

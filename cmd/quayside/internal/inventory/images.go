package inventory

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
)

// Roles of an image in a lock.
const (
	RoleCatalog = "catalog" // catalog image
	RoleBundle  = "bundle"  // bundle image
	RoleRelated = "related" // in the related images of a bundle
	RoleRunning = "running" // in an object of a cluster, but in no catalog or bundle
)

// Image is an image that a lock needs or that a cluster runs.
type Image struct {
	Image     string   `json:"image"`               // name as in the catalog or bundle
	Digest    string   `json:"digest,omitempty"`    // empty for a reference by tag
	Roles     []string `json:"roles"`               // sorted
	Operators []string `json:"operators,omitempty"` // pins that need it, as namespace/package, sorted; nil for a catalog image
	Clusters  []string `json:"clusters,omitempty"`  // clusters that need it, sorted; nil: all clusters, or none if only resolving and rendering need it
	Gone      string   `json:"gone,omitempty"`      // reason why its registry no longer serves it
	Successor string   `json:"successor,omitempty"` // image that replaces a gone one, without tag and digest
	Platforms []string `json:"platforms,omitempty"` // set by Inspect
	Bytes     int64    `json:"bytes,omitempty"`     // set by Inspect
}

// ClusterImages contains the operators and images of clusters that get the same objects.
type ClusterImages struct {
	Clusters  []string
	Operators []string // pins, as namespace/package
	Runs      []RunningImage
}

// RunningImage is an image in an object of a cluster.
type RunningImage struct {
	Image    string
	Operator string // namespace/package; empty if the object does not belong to an operator
}

// ListImages returns all images that a lock needs or that clusters run, sorted by name. shares has an entry for
// each group of clusters with the same objects.
func ListImages(lock *lockfile.File, shares []ClusterImages) []Image {
	l := imageCollector{byName: map[string]*Image{}}
	catalogs := lock.Catalogs()
	for _, c := range catalogs {
		if ref, ok := oci.CutRemote(c.Source); ok {
			hasOtherDigest := func(o lockfile.Catalog) bool { return o.Source == c.Source && o.Digest != c.Digest }
			if imageref.Split(ref).Tag == "" || slices.ContainsFunc(catalogs, hasOtherDigest) {
				ref, _ = oci.CutRemote(oci.ByDigest(c.Source, string(c.Digest)))
			}
			l.add(ref, string(c.Digest), RoleCatalog, "", nil)
		}
	}
	for _, p := range lock.Pins {
		l.add(p.Image, imageref.DigestIn(p.Image), RoleBundle, p.Key(), nil)
		var clusters []string
		for _, s := range shares {
			if slices.Contains(s.Operators, p.Key()) {
				clusters = append(clusters, s.Clusters...)
			}
		}
		for _, im := range p.RelatedImages {
			role := RoleRelated
			if im.Image == p.Image {
				role = RoleBundle
			}
			l.add(im.Image, imageref.DigestIn(im.Image), role, p.Key(), clusters)
		}
	}
	for _, p := range lock.Leaving {
		l.add(p.Image, imageref.DigestIn(p.Image), RoleBundle, p.Key(), nil)
	}
	known := map[string]string{}
	for name := range l.byName {
		known[imageref.Split(name).String()] = name
	}
	var all []string
	for _, s := range shares {
		all = append(all, s.Clusters...)
		for _, r := range s.Runs {
			if name, ok := known[imageref.Split(r.Image).String()]; ok {
				l.add(name, "", "", r.Operator, s.Clusters)
			} else {
				l.add(r.Image, imageref.DigestIn(r.Image), RoleRunning, r.Operator, s.Clusters)
			}
		}
	}
	return l.images(len(all))
}

// imageCollector collects images by name.
type imageCollector struct{ byName map[string]*Image }

func (l imageCollector) add(image, digest, role, operator string, clusters []string) {
	if image == "" {
		return
	}
	im := l.byName[image]
	if im == nil {
		im = &Image{Image: image, Digest: digest}
		im.Gone, im.Successor, _ = imageref.FindGone(image)
		l.byName[image] = im
	}
	im.Roles = insertSorted(im.Roles, role)
	im.Operators = insertSorted(im.Operators, operator)
	for _, name := range clusters {
		im.Clusters = insertSorted(im.Clusters, name)
	}
}

// images returns the collected images, sorted by name. clusters is the number of all clusters. An image that
// all clusters need has no list of clusters.
func (l imageCollector) images(clusters int) []Image {
	var out []Image
	for _, name := range slices.Sorted(maps.Keys(l.byName)) {
		im := *l.byName[name]
		if len(im.Clusters) == clusters || slices.Contains(im.Roles, RoleCatalog) || slices.Contains(im.Roles, RoleBundle) {
			im.Clusters = nil
		}
		out = append(out, im)
	}
	return out
}

// insertSorted adds a word to a sorted list, unless the word is empty or already in the list.
func insertSorted(list []string, word string) []string {
	at, found := slices.BinarySearch(list, word)
	if found || word == "" {
		return list
	}
	return slices.Insert(list, at, word)
}

// Source returns the reference of the image as "image:…", with the digest if it is known.
func (im Image) Source() string {
	if im.Digest == "" {
		return "image:" + im.Image
	}
	return oci.ByDigest("image:"+im.Image, im.Digest)
}

// NewImageSetConfiguration returns an ImageSetConfiguration for oc-mirror as YAML. It lists images as
// additionalImages, except images with invalid names.
func NewImageSetConfiguration(images []Image) ([]byte, error) {
	list := []map[string]string{}
	for _, im := range images {
		if _, err := oci.ParseReference("image:" + im.Image); err != nil {
			continue
		}
		list = append(list, map[string]string{"name": strings.TrimPrefix(im.Source(), "image:")})
	}
	return yamlnode.Marshal(map[string]any{
		"apiVersion": "mirror.openshift.io/v2alpha1",
		"kind":       "ImageSetConfiguration",
		"mirror":     map[string]any{"additionalImages": list},
	})
}

// ImageList is a list of images, for output as JSON.
type ImageList struct {
	Images []Image `json:"images"`

	Inspected bool `json:"-"` // whether Inspect was called
}

// Inspect fetches the digest, the platforms and the size of each image from its registry. It
// calls progress before each request.
func (l *ImageList) Inspect(ctx context.Context, client *oci.Client, progress func(format string, args ...any)) error {
	l.Inspected = true
	for i := range l.Images {
		im := &l.Images[i]
		progress("inspecting %s", im.Image)
		found, err := client.Inspect(ctx, im.Source())
		if err != nil {
			return err
		}
		im.Digest, im.Platforms, im.Bytes = found.Digest, found.Platforms, found.Bytes
	}
	return nil
}

// Package mirror knows which images a lock and its clusters need, and carries them elsewhere:
// to another registry, to an OCI layout, and from such a layout on.
//
// It removes nothing, and renames nothing but the registry: references in a
// lock stay what they are, and [Sets] says where they are to be asked for.
//
// Start from [Images], [Plan] and [Porter].
package mirror

import (
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
)

// What an image is to a lock.
const (
	Catalog = "catalog" // where bundles come from
	Bundle  = "bundle"  // one version of an operator
	Related = "related" // what the operator runs, as its author lists it
	Running = "running" // what a cluster runs, and no catalog or bundle lists
)

// Image is one image that a lock needs.
type Image struct {
	Image     string   `json:"image"`               // as the catalog or the bundle names it
	Digest    string   `json:"digest,omitempty"`    // empty where it is named by tag
	Roles     []string `json:"roles"`               // sorted
	Operators []string `json:"operators,omitempty"` // namespace/package of the pins that need it, sorted; none for a catalog
	Clusters  []string `json:"clusters,omitempty"`  // that need it, sorted; nil: all, or whoever resolves and renders
	Platforms []string `json:"platforms,omitempty"` // where the registry was asked
	Bytes     int64    `json:"bytes,omitempty"`     // likewise
}

// Share is what some clusters get, all of them the same.
type Share struct {
	Clusters  []string
	Operators []string // namespace/package of the pins
	Runs      []Run
}

// Run is an image that an object runs.
type Run struct {
	Image    string
	Operator string // namespace/package; empty where the object is nobody's
}

// Images returns every image that a lock needs, and that clusters run beyond
// it, by name.
func Images(lock *lockfile.File, shares []Share) []Image {
	l := list{byName: map[string]*Image{}}
	catalogs := lock.Catalogs()
	for _, c := range catalogs {
		if ref, ok := registry.CutRemote(c.Source); ok {
			others := func(o lockfile.Catalog) bool { return o.Source == c.Source && o.Digest != c.Digest }
			if imageref.Split(ref).Tag == "" || slices.ContainsFunc(catalogs, others) {
				ref, _ = registry.CutRemote(registry.ByDigest(c.Source, string(c.Digest)))
			}
			l.add(ref, string(c.Digest), Catalog, "", nil)
		}
	}
	for _, p := range lock.Pins {
		l.add(p.Image, imageref.DigestIn(p.Image), Bundle, p.Key(), nil)
		var in []string
		for _, s := range shares {
			if slices.Contains(s.Operators, p.Key()) {
				in = append(in, s.Clusters...)
			}
		}
		for _, im := range p.RelatedImages {
			role := Related
			if im.Image == p.Image {
				role = Bundle
			}
			l.add(im.Image, imageref.DigestIn(im.Image), role, p.Key(), in)
		}
	}
	for _, p := range lock.Leaving {
		l.add(p.Image, imageref.DigestIn(p.Image), Bundle, p.Key(), nil)
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
				l.add(r.Image, imageref.DigestIn(r.Image), Running, r.Operator, s.Clusters)
			}
		}
	}
	return l.images(len(all))
}

// list collects images.
type list struct{ byName map[string]*Image }

func (l list) add(image, digest, role, operator string, clusters []string) {
	if image == "" {
		return
	}
	im := l.byName[image]
	if im == nil {
		im = &Image{Image: image, Digest: digest}
		l.byName[image] = im
	}
	im.Roles = union(im.Roles, role)
	im.Operators = union(im.Operators, operator)
	for _, name := range clusters {
		im.Clusters = union(im.Clusters, name)
	}
}

// images returns what was collected; there are so many clusters in all.
func (l list) images(clusters int) []Image {
	var out []Image
	for _, name := range slices.Sorted(maps.Keys(l.byName)) {
		im := *l.byName[name]
		if len(im.Clusters) == clusters || slices.Contains(im.Roles, Catalog) || slices.Contains(im.Roles, Bundle) {
			im.Clusters = nil
		}
		out = append(out, im)
	}
	return out
}

// union adds a word to a sorted list that does not have it.
func union(list []string, word string) []string {
	at, found := slices.BinarySearch(list, word)
	if found || word == "" {
		return list
	}
	return slices.Insert(list, at, word)
}

// Source returns what to ask a registry for: by digest where that is known.
func (im Image) Source() string {
	if im.Digest == "" {
		return "image:" + im.Image
	}
	return registry.ByDigest("image:"+im.Image, im.Digest)
}

// ImageSet returns images as an ImageSetConfiguration for oc-mirror, in which
// each stands by itself.
func ImageSet(images []Image) ([]byte, error) {
	list := []map[string]string{}
	for _, im := range images {
		list = append(list, map[string]string{"name": strings.TrimPrefix(im.Source(), "image:")})
	}
	return yamlnode.Marshal(map[string]any{
		"apiVersion": "mirror.openshift.io/v2alpha1",
		"kind":       "ImageSetConfiguration",
		"mirror":     map[string]any{"additionalImages": list},
	})
}

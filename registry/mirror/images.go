// Package mirror knows which images a lock needs, and carries them elsewhere:
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
	Related = "related" // what the operator runs
)

// Image is one image that a lock needs.
type Image struct {
	Image     string   `json:"image"`               // as the catalog or the bundle names it
	Digest    string   `json:"digest,omitempty"`    // empty where it is named by tag
	Roles     []string `json:"roles"`               // sorted
	Operators []string `json:"operators,omitempty"` // namespace/package of the pins that need it, sorted; none for a catalog
	Platforms []string `json:"platforms,omitempty"` // where the registry was asked
	Bytes     int64    `json:"bytes,omitempty"`     // likewise
}

// Images returns every image that a lock needs, by name.
func Images(lock *lockfile.File) []Image {
	byName := map[string]*Image{}
	add := func(image, digest, role, operator string) {
		if image == "" {
			return
		}
		im := byName[image]
		if im == nil {
			im = &Image{Image: image, Digest: digest}
			byName[image] = im
		}
		im.Roles = union(im.Roles, role)
		im.Operators = union(im.Operators, operator)
	}
	for _, c := range lock.Catalogs {
		if ref, ok := registry.CutRemote(c.Source); ok {
			add(ref, string(c.Digest), Catalog, "")
		}
	}
	for _, p := range lock.Pins {
		add(p.Image, imageref.DigestIn(p.Image), Bundle, p.Key())
		for _, im := range p.RelatedImages {
			role := Related
			if im.Image == p.Image {
				role = Bundle
			}
			add(im.Image, imageref.DigestIn(im.Image), role, p.Key())
		}
	}
	var out []Image
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, *byName[name])
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

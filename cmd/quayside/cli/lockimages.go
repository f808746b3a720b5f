package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/lockfile"
)

// What an image is to a lock.
const (
	roleCatalog = "catalog" // where bundles come from
	roleBundle  = "bundle"  // one version of an operator
	roleRelated = "related" // what the operator runs
)

// lockImage is one image that a lock needs.
type lockImage struct {
	Image     string   `json:"image"`               // as the catalog or the bundle names it
	Digest    string   `json:"digest,omitempty"`    // empty where it is named by tag
	Roles     []string `json:"roles"`               // sorted
	Operators []string `json:"operators,omitempty"` // namespace/package of the pins that need it, sorted; none for a catalog
	Platforms []string `json:"platforms,omitempty"` // with --inspect
	Bytes     int64    `json:"bytes,omitempty"`     // with --inspect
}

// lockImages returns every image that a lock needs, by name.
func lockImages(lock *lockfile.File) []lockImage {
	byName := map[string]*lockImage{}
	add := func(image, digest, role, operator string) {
		if image == "" {
			return
		}
		im := byName[image]
		if im == nil {
			im = &lockImage{Image: image, Digest: digest}
			byName[image] = im
		}
		im.Roles = union(im.Roles, role)
		im.Operators = union(im.Operators, operator)
	}
	for _, c := range lock.Catalogs {
		if ref, ok := strings.CutPrefix(c.Source, "image:"); ok {
			add(ref, string(c.Digest), roleCatalog, "")
		}
	}
	for _, p := range lock.Pins {
		add(p.Image, digestIn(p.Image), roleBundle, p.Key())
		for _, im := range p.RelatedImages {
			role := roleRelated
			if im.Image == p.Image {
				role = roleBundle
			}
			add(im.Image, digestIn(im.Image), role, p.Key())
		}
	}
	var out []lockImage
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

// digestIn returns the digest of a reference by digest, else "".
func digestIn(ref string) string {
	_, hex, ok := strings.Cut(ref, "@sha256:")
	if !ok {
		return ""
	}
	return "sha256:" + hex
}

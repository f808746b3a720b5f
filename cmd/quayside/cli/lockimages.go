package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
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

// vendored returns the images that resolving and rendering read, with their
// signatures where these are demanded.
func (s *space) vendored(ctx context.Context, client *registry.Client, lock *lockfile.File) ([]registry.VendoredImage, error) {
	var out []registry.VendoredImage
	for _, im := range lockImages(lock) {
		if !slices.Contains(im.Roles, roleCatalog) && !slices.Contains(im.Roles, roleBundle) {
			continue
		}
		src, err := registry.ParseSource("image:" + im.Image)
		if err != nil {
			return nil, err
		}
		digest := cmp.Or(src.Digest, im.Digest)
		out = append(out, registry.VendoredImage{Name: src.String(), Digest: digest})
		got, err := s.verified(ctx, client, "image:"+im.Image, catalog.Digest(digest))
		if err != nil {
			return nil, err
		}
		if got == nil {
			continue
		}
		for _, sig := range got.Signatures {
			out = append(out, registry.VendoredImage{Name: sig.Name, Digest: sig.Manifest})
		}
	}
	return out, nil
}

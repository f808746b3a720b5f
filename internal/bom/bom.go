// Package bom writes down what a lock installs as a bill of materials in the form
// of CycloneDX 1.6: the operators, the catalogs that they come from, and the images
// that clusters run. The same lock and images give the same bytes.
//
// Start from [Make].
package bom

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry/mirror"
)

// Document is a bill of materials, as CycloneDX names its fields.
type Document struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Serial       string       `json:"serialNumber,omitempty"` // of the content
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []Component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component Component `json:"component"`
}

// Component is an operator, a catalog or an image.
type Component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Group      string     `json:"group,omitempty"` // an operator's or a catalog's namespace
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	Purl       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref  string   `json:"ref"`
	Uses []string `json:"dependsOn,omitempty"`
}

// MediaType is what a document is of in a registry, and PredicateType what states
// one of an image, as cosign calls it.
const (
	MediaType     = "application/vnd.cyclonedx+json"
	PredicateType = "https://cyclonedx.org/bom"
)

// Types of components.
const (
	Operator = "application"
	Catalog  = "data"
	Image    = "container"
)

// Make returns the bill of materials of an environment: of what a lock pins, and
// of the images that it and its clusters need. Components are operators, catalogs
// and images, in this order, each by name.
func Make(environment string, lock *lockfile.File, images []mirror.Image) (*Document, error) {
	d := document(Component{Type: Operator, Ref: "environment", Name: environment})
	uses := map[string][]string{}
	for _, p := range lock.Pins {
		ref := operatorRef(p.Key())
		d.Components = append(d.Components, operator(p))
		uses["environment"] = append(uses["environment"], ref)
		uses[ref] = append(uses[ref], catalogRef(p.Catalog))
		for _, r := range p.Requires {
			uses[ref] = append(uses[ref], operatorRef(r.Pin))
		}
	}
	for _, c := range lock.Catalogs() {
		d.Components = append(d.Components, catalogOf(c))
	}
	for _, im := range images {
		if !slices.Contains(im.Roles, mirror.Related) && !slices.Contains(im.Roles, mirror.Running) {
			continue // a bundle or a catalog: it is there
		}
		d.Components = append(d.Components, imageOf(im))
		for _, name := range im.Operators {
			uses[operatorRef(name)] = append(uses[operatorRef(name)], imageRef(im.Image))
		}
		if len(im.Operators) == 0 {
			uses["environment"] = append(uses["environment"], imageRef(im.Image))
		}
	}
	d.Dependencies = dependencies(d, uses)
	return d, d.number()
}

// document returns one that lists nothing yet of what it is about.
func document(of Component) *Document {
	return &Document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{of}, Components: []Component{}}
}

// dependencies returns what each component uses, all of which is there.
func dependencies(d *Document, uses map[string][]string) []dependency {
	refs := []string{d.Metadata.Component.Ref}
	for _, c := range d.Components {
		refs = append(refs, c.Ref)
	}
	var out []dependency
	for _, ref := range refs {
		used := slices.DeleteFunc(uses[ref], func(name string) bool { return !slices.Contains(refs, name) })
		slices.Sort(used)
		out = append(out, dependency{ref, slices.Compact(used)})
	}
	return out
}

// number gives the document a serial number that follows from its content.
func (d *Document) number() error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	id := sha256.Sum256(data)
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8: custom
	d.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
	return nil
}

// Text returns the bytes of a document.
func (d *Document) Text() ([]byte, error) {
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}

func operatorRef(key string) string { return "operator:" + key }

// catalogRef names a catalog at its digest: a lock may have several of one.
func catalogRef(c lockfile.Catalog) string {
	return strings.TrimSuffix("catalog:"+c.ID.String()+"@"+string(c.Digest), "@")
}

func imageRef(image string) string { return "image:" + image }

func operator(p lockfile.Pin) Component {
	c := Component{Type: Operator, Ref: operatorRef(p.Key()), Group: p.Namespace, Name: p.Package, Version: p.Version, Purl: PackageURL(p.Image)}
	c.hash(imageref.DigestIn(p.Image))
	c.note("bundle", p.Bundle)
	c.note("channel", p.Channel)
	c.note("catalog", p.Catalog.ID.String())
	c.note("contentDigest", string(p.ContentDigest))
	c.note("identity", p.Identity)
	return c
}

func catalogOf(from lockfile.Catalog) Component {
	c := Component{Type: Catalog, Ref: catalogRef(from), Group: from.ID.Namespace, Name: from.ID.Name, Version: string(from.Digest)}
	if image, ok := strings.CutPrefix(from.Source, "image:"); ok {
		c.Purl = PackageURL(imageref.Split(image).Name() + "@" + string(from.Digest))
	}
	c.hash(string(from.Digest))
	c.note("source", from.Source)
	c.note("identity", from.Identity)
	return c
}

func imageOf(im mirror.Image) Component {
	ref := imageref.Split(im.Image)
	if ref.Digest == "" {
		ref.Digest = im.Digest
	}
	c := Component{Type: Image, Ref: imageRef(im.Image), Name: ref.Name(), Version: ref.Digest, Purl: PackageURL(ref.String())}
	if c.Version == "" {
		c.Version = ref.Tag
	}
	c.hash(ref.Digest)
	for _, role := range im.Roles {
		c.note("role", role)
	}
	for _, cluster := range im.Clusters {
		c.note("cluster", cluster)
	}
	return c
}

func (c *Component) note(name, value string) {
	if value != "" {
		c.Properties = append(c.Properties, property{"quayside:" + name, value})
	}
}

// hash notes a digest that is one of SHA-256.
func (c *Component) hash(digest string) {
	if imageref.IsDigest(digest) {
		c.Hashes = append(c.Hashes, hash{"SHA-256", strings.TrimPrefix(digest, "sha256:")})
	}
}

// PackageURL returns the package URL of an image ("pkg:oci/…"); empty for none.
func PackageURL(image string) string {
	if image == "" {
		return ""
	}
	ref := imageref.Split(image)
	name := strings.ToLower(path.Base(ref.Repository))
	out := "pkg:oci/" + url.PathEscape(name)
	if ref.Digest != "" {
		out += "@" + url.QueryEscape(ref.Digest)
	}
	out += "?repository_url=" + url.QueryEscape(ref.Name())
	if ref.Tag != "" {
		out += "&tag=" + url.QueryEscape(ref.Tag)
	}
	return out
}

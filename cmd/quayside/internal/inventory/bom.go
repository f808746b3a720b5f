package inventory

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
)

// BOM is a bill of materials in CycloneDX JSON.
type BOM struct {
	Format       string          `json:"bomFormat"`
	SpecVersion  string          `json:"specVersion"`
	Serial       string          `json:"serialNumber,omitempty"` // UUID derived from the content
	Version      int             `json:"version"`
	Metadata     bomMetadata     `json:"metadata"`
	Components   []BOMComponent  `json:"components"`
	Dependencies []bomDependency `json:"dependencies"`
}

type bomMetadata struct {
	Component BOMComponent `json:"component"`
}

// BOMComponent is an operator, a catalog or an image.
type BOMComponent struct {
	Type       string        `json:"type"`
	Ref        string        `json:"bom-ref"`
	Group      string        `json:"group,omitempty"` // namespace of the operator or catalog
	Name       string        `json:"name"`
	Version    string        `json:"version,omitempty"`
	Purl       string        `json:"purl,omitempty"`
	Hashes     []bomHash     `json:"hashes,omitempty"`
	Properties []bomProperty `json:"properties,omitempty"`
}

type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type bomProperty struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type bomDependency struct {
	Ref  string   `json:"ref"`
	Uses []string `json:"dependsOn,omitempty"`
}

// BOMMediaType is the media type of a bill of materials in a registry. BOMPredicateType is the
// predicate type of its attestation, as in cosign.
const (
	BOMMediaType     = "application/vnd.cyclonedx+json"
	BOMPredicateType = "https://cyclonedx.org/bom"
)

// Types of components.
const (
	BOMOperator = "application"
	BOMCatalog  = "data"
	BOMImage    = "container"
)

// NewBOM returns the bill of materials of an environment. Its components are the operators, then the catalogs,
// then the images that the lock and the clusters need. Each kind is sorted by name.
func NewBOM(environment string, lock *lockfile.File, images []Image) (*BOM, error) {
	d := newBOM(BOMComponent{Type: BOMOperator, Ref: "environment", Name: environment})
	uses := map[string][]string{}
	for _, p := range lock.Pins {
		ref := operatorRef(p.Key())
		d.Components = append(d.Components, operatorComponent(p))
		uses["environment"] = append(uses["environment"], ref)
		uses[ref] = append(uses[ref], catalogRef(p.Catalog))
		for _, r := range p.Requires {
			uses[ref] = append(uses[ref], operatorRef(r.Pin))
		}
	}
	for _, c := range lock.Catalogs() {
		d.Components = append(d.Components, catalogComponent(c))
	}
	for _, im := range images {
		if !slices.Contains(im.Roles, RoleRelated) && !slices.Contains(im.Roles, RoleRunning) {
			continue // a bundle or catalog image, which is already a component
		}
		d.Components = append(d.Components, imageComponent(im))
		for _, name := range im.Operators {
			uses[operatorRef(name)] = append(uses[operatorRef(name)], imageRef(im.Image))
		}
		if len(im.Operators) == 0 {
			uses["environment"] = append(uses["environment"], imageRef(im.Image))
		}
	}
	d.Dependencies = listBOMDependencies(d, uses)
	return d, d.setSerialNumber()
}

// newBOM returns a bill of materials without components.
func newBOM(of BOMComponent) *BOM {
	return &BOM{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: bomMetadata{of}, Components: []BOMComponent{}}
}

// listBOMDependencies returns the dependencies of each component. uses maps the reference of a
// component to the references of the components that it uses. Unknown references are omitted.
func listBOMDependencies(d *BOM, uses map[string][]string) []bomDependency {
	refs := []string{d.Metadata.Component.Ref}
	for _, c := range d.Components {
		refs = append(refs, c.Ref)
	}
	var out []bomDependency
	for _, ref := range refs {
		used := slices.DeleteFunc(uses[ref], func(name string) bool { return !slices.Contains(refs, name) })
		slices.Sort(used)
		out = append(out, bomDependency{ref, slices.Compact(used)})
	}
	return out
}

// setSerialNumber sets a serial number derived from the content of the document.
func (d *BOM) setSerialNumber() error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	id := sha256.Sum256(data)
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // UUID version 8 (custom)
	d.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
	return nil
}

// Text returns the document as indented JSON.
func (d *BOM) Text() ([]byte, error) {
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}

func operatorRef(key string) string { return "operator:" + key }

// catalogRef returns the reference of a catalog in the BOM. The reference includes the digest, because a lock
// may contain one catalog with several digests.
func catalogRef(c lockfile.Catalog) string {
	return strings.TrimSuffix("catalog:"+c.ID.String()+"@"+string(c.Digest), "@")
}

func imageRef(image string) string { return "image:" + image }

func operatorComponent(p lockfile.Pin) BOMComponent {
	c := BOMComponent{Type: BOMOperator, Ref: operatorRef(p.Key()), Group: p.Namespace, Name: p.Package, Version: p.Version, Purl: PackageURL(p.Image)}
	c.addHash(imageref.DigestIn(p.Image))
	c.addProperty("bundle", p.Bundle)
	c.addProperty("channel", p.Channel)
	c.addProperty("catalog", p.Catalog.ID.String())
	c.addProperty("contentDigest", string(p.ContentDigest))
	c.addProperty("identity", p.Identity)
	return c
}

func catalogComponent(from lockfile.Catalog) BOMComponent {
	c := BOMComponent{Type: BOMCatalog, Ref: catalogRef(from), Group: from.ID.Namespace, Name: from.ID.Name, Version: string(from.Digest)}
	if image, ok := strings.CutPrefix(from.Source, "image:"); ok {
		c.Purl = PackageURL(imageref.Split(image).Name() + "@" + string(from.Digest))
	}
	c.addHash(string(from.Digest))
	c.addProperty("source", from.Source)
	c.addProperty("identity", from.Identity)
	return c
}

func imageComponent(im Image) BOMComponent {
	ref := imageref.Split(im.Image)
	if ref.Digest == "" {
		ref.Digest = im.Digest
	}
	c := BOMComponent{Type: BOMImage, Ref: imageRef(im.Image), Name: ref.Name(), Version: ref.Digest, Purl: PackageURL(ref.String())}
	if c.Version == "" {
		c.Version = ref.Tag
	}
	c.addHash(ref.Digest)
	for _, role := range im.Roles {
		c.addProperty("role", role)
	}
	for _, cluster := range im.Clusters {
		c.addProperty("cluster", cluster)
	}
	return c
}

func (c *BOMComponent) addProperty(name, value string) {
	if value != "" {
		c.Properties = append(c.Properties, bomProperty{"quayside:" + name, value})
	}
}

// addHash adds a digest to the hashes if it is a SHA-256 digest.
func (c *BOMComponent) addHash(digest string) {
	if imageref.IsDigest(digest) {
		c.Hashes = append(c.Hashes, bomHash{"SHA-256", strings.TrimPrefix(digest, "sha256:")})
	}
}

// PackageURL returns the package URL of an image ("pkg:oci/…"), or "" for an empty image.
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

package inventory

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/yamlnode"
)

// CopyState is the state of an [ImageCopy].
type CopyState string

// The states of a copy.
const (
	CopyPlanned CopyState = "planned"
	CopyDone    CopyState = "copied"
	CopyPresent CopyState = "present" // already at the target
	CopyFailed  CopyState = "failed"
)

// ImageCopy is one image with its source and target.
type ImageCopy struct {
	Image  string    `json:"image"`
	From   string    `json:"from"` // reference of the source, with the digest if it is known
	To     string    `json:"to"`
	Digest string    `json:"digest,omitempty"`
	State  CopyState `json:"state"`
	Bytes  int64     `json:"bytes"` // bytes sent to the target
	Error  string    `json:"error,omitempty"`

	Signatures int `json:"signatures"` // number of signatures at the target, copied or present before

	Err error `json:"-"` // error if State is CopyFailed

	name           string // full reference of the image
	source, target string // repositories; target is empty for a layout
	byTag          bool
}

// PlanCopies returns the copies that images need. to is a registry ("registry/path") or an OCI layout
// ("oci:directory"). For an image with an invalid name, the copy has the state CopyFailed. PlanCopies returns
// an error if two images have the same target.
func PlanCopies(images []Image, to string) ([]ImageCopy, error) {
	base := ""
	if !strings.HasPrefix(to, "oci:") {
		parsed, err := oci.ParseReference("image:" + strings.TrimSuffix(to, "/") + "/any")
		if err != nil || strings.Contains(to, "@") {
			return nil, fmt.Errorf("%q must be a registry, such as registry.example.com, or a registry with a path", to)
		}
		base = strings.TrimSuffix(parsed.Name, "/any")
	}
	var errs []error
	planned := map[string]ImageCopy{}
	copies := []ImageCopy{}
	for _, im := range images {
		src, err := oci.ParseReference("image:" + im.Image)
		if err != nil {
			err = fmt.Errorf("%w (needed by %s)", err, strings.Join(im.Operators, ", "))
			copies = append(copies, ImageCopy{Image: im.Image, From: im.Image, State: CopyFailed, Error: err.Error(), Err: err})
			continue
		}
		c := planCopy(im, src, to, base)
		if other, ok := planned[c.To]; ok && other.From != c.From {
			errs = append(errs, fmt.Errorf("%s and %s would both become %s", other.Image, c.Image, c.To))
			continue
		}
		planned[c.To] = c
		copies = append(copies, c)
	}
	return copies, errors.Join(errs...)
}

// planCopy plans the copy of one image. base is the target registry and path. If base is empty, to
// is the target, an OCI layout.
func planCopy(im Image, src oci.Reference, to, base string) ImageCopy {
	c := ImageCopy{Image: im.Image, Digest: im.Digest, State: CopyPlanned, name: src.String(), source: src.Name, byTag: src.Digest == ""}
	tag := src.Tag
	if tag == "" { // the tag "sha256-…" is reserved for referrers
		tag = strings.Replace(src.Digest, "sha256:", "image-", 1)
	}
	if im.Digest != "" {
		src.Digest, src.Tag = im.Digest, ""
	}
	c.From = src.String()
	if base == "" {
		c.To = to + ":" + c.name
		return c
	}
	_, path, _ := strings.Cut(src.Name, "/")
	c.target = base + "/" + path
	c.To = c.target + ":" + tag
	return c
}

// NewMirrorSets returns an ImageDigestMirrorSet and an ImageTagMirrorSet as YAML, for clusters that
// should pull the copies. spec.mirrors of quayside.yaml accepts the same file.
func NewMirrorSets(copies []ImageCopy) ([]byte, error) {
	type entry struct {
		Source  string   `json:"source"`
		Mirrors []string `json:"mirrors"`
	}
	var digests, tags []entry
	for _, c := range copies {
		if c.source == "" {
			continue // an invalid name
		}
		e := entry{c.source, []string{c.target}}
		digests = append(digests, e)
		if c.byTag {
			tags = append(tags, e)
		}
	}
	var out bytes.Buffer
	for _, set := range []struct {
		kind, field string
		entries     []entry
	}{{"ImageDigestMirrorSet", "imageDigestMirrors", digests}, {"ImageTagMirrorSet", "imageTagMirrors", tags}} {
		slices.SortFunc(set.entries, func(a, b entry) int { return strings.Compare(a.Source, b.Source) })
		set.entries = slices.CompactFunc(set.entries, func(a, b entry) bool { return a.Source == b.Source })
		if len(set.entries) == 0 {
			continue
		}
		data, err := yamlnode.Marshal(map[string]any{
			"apiVersion": "config.openshift.io/v1", "kind": set.kind,
			"metadata": map[string]any{"name": "quayside"},
			"spec":     map[string]any{set.field: set.entries},
		})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", data)
	}
	return out.Bytes(), nil
}

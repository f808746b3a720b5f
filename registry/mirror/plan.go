package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/registry"
)

// State is what became of a copy.
type State string

// The states of a copy.
const (
	Planned State = "planned"
	Copied  State = "copied"
	Present State = "present" // it was there
	Failed  State = "failed"
)

// Copy is one image and where it goes.
type Copy struct {
	Image  string `json:"image"`
	From   string `json:"from"` // what is asked for: by digest where that is known
	To     string `json:"to"`
	Digest string `json:"digest,omitempty"`
	State  State  `json:"state"`
	Bytes  int64  `json:"bytes"` // sent
	Error  string `json:"error,omitempty"`

	Signatures int `json:"signatures"` // that went with it, or were there

	Err error `json:"-"` // why it failed

	name           string // in full
	source, target string // repositories; the target is empty for a layout
	byTag          bool
}

// Plan says where each image goes: to "registry/path", or to an OCI layout
// where to is "oci:directory". Two images that would get the same name are an
// error, and so is a name that is none.
func Plan(images []Image, to string) ([]Copy, error) {
	base := ""
	if !strings.HasPrefix(to, "oci:") {
		parsed, err := registry.ParseSource("image:" + strings.TrimSuffix(to, "/") + "/any")
		if err != nil || strings.Contains(to, "@") {
			return nil, fmt.Errorf("%q is not a registry, or a registry and a path", to)
		}
		base = strings.TrimSuffix(parsed.Name, "/any")
	}
	var errs []error
	taken := map[string]Copy{}
	copies := []Copy{}
	for _, im := range images {
		src, err := registry.ParseSource("image:" + im.Image)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w (needed by %s)", err, strings.Join(im.Operators, ", ")))
			continue
		}
		c := planCopy(im, src, to, base)
		if other, ok := taken[c.To]; ok && other.From != c.From {
			errs = append(errs, fmt.Errorf("%s and %s would both become %s", other.Image, c.Image, c.To))
			continue
		}
		taken[c.To] = c
		copies = append(copies, c)
	}
	return copies, errors.Join(errs...)
}

// planCopy says where one image goes: below base, or to the layout that to
// names.
func planCopy(im Image, src registry.Source, to, base string) Copy {
	c := Copy{Image: im.Image, Digest: im.Digest, State: Planned, name: src.String(), source: src.Name, byTag: src.Digest == ""}
	tag := src.Tag
	if tag == "" { // not sha256-…, below which registries list what refers to the image
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

// Sets returns where each repository went as mirror sets in YAML, for a cluster
// to apply and for spec.mirrors of quayside.yaml.
func Sets(copies []Copy) ([]byte, error) {
	type entry struct {
		Source  string   `json:"source"`
		Mirrors []string `json:"mirrors"`
	}
	var digests, tags []entry
	for _, c := range copies {
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

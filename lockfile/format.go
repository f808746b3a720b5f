package lockfile

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Format returns the canonical bytes of f: Parse gives f back, and two equal
// locks give equal bytes.
func Format(f *File) []byte {
	f = f.canonical()
	var b bytes.Buffer
	b.WriteString("# Written by quayside resolve; do not edit. Each block carries a checksum of its own.\n")
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\n", APIVersion, Kind)
	section(&b, "catalogs", f.Catalogs, catalogBlock)
	if len(f.Namespaces) > 0 {
		section(&b, "namespaces", f.Namespaces, namespaceBlock)
	}
	section(&b, "pins", f.Pins, pinBlock)
	if len(f.Accepted) > 0 {
		section(&b, "accepted", f.Accepted, acceptedBlock)
	}
	return b.Bytes()
}

// section writes one list of blocks with an empty line before each block, so
// that neighbours merge.
func section[T any](b *bytes.Buffer, name string, items []T, block func(T) []byte) {
	if len(items) == 0 {
		fmt.Fprintf(b, "%s: []\n", name)
		return
	}
	fmt.Fprintf(b, "%s:\n", name)
	for _, it := range items {
		lines := block(it)
		b.WriteString("\n- ")
		b.Write(bytes.TrimPrefix(lines, []byte("  ")))
		fmt.Fprintf(b, "  checksum: %s\n", catalog.DigestOf(lines))
	}
	b.WriteByte('\n')
}

// block collects the fields of a mapping, two blanks in. Empty ones are left
// out.
type block struct{ bytes.Buffer }

func (w *block) text(name, value string) {
	if value != "" {
		fmt.Fprintf(w, "  %s: %s\n", name, yamlnode.Quote(value))
	}
}

func (w *block) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	fmt.Fprintf(w, "  %s:\n", name)
	for _, v := range values {
		fmt.Fprintf(w, "  - %s\n", yamlnode.Quote(v))
	}
}

func (w *block) texts(name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	fmt.Fprintf(w, "  %s:\n", name)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(w, "    %s: %s\n", yamlnode.Quote(key), yamlnode.Quote(values[key]))
	}
}

// json writes raw as nested YAML.
func (w *block) json(name string, raw []byte) {
	if len(raw) == 0 {
		return
	}
	fmt.Fprintf(w, "  %s:", name)
	if err := yamlnode.BlockJSON(&w.Buffer, raw, 2); err != nil {
		panic(fmt.Sprintf("lockfile: %q is not JSON: %v", raw, err))
	}
}

func catalogBlock(c Catalog) []byte {
	var w block
	w.text("namespace", c.ID.Namespace)
	w.text("name", c.ID.Name)
	w.text("source", c.Source)
	w.text("digest", string(c.Digest))
	w.text("identity", c.Identity)
	return w.Bytes()
}

func namespaceBlock(n Namespace) []byte {
	var w block
	w.text("name", n.Name)
	w.texts("labels", n.Labels)
	w.texts("annotations", n.Annotations)
	return w.Bytes()
}

func pinBlock(p Pin) []byte {
	var w block
	w.text("namespace", p.Namespace)
	w.text("package", p.Package)
	w.text("version", p.Version)
	w.text("channel", p.Channel)
	w.text("bundle", p.Bundle)
	w.text("image", p.Image)
	w.text("identity", p.Identity)
	w.text("contentDigest", string(p.ContentDigest))
	w.text("catalog", catalogText(p.Catalog))
	w.text("subscription", p.Subscription)
	if p.Generated {
		w.WriteString("  generated: true\n")
	}
	w.text("approval", p.Approval)
	w.text("hold", p.Hold)
	w.text("installMode", string(p.InstallMode))
	w.list("watchNamespaces", p.WatchNamespaces)
	w.text("operatorGroup", p.OperatorGroup)
	w.text("replaces", p.Replaces)
	w.list("skipped", p.Skipped)
	w.list("remainingHops", p.RemainingHops)
	w.json("config", p.Config)
	w.requests(p.RequestedBy)
	w.images(p.RelatedImages)
	w.properties(p.Properties)
	w.text("declaration", string(p.Declaration))
	return w.Bytes()
}

// catalogText is the identity on one line; "/name" tells a catalog without a
// namespace from none at all only by its name, which is never empty.
func catalogText(id catalog.ID) string {
	if id == (catalog.ID{}) {
		return ""
	}
	return id.String()
}

func (w *block) requests(rs []Request) {
	if len(rs) == 0 {
		return
	}
	w.WriteString("  requestedBy:\n")
	for _, r := range rs {
		w.fields([][2]string{{"subscription", r.Subscription}, {"pin", r.Pin}, {"requirement", r.Requirement}})
	}
}

func (w *block) images(is []catalog.RelatedImage) {
	if len(is) == 0 {
		return
	}
	w.WriteString("  relatedImages:\n")
	for _, i := range is {
		w.fields([][2]string{{"name", i.Name}, {"image", i.Image}})
	}
}

// fields writes one list item on a line of its own, without empty values.
func (w *block) fields(fs [][2]string) {
	w.WriteString("  - {")
	sep := ""
	for _, f := range fs {
		if f[1] != "" {
			fmt.Fprintf(w, "%s%s: %s", sep, f[0], yamlnode.Quote(f[1]))
			sep = ", "
		}
	}
	w.WriteString("}\n")
}

func (w *block) properties(ps []catalog.Property) {
	if len(ps) == 0 {
		return
	}
	w.WriteString("  properties:\n")
	for _, p := range ps {
		fmt.Fprintf(w, "  - {type: %s, value: ", yamlnode.Quote(p.Type))
		if err := yamlnode.FlowJSON(&w.Buffer, p.Value); err != nil {
			panic(fmt.Sprintf("lockfile: %q is not JSON: %v", p.Value, err))
		}
		w.WriteString("}\n")
	}
}

// Checksum returns the checksum that the pin's block carries in a lock.
func (p Pin) Checksum() catalog.Digest { return catalog.DigestOf(pinBlock(canonical(p))) }

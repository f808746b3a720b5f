package lockfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Format returns the canonical bytes of f: Parse gives f back, and two equal
// locks give equal bytes.
func Format(f *File) []byte {
	f = f.sorted()
	var b bytes.Buffer
	b.WriteString("# Written by quayside resolve; do not edit. Each block carries a checksum of its own.\n")
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\n", APIVersion, Kind)
	section(&b, "catalogs", f.Catalogs)
	if len(f.Namespaces) > 0 {
		section(&b, "namespaces", f.Namespaces)
	}
	section(&b, "pins", f.Pins)
	if len(f.Leaving) > 0 {
		section(&b, "leaving", f.Leaving)
	}
	return b.Bytes()
}

// section writes one list of blocks with an empty line before each block, so
// that neighbours merge.
func section[T block](b *bytes.Buffer, name string, items []T) {
	if len(items) == 0 {
		fmt.Fprintf(b, "%s: []\n", name)
		return
	}
	fmt.Fprintf(b, "%s:\n", name)
	for _, it := range items {
		text := lines(it)
		b.WriteString("\n- ")
		b.Write(bytes.TrimPrefix(text, []byte("  ")))
		fmt.Fprintf(b, "  checksum: %s\n", catalog.DigestOf(text))
	}
	b.WriteByte('\n')
}

// lines returns the fields of a block, two blanks in.
func lines(of block) []byte {
	var b bytes.Buffer
	fields(&b, reflect.ValueOf(of), "  ")
	return b.Bytes()
}

func fields(b *bytes.Buffer, of reflect.Value, indent string) {
	for _, f := range yamlnode.Fields(of.Type()) {
		field(b, of, f, indent)
	}
}

// field writes one field of a block, or of a part of one; nothing where it is
// empty.
func field(b *bytes.Buffer, of reflect.Value, f reflect.StructField, indent string) {
	v := of.FieldByIndex(f.Index)
	if v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return
	}
	put := func(parts ...string) {
		for _, s := range parts {
			b.WriteString(s)
		}
	}
	put(indent, f.Name, ":")
	if v.Kind() == reflect.String {
		put(" ", yamlnode.Quote(v.String()), "\n")
		return
	}
	switch value := v.Interface().(type) {
	case bool:
		put(" true\n")
	case json.RawMessage:
		must(yamlnode.BlockJSON(b, value, len(indent)))
	case map[string]string:
		put("\n")
		for _, key := range slices.Sorted(maps.Keys(value)) {
			put(indent, "  ", yamlnode.Quote(key), ": ", yamlnode.Quote(value[key]), "\n")
		}
	case []string:
		put("\n")
		for _, s := range value {
			put(indent, "- ", yamlnode.Quote(s), "\n")
		}
	default:
		switch v.Kind() {
		case reflect.Pointer:
			put("\n")
			fields(b, v.Elem(), indent+"  ")
		case reflect.Slice:
			put("\n")
			for i := range v.Len() {
				put(indent, "- {")
				members(b, v.Index(i))
				put("}\n")
			}
		default: // a catalog's identity
			put(" ", yamlnode.Quote(fmt.Sprint(value)), "\n")
		}
	}
}

// members writes the fields of an item on one line, without what is empty
// and need not be there.
func members(b *bytes.Buffer, item reflect.Value) {
	sep := ""
	for _, f := range yamlnode.Fields(item.Type()) {
		value := item.FieldByIndex(f.Index)
		isJSON := value.Kind() == reflect.Slice
		if !isJSON && value.IsZero() && !yamlnode.Required(f) {
			continue
		}
		b.WriteString(sep)
		b.WriteString(f.Name)
		b.WriteString(": ")
		switch {
		case isJSON:
			must(yamlnode.FlowJSON(b, value.Bytes()))
		case value.Kind() == reflect.Bool:
			b.WriteString("true")
		default:
			b.WriteString(yamlnode.Quote(value.String()))
		}
		sep = ", "
	}
}

// must panics where what is to be JSON is not.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("lockfile: %v", err))
	}
}

// Checksum returns the checksum that the pin's block carries in a lock.
func (p Pin) Checksum() catalog.Digest { return catalog.DigestOf(lines(sorted(p))) }

// VersionText returns the version as people read it: with the release that the
// catalog says of the bundle, where it says one.
func (p Pin) VersionText() string { return olm.VersionText(p.Version, olm.ReleaseOf(p.Properties)) }

// CompareVersions orders pins of one package by version, then by release.
func (p Pin) CompareVersions(other Pin) int {
	return olm.CompareBundles(p.Version, olm.ReleaseOf(p.Properties), other.Version, olm.ReleaseOf(other.Properties))
}

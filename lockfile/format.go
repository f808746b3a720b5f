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
	b.WriteString("# Written by quayside resolve; do not edit. Each block has a checksum of its own.\n")
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nschema: %d\n", APIVersion, Kind, Schema)
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
		fmt.Fprintf(b, "  checksum: %s\n", checksum(it))
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

// isAbsent reports whether a field has a value that the file does not show.
func isAbsent(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// field writes one field of a block, or of a part of one; nothing where it is
// empty.
func field(b *bytes.Buffer, of reflect.Value, f reflect.StructField, indent string) {
	v := of.FieldByIndex(f.Index)
	if isAbsent(v) {
		return
	}
	put := func(parts ...string) {
		for _, s := range parts {
			b.WriteString(s)
		}
	}
	put(indent, f.Name, ":")
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
		put(" [")
		for i, s := range value {
			put([...]string{"", ", "}[min(i, 1)], yamlnode.Quote(s))
		}
		put("]\n")
	case []catalog.Property: // on one line: reviewers read the images, resolving reads these
		put(" [")
		for i := range value {
			put([...]string{"{", ", {"}[min(i, 1)])
			members(b, v.Index(i))
			put("}")
		}
		put("]\n")
	default:
		switch v.Kind() {
		case reflect.String:
			put(" ", yamlnode.Quote(v.String()), "\n")
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
		default:
			put(" {")
			members(b, v)
			put("}\n")
		}
	}
}

// members writes the fields of an item on one line, without what is empty
// and need not be there.
func members(b *bytes.Buffer, item reflect.Value) {
	sep := ""
	for _, f := range yamlnode.Fields(item.Type()) {
		value := item.FieldByIndex(f.Index)
		if !isShown(f, value) {
			continue
		}
		b.WriteString(sep)
		b.WriteString(f.Name)
		b.WriteString(": ")
		switch {
		case value.Kind() == reflect.Slice:
			must(yamlnode.FlowJSON(b, value.Bytes()))
		case value.Kind() == reflect.Bool:
			b.WriteString("true")
		default:
			b.WriteString(yamlnode.Quote(fmt.Sprint(value.Interface())))
		}
		sep = ", "
	}
}

// isShown reports whether an item shows a field.
func isShown(f reflect.StructField, v reflect.Value) bool {
	return v.Kind() == reflect.Slice || !v.IsZero() || yamlnode.Required(f)
}

// must panics where what is to be JSON is not.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("lockfile: %v", err))
	}
}

// Checksum returns the checksum that the pin's block has in a lock.
func (p Pin) Checksum() catalog.Digest { return checksum(sorted(canonical(p))) }

// VersionText returns the version as people read it: with the release that the
// catalog says of the bundle, where it says one.
func (p Pin) VersionText() string { return olm.VersionText(p.Version, olm.ReleaseOf(p.Properties)) }

// CompareVersions orders pins of one package by version, then by release.
func (p Pin) CompareVersions(other Pin) int {
	return olm.CompareBundles(p.Version, olm.ReleaseOf(p.Properties), other.Version, olm.ReleaseOf(other.Properties))
}

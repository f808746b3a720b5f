package lockfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Format returns f as the content of quayside.lock. Equal locks have equal content. [Parse] converts the
// content back to f.
func Format(f *File) []byte {
	f = f.sorted()
	var b bytes.Buffer
	b.WriteString("# Written by quayside resolve; do not edit. Each block has a checksum of its own.\n")
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nschema: %d\n", APIVersion, Kind, Schema)
	if len(f.Namespaces) > 0 {
		writeSection(&b, "namespaces", f.Namespaces)
	}
	writeSection(&b, "pins", f.Pins)
	if len(f.Leaving) > 0 {
		writeSection(&b, "leaving", f.Leaving)
	}
	return b.Bytes()
}

// writeSection writes one list of blocks. There is an empty line before each block, so that Git can
// merge changes of neighbouring blocks.
func writeSection[T block](b *bytes.Buffer, name string, items []T) {
	if len(items) == 0 {
		fmt.Fprintf(b, "%s: []\n", name)
		return
	}
	fmt.Fprintf(b, "%s:\n", name)
	for _, it := range items {
		text := blockLines(it)
		b.WriteString("\n- ")
		b.Write(bytes.TrimPrefix(text, []byte("  ")))
		fmt.Fprintf(b, "  checksum: %s\n", checksum(it))
	}
	b.WriteByte('\n')
}

// blockLines returns the fields of a block, indented by two spaces.
func blockLines(of block) []byte {
	var b bytes.Buffer
	writeFields(&b, reflect.ValueOf(of), "  ")
	return b.Bytes()
}

func writeFields(b *bytes.Buffer, of reflect.Value, indent string) {
	for _, f := range yamlnode.Fields(of.Type()) {
		writeField(b, of, f, indent)
	}
}

// isAbsent reports whether a field is omitted from the file because its value is empty.
func isAbsent(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// writeField writes one field of a block or of a mapping in a block. It writes nothing if the field is empty.
func writeField(b *bytes.Buffer, of reflect.Value, f reflect.StructField, indent string) {
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
	case []Property: // all properties on one line: reviewers need not read them
		put(" [")
		for i := range value {
			put([...]string{"{", ", {"}[min(i, 1)])
			writeMembers(b, v.Index(i))
			put("}")
		}
		put("]\n")
	default:
		switch v.Kind() {
		case reflect.String:
			put(" ", yamlnode.Quote(v.String()), "\n")
		case reflect.Pointer:
			put("\n")
			writeFields(b, v.Elem(), indent+"  ")
		case reflect.Slice:
			put("\n")
			for i := range v.Len() {
				put(indent, "- {")
				writeMembers(b, v.Index(i))
				put("}\n")
			}
		default:
			put(" {")
			writeMembers(b, v)
			put("}\n")
		}
	}
}

// writeMembers writes the fields of a list item on one line. It omits empty fields that are not
// required.
func writeMembers(b *bytes.Buffer, item reflect.Value) {
	sep := ""
	for _, f := range yamlnode.Fields(item.Type()) {
		value := item.FieldByIndex(f.Index)
		if !isWritten(f, value) {
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

// isWritten reports whether writeMembers writes a field.
func isWritten(f reflect.StructField, v reflect.Value) bool {
	return v.Kind() == reflect.Slice || !v.IsZero() || yamlnode.Required(f)
}

// must panics if err is not nil. Callers use it for JSON that must be valid.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("lockfile: %v", err))
	}
}

// Checksum returns the checksum that the pin has in a lock.
func (p Pin) Checksum() Digest { return checksum(sortPin(canonicalPin(p))) }

// VersionText returns the version for display: the version, and the release if there is one.
func (p Pin) VersionText() string {
	return catalog.VersionText(p.Version, catalog.ReleaseOf(p.Properties))
}

// CompareVersions compares two pins of the same package by version, then by release.
func (p Pin) CompareVersions(other Pin) int {
	return catalog.CompareBundles(p.Version, catalog.ReleaseOf(p.Properties), other.Version, catalog.ReleaseOf(other.Properties))
}

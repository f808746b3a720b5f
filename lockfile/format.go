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
	if len(f.Accepted) > 0 {
		section(&b, "accepted", f.Accepted)
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
func lines(of block) []byte { return fields(reflect.ValueOf(of), "  ") }

func fields(of reflect.Value, indent string) []byte {
	var b []byte
	for _, f := range yamlnode.Fields(of.Type()) {
		b = append(b, field(of, f, indent)...)
	}
	return b
}

// field returns one field of a block, or of a part of one; nothing where it is
// empty.
func field(of reflect.Value, f reflect.StructField, indent string) []byte {
	var b bytes.Buffer
	v := of.FieldByIndex(f.Index)
	if v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return nil
	}
	fmt.Fprintf(&b, "%s%s:", indent, f.Name)
	switch value := v.Interface().(type) {
	case bool:
		b.WriteString(" true\n")
	case json.RawMessage:
		must(yamlnode.BlockJSON(&b, value, len(indent)))
	case map[string]string:
		b.WriteByte('\n')
		for _, key := range slices.Sorted(maps.Keys(value)) {
			fmt.Fprintf(&b, "%s  %s: %s\n", indent, yamlnode.Quote(key), yamlnode.Quote(value[key]))
		}
	case []string:
		b.WriteByte('\n')
		for _, s := range value {
			fmt.Fprintf(&b, "%s- %s\n", indent, yamlnode.Quote(s))
		}
	default:
		switch v.Kind() {
		case reflect.Pointer:
			b.WriteByte('\n')
			b.Write(fields(v.Elem(), indent+"  "))
		case reflect.Slice:
			b.WriteByte('\n')
			for i := range v.Len() {
				b.WriteString(indent + "- {")
				members(&b, v.Index(i))
				b.WriteString("}\n")
			}
		default: // a word, or a catalog's identity
			fmt.Fprintf(&b, " %s\n", yamlnode.Quote(fmt.Sprint(value)))
		}
	}
	return b.Bytes()
}

// members writes the fields of an item on one line, without what is empty
// and need not be there.
func members(b *bytes.Buffer, item reflect.Value) {
	sep := ""
	for _, f := range yamlnode.Fields(item.Type()) {
		value := item.FieldByIndex(f.Index)
		raw, isJSON := value.Interface().(json.RawMessage)
		if !isJSON && value.IsZero() && !yamlnode.Required(f) {
			continue
		}
		fmt.Fprintf(b, "%s%s: ", sep, f.Name)
		switch {
		case isJSON:
			must(yamlnode.FlowJSON(b, raw))
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

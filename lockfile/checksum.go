package lockfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/yamlnode"
)

// maxInteger is the largest integer that all JSON decoders represent exactly: 2^53 - 1.
const maxInteger = 1<<53 - 1

// checksum returns the checksum of a block: the SHA-256 of its canonical JSON (RFC 8785), in which
// integers beyond maxInteger are strings.
func checksum(b block) Digest {
	raw, err := json.Marshal(blockValue(reflect.ValueOf(b)))
	must(err)
	var value any
	must(decodeJSON(raw, &value))
	sum, err := checksumJSON(value)
	must(err)
	return sum
}

// checksumOf returns the checksum of a parsed block. It excludes the field checksum itself.
func checksumOf(n *yamlnode.Node) (string, error) {
	raw, err := yamlnode.JSON(n)
	if err != nil {
		return "", err
	}
	var value map[string]any
	if err := decodeJSON(raw, &value); err != nil {
		return "", fmt.Errorf("expected a mapping: %w", err)
	}
	delete(value, "checksum")
	sum, err := checksumJSON(value)
	return string(sum), err
}

// checksumJSON returns the checksum of a decoded JSON value. It modifies the value.
func checksumJSON(value any) (Digest, error) {
	raw, err := json.Marshal(safeIntegers(value))
	if err != nil {
		return "", err
	}
	canonical := jsontext.Value(raw)
	if err := canonical.Canonicalize(); err != nil {
		return "", err
	}
	return catalog.DigestOf(canonical), nil
}

func decodeJSON(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(into)
}

// safeIntegers replaces integers beyond maxInteger in a JSON value by strings. It modifies value in
// place.
func safeIntegers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil && n >= -maxInteger && n <= maxInteger {
			return v
		}
		if _, err := strconv.ParseFloat(v.String(), 64); err == nil && bytes.ContainsAny([]byte(v), ".eE") {
			return v
		}
		return v.String()
	case map[string]any:
		for key, member := range v {
			v[key] = safeIntegers(member)
		}
	case []any:
		for i, item := range v {
			v[i] = safeIntegers(item)
		}
	}
	return v
}

// blockValue returns a block, or a mapping in a block, as the JSON value that is written to the file.
func blockValue(of reflect.Value) map[string]any {
	out := map[string]any{}
	for _, f := range yamlnode.Fields(of.Type()) {
		if v := of.FieldByIndex(f.Index); !isAbsent(v) {
			out[f.Name] = fieldValue(v)
		}
	}
	return out
}

func fieldValue(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case bool, json.RawMessage, map[string]string, []string:
		return value
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Pointer:
		return blockValue(v.Elem())
	case reflect.Slice:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = itemValue(v.Index(i))
		}
		return items
	default:
		return itemValue(v)
	}
}

// itemValue returns a list item as the JSON value that is written to the file.
func itemValue(of reflect.Value) map[string]any {
	out := map[string]any{}
	for _, f := range yamlnode.Fields(of.Type()) {
		v := of.FieldByIndex(f.Index)
		switch {
		case !isWritten(f, v):
		case v.Kind() == reflect.Slice:
			out[f.Name] = json.RawMessage(cmp.Or(string(v.Bytes()), "null"))
		case v.Kind() == reflect.Bool:
			out[f.Name] = v.Bool()
		default:
			out[f.Name] = fmt.Sprint(v.Interface())
		}
	}
	return out
}

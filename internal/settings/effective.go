package settings

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Setting is one field with its effective value.
type Setting struct {
	Field string          // field path, such as "spec.catalogs[0].source"
	Value json.RawMessage // a string, a boolean, a number, null, an empty list or an empty mapping
	Pos   diag.Pos        // position of the value; zero if it is a default
}

// Effective returns the effective settings, in the order of the schema. It omits spec.extends and fields that
// have neither a value nor a default.
func (w *Workspace) Effective() []Setting {
	var out []Setting
	_, spec := yamlnode.Field(w.effective(), "spec")
	forEachLeaf(spec, "spec", func(field string, n *yamlnode.Node) {
		out = append(out, Setting{Field: field, Value: encodeJSON(n), Pos: w.positionOf(field)})
	})
	return out
}

// EffectiveJSON returns the effective settings as a JSON object.
func (w *Workspace) EffectiveJSON() json.RawMessage { return encodeJSON(w.effective()) }

func encodeJSON(n *yamlnode.Node) json.RawMessage {
	raw, err := yamlnode.JSON(n)
	if err != nil {
		panic(fmt.Sprintf("settings: encoding settings: %v", err))
	}
	return raw
}

// EffectiveYAML returns the effective settings as the content of a quayside.yaml without
// spec.extends. Comments contain the file and line of each value.
func (w *Workspace) EffectiveYAML() []byte {
	root := w.effective()
	_, spec := yamlnode.Field(root, "spec")
	forEachLeaf(spec, "spec", func(field string, n *yamlnode.Node) {
		n.LineComment = "default"
		if p := w.positionOf(field); p.Line > 0 {
			n.LineComment = diag.Pos{File: p.File, Line: p.Line}.String()
		}
	})
	return yamlnode.EncodeNode(root)
}

// positionOf returns the position of the value of a field. If the parent of a field "path" is in its short form, a
// string, this is the position of the string. If no file sets the field, positionOf returns the zero position.
func (w *Workspace) positionOf(field string) diag.Pos {
	if p, set := w.Fields[field]; set {
		return p
	}
	if short, ok := strings.CutSuffix(field, ".path"); ok {
		return w.Fields[short]
	}
	return diag.Pos{}
}

// effective returns the effective settings as a YAML node.
func (w *Workspace) effective() *yamlnode.Node {
	b := treeBuilder{set: w.Fields}
	root := mappingNode()
	addField(root, "apiVersion", stringNode(APIVersion))
	addField(root, "kind", stringNode(Kind))
	if w.Name != "" {
		addField(root, "metadata", mappingNode("name", stringNode(w.Name)))
	}
	spec := *w
	spec.Extends = ""
	addField(root, "spec", b.build(reflect.ValueOf(spec), "spec"))
	dropField(root.Content[len(root.Content)-1], "extends")
	return root
}

// treeBuilder converts Go values to YAML nodes. Empty fields are omitted unless set contains them.
type treeBuilder struct{ set diag.Fields }

// build converts the value of a field.
func (b treeBuilder) build(v reflect.Value, field string) *yamlnode.Node {
	if raw, ok := v.Interface().(json.RawMessage); ok {
		return fromJSON(raw)
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		s, err := m.MarshalText()
		if err != nil {
			panic(fmt.Sprintf("settings: %s: %v", field, err))
		}
		return stringNode(string(s))
	}
	switch v.Kind() {
	case reflect.Pointer:
		return b.build(v.Elem(), field)
	case reflect.Struct:
		out := mappingNode()
		for _, f := range yamlnode.Fields(v.Type()) {
			name, value := field+"."+f.Name, v.FieldByIndex(f.Index)
			_, set := b.set[name]
			if value.Kind() == reflect.Pointer && value.IsNil() || isEmpty(value) && !set {
				continue
			}
			if n := b.build(value, name); set || n.Kind != yamlnode.MappingNode || len(n.Content) > 0 {
				addField(out, f.Name, n)
			}
		}
		return out
	case reflect.Slice:
		out := &yamlnode.Node{Kind: yamlnode.SequenceNode, Tag: "!!seq"}
		for i := range v.Len() {
			out.Content = append(out.Content, b.build(v.Index(i), diag.Item(field, i)))
		}
		return out
	case reflect.Map:
		out := mappingNode()
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			addField(out, k.String(), b.build(v.MapIndex(k), field+"."+k.String()))
		}
		return out
	case reflect.String:
		return stringNode(v.String())
	case reflect.Bool:
		return &yamlnode.Node{Kind: yamlnode.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.Bool())}
	default:
		return &yamlnode.Node{Kind: yamlnode.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}
	}
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return false
	}
}

// fromJSON converts canonical JSON to a YAML node.
func fromJSON(raw json.RawMessage) *yamlnode.Node {
	docs, err := yamlnode.Documents("", append(append([]byte(`{"v":`), raw...), '}'), yamlnode.Limits{})
	if err != nil || len(docs) != 1 {
		panic(fmt.Sprintf("settings: canonical JSON cannot be parsed: %v", err))
	}
	_, v := yamlnode.Field(docs[0], "v")
	out := copyTree(v, 0)
	plainStyle(out)
	return out
}

// plainStyle changes the style of a decoded tree from JSON to block style without unnecessary quotes.
func plainStyle(n *yamlnode.Node) {
	if n.Style = 0; n.Kind == yamlnode.ScalarNode && n.ShortTag() == "!!str" {
		n.Style = stringNode(n.Value).Style
	}
	for _, c := range n.Content {
		plainStyle(c)
	}
}

// mappingNode returns a mapping. In content, keys and values alternate.
func mappingNode(content ...any) *yamlnode.Node {
	out := &yamlnode.Node{Kind: yamlnode.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(content); i += 2 {
		addField(out, content[i].(string), content[i+1].(*yamlnode.Node))
	}
	return out
}

func addField(n *yamlnode.Node, key string, value *yamlnode.Node) {
	n.Content = append(n.Content, stringNode(key), value)
}

// stringNode returns s as a scalar on one line, quoted if necessary.
func stringNode(s string) *yamlnode.Node {
	n := &yamlnode.Node{Kind: yamlnode.ScalarNode, Tag: "!!str", Value: s}
	if yamlnode.Quote(s) != s {
		n.Style = yamlnode.DoubleQuotedStyle
	}
	return n
}

// forEachLeaf calls the function each for every scalar, empty list and empty mapping in n, with the path of its field.
func forEachLeaf(n *yamlnode.Node, field string, each func(field string, n *yamlnode.Node)) {
	switch {
	case n.Kind == yamlnode.MappingNode && len(n.Content) > 0:
		for i := 0; i+1 < len(n.Content); i += 2 {
			forEachLeaf(n.Content[i+1], strings.TrimPrefix(field+"."+yamlnode.Key(n.Content[i]), "."), each)
		}
	case n.Kind == yamlnode.SequenceNode && len(n.Content) > 0:
		for i, c := range n.Content {
			forEachLeaf(c, diag.Item(field, i), each)
		}
	default:
		each(field, n)
	}
}

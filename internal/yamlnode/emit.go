package yamlnode

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Quote returns s as a YAML scalar: bare where every reader takes the bare
// form as the same text, else in double quotes. It fits flow and block alike.
func Quote(s string) string {
	if bare(s) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20, r >= 0x7f && r <= 0x9f, r == '\u2028', r == '\u2029', r == '\uFEFF', r == '\uFFFE', r == '\uFFFF':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func bare(s string) bool {
	switch {
	case !regexp.MustCompile(`^[A-Za-z0-9/_.]([A-Za-z0-9._/@:+= -]*[A-Za-z0-9._/@+=-])?$`).MatchString(s):
		return false
	case strings.Contains(s, ": "), strings.Contains(s, "  "):
		return false
	case regexp.MustCompile(`^[0-9][0-9_]*(:[0-9]+)+|^[0-9]{4}-[0-9]`).MatchString(s): // base 60 and dates, to other readers
		return false
	case strings.HasPrefix(s, "---"), strings.HasPrefix(s, "..."):
		return false
	}
	return plain(s).kind == kindString
}

// FromJSON returns the canonical form of any JSON value: keys sorted, numbers
// as [JSON] would write them.
func FromJSON(raw []byte) (*yaml.Node, error) {
	wrapped := append(append([]byte(`{"v":`), raw...), '}')
	docs, err := Documents("", wrapped, Limits{})
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 || len(docs[0].Content) != 2 {
		return nil, fmt.Errorf("%q is not one JSON value", clip(string(raw)))
	}
	_, v := Field(docs[0], "v")
	return v, nil
}

// Canonical returns raw as canonical JSON.
func Canonical(raw []byte) ([]byte, error) {
	n, err := FromJSON(raw)
	if err != nil {
		return nil, err
	}
	return JSON(n)
}

// Flow writes n on one line: {a: 1, b: [x, y]}.
func Flow(b *bytes.Buffer, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(Quote(mustKey(n.Content[i])) + ": ")
			Flow(b, n.Content[i+1])
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteString(", ")
			}
			Flow(b, c)
		}
		b.WriteByte(']')
	default:
		b.WriteString(scalarText(n))
	}
}

// Block writes n as the value of a key that was just written, colon included,
// indented by indent blanks, newline included.
func Block(b *bytes.Buffer, n *yaml.Node, indent int) {
	pad := strings.Repeat(" ", indent)
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		b.WriteByte('\n')
		for i := 0; i+1 < len(n.Content); i += 2 {
			b.WriteString(pad + Quote(mustKey(n.Content[i])) + ":")
			Block(b, n.Content[i+1], indent+2)
		}
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		b.WriteByte('\n')
		for _, c := range n.Content {
			b.WriteString(pad + "-")
			item(b, c, indent)
		}
	default:
		b.WriteByte(' ')
		Flow(b, n)
		b.WriteByte('\n')
	}
}

// item writes a member of a list whose dash stands at indent.
func item(b *bytes.Buffer, n *yaml.Node, indent int) {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		Block(b, n, indent+2)
		return
	}
	var inner bytes.Buffer
	Block(&inner, n, indent+2)
	b.WriteByte(' ')
	b.Write(bytes.TrimLeft(inner.Bytes(), "\n "))
}

func scalarText(n *yaml.Node) string {
	s, err := resolve(n)
	if err != nil {
		panic(fmt.Sprintf("yamlnode: writing %q: %v", n.Value, err))
	}
	if s.kind == kindString {
		return Quote(s.text)
	}
	return s.text
}

func mustKey(n *yaml.Node) string {
	k, err := keyText(n)
	if err != nil {
		panic(fmt.Sprintf("yamlnode: writing key %q: %v", n.Value, err))
	}
	return k
}

package yamlnode

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/inert"
)

// Quote returns s as a YAML scalar: bare where every reader takes the bare
// form as the same text, else in double quotes. It fits flow and block alike.
func Quote(s string) string {
	if bare(s) {
		return s
	}
	return doubleQuoted(s, exact, false)
}

// exact leaves out what nobody sees, and with it all that some reader takes for
// a line break, or refuses.
func exact(r rune) bool { return !inert.Unseen(r) }

// doubleQuoted returns s in double quotes, with escapes for all that is not to
// stand as it is: of two digits where that is enough, if short says so.
func doubleQuoted(s string, asIs func(rune) bool, short bool) string {
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
		case asIs(r):
			b.WriteRune(r)
		case short && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// bare reports whether s needs no quotes. It is stricter than it would have to
// be, for readers of other make.
func bare(s string) bool {
	if s == "" || !bareByte(s[0], "/_.") || !bareByte(s[len(s)-1], "/_.@+=-") {
		return false
	}
	for i := range len(s) {
		if !bareByte(s[i], "/_.:@+= -") {
			return false
		}
	}
	if strings.Contains(s, ": ") || strings.Contains(s, "  ") || strings.HasPrefix(s, "...") {
		return false
	}
	return plain(s).kind == kindString && !looksNumeric(s)
}

func bareByte(c byte, others string) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(others, c) >= 0
}

// looksNumeric reports whether s is a date, or a number in base 60, to some.
func looksNumeric(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != ':' && r != '-' && r != '_' && r != ' ' })
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
		return nil, fmt.Errorf("%q is not one JSON value", inert.Cut(string(raw), maxShown))
	}
	_, v := Field(docs[0], "v")
	return v, nil
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
// newline included. Its lines are indented by indent blanks, at least two; the
// dashes of a list stand two blanks less, under the key.
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
			b.WriteString(pad[2:] + "-")
			item(b, c, indent-2)
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
		Block(b, n, indent+4)
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

package yamlnode

import "bytes"

// Canonical returns raw as canonical JSON.
func Canonical(raw []byte) ([]byte, error) {
	if c := (canonical{raw: raw}); c.whole() {
		return bytes.Clone(raw), nil
	}
	return canonicalSlow(raw)
}

func canonicalSlow(raw []byte) ([]byte, error) {
	n, err := FromJSON(raw)
	if err != nil {
		return nil, err
	}
	return JSON(n)
}

// FlowJSON writes a JSON value as [Flow] writes it, with its keys sorted.
func FlowJSON(b *bytes.Buffer, raw []byte) error {
	before := b.Len()
	if c := (canonical{raw: raw, flow: b}); c.whole() {
		return nil
	}
	b.Truncate(before)
	return flowSlow(b, raw)
}

func flowSlow(b *bytes.Buffer, raw []byte) error {
	raw, err := canonicalSlow(raw)
	if err != nil {
		return err
	}
	n, err := FromJSON(raw)
	if err != nil {
		return err
	}
	Flow(b, n)
	return nil
}

// canonical goes through a value that is canonical JSON already, in the plain
// form that nearly all values have: keys in order, no blanks, nothing but
// letters of ASCII without escapes, no fractions. It gives up on the rest.
type canonical struct {
	raw  []byte
	at   int
	flow *bytes.Buffer // where the value is written as YAML; nil for nowhere
}

// Deeper values, and longer numbers, are for the full parser to judge.
const (
	plainDepth  = 32
	plainDigits = 18
)

// whole reports whether all of raw is one such value.
func (c *canonical) whole() bool { return c.value(plainDepth) && c.at == len(c.raw) }

func (c *canonical) value(depth int) bool {
	switch c.peek() {
	case '{':
		return depth > 0 && c.object(depth-1)
	case '[':
		return depth > 0 && c.array(depth-1)
	case '"':
		s, ok := c.text()
		c.quote(s)
		return ok
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	default:
		return c.number()
	}
}

// object goes through members whose keys ascend.
func (c *canonical) object(depth int) bool {
	var last []byte
	return c.list('{', '}', func(first bool) bool {
		key, ok := c.text()
		if !ok || !first && bytes.Compare(last, key) >= 0 || !c.take(':') {
			return false
		}
		last = key
		c.quote(key)
		c.write(": ")
		return c.value(depth)
	})
}

func (c *canonical) array(depth int) bool {
	return c.list('[', ']', func(bool) bool { return c.value(depth) })
}

// list goes through what stands between two brackets.
func (c *canonical) list(open, end byte, each func(first bool) bool) bool {
	c.at++
	c.write(string(open))
	for first := true; !c.take(end); first = false {
		if !first {
			if !c.take(',') {
				return false
			}
			c.write(", ")
		}
		if !each(first) {
			return false
		}
	}
	c.write(string(end))
	return true
}

// text goes through a string that means what it says.
func (c *canonical) text() ([]byte, bool) {
	if !c.take('"') {
		return nil, false
	}
	for start := c.at; c.at < len(c.raw); c.at++ {
		switch b := c.raw[c.at]; {
		case b == '"':
			c.at++
			return c.raw[start : c.at-1], true
		case b < ' ', b > '~', b == '\\':
			return nil, false
		}
	}
	return nil, false
}

func (c *canonical) word(w string) bool {
	if !bytes.HasPrefix(c.raw[c.at:], []byte(w)) {
		return false
	}
	c.at += len(w)
	c.write(w)
	return true
}

// number goes through an integer.
func (c *canonical) number() bool {
	start := c.at
	negative := c.take('-')
	digits := c.at
	for c.at < len(c.raw) && c.raw[c.at] >= '0' && c.raw[c.at] <= '9' {
		c.at++
	}
	n := c.at - digits
	if n == 0 || n > plainDigits || c.raw[digits] == '0' && (n > 1 || negative) {
		return false
	}
	c.write(string(c.raw[start:c.at]))
	return true
}

// peek returns the next byte, 0 at the end.
func (c *canonical) peek() byte {
	if c.at < len(c.raw) {
		return c.raw[c.at]
	}
	return 0
}

func (c *canonical) take(b byte) bool {
	if c.peek() != b || b == 0 {
		return false
	}
	c.at++
	return true
}

func (c *canonical) quote(s []byte) {
	if c.flow != nil {
		c.flow.WriteString(Quote(string(s)))
	}
}

func (c *canonical) write(s string) {
	if c.flow != nil {
		c.flow.WriteString(s)
	}
}

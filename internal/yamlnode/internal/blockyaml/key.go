package blockyaml

import "bytes"

// longestKey is the maximum size of a key in bytes. It is below the limit of a complete YAML
// parser.
const longestKey = 1000

// key reads the key at the cursor, and reports whether there is one. A key that might not be a
// string is not supported.
func (p *parser) key() bool {
	i := p.off
	if q := p.data[i]; q == '"' || q == '\'' {
		line := p.data[i+1 : i+bytes.IndexByte(p.data[i:], '\n')]
		length := bytes.IndexByte(line, q)
		if length < 0 || bytes.IndexByte(line[:length], '\\') >= 0 {
			return false
		}
		p.name = line[:length]
		i += length + 2
	} else {
		for isKeyByte(p.data[i]) {
			i++
		}
		p.name = p.data[p.off:i]
		if len(p.name) == 0 {
			return false
		}
	}
	if p.data[i] != ':' || p.data[i+1] != ' ' && p.data[i+1] != '\n' || i-p.off > longestKey {
		return false
	}
	p.next = i + 1
	c := p.data[p.off]
	return c == '"' || c == '\'' || isCertainString(p.name)
}

// names tracks the keys of one mapping. To save memory, the keys themselves are in parser.keys.
type names struct {
	first    int  // index of the first key in parser.keys
	unsorted bool // the keys are not sorted
	seen     map[string]bool
}

// isRepeatedKey adds the last key to the mapping, and reports whether the mapping already had this key. Tools
// write sorted keys, so only a key that is not greater than the previous key needs a search.
func (p *parser) isRepeatedKey(n *names) bool {
	const few = 32
	keys := p.keys[n.first:]
	p.keys = append(p.keys, p.name)
	switch {
	case n.seen != nil:
	case !n.unsorted && (len(keys) == 0 || bytes.Compare(keys[len(keys)-1], p.name) < 0):
		return false
	case len(keys) < few:
		n.unsorted = true
		for _, k := range keys {
			if bytes.Equal(k, p.name) {
				return true
			}
		}
		return false
	default:
		n.seen = make(map[string]bool, 2*len(keys))
		for _, k := range keys {
			n.seen[string(k)] = true
		}
	}
	if n.seen[string(p.name)] {
		return true
	}
	n.seen[string(p.name)] = true
	return false
}

// isKeyByte reports whether c is a letter, a digit, or one of "_-./$".
func isKeyByte(c byte) bool {
	return c|0x20-'a' < 26 || c-'0' < 10 || c == '-' || c == '_' || c == '.' || c == '/' || c == '$'
}

// isCertainString reports whether every YAML reader parses plain scalar s as a string.
func isCertainString(s []byte) bool {
	c := s[0]
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		if len(s) > 5 {
			return true
		}
		switch c {
		case 'y', 'Y', 'n', 'N', 't', 'T', 'f', 'F', 'o', 'O':
			return !isWord(s)
		}
		return true
	case c >= '0' && c <= '9':
		return isVersion(s)
	}
	return c == '$' || c == '_' || c == '/'
}

// isWord reports whether s is a boolean or null, in any spelling with letters.
func isWord(s []byte) bool {
	switch string(s) {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF",
		"true", "True", "TRUE", "false", "False", "FALSE", "null", "Null", "NULL":
		return true
	}
	return false
}

// isVersion reports whether s consists of digits and at least two points.
func isVersion(s []byte) bool {
	points := 0
	for _, c := range s {
		switch {
		case c == '.':
			points++
		case c < '0' || c > '9':
			return false
		}
	}
	return points > 1
}

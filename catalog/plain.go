package catalog

import "bytes"

// plainStrings reads a compact JSON object that has a string for each of names,
// in any order, and nothing else: as the properties of nearly all bundles are
// written. It reports false for any other value, and where a string holds more
// than plain ASCII, or a name differs by as much as its case.
func plainStrings(value []byte, names ...string) (texts [3]string, ok bool) {
	var have [3]bool
	for i := range names {
		open := byte(',')
		if i == 0 {
			open = '{'
		}
		name, rest, ok := plainString(value, open)
		if !ok {
			return texts, false
		}
		text, rest, ok := plainString(rest, ':')
		if !ok {
			return texts, false
		}
		value = rest
		for k := range names {
			if string(name) == names[k] && !have[k] {
				texts[k], have[k] = string(text), true
			}
		}
	}
	for i := range names {
		if !have[i] {
			return texts, false
		}
	}
	return texts, string(value) == "}"
}

// plainString returns the string behind a byte, and what follows it.
func plainString(value []byte, before byte) (text, rest []byte, ok bool) {
	if len(value) < 2 || value[0] != before || value[1] != '"' {
		return nil, nil, false
	}
	value = value[2:]
	end := bytes.IndexByte(value, '"')
	if end < 0 {
		return nil, nil, false
	}
	for _, c := range value[:end] {
		if c < ' ' || c == '\\' || c > '~' {
			return nil, nil, false
		}
	}
	return value[:end], value[end+1:], true
}

package strictjson

import "encoding/binary"

// name stands for a member's name. Names of up to 16 bytes are equal if what
// stands for them is; of longer ones the text decides.
type name struct {
	first, last uint64 // the bytes, or the first eight and the last eight
	size        int
	at          int // of a longer one: where its text is in Scanner.long
}

// key is a name in a map.
type key struct {
	first, last uint64
	size        int
	text        string // of a longer one
}

const (
	shortName = 16
	fewNames  = 48 // so many are compared one by one
)

func nameOf(text []byte) name {
	n := name{size: len(text)}
	switch {
	case n.size >= 8:
		n.first = binary.LittleEndian.Uint64(text)
		n.last = binary.LittleEndian.Uint64(text[n.size-8:])
	case n.size >= 4:
		n.first = uint64(binary.LittleEndian.Uint32(text)) | uint64(binary.LittleEndian.Uint32(text[n.size-4:]))<<32
	case n.size > 0:
		n.first = uint64(text[0]) | uint64(text[n.size/2])<<8 | uint64(text[n.size-1])<<16
	}
	return n
}

// bit returns one of 64 bits for the name.
func (n *name) bit() uint64 {
	h := (n.first ^ n.last*0x9e3779b97f4a7c15 ^ uint64(n.size)) * 0xbf58476d1ce4e5b9
	return 1 << (h >> 58)
}

// insert adds a name to the object that is open, and reports whether it was not
// there.
func (s *Scanner) insert(text []byte) bool {
	f := &s.frames[len(s.frames)-1]
	n := nameOf(text)
	if f.many != nil {
		k := n.key(text)
		_, ok := f.many[k]
		f.many[k] = struct{}{}
		return !ok
	}
	bit := n.bit()
	if f.seen&bit != 0 && s.has(f, n, text) {
		return false
	}
	f.seen |= bit
	if n.size > shortName {
		n.at = len(s.long)
		s.long = append(s.long, text...)
	}
	s.names = append(s.names, n)
	if len(s.names)-f.names > fewNames {
		f.many = make(map[key]struct{}, 2*fewNames)
		for _, have := range s.names[f.names:] {
			f.many[have.key(s.longText(have))] = struct{}{}
		}
	}
	return true
}

func (n *name) key(text []byte) key {
	k := key{first: n.first, last: n.last, size: n.size}
	if n.size > shortName {
		k.text = string(text)
	}
	return k
}

// longText returns the text of a long name.
func (s *Scanner) longText(n name) []byte {
	if n.size <= shortName {
		return nil
	}
	return s.long[n.at:][:n.size]
}

// has reports whether the object has a name already.
func (s *Scanner) has(f *frame, n name, text []byte) bool {
	for i := range s.names[f.names:] {
		have := &s.names[f.names+i]
		if have.first == n.first && have.last == n.last && have.size == n.size &&
			(n.size <= shortName || string(s.longText(*have)) == string(text)) {
			return true
		}
	}
	return false
}

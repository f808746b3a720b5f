package strictjson

import "strconv"

// scalar passes over the string, number or literal that begins with c at i.
func (s *Scanner) scalar(c byte, i int) int {
	switch c {
	case '"':
		if end := plainEnd(s.buf, i); end > 0 {
			return end + 1
		}
		if i = s.text(i + 1); i < 0 {
			return -1
		}
		return i + 1
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.number(i)
	default:
		s.invalid(i, "at start of value")
		return -1
	}
}

func (s *Scanner) literal(i int, word string) int {
	for k := range len(word) {
		if i+k == len(s.buf) {
			var more bool
			if i, more = s.refill(i); !more {
				s.cut(len(s.buf))
				return -1
			}
		}
		if s.buf[i+k] != word[k] {
			s.invalid(i+k, "in literal "+word+" (expecting "+strconv.QuoteRune(rune(word[k]))+")")
			return -1
		}
	}
	return i + len(word)
}

// number passes over a number, as far as it is one.
func (s *Scanner) number(i int) int {
	var p numberState
	for k := i; ; k++ {
		if k == len(s.buf) {
			size := k - i
			var more bool
			i, more = s.refill(i)
			k = i + size
			if !more && s.err == nil && p.whole() {
				return k
			}
			if !more {
				s.cut(k)
				return -1
			}
		}
		next := p.after(s.buf[k])
		switch {
		case next != numberEnd:
			p = next
		case p.whole():
			return k
		default:
			s.invalid(k, "in number (expecting digit)")
			return -1
		}
	}
}

// numberState is what was read of a number.
type numberState int

const (
	numberStart numberState = iota
	numberMinus
	numberZero
	numberDigits
	numberPoint
	numberFraction
	numberE
	numberSign
	numberExponent
	numberEnd // what follows is no part of it
)

// whole reports whether the number may end here.
func (p numberState) whole() bool {
	return p == numberZero || p == numberDigits || p == numberFraction || p == numberExponent
}

// after returns the state after c.
func (p numberState) after(c byte) numberState {
	digit := '0' <= c && c <= '9'
	switch {
	case digit && (p == numberStart || p == numberMinus):
		if c == '0' {
			return numberZero
		}
		return numberDigits
	case digit && (p == numberDigits || p == numberFraction || p == numberExponent):
		return p
	case digit && p == numberPoint:
		return numberFraction
	case digit && (p == numberE || p == numberSign):
		return numberExponent
	case c == '-' && p == numberStart:
		return numberMinus
	case c == '.' && (p == numberZero || p == numberDigits):
		return numberPoint
	case (c == 'e' || c == 'E') && p.whole() && p != numberExponent:
		return numberE
	case (c == '-' || c == '+') && p == numberE:
		return numberSign
	default:
		return numberEnd
	}
}

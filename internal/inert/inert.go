// Package inert makes text that strangers wrote fit to be shown: nothing of it
// moves a terminal's cursor, turns the direction of a line, looks like what the
// program says itself, or is taken for a command by what reads a log. What is
// not seen is shown as JSON escapes it, so that JSON stays JSON and says the same.
//
// It refuses nothing by itself but tells, with [Name], what is no name. Start
// from [Line], which most text goes through where it is put into a sentence, and
// [Writer], which all that is printed goes through at the end.
package inert

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unseen reports whether a character shows nothing of itself: it controls,
// formats, breaks lines, or is none that text is made of.
func Unseen(r rune) bool {
	if r >= ' ' && r <= '~' {
		return false
	}
	return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point) ||
		r>>12 == 0xE0 // tags, and selectors of variants that no font has
}

// Name returns what is wrong with a name that may otherwise be anything, such
// as a channel's or a file's: that it holds what is not seen, or that white space
// is at its ends.
func Name(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not UTF-8", s)
	}
	for _, r := range s {
		if Unseen(r) {
			return fmt.Errorf("%q holds the character %U, which no name may hold", s, r)
		}
	}
	if strings.TrimSpace(s) != s {
		return fmt.Errorf("%q begins or ends with white space", s)
	}
	return nil
}

// Line returns s as one line. White space other than blanks becomes one blank,
// with the blanks around it.
func Line(s string) string {
	c := cleaner{}
	c.add(folded(s))
	return c.out.String()
}

// folded replaces every run of white space that is not made of blanks alone.
func folded(s string) string {
	other := func(r rune) bool { return r != ' ' && unicode.IsSpace(r) }
	if !strings.ContainsFunc(s, other) {
		return s
	}
	var b strings.Builder
	for s != "" {
		word := strings.IndexFunc(s, unicode.IsSpace)
		if word < 0 {
			word = len(s)
		}
		b.WriteString(s[:word])
		s = s[word:]
		rest := strings.TrimLeftFunc(s, unicode.IsSpace)
		if space := s[:len(s)-len(rest)]; strings.ContainsFunc(space, other) {
			b.WriteByte(' ')
		} else {
			b.WriteString(space)
		}
		s = rest
	}
	return b.String()
}

// Lines returns a text of several lines with its line breaks and tabs, else as
// Line does. No line of it begins with what a CI system takes for a command.
func Lines(s string) string {
	c := cleaner{lines: true, fresh: true}
	c.add(s)
	return c.out.String()
}

// Clip returns s as one line of at most n bytes, without white space around it.
func Clip(s string, n int) string { return Cut(strings.TrimSpace(Line(s)), n) }

// Cut returns the beginning of s, at most n bytes of whole characters; where
// something is missing, it ends with "…".
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// Writer prints what it is given as Lines would. One call holds whole
// characters.
type Writer struct {
	To     io.Writer
	Colors bool // the few sequences that colour text are let through

	inside bool // a line has begun
}

// Write prints p. Where all was printed, it returns the length of p.
func (w *Writer) Write(p []byte) (int, error) {
	c := cleaner{lines: true, colors: w.Colors, fresh: !w.inside}
	c.add(string(p))
	w.inside = !c.fresh
	if _, err := io.WriteString(w.To, c.out.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cleaner collects text with escapes for what is not to be shown.
type cleaner struct {
	out           strings.Builder
	lines, colors bool
	fresh         bool // nothing but white space stands in this line
}

func (c *cleaner) add(s string) {
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		painted := 0
		if r == '\x1b' && c.colors {
			painted = color(s)
		}
		switch {
		case c.lines && (r == '\n' || r == '\t'):
			c.out.WriteRune(r)
		case painted > 0:
			size = painted
			c.out.WriteString(s[:size])
		case Unseen(r), command(s), c.fresh && strings.HasPrefix(s, "::"):
			c.out.WriteString(escape(r))
		default:
			c.out.WriteRune(r) // U+FFFD for what is no UTF-8
		}
		c.fresh = c.lines && (r == '\n' || c.fresh && unicode.IsSpace(r))
		s = s[size:]
	}
}

// escape returns a character as JSON writes it in escapes.
func escape(r rune) string {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// color returns the length of the sequence at the beginning of s that sets one of
// the colours and weights that the program uses, or 0.
func color(s string) int {
	code, _, ok := strings.Cut(strings.TrimPrefix(s, "\x1b["), "m")
	if !ok || !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	switch code {
	case "0", "1", "2", "31", "32", "33", "36", "1;31":
		return len("\x1b[" + code + "m")
	}
	return 0
}

// command reports whether s begins with what GitHub's runner, Azure Pipelines
// or TeamCity take for a command wherever in a line it stands.
func command(s string) bool {
	rest, ok := strings.CutPrefix(s, "##")
	if !ok {
		return false
	}
	for _, of := range []string{"[", "vso[", "teamcity["} {
		if len(rest) >= len(of) && strings.EqualFold(rest[:len(of)], of) {
			return true
		}
	}
	return false
}

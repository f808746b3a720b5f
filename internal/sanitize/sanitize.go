// Package sanitize makes untrusted text safe to print. The text cannot move the cursor of a
// terminal, change the direction of a line, imitate the program's own output, or run a command of a
// CI system that parses the log. Invisible characters become JSON escapes, so that JSON remains
// valid and keeps its meaning.
//
// Only [CheckName] rejects text. Start from [Line], for text within a sentence, and [Writer], for
// all output of the program.
package sanitize

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// IsInvisible reports whether a character is invisible: it has Unicode category C, is a line or
// paragraph separator or a noncharacter, or is ignorable by default.
func IsInvisible(r rune) bool {
	if r >= ' ' && r <= '~' {
		return false
	}
	return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point) ||
		r>>12 == 0xE0 // tags and supplementary variation selectors
}

// CheckName returns an error if a free-form name, such as that of a channel or a file, is not
// UTF-8, contains invisible characters, or begins or ends with white space.
func CheckName(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not valid UTF-8", s)
	}
	for _, r := range s {
		if IsInvisible(r) {
			return fmt.Errorf("%q contains the character %U, which is not allowed in names", s, r)
		}
	}
	if strings.TrimSpace(s) != s {
		return fmt.Errorf("%q begins or ends with white space", s)
	}
	return nil
}

// Line returns s as one line. A sequence of white space becomes one blank, unless it consists of blanks only.
func Line(s string) string {
	c := cleaner{}
	c.add(foldSpaces(s))
	return c.out.String()
}

// foldSpaces replaces every sequence of white space by one blank, unless it consists of blanks only.
func foldSpaces(s string) string {
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

// Lines escapes s, and keeps line breaks and tabs. No line of the result is a command for a CI
// system.
func Lines(s string) string {
	c := cleaner{lines: true, fresh: true}
	c.add(s)
	return c.out.String()
}

// TruncateLine returns s as one line of at most n bytes, without white space around it.
func TruncateLine(s string, n int) string { return Truncate(strings.TrimSpace(Line(s)), n) }

// Truncate returns the start of s: at most n bytes of whole characters. If it shortens s, the result ends with
// "…".
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// Writer escapes text as [Lines] does. No call of Write may end within a character.
type Writer struct {
	To     io.Writer
	Colors bool // whether to keep the color sequences of skipColor

	inside bool // whether a line has been started
}

// Write prints p and returns the length of p, or 0 and an error.
func (w *Writer) Write(p []byte) (int, error) {
	c := cleaner{lines: true, colors: w.Colors, fresh: !w.inside}
	c.add(string(p))
	w.inside = !c.fresh
	if _, err := io.WriteString(w.To, c.out.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cleaner collects text and escapes unsafe characters.
type cleaner struct {
	out           strings.Builder
	lines, colors bool
	fresh         bool // whether the line is blank so far
}

func (c *cleaner) add(s string) {
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		painted := 0
		if r == '\x1b' && c.colors {
			painted = skipColor(s)
		}
		switch {
		case c.lines && (r == '\n' || r == '\t'):
			c.out.WriteRune(r)
		case painted > 0:
			size = painted
			c.out.WriteString(s[:size])
		case IsInvisible(r), isWorkflowCommand(s), c.fresh && strings.HasPrefix(s, "::"):
			c.out.WriteString(escape(r))
		default:
			c.out.WriteRune(r) // writes U+FFFD for invalid UTF-8
		}
		c.fresh = c.lines && (r == '\n' || c.fresh && unicode.IsSpace(r))
		s = s[size:]
	}
}

// escape returns the JSON escape of a character.
func escape(r rune) string {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// skipColor returns the length of a terminal sequence for color or weight at the start of s, or 0.
// It accepts only sequences that this program prints.
func skipColor(s string) int {
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

// isWorkflowCommand reports whether s starts with a command that GitHub's runner, Azure Pipelines or
// TeamCity execute even if other text precedes it on the line.
func isWorkflowCommand(s string) bool {
	rest, ok := strings.CutPrefix(s, "##")
	if !ok {
		return false
	}
	return slices.ContainsFunc([]string{"[", "vso[", "teamcity["}, func(of string) bool {
		return len(rest) >= len(of) && strings.EqualFold(rest[:len(of)], of)
	})
}

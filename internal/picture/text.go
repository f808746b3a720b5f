package picture

import (
	"strings"

	"github.com/quayside/quayside/internal/inert"
)

// cells returns how many cells a text takes: two for each character of the scripts
// whose characters are wide, and for pictures.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n += wide(r)
	}
	return n
}

func wide(r rune) int {
	if r >= 0x1100 && (r < 0x2000 || r > 0x2027) {
		return 2
	}
	return 1
}

// cut returns s as one line of at most n cells. What is too long loses its middle:
// names of bundles differ at their ends.
func cut(s string, n int) string {
	s = inert.Line(s)
	if cells(s) <= n {
		return s
	}
	runes := []rune(s)
	left, right, used := 0, len(runes), 1
	for left < right {
		next := runes[left]
		head := left <= len(runes)-right
		if !head {
			next = runes[right-1]
		}
		if used += wide(next); used > n {
			break
		}
		if head {
			left++
		} else {
			right--
		}
	}
	return string(runes[:left]) + "…" + string(runes[right:])
}

// wrap returns s as at most most lines of at most n cells each, broken after blanks
// or, in longer words, anywhere. The last line is cut.
func wrap(s string, n, most int) []string {
	var lines []string
	line := ""
	flush := func() {
		if line = strings.TrimRight(line, " "); line != "" {
			lines = append(lines, line)
		}
		line = ""
	}
	for word := range strings.SplitAfterSeq(inert.Line(s), " ") {
		if len(lines) >= most-1 {
			line += word
			continue
		}
		if cells(line)+cells(strings.TrimRight(word, " ")) > n {
			flush()
		}
		for cells(word) > n && len(lines) < most-1 {
			head := fitting(word, n)
			lines, word = append(lines, word[:head]), word[head:]
		}
		line += word
	}
	line = cut(strings.TrimRight(line, " "), n)
	flush()
	return lines
}

// fitting returns how many bytes of s fit into n cells, at least one character. If it
// can, it ends after what separates the parts of a name.
func fitting(s string, n int) int {
	used, end := 0, 0
	for i, r := range s {
		if used += wide(r); used > n && i > 0 {
			if end > 0 {
				return end
			}
			return i
		}
		if strings.ContainsRune("/.:-_,", r) && used > n/3 {
			end = i + 1
		}
	}
	return len(s)
}

package gitrepo

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AttributesFile is the name of the files with Git attributes.
const AttributesFile = ".gitattributes"

// AttributeFile is a file with Git attributes.
type AttributeFile struct {
	Name string // for messages
	Dir  string // directory that the patterns are relative to, in the repository
	Data []byte
}

// ContentAttribute is a line of an AttributeFile that makes Git change the content of files in a checkout.
type ContentAttribute struct {
	File         string // name of the AttributeFile
	Line, Column int
	Attribute    string // such as "filter"; empty if the file is not text, so that its effect is unknown
	Macro        string // macro that sets the attribute; may be empty

	dir     string
	pattern *regexp.Regexp // for paths below dir
}

// ContentAttributes returns the attributes that change the content of files: working-tree-encoding, ident,
// filter and eol, unless the value has no effect. It includes attributes that a later line unsets. The macros
// of each file apply to all files.
func ContentAttributes(files []AttributeFile) []ContentAttribute {
	macros := map[string][]string{}
	for _, f := range files {
		for _, words := range splitAttributes(f.Data) {
			if name, is := strings.CutPrefix(words[0].text, "[attr]"); is {
				for _, w := range words[1:] {
					macros[name] = append(macros[name], w.text)
				}
			}
		}
	}
	var out []ContentAttribute
	for _, f := range files {
		if !utf8.Valid(f.Data) || bytes.IndexByte(f.Data, 0) >= 0 {
			out = append(out, ContentAttribute{File: f.Name, Line: 1, Column: 1, dir: f.Dir, pattern: regexp.MustCompile("")})
			continue
		}
		for _, words := range splitAttributes(f.Data) {
			if strings.HasPrefix(words[0].text, "[attr]") {
				continue
			}
			for _, w := range words[1:] {
				a := ContentAttribute{File: f.Name, Line: w.line, Column: w.column, dir: f.Dir}
				if a.Attribute = contentAttribute(w.text, macros, 0); a.Attribute == "" {
					continue
				}
				if name, _, _ := strings.Cut(w.text, "="); name != a.Attribute {
					a.Macro = name
				}
				a.pattern = regexp.MustCompile("") // all files
				if len(out) < maxPatterns {
					a.pattern = attributePattern(words[0].text)
				}
				out = append(out, a)
			}
		}
	}
	return out
}

// maxPatterns limits the patterns that are evaluated, because the files may be untrusted. Any further
// pattern is assumed to match all files.
const maxPatterns = 1000

// Matches reports whether the attribute may apply to the file name, a path in the repository. It ignores case,
// and a bracket expression matches any character.
func (a ContentAttribute) Matches(name string) bool {
	if a.dir != "." {
		rest, below := strings.CutPrefix(name, a.dir+"/")
		if !below {
			return false
		}
		name = rest
	}
	return a.pattern.MatchString(name)
}

// contentAttribute returns the content-changing attribute that a word sets, or "". The word may be an
// attribute such as "filter=lfs", or a macro.
func contentAttribute(word string, macros map[string][]string, depth int) string {
	name, value, _ := strings.Cut(word, "=")
	switch {
	case strings.HasPrefix(name, "-") || strings.HasPrefix(name, "!"):
		return ""
	case name == "ident" || name == "filter",
		name == "eol" && value != "lf",
		name == "working-tree-encoding" && !strings.EqualFold(value, "UTF-8"):
		return name
	case depth > len(macros): // a macro that contains itself
		return ""
	}
	for _, w := range macros[name] {
		if found := contentAttribute(w, macros, depth+1); found != "" {
			return found
		}
	}
	return ""
}

// attributeWord is a word in a file with attributes.
type attributeWord struct {
	text         string
	line, column int
}

// splitAttributes returns the words of each line that is neither empty nor a comment. The first word is a
// pattern, or "[attr]" with the name of a macro.
func splitAttributes(data []byte) [][]attributeWord {
	var out [][]attributeWord
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		n++
		var words []attributeWord
		for at := 0; at < len(line); {
			if strings.IndexByte(" \t\r\n", line[at]) >= 0 {
				at++
				continue
			}
			end := at + wordLength(line[at:], len(words) == 0)
			words = append(words, attributeWord{line[at:end], n, at + 1})
			at = end
		}
		if len(words) > 0 && !strings.HasPrefix(words[0].text, "#") {
			out = append(out, words)
		}
	}
	return out
}

// wordLength returns the length of the first word of text. A quoted pattern may contain spaces.
func wordLength(text string, quotable bool) int {
	if quotable && text[0] == '"' {
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
	}
	if i := strings.IndexAny(text, " \t\r\n"); i >= 0 {
		return i
	}
	return len(text)
}

// attributePattern returns a regular expression for the files that a pattern may match. It matches at least the
// files that Git matches.
func attributePattern(pattern string) *regexp.Regexp {
	if strings.HasPrefix(pattern, `"`) {
		unquoted, err := strconv.Unquote(pattern)
		if err != nil {
			return regexp.MustCompile("")
		}
		pattern = unquoted
	}
	var b strings.Builder
	b.WriteString("(?is)^")
	if !strings.Contains(pattern, "/") {
		b.WriteString("(?:.*/)?")
	}
	pattern = strings.TrimPrefix(pattern, "/")
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			i++
		case rest[0] == '*':
			b.WriteString("[^/]*")
		case rest[0] == '?':
			b.WriteString("[^/]")
		case rest[0] == '[': // the end of the bracket expression is ambiguous, too
			b.WriteString(".*$")
			return regexp.MustCompile(b.String())
		case rest[0] == '\\' && len(rest) > 1: // the next character is quoted
			_, size := utf8.DecodeRuneInString(rest[1:])
			b.WriteString(regexp.QuoteMeta(rest[1 : 1+size]))
			i += size
		default:
			_, size := utf8.DecodeRuneInString(rest)
			b.WriteString(regexp.QuoteMeta(rest[:size]))
			i += size - 1
		}
	}
	b.WriteString("$")
	expression, err := regexp.Compile(b.String())
	if err != nil {
		return regexp.MustCompile("")
	}
	return expression
}

// IsAttributesFile reports whether Git reads attributes from a file, also on file systems that ignore case.
func IsAttributesFile(name string) bool { return strings.EqualFold(path.Base(name), AttributesFile) }

// InfoAttributes returns the path of the attributes file that is in the Git directory and is not committed.
func (r *Repo) InfoAttributes() string { return r.common + "/info/attributes" }

// Affected returns the files to which the attribute may apply, sorted.
func (a ContentAttribute) Affected(files []string) []string {
	out := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return !a.Matches(name) })
	slices.Sort(out)
	return out
}

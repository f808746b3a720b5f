package fbc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

const (
	ignoreFile    = ".indexignore"
	maxIgnore     = 1 << 20 // bytes of one .indexignore
	maxIgnoreRule = 1000    // bytes of one line
	maxRules      = 10_000
)

// ignoreRules are the patterns of the .indexignore files read so far, in the
// syntax of .gitignore. The last one that matches decides.
type ignoreRules struct {
	rules []ignoreRule
}

type ignoreRule struct {
	dir     string // where the file lies; "." for the root
	negated bool
	dirOnly bool
	name    *regexp.Regexp // of the path below dir
}

// load adds the rules of dir's own .indexignore, if it has one.
func (r *ignoreRules) load(fsys fs.FS, dir string) error {
	f, err := fsys.Open(path.Join(dir, ignoreFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", ignoreFile, plain(err))
	}
	defer f.Close()
	in := bufio.NewScanner(io.LimitReader(f, maxIgnore+1))
	total := 0
	for in.Scan() {
		if total += len(in.Bytes()) + 1; total > maxIgnore || len(r.rules) > maxRules || len(in.Bytes()) > maxIgnoreRule {
			return fmt.Errorf("%s: too large", ignoreFile)
		}
		rule, ok, err := parseIgnore(dir, in.Text())
		if err != nil {
			return fmt.Errorf("%s: pattern %q: %w", ignoreFile, in.Text(), err)
		}
		if ok {
			r.rules = append(r.rules, rule)
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("%s: %w", ignoreFile, err)
	}
	return nil
}

// match reports whether name is ignored. Its parents are taken not to be.
func (r *ignoreRules) match(name string, isDir bool) bool {
	for i := len(r.rules) - 1; i >= 0; i-- {
		rule := &r.rules[i]
		if rule.dirOnly && !isDir {
			continue
		}
		below := name
		if rule.dir != "." {
			rest, ok := strings.CutPrefix(name, rule.dir+"/")
			if !ok {
				continue
			}
			below = rest
		}
		if rule.name.MatchString(below) {
			return !rule.negated
		}
	}
	return false
}

// parseIgnore reads one line; ok is false for blank lines and comments.
func parseIgnore(dir, line string) (rule ignoreRule, ok bool, err error) {
	line = strings.TrimRight(line, "\r")
	if trimmed := strings.TrimRight(line, " "); !strings.HasSuffix(trimmed, `\`) {
		line = trimmed
	}
	if line == "" || line[0] == '#' {
		return ignoreRule{}, false, nil
	}
	rule.dir = dir
	if line[0] == '!' {
		rule.negated, line = true, line[1:]
	}
	if rest, cut := strings.CutSuffix(line, "/"); cut {
		rule.dirOnly, line = true, rest
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return ignoreRule{}, false, nil
	}
	expr := globExpr(line)
	if !anchored {
		expr = "(?:.*/)?" + expr
	}
	rule.name, err = regexp.Compile("^(?s:" + expr + ")$")
	return rule, err == nil, err
}

// globExpr turns a gitignore glob into a regular expression.
func globExpr(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		rest := glob[i:]
		switch c := glob[i]; {
		case strings.HasPrefix(rest, "**/") && (i == 0 || glob[i-1] == '/'):
			b.WriteString("(?:.*/)?")
			i += 2
		case rest == "**" && i > 0 && glob[i-1] == '/':
			b.WriteString(".+")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[' && strings.IndexByte(rest[1:], ']') > 0:
			end := i + 1 + strings.IndexByte(rest[1:], ']')
			b.WriteString(classExpr(glob[i+1 : end]))
			i = end
		case c == '\\' && len(rest) > 1:
			b.WriteString(regexp.QuoteMeta(glob[i+1 : i+2]))
			i++
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}
	return b.String()
}

// classExpr turns the inside of a glob's brackets into a regular expression.
func classExpr(class string) string {
	not := ""
	if class[0] == '!' || class[0] == '^' {
		not, class = "^", class[1:]
	}
	class = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`, `]`, `\]`).Replace(class)
	if class == "" {
		return regexp.QuoteMeta("[" + not + "]")
	}
	return "[" + not + class + "]"
}

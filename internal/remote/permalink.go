package remote

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// LineLinks builds the URLs of lines in the files of a repository. The zero value builds none.
type LineLinks struct {
	pattern string // URL with the placeholders {commit}, {path} and {line}
}

// NewLineLinks returns LineLinks for a Git remote, given as an https or ssh URL or as
// user@host:path. It returns the zero value for an unknown host.
func NewLineLinks(repository string) LineLinks {
	r, ok := Parse(repository)
	if !ok || r.Project == "" {
		return LineLinks{}
	}
	if page := r.Page(); sanitize.URL(page) != page {
		return LineLinks{}
	}
	return LineLinks{r.LinePattern()}
}

// ParseLinks parses a setting of the user. The setting is the URL of a repository on a known forge, or the URL
// of a file on any server with the placeholders {commit}, {path} and optionally {line}.
func ParseLinks(text string) (LineLinks, error) {
	pattern := text
	if !strings.Contains(text, "{") {
		f := NewLineLinks(text)
		if f == (LineLinks{}) {
			return f, fmt.Errorf("%q is not a repository of %s: specify the URL of a file with {commit}, {path} and {line}, such as https://git.example.com/team/fleet/blob/{commit}/{path}#L{line}", text, strings.Join(Forges(), ", "))
		}
		return f, nil
	}
	for _, field := range []string{"{commit}", "{path}"} {
		if strings.Count(text, field) != 1 {
			return LineLinks{}, fmt.Errorf("%q contains %s %d times: expected exactly once", text, field, strings.Count(text, field))
		}
	}
	if plain := strings.NewReplacer("{commit}", "c", "{path}", "p", "{line}", "1").Replace(text); strings.ContainsAny(plain, "{}") || sanitize.URL(plain) != plain {
		return LineLinks{}, fmt.Errorf("%q is not an http or https URL with {commit}, {path} and {line}", text)
	}
	return LineLinks{pattern}, nil
}

// Line returns the URL of a line in a file at a commit. If line is 0, it returns the URL of the whole file.
// path is relative to the repository. Line returns "" for the zero value, or if commit or path is empty.
func (f LineLinks) Line(commit, path string, line int) string {
	if f.pattern == "" || commit == "" || path == "" {
		return ""
	}
	pattern := f.pattern
	if line == 0 {
		line = 1
		if at, fragment, ok := strings.Cut(pattern, "#"); ok && strings.Contains(fragment, "{line}") {
			pattern = at
		}
	}
	steps := strings.Split(path, "/")
	for i, s := range steps {
		steps[i] = url.PathEscape(s)
	}
	return sanitize.URL(strings.NewReplacer("{commit}", url.PathEscape(commit), "{path}", strings.Join(steps, "/"), "{line}", strconv.Itoa(line)).Replace(pattern))
}

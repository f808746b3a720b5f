// Package permalink knows where GitHub, GitLab and others show the lines of a file: it
// makes addresses, and asks nobody whether there is anything at them.
//
// Start from [Of], for where a repository is pulled from, and [Parse], for what a user
// says.
package permalink

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/remote"
)

// Forge is where the files of one repository are shown. The zero value shows none.
type Forge struct {
	pattern string // an address with the fields
}

// kind is one forge, and what follows the page of a repository there.
type kind struct {
	forge remote.Forge
	name  string
	lines string
}

func kinds() []kind {
	return []kind{
		{remote.GitHub, "GitHub", "/blob/{commit}/{path}#L{line}"},
		{remote.GitLab, "GitLab", "/-/blob/{commit}/{path}#L{line}"},
		{remote.Gitea, "Forgejo and Gitea", "/src/commit/{commit}/{path}#L{line}"},
		{remote.Bitbucket, "Bitbucket", "/src/{commit}/{path}#lines-{line}"},
	}
}

// Kinds returns the names of the forges that are known, in the order of the table.
func Kinds() []string {
	var out []string
	for _, k := range kinds() {
		out = append(out, k.name)
	}
	return out
}

// Of returns the forge that a URL of a repository belongs to, as Git takes it: over
// https or ssh, or as user@host:path. It is the zero value where the host is none that
// is known.
func Of(repository string) Forge {
	r, ok := remote.Parse(repository)
	if !ok || r.Project == "" {
		return Forge{}
	}
	page := r.Page()
	for _, k := range kinds() {
		if r.Likely() == k.forge && inert.URL(page) == page {
			return Forge{page + k.lines}
		}
	}
	return Forge{}
}

// Parse reads what a user says of where files are shown: the address of a repository
// in a forge that is known, or of a file in any, with {commit}, {path} and, if there
// are pages with lines, {line}.
func Parse(text string) (Forge, error) {
	pattern := text
	if !strings.Contains(text, "{") {
		f := Of(text)
		if f == (Forge{}) {
			return f, fmt.Errorf("%q is no repository of %s: name the address of a file in it, with {commit}, {path} and {line}, as in https://git.example.com/team/fleet/blob/{commit}/{path}#L{line}", text, strings.Join(Kinds(), ", "))
		}
		return f, nil
	}
	for _, field := range []string{"{commit}", "{path}"} {
		if strings.Count(text, field) != 1 {
			return Forge{}, fmt.Errorf("%q has %s %d times: want it once", text, field, strings.Count(text, field))
		}
	}
	if plain := strings.NewReplacer("{commit}", "c", "{path}", "p", "{line}", "1").Replace(text); strings.ContainsAny(plain, "{}") || inert.URL(plain) != plain {
		return Forge{}, fmt.Errorf("%q is no address over http or https with {commit}, {path} and {line} in it", text)
	}
	return Forge{pattern}, nil
}

// Line returns the address of a line of a file at a commit, the path being relative to
// the repository; of the file, where line is 0. It is empty for the zero value, and
// where there is no commit.
func (f Forge) Line(commit, path string, line int) string {
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
	return inert.URL(strings.NewReplacer("{commit}", url.PathEscape(commit), "{path}", strings.Join(steps, "/"), "{line}", strconv.Itoa(line)).Replace(pattern))
}

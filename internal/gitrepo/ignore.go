package gitrepo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Ignore tells which files of a work tree Git ignores, by the .gitignore files
// in it. It is filled on a walk from the top: [Ignore.Load] for each directory
// before what lies in it is asked for.
type Ignore struct{ patterns []gitignore.Pattern }

// NewIgnore returns an Ignore that ignores nothing yet.
func NewIgnore() *Ignore { return &Ignore{} }

// Load reads the .gitignore of a directory, if there is one. rel is its path
// from the top of the work tree, "." for the top itself.
func (g *Ignore) Load(dir, rel string) error {
	data, err := os.ReadFile(filepath.Join(dir, ".gitignore"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			g.patterns = append(g.patterns, gitignore.ParsePattern(line, steps(rel)))
		}
	}
	return nil
}

// Match reports whether Git ignores the file or directory at rel.
func (g *Ignore) Match(rel string, dir bool) bool {
	if rel == "." || len(g.patterns) == 0 {
		return false
	}
	return gitignore.NewMatcher(g.patterns).Match(steps(rel), dir)
}

func steps(rel string) []string {
	if rel == "." {
		return nil
	}
	return strings.Split(rel, "/")
}

package fbc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

const (
	ignoreFile    = ".indexignore"
	maxIgnore     = 1 << 20 // maximum size of one .indexignore file
	maxIgnoreRule = 1000    // maximum size of one line
	maxRules      = 10_000
)

// ignoreRules holds the patterns of the .indexignore files read so far. As in operator-registry, they are
// .gitignore patterns as implemented by go-git, but each file is matched separately, and the last matching
// pattern decides. So a pattern can include a file in an ignored directory again.
type ignoreRules struct {
	patterns []gitignore.Pattern
}

// load adds the rules of the .indexignore file in dir, if it exists.
func (r *ignoreRules) load(fsys fs.FS, dir string) error {
	f, err := fsys.Open(path.Join(dir, ignoreFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", ignoreFile, withoutPath(err))
	}
	defer f.Close()
	var domain []string
	if dir != "." {
		domain = strings.Split(dir, "/")
	}
	in := bufio.NewScanner(io.LimitReader(f, maxIgnore+1))
	total := 0
	for in.Scan() {
		if total += len(in.Bytes()) + 1; total > maxIgnore || len(r.patterns) > maxRules || len(in.Bytes()) > maxIgnoreRule {
			return fmt.Errorf("%s: too large", ignoreFile)
		}
		if line := strings.TrimSpace(in.Text()); line != "" && line[0] != '#' {
			r.patterns = append(r.patterns, gitignore.ParsePattern(line, domain))
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("%s: %w", ignoreFile, err)
	}
	return nil
}

// match reports whether the file with this path is ignored.
func (r *ignoreRules) match(name string) bool {
	return len(r.patterns) > 0 && gitignore.NewMatcher(r.patterns).Match(strings.Split(name, "/"), false)
}

package gitrepo

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Ignore decides which files of a work tree Git ignores, according to .gitignore files. Walk the
// work tree from its top, and in each directory call [Ignore.Load] before [Ignore.Match].
type Ignore struct{ patterns []gitignore.Pattern }

// NewIgnore returns an Ignore without patterns.
func NewIgnore() *Ignore { return &Ignore{} }

// WalkFiles calls visit for each regular file in files that Git does not ignore, in lexical order.
// It does not enter directories for which skip returns true. If files does not exist, there is no
// error.
func WalkFiles(files fs.FS, skip func(dir string) bool, visit func(name string, d fs.DirEntry) error) error {
	ignored := NewIgnore()
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case name == "." && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || skip(name) || ignored.Match(name, true)):
			return fs.SkipDir
		case d.IsDir():
			return ignored.Load(files, name)
		case !d.Type().IsRegular() || ignored.Match(name, false):
			return nil
		}
		return visit(name, d)
	})
}

// Load adds the patterns in the .gitignore of directory rel, if there is one.
func (g *Ignore) Load(files fs.FS, rel string) error {
	data, err := fs.ReadFile(files, path.Join(rel, ".gitignore"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	g.Parse(data, rel)
	return nil
}

// Parse adds patterns in the format of .gitignore that apply to directory rel.
func (g *Ignore) Parse(data []byte, rel string) {
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			g.patterns = append(g.patterns, gitignore.ParsePattern(line, pathSteps(rel)))
		}
	}
}

// Match reports whether Git ignores the file rel, or the directory rel if dir is true.
func (g *Ignore) Match(rel string, dir bool) bool {
	if rel == "." || len(g.patterns) == 0 {
		return false
	}
	return gitignore.NewMatcher(g.patterns).Match(pathSteps(rel), dir)
}

func pathSteps(rel string) []string {
	if rel == "." {
		return nil
	}
	return strings.Split(rel, "/")
}

package gitrepo

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Ignore decides which files of a work tree Git ignores, according to .gitignore files. Walk the
// work tree from its top, and in each directory call [Ignore.Load] before [Ignore.Match].
type Ignore struct{ patterns []gitignore.Pattern }

// NewIgnore returns an Ignore without patterns.
func NewIgnore() *Ignore { return &Ignore{} }

// WalkFiles calls visit for each regular file in files that Git does not ignore, in lexical order, until visit
// returns fs.SkipAll. It does not enter directories for which skip returns true. If files does not exist, it
// returns nil.
func WalkFiles(files fs.FS, skip func(dir string) bool, visit func(name string, d fs.DirEntry) error) error {
	if _, err := fs.Stat(files, "."); errors.Is(err, fs.ErrNotExist) || err == nil && skip(".") {
		return nil
	}
	w := fileWalk{files, skip, visit, NewIgnore()}
	err := w.walk(".")
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// fileWalk is a walk through a work tree. It lists each directory once.
type fileWalk struct {
	files   fs.FS
	skip    func(dir string) bool
	visit   func(name string, d fs.DirEntry) error
	ignored *Ignore
}

func (w *fileWalk) walk(dir string) error {
	list, err := fs.ReadDir(w.files, dir)
	if err == nil && slices.ContainsFunc(list, func(d fs.DirEntry) bool { return d.Name() == ".gitignore" }) {
		err = w.ignored.Load(w.files, dir)
	}
	for i := 0; err == nil && i < len(list); i++ {
		d := list[i]
		name := path.Join(dir, d.Name())
		switch {
		case d.IsDir() && (d.Name() == ".git" || w.skip(name)), !d.IsDir() && !d.Type().IsRegular(), w.ignored.Match(name, d.IsDir()):
		case d.IsDir():
			err = w.walk(name)
		default:
			err = w.visit(name, d)
		}
	}
	return err
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

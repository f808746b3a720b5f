package propose

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/workspace"
)

// environment returns what the workspace is called in this repository.
func (b *Base) environment() (string, error) {
	entries, err := b.head.List(".")
	if err != nil {
		return "", err
	}
	mine := called(b.project.Settings.Name, b.prefix)
	for _, e := range entries {
		dir := path.Dir(e.Path)
		if path.Base(e.Path) != workspace.FileName || dir == b.prefix || strings.Contains("/"+dir, "/.") && dir != "." {
			continue
		}
		name := ""
		if w, err := project.Revision(b.head, dir).ReadSettings(); err == nil {
			name = w.Name
		}
		if refPart(called(name, dir)) == refPart(mine) && b.prefix != "." {
			return b.prefix, nil
		}
	}
	return mine, nil
}

// called returns what a workspace in a directory of the repository is called.
func called(name, dir string) string {
	switch {
	case name != "":
		return name
	case dir == ".":
		return ""
	default:
		return path.Base(dir)
	}
}

// below returns the name of the branch below name for the environment.
func (b *Base) below(name string) string {
	return path.Join(name, refPart(b.Environment))
}

// branchFor returns the name of the branch for an upgrade of an operator,
// namespace/package, among several.
func (b *Base) branchFor(operator string) string {
	return path.Join(b.below(b.opt.Branch), refPart(operator))
}

// done returns the branches that are for this environment and for none of the
// upgrades that were proposed, sorted: nothing is left to move there.
func (b *Base) done(proposed []string) ([]string, error) {
	top := b.below(b.opt.Branch)
	have, err := b.repo.Branches(top)
	if err != nil {
		return nil, fmt.Errorf("listing branches: %w", err)
	}
	return slices.DeleteFunc(have, func(branch string) bool {
		rest := strings.TrimPrefix(branch, top+"/")
		return slices.Contains(proposed, branch) || strings.Count(rest, "/") != 1
	}), nil
}

// refPart returns a path of names as a part of the name of a branch.
func refPart(s string) string {
	var parts []string
	for part := range strings.SplitSeq(s, "/") {
		part = strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
				return r
			default:
				return '-'
			}
		}, part)
		for strings.Contains(part, "..") {
			part = strings.ReplaceAll(part, "..", ".")
		}
		if part = strings.Trim(strings.TrimSuffix(part, ".lock"), "."); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

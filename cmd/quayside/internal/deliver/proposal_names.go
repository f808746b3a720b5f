package deliver

import (
	"path"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/settings"
)

// environment returns the value of Proposer.Environment.
func (b *Proposer) environment() (string, error) {
	entries, err := b.head.List(".")
	if err != nil {
		return "", err
	}
	mine := workspaceName(b.clone.Project.Settings.Name, b.clone.Prefix)
	for _, e := range entries {
		dir := path.Dir(e.Path)
		if path.Base(e.Path) != settings.FileName || dir == b.clone.Prefix || strings.Contains("/"+dir, "/.") && dir != "." {
			continue
		}
		name := ""
		if w, err := workspace.Revision(b.head, dir).ReadSettings(); err == nil {
			name = w.Name
		}
		if cleanRefPart(workspaceName(name, dir)) == cleanRefPart(mine) && b.clone.Prefix != "." {
			return b.clone.Prefix, nil
		}
	}
	return mine, nil
}

// workspaceName returns name, or the base name of the directory if name is empty.
func workspaceName(name, dir string) string {
	switch {
	case name != "":
		return name
	case dir == ".":
		return ""
	default:
		return path.Base(dir)
	}
}

// environmentBranch returns the branch name "<name>/<environment>".
func (b *Proposer) environmentBranch(name string) string {
	return path.Join(name, cleanRefPart(b.Environment))
}

// branchFor returns the branch name for the upgrade of an operator (namespace/package). The branch of several
// operators is named after the first.
func (b *Proposer) branchFor(operator string) string {
	return path.Join(b.environmentBranch(b.opt.Branch), cleanRefPart(operator))
}

// cleanRefPart converts s to a valid part of a branch name.
func cleanRefPart(s string) string {
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

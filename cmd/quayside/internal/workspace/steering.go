package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/sanitize"
)

// foreignHint is the hint for files in the tree that quayside did not write.
const foreignHint = "move or delete it; put your own objects and patches in overlays/<cluster>/"

// GitOpsEffect describes how a file that quayside did not write affects the objects that a GitOps tool applies:
// for example, "read by kustomize". It returns "" if there is no effect. want is the rendered tree.
func GitOpsEffect(name string, want *filetree.Tree) string {
	dir, base := path.Split(name)
	top, _, _ := strings.Cut(name, "/")
	if _, engine := profile.AboutDirectory(top); engine || layout.IsAppliedAsIs(name) {
		return "applied with its directory"
	}
	if tool := profile.ToolOfFile(base); tool != "" {
		return "read by " + tool
	}
	if slices.Contains(konfig.RecognizedKustomizationFileNames(), base) {
		for ours := range want.All() {
			if d, _ := path.Split(ours); d == dir {
				return "read by kustomize"
			}
		}
	}
	return ""
}

// checkForeign returns a fault for each file in the tree that quayside did not write and that changes the
// objects that a GitOps tool applies. It also checks the parent directories up to the root of the repository.
func (p *Opened) checkForeign(foreign []string, want *filetree.Tree) ([]string, error) {
	var out []string
	output := p.Settings.OutputDir()
	for _, name := range foreign {
		if effect := GitOpsEffect(name, want); effect != "" {
			out = append(out, fmt.Sprintf("%s: not written by quayside, but %s", sanitize.Line(path.Join(output, name)), effect))
		}
	}
	git, prefix, err := p.OpenRepo()
	if errors.Is(err, gitrepo.ErrNone) {
		return out, nil
	}
	if err != nil || git.Root() == "" {
		return out, err
	}
	repo := filetree.OpenDir(git.Root(), "repository").FS()
	modules, err := checkSubmodules(repo, path.Join(prefix, output))
	if out = append(out, modules...); err != nil {
		return out, err
	}
	for dir := path.Dir(path.Join(prefix, output)); ; dir = path.Dir(dir) {
		inside := filetree.Within(dir, prefix)
		faults, err := checkParent(repo, dir, path.Join(prefix, output), inside, want)
		if out = append(out, faults...); err != nil || dir == "." {
			return out, err
		}
	}
}

// checkSubmodules returns a fault for each Git submodule in the rendered tree, because a GitOps
// tool that fetches submodules would apply its content.
func checkSubmodules(repo fs.FS, output string) ([]string, error) {
	const name = ".gitmodules"
	data, err := fs.ReadFile(repo, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	paths, err := gitrepo.Submodules(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var out []string
	for _, at := range paths {
		if filetree.Within(at, output) {
			out = append(out, fmt.Sprintf("%s: a submodule is in the rendered tree (%s)", sanitize.Line(at), name))
		}
	}
	return out, nil
}

// checkParent returns the faults of files in a parent directory of the tree: ignore files that hide
// parts of the tree from a GitOps tool. If inside is true (the directory is in the workspace), it
// also returns other files that control a tool. Outside, such files belong to other applications.
func checkParent(repo fs.FS, dir, output string, inside bool, want *filetree.Tree) ([]string, error) {
	entries, err := fs.ReadDir(repo, dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name, tool := path.Join(dir, e.Name()), profile.ToolOfFile(e.Name())
		switch {
		case tool == "" || !inside && !profile.IsIgnoreFile(e.Name()):
		case !profile.IsIgnoreFile(e.Name()):
			out = append(out, fmt.Sprintf("%s: in a parent directory of the tree, and read by %s", sanitize.Line(name), tool))
		default:
			data, err := fs.ReadFile(repo, name)
			if err != nil {
				return out, err
			}
			ignored, n, first := gitrepo.NewIgnore(), 0, ""
			ignored.Parse(data, dir)
			for file := range want.All() {
				if file = path.Join(output, file); ignored.Match(file, false) {
					if n++; first == "" {
						first = file
					}
				}
			}
			if n > 0 {
				out = append(out, fmt.Sprintf("%s: hides %s of the tree from %s, such as %s", sanitize.Line(name), diag.Count(n, "file"), tool, first))
			}
		}
	}
	return out, nil
}

// listLinks returns the paths in a directory that are neither regular files nor directories.
func (r Root) listLinks(dir string) ([]string, error) {
	f, err := r.lookup(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	err = fs.WalkDir(f.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !d.Type().IsRegular() {
			out = append(out, name)
		}
		return err
	})
	return out, err
}

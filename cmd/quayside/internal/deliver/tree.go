package deliver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/oci/artifact"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// LoadOptions selects the tree to load.
type LoadOptions struct {
	At       string   // Git revision; empty: HEAD, and no uncommitted changes are allowed
	Branch   string   // branch to record in the artifact; empty: the current branch, or none with At
	Clusters []string // clusters to include; empty: all
}

// Tree is the content of an artifact: a committed tree, with its lock and provenance.
type Tree struct {
	Meta     artifact.Meta
	Project  *workspace.Project // workspace at LoadOptions.At, or on disk without At
	Lock     *lockfile.File     // lock at the revision
	Origin   *inventory.Provenance
	Clusters []string // target clusters, sorted; empty: all
	Files    *filetree.Tree
}

// LoadTree loads the content of an artifact from a commit of a workspace's repository. If the tree is out of
// date with its lock, the error is a *workspace.DiffersError. The error also contains the faults of all
// overlays that do not build, or that use files outside of the artifact.
func LoadTree(ctx context.Context, p *workspace.Project, opt LoadOptions) (*Tree, error) {
	l, err := newTreeLoader(ctx, p, opt)
	if err != nil {
		return nil, err
	}
	c := &Tree{Meta: l.meta(opt.Branch), Files: filetree.New()}
	for _, name := range opt.Clusters {
		if _, err := l.project.Settings.ClusterName(name, "--cluster"); err != nil {
			return nil, err
		}
	}
	c.Clusters = slices.Compact(slices.Sorted(slices.Values(opt.Clusters)))
	if c.Lock, err = l.project.NeedLock(); err != nil {
		return nil, err
	}
	if c.Origin, err = l.origin(c); err != nil {
		return nil, err
	}
	if c.Project = p; opt.At != "" {
		c.Project = l.project
	}
	if err := l.checkUpToDate(ctx, c); err != nil {
		return nil, err
	}
	files, err := l.listFiles(c.Clusters)
	if err != nil {
		return nil, err
	}
	if opt.At == "" {
		if err := l.checkCommitted(ctx, files); err != nil {
			return nil, err
		}
	}
	return c, l.fill(c.Files, files, c.Clusters)
}

// SelfContained returns the rendered tree with the user's overlays, and all files that the overlays use, in
// overlays/. The result builds without the workspace. rendered is the result of rendering the lock. The error
// lists each overlay that does not build, or that uses files outside of the workspace's directory of overlays.
func SelfContained(ctx context.Context, p *workspace.Project, rendered *render.Result) (*filetree.Tree, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	res, err := p.RenderSelfContained(ctx, lock, rendered)
	if err != nil {
		return nil, err
	}
	l, err := layout.Read(res.Tree.Names(), res.Tree.Get)
	if err != nil {
		return nil, err
	}
	read := func(name string) ([]byte, error) {
		if data, ok := res.Tree.Get(name); ok {
			return data, nil
		}
		data, err := p.Read(path.Join(p.Settings.OverlaysDir(), "..", name))
		if err == nil && !strings.HasPrefix(name, layout.Overlays+"/") {
			err = fmt.Errorf("%s is outside of %s", path.Dir(name), p.Settings.OverlaysDir())
		}
		return data, err
	}
	names, err := listInputs(read, ".", l, l.Clusters)
	if err != nil {
		return nil, diag.Hintf(diag.Pos{}, "move the files that the overlays use into "+p.Settings.OverlaysDir(), "%w", err)
	}
	for name := range names {
		if _, ok := res.Tree.Get(name); ok {
			continue
		}
		data, err := read(name)
		if err == nil {
			err = res.Tree.Add(name, data)
		}
		if err != nil {
			return nil, err
		}
	}
	return res.Tree, nil
}

// treeLoader loads a tree from a revision of a workspace.
type treeLoader struct {
	clone   *workspace.Clone   // workspace on disk
	project *workspace.Project // workspace at the revision
	rev     *gitrepo.Revision
	branch  string
	out     string // path of the tree in the repository
	root    string // directory of the repository that is the root of the artifact
}

func newTreeLoader(ctx context.Context, p *workspace.Project, opt LoadOptions) (*treeLoader, error) {
	clone, err := p.Clone()
	if errors.Is(err, gitrepo.ErrNone) {
		return nil, fmt.Errorf("%s is not in a Git repository: an artifact contains the tree of a commit", p.Location())
	}
	if err != nil {
		return nil, err
	}
	l := &treeLoader{clone: clone}
	switch {
	case opt.At != "":
		l.rev, err = clone.Repo.Revision(opt.At)
	case clone.Repo.Root() == "":
		return nil, errors.New("a bare repository has no work tree: specify a revision with --at")
	default:
		l.branch = clone.Repo.HeadBranch()
		l.rev, err = clone.Repo.Head()
	}
	if err != nil {
		return nil, err
	}
	if l.project, err = clone.At(l.rev); err != nil {
		return nil, err
	}
	if opt.At == "" {
		if err := clone.CheckClean(ctx); err != nil {
			return nil, fmt.Errorf("%w, or specify a revision with --at", err)
		}
	}
	if name := l.project.Settings.Output.Repository; name != "" {
		return nil, diag.Errorf(l.project.Settings.At("spec.output"), "the tree is in %s: an artifact contains the tree of a commit of this repository", name)
	}
	l.out = clone.Path(l.project.Settings.OutputDir())
	l.root, err = l.artifactRoot()
	return l, err
}

// artifactRoot returns the directory of the repository that is the root of the artifact. GitOps tools expect
// the tree at spec.gitops.path below this root. The root is therefore the tree's path without that suffix.
func (l *treeLoader) artifactRoot() (string, error) {
	w := l.project.Settings
	dir := w.OutputDir()
	if w.GitOps != nil {
		dir = path.Clean(w.GitOps.Path)
	}
	if dir == "." {
		return l.out, nil
	}
	if top, ok := strings.CutSuffix("/"+l.out, "/"+dir); ok {
		return path.Join(".", strings.TrimPrefix(top, "/")), nil
	}
	return "", diag.Errorf(w.At("spec.gitops.path"), "the tree is at %s in the repository, and spec.gitops.path (%q) is not a suffix of this path: set it to a suffix, or to \".\"", l.out, dir)
}

// meta returns the metadata of the artifact: revision, time and source.
func (l *treeLoader) meta(branch string) artifact.Meta {
	if branch == "" {
		branch = l.branch
	}
	m := artifact.Meta{Revision: formatRevision(branch, l.rev.Hash()), Created: l.rev.Time()}
	if g := l.project.Settings.GitOps; g != nil {
		m.Source = gitrepo.WithoutSecrets(g.RepoURL)
	}
	if m.Source == "" || strings.HasPrefix(m.Source, "oci:") {
		m.Source = l.clone.Repo.Origin()
	}
	return m
}

// origin returns the provenance of the artifact.
func (l *treeLoader) origin(c *Tree) (*inventory.Provenance, error) {
	data, err := l.rev.Read(l.clone.Path(workspace.LockFile))
	if err != nil {
		return nil, err
	}
	o := &inventory.Provenance{Source: c.Meta.Source, Revision: c.Meta.Revision, Workspace: l.clone.Prefix, Clusters: c.Clusters, Lock: store.DigestOf(data)}
	o.Catalogs, o.Operators = inventory.NewProvenanceInputs(c.Lock)
	return o, nil
}

// formatRevision formats a commit like Flux: "main@sha1:…".
func formatRevision(branch, commit string) string {
	const sha256Digits = 64
	kind := "sha1:"
	if len(commit) == sha256Digits {
		kind = "sha256:"
	}
	if branch != "" {
		branch += "@"
	}
	return branch + kind + commit
}

// checkUpToDate returns an error if the tree is out of date with its lock, like 'quayside render
// --check'.
func (l *treeLoader) checkUpToDate(ctx context.Context, c *Tree) error {
	res, err := c.Project.Render(ctx, c.Lock)
	if err != nil {
		return err
	}
	have, err := l.project.Rendered(res.Tree)
	if err != nil {
		return err
	}
	n := len(filetree.Diff(have, res.Tree))
	for _, name := range filetree.UserFiles(have, res.Tree) {
		if workspace.GitOpsEffect(name, res.Tree) != "" {
			n++
		}
	}
	if n > 0 {
		return &workspace.DiffersError{Msg: fmt.Sprintf("%s of %s is out of date with %s (%s): run 'quayside render' and commit the result", l.project.Settings.OutputDir(), l.rev.Name(), workspace.LockFile, diag.Count(n, "file"))}
	}
	return nil
}

// listFiles returns the paths of all files of the artifact, sorted. If clusters is empty, these are the files
// of all clusters.
func (l *treeLoader) listFiles(clusters []string) ([]string, error) {
	entries, err := l.rev.List(l.out)
	if err != nil {
		return nil, err
	}
	below := strings.TrimPrefix(l.out+"/", "./")
	tree, err := layout.Read(func(yield func(string) bool) {
		for _, e := range entries {
			if !yield(strings.TrimPrefix(e.Path, below)) {
				return
			}
		}
	}, func(name string) ([]byte, bool) {
		data, err := l.rev.Read(path.Join(l.out, name))
		return data, err == nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.out, err)
	}
	all, selected := len(clusters) == 0, tree.Clusters
	if !all {
		selected = slices.DeleteFunc(slices.Clone(selected), func(c layout.Cluster) bool { return !slices.Contains(clusters, c.Name) })
	}
	var predicates []func(name string) bool
	for _, c := range selected {
		predicates = append(predicates, isForCluster(tree, c))
	}
	names, err := listInputs(l.read, l.out, tree, selected)
	dirs := map[string]bool{} // directories with a file in the artifact
	for name := range names {
		dirs[path.Dir(name)] = true
	}
	for _, e := range entries {
		rest := strings.TrimPrefix(e.Path, below)
		if all || slices.ContainsFunc(predicates, func(is func(string) bool) bool { return is(rest) }) || path.Base(rest) == filetree.Index && dirs[path.Dir(e.Path)] {
			names[e.Path] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), err
}

// isForCluster returns a function that reports whether a cluster needs a file of the tree although
// no kustomize build includes it: a CRD, an Installation, or a file that a GitOps engine applies.
func isForCluster(tree *layout.Tree, c layout.Cluster) func(name string) bool {
	crds, _ := tree.ClusterCRDDirs(c)
	return func(name string) bool {
		parts, dir := strings.Split(name, "/"), path.Dir(name)
		about, engine := profile.AboutDirectory(parts[0])
		switch shared := c.Prefix == ""; {
		case name == layout.ClustersFile, !shared && strings.HasPrefix(name, c.Prefix), slices.Contains(crds, dir):
			return true
		case engine:
			return !about.DirectoryPerCluster || parts[1] == c.Name
		case parts[0] == "inputs", dir == layout.Pieces:
			return true
		case parts[0] == layout.Pieces:
			return parts[1] == c.Name || shared && strings.HasPrefix(parts[1], "_")
		default:
			return shared && (dir == layout.CRDs || dir == layout.Installations) // a directory of CRDs may contain only a placeholder file
		}
	}
}

// read reads a file of the revision. A symbolic link in its path is an error, because artifacts
// cannot contain links.
func (l *treeLoader) read(name string) ([]byte, error) {
	for at := name; at != "."; at = path.Dir(at) {
		if _, is := l.rev.Link(at); is {
			return nil, fmt.Errorf("%s is a symbolic link, which artifacts cannot contain: replace it with a copy of its target", at)
		}
	}
	return l.rev.Read(name)
}

// checkCommitted returns an error if one of files has uncommitted changes. It skips files in the tree.
func (l *treeLoader) checkCommitted(ctx context.Context, files []string) error {
	files = slices.DeleteFunc(slices.Clone(files), func(name string) bool {
		return l.out == "." || strings.HasPrefix(name, l.out+"/")
	})
	if len(files) == 0 {
		return nil
	}
	unclean, _, err := l.clone.Repo.DirtyFiles(ctx, files)
	if err == nil && len(unclean) > 0 {
		err = fmt.Errorf("uncommitted changes: %s: commit or undo them first, or specify a revision with --at", strings.Join(unclean[:min(len(unclean), 5)], ", "))
	}
	return err
}

// fill adds files of the revision to tree, at their paths in the artifact. In the list of clusters, it keeps
// only the given clusters. If clusters is empty, it keeps all.
func (l *treeLoader) fill(tree *filetree.Tree, files, clusters []string) error {
	var faults diag.List
	for _, name := range files {
		at := name
		if l.root != "." {
			var inside bool
			if at, inside = strings.CutPrefix(name, l.root+"/"); !inside {
				faults.Addf(diag.Pos{File: name}, "an overlay includes this file, but the artifact starts at %s: set spec.gitops.path to %q, to start at the top of the repository, and render again", l.root, l.out)
				continue
			}
		}
		data, err := l.read(name)
		if err == nil && len(clusters) > 0 && name == path.Join(l.out, layout.ClustersFile) {
			data, err = layout.FilterClusters(data, clusters)
		}
		if err == nil {
			err = tree.Add(at, data)
		}
		faults.Add(diag.Pos{}, err)
	}
	return faults.Err()
}

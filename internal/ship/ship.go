// Package ship says what of a workspace goes into an artifact for Flux or Argo CD:
// the tree of a commit, or what some clusters get of it, with all that their
// overlays build from, at the paths that the tree itself names. It sends the artifact,
// with what states where it is from beside it.
//
// Start from [Load] and [Cargo.Send].
package ship

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/propose"
	"github.com/quayside/quayside/internal/provenance"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry/artifact"
	"github.com/quayside/quayside/render/profile"
)

// Options says what is asked for.
type Options struct {
	At       string   // revision; empty: HEAD, from which the work tree must not differ
	Branch   string   // that the artifact is said to be of; empty: the one that is checked out, none for another revision
	Clusters []string // none: the whole environment
}

// Cargo is what goes into an artifact.
type Cargo struct {
	Meta     artifact.Meta
	Project  *project.Project // as it is committed, or on disk where that does not differ
	Lock     *lockfile.File   // as it is committed
	Origin   *provenance.Origin
	Clusters []string // that it is for, sorted; none: all
	Files    *filetree.Tree
}

// Load returns what goes into an artifact of a workspace that lies in a Git
// repository. A tree that is not what its lock says is a *project.DiffersError;
// overlays that do not build, or that take in what lies outside of the artifact,
// are errors, all at once.
func Load(ctx context.Context, p *project.Project, opt Options) (*Cargo, error) {
	l, err := open(ctx, p, opt)
	if err != nil {
		return nil, err
	}
	c := &Cargo{Meta: l.meta(opt.Branch), Files: filetree.New()}
	for _, name := range opt.Clusters {
		if _, err := l.there.Cluster(name, "--cluster"); err != nil {
			return nil, err
		}
	}
	c.Clusters = slices.Compact(slices.Sorted(slices.Values(opt.Clusters)))
	if c.Lock, err = l.there.NeedLock(); err != nil {
		return nil, err
	}
	if c.Origin, err = l.origin(c); err != nil {
		return nil, err
	}
	if c.Project = l.here; opt.At != "" {
		c.Project = l.there
	}
	if err := l.inStep(ctx, c); err != nil {
		return nil, err
	}
	files, err := l.files(c.Clusters)
	if err != nil {
		return nil, err
	}
	if opt.At == "" {
		if err := l.outside(ctx, files); err != nil {
			return nil, err
		}
	}
	return c, l.fill(c.Files, files, c.Clusters)
}

// loading is a revision of a workspace that is being looked at.
type loading struct {
	here   *project.Project // on disk
	there  *project.Project // in the revision
	repo   *gitrepo.Repo
	rev    *gitrepo.Revision
	branch string
	prefix string // of the workspace in the repository
	out    string // the tree in the repository
	root   string // what becomes the top of the artifact
}

func open(ctx context.Context, p *project.Project, opt Options) (*loading, error) {
	repo, err := gitrepo.Open(p.Name())
	if errors.Is(err, gitrepo.ErrNone) {
		return nil, fmt.Errorf("%s is in no Git repository: what goes into an artifact is the tree of a commit", p.Name())
	}
	if err != nil {
		return nil, err
	}
	l := &loading{here: p, repo: repo}
	if l.prefix, err = repo.Path(p.Name()); err != nil {
		return nil, err
	}
	at := opt.At
	if at == "" {
		if at = "HEAD"; repo.Root() == "" {
			return nil, errors.New("a bare repository has no work tree: name a revision with --at")
		}
		l.branch = repo.HeadBranch()
	}
	if l.rev, err = repo.Revision(at); err != nil {
		return nil, err
	}
	if l.there, err = project.Open(project.Revision(l.rev, l.prefix), p.Env); err != nil {
		return nil, err
	}
	if opt.At == "" {
		if err := propose.Clean(ctx, p, repo, l.rev, l.prefix); err != nil {
			return nil, fmt.Errorf("%w, or name a revision with --at", err)
		}
	}
	l.out = path.Join(l.prefix, l.there.Settings.Output)
	l.root, err = l.top()
	return l, err
}

// top returns the directory of the repository that is the top of the artifact: the
// tree lies below it where engines are told to look for it.
func (l *loading) top() (string, error) {
	w := l.there.Settings
	at := w.Output
	if w.GitOps != nil {
		at = path.Clean(w.GitOps.Path)
	}
	if at == "." {
		return l.out, nil
	}
	if top, ok := strings.CutSuffix("/"+l.out, "/"+at); ok {
		return path.Join(".", strings.TrimPrefix(top, "/")), nil
	}
	return "", diag.Errorf(w.At("spec.gitops.path"), "the tree lies in %s of the repository, so that no directory of it has the tree at %q: want the end of that path, or .", l.out, at)
}

// meta returns what an artifact says of its revision.
func (l *loading) meta(branch string) artifact.Meta {
	if branch == "" {
		branch = l.branch
	}
	m := artifact.Meta{Revision: revision(branch, l.rev.Hash()), Created: l.rev.Time()}
	if g := l.there.Settings.GitOps; g != nil {
		m.Source = gitrepo.WithoutSecrets(g.RepoURL)
	}
	if m.Source == "" || strings.HasPrefix(m.Source, "oci:") {
		m.Source = l.repo.Origin()
	}
	return m
}

// origin returns what the artifact is made of.
func (l *loading) origin(c *Cargo) (*provenance.Origin, error) {
	data, err := l.rev.Read(path.Join(l.prefix, project.LockFile))
	if err != nil {
		return nil, err
	}
	o := &provenance.Origin{Source: c.Meta.Source, Revision: c.Meta.Revision, Workspace: l.prefix, Clusters: c.Clusters, Lock: store.DigestOf(data)}
	o.Catalogs, o.Operators = provenance.Inputs(c.Lock)
	return o, nil
}

// revision returns a commit as Flux writes it: "main@sha1:…".
func revision(branch, commit string) string {
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

// inStep refuses a tree that is not what its lock says, as the check of render
// does.
func (l *loading) inStep(ctx context.Context, c *Cargo) error {
	res, err := c.Project.Render(ctx, c.Lock)
	if err != nil {
		return err
	}
	have, err := l.there.Rendered(res.Tree)
	if err != nil {
		return err
	}
	n := len(filetree.Diff(have, res.Tree))
	for _, name := range filetree.Foreign(have, res.Tree) {
		if layout.AppliedAsIs(name) {
			n++
		}
	}
	if n > 0 {
		return &project.DiffersError{Msg: fmt.Sprintf("%s of %s is not what %s says (%s): run 'quayside render' and commit that", l.there.Settings.Output, l.rev.Name(), project.LockFile, diag.Count(n, "file"))}
	}
	return nil
}

// files returns the paths of what goes into the artifact, sorted.
func (l *loading) files(clusters []string) ([]string, error) {
	entries, err := l.rev.List(l.out)
	if err != nil {
		return nil, err
	}
	below := strings.TrimPrefix(l.out+"/", "./")
	lies, err := layout.Read(func(yield func(string) bool) {
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
	everywhere, those := len(clusters) == 0, lies.Clusters
	if !everywhere {
		those = slices.DeleteFunc(slices.Clone(those), func(c layout.Cluster) bool { return !slices.Contains(clusters, c.Name) })
	}
	var is []func(name string) bool
	for _, c := range those {
		is = append(is, of(lies, c))
	}
	names, err := inputs(l.read, l.out, lies, those)
	dirs := map[string]bool{} // of what is in the artifact
	for name := range names {
		dirs[path.Dir(name)] = true
	}
	for _, e := range entries {
		rest := strings.TrimPrefix(e.Path, below)
		if everywhere || slices.ContainsFunc(is, func(is func(string) bool) bool { return is(rest) }) || path.Base(rest) == filetree.Index && dirs[path.Dir(e.Path)] {
			names[e.Path] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), err
}

// of returns whether a file of the tree is for a cluster, beside what its pieces are
// built from: definitions, what the reporter is to look at, and what an engine is told
// to apply there.
func of(lies *layout.Tree, c layout.Cluster) func(name string) bool {
	crds, _ := lies.Definitions(c)
	return func(name string) bool {
		parts, dir := strings.Split(name, "/"), path.Dir(name)
		switch shared := c.Prefix == ""; {
		case name == layout.ClustersFile, !shared && strings.HasPrefix(name, c.Prefix), slices.Contains(crds, dir):
			return true
		case parts[0] == string(profile.ArgoCD), parts[0] == "inputs", dir == layout.Pieces:
			return true
		case parts[0] == string(profile.Flux):
			return parts[1] == c.Name
		case parts[0] == layout.Pieces:
			return parts[1] == c.Name || shared && strings.HasPrefix(parts[1], "_")
		default:
			return shared && (dir == layout.CRDs || dir == layout.Installations) // the former may have a file that stands for no definition
		}
	}
}

// read returns a file of the revision. One behind a symbolic link is refused, for
// no engine finds it in an artifact.
func (l *loading) read(name string) ([]byte, error) {
	for at := name; at != "."; at = path.Dir(at) {
		if _, is := l.rev.Link(at); is {
			return nil, fmt.Errorf("%s is a symbolic link, which an artifact cannot hold: put what it leads to in its place", at)
		}
	}
	return l.rev.Read(name)
}

// outside refuses files beyond the tree that are not as they are committed.
func (l *loading) outside(ctx context.Context, files []string) error {
	files = slices.DeleteFunc(slices.Clone(files), func(name string) bool {
		return l.out == "." || strings.HasPrefix(name, l.out+"/")
	})
	if len(files) == 0 {
		return nil
	}
	unclean, _, err := l.repo.Unclean(ctx, files)
	if err == nil && len(unclean) > 0 {
		err = fmt.Errorf("not as committed: %s: commit or undo that first, or name a revision with --at", strings.Join(unclean[:min(len(unclean), 5)], ", "))
	}
	return err
}

// fill puts files of the revision into a tree, at the paths that they have in the
// artifact. The list of clusters has those that it is for.
func (l *loading) fill(tree *filetree.Tree, files, clusters []string) error {
	var faults diag.List
	for _, name := range files {
		at := name
		if l.root != "." {
			var inside bool
			if at, inside = strings.CutPrefix(name, l.root+"/"); !inside {
				faults.Addf(diag.Pos{File: name}, "an overlay takes this in, and the artifact begins at %s: set spec.gitops.path to %q, so that it begins at the top of the repository, and render again", l.root, l.out)
				continue
			}
		}
		data, err := l.read(name)
		if err == nil && len(clusters) > 0 && name == path.Join(l.out, layout.ClustersFile) {
			data, err = layout.Only(data, clusters)
		}
		if err == nil {
			err = tree.Add(at, data)
		}
		faults.Add(diag.Pos{}, err)
	}
	return faults.Err()
}

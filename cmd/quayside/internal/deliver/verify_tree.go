package deliver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/layout"
)

// CheckTreeOf compares the tree in a directory with the tree rendered anew from its workspace. source is the
// path or URL of the workspace's repository, optionally with "@COMMIT". The default commit is the one that the
// directory records. Paths are relative to root. The commit must be in the history of HEAD. If the trees cannot
// be compared, the report is nil.
func CheckTreeOf(ctx context.Context, env workspace.Env, root workspace.Root, dir, source string) (r *ArtifactReport, err error) {
	here, err := gitrepo.Open(root.Path(dir))
	if err != nil {
		return nil, err
	}
	have, err := filetree.ReadLike(filetree.OpenUserDir(root.Path(dir)).FS(), filetree.New())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such directory", dir)
	}
	if err != nil {
		return nil, err
	}
	record, err := readSourceRecord(root.Read, dir)
	if err != nil {
		return nil, err
	}
	if record == nil {
		return nil, fmt.Errorf("%s has no %s: it was not written by 'quayside propose --tree'", dir, recordName)
	}
	name, commit := splitSource(source)
	if commit == "" {
		commit = record.Commit
	}
	if !strings.Contains(name, "://") && gitrepo.WithoutSecrets(name) == "" { // a path
		name = root.Path(name)
	}
	repo, done, err := here.OpenOrClone(ctx, name, env.Getenv("GIT_TOKEN"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	p, err := openSourceWorkspace(env, repo, name, commit, record.Path)
	if err != nil {
		return nil, err
	}
	at, err := here.Path(root.Path(dir))
	if err != nil {
		return nil, err
	}
	if w := p.Settings; w.Output.Repository == "" || w.Output.Path != at {
		return nil, &workspace.DiffersError{Msg: fmt.Sprintf("%s was rendered from %s, which writes its tree to %s", dir, record.Path, w.OutputName())}
	}
	r = &ArtifactReport{
		Reference: dir, Source: diag.Redact(name), Revision: commit, Created: record.Date, Files: have.Len(),
		SignedBy: []string{}, Clusters: []string{}, Changes: []filetree.FileChange{}, Unchecked: []string{}, Failure: workspace.NewFailure(),
	}
	err = r.compareWith(ctx, p, have)
	r.UpToDate = err == nil
	r.Add(err)
	return r, err
}

// splitSource splits "SOURCE@COMMIT". Without a commit, it returns source and "".
func splitSource(source string) (name, commit string) {
	i := strings.LastIndex(source, "@")
	if i < 0 || strings.ContainsAny(source[i:], ":/.") { // git@host:path
		return source, ""
	}
	return source[:i], source[i+1:]
}

// openSourceWorkspace opens a workspace at a commit. It rejects a commit outside of the history of HEAD,
// because a Git server may also return commits of forks and of unmerged branches.
func openSourceWorkspace(env workspace.Env, repo *gitrepo.Repo, name, commit, dir string) (*workspace.Project, error) {
	head, err := repo.Head()
	if err != nil {
		return nil, err
	}
	rev, err := repo.Revision(commit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", diag.Redact(name), err)
	}
	if !repo.Contains(head, rev) {
		return nil, fmt.Errorf("%s: commit %.12s is not in the history of HEAD (%.12s): it was not merged there", diag.Redact(name), rev.Hash(), head.Hash())
	}
	return workspace.Open(workspace.Revision(rev, dir), env)
}

// compareWith renders the lock of a workspace, and adds the differences between the result and have to r.Changes.
func (r *ArtifactReport) compareWith(ctx context.Context, p *workspace.Project, have *filetree.Tree) error {
	lock, err := p.NeedLock()
	if err != nil {
		return err
	}
	res, err := p.Render(ctx, lock)
	if err != nil {
		return err
	}
	tree, err := SelfContained(ctx, p, res)
	if err != nil {
		return err
	}
	for _, c := range compareTrees(have, tree) {
		if c.Kind != filetree.Extra || path.Base(c.Path) != filetree.Index && c.Path != recordName && workspace.GitOpsEffect(c.Path, tree) != "" {
			r.Changes = append(r.Changes, c)
		}
	}
	clusters, err := layout.Read(have.Names(), have.Get)
	if err != nil {
		return err
	}
	for _, c := range clusters.Clusters {
		r.Clusters = append(r.Clusters, c.Name)
	}
	if len(r.Changes) > 0 {
		return &workspace.DiffersError{Msg: fmt.Sprintf("%s differs from the rendered tree of commit %.12s (%s)", r.Reference, r.Revision, diag.Count(len(r.Changes), "file"))}
	}
	return nil
}

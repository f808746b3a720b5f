package deliver

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
)

// recordName is the name of the file in a tree of another repository that records the source of the tree. The
// name and all fields except path come from Argo CD's source hydrator
// (https://argo-cd.readthedocs.io/en/stable/user-guide/source-hydrator/).
const recordName = "hydrator.metadata"

// sourceRecord records the commit from which a tree in another repository was rendered.
type sourceRecord struct {
	RepoURL string `json:"repoURL,omitempty"`
	Commit  string `json:"drySha"`
	Path    string `json:"path"` // directory of the workspace in the repository
	Author  string `json:"author,omitempty"`
	Date    string `json:"date,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// newSourceRecord returns the record of a commit of a workspace.
func newSourceRecord(clone *workspace.Clone, rev *gitrepo.Revision) sourceRecord {
	subject, _, _ := strings.Cut(rev.Message(), "\n")
	return sourceRecord{
		RepoURL: clone.Repo.Origin(), Commit: rev.Hash(), Path: clone.Prefix,
		Author: sanitize.Line(rev.Author()), Date: rev.Time().UTC().Format(time.RFC3339), Subject: sanitize.Commit(subject),
	}
}

// text returns the content of the file.
func (s sourceRecord) text() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}

// trailers returns the last lines of the message of a commit.
func (s sourceRecord) trailers() string {
	source := strings.TrimPrefix(s.RepoURL+"@"+s.Commit, "@") // a clone without origin has no URL
	return fmt.Sprintf("Quayside-Source: %s\nQuayside-Workspace: %s\n", source, s.Path)
}

// readSourceRecord returns the record in a directory, or nil if it has none.
func readSourceRecord(read func(name string) ([]byte, error), dir string) (*sourceRecord, error) {
	name := path.Join(dir, recordName)
	data, err := read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out sourceRecord
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err == nil && (!isCommit(out.Commit) || !fs.ValidPath(out.Path)) {
		err = errors.New("expected drySha, the hash of a commit, and path, a directory of its repository")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &out, nil
}

// isCommit reports whether text is the full hash of a commit.
func isCommit(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && (len(text) == 40 || len(text) == 64)
}

// TreeProposer proposes the tree of a workspace in the repository of spec.output.
type TreeProposer struct {
	*Proposer
	source *gitrepo.Revision // commit of the workspace
	done   func() error      // removes the clone
}

// OpenTreeProposer clones the repository of spec.output. The caller must call Close. It returns an error if the
// work tree has uncommitted changes.
func OpenTreeProposer(ctx context.Context, p *workspace.Project, opt ProposalOptions) (t *TreeProposer, err error) {
	out := p.Settings.Output
	if out.Repository == "" {
		return nil, diag.Hintf(p.Settings.At("spec.output"), "set spec.output to {repository: URL, path: DIRECTORY}", "the tree is in this repository")
	}
	opt.Remote, opt.Into = out.Repository, out.Branch
	b, err := newProposer(ctx, p, opt)
	if err != nil {
		return nil, err
	}
	t = &TreeProposer{Proposer: b, source: b.head}
	p.Log.Progress("cloning %s", diag.Redact(out.Repository))
	defer p.Log.Done()
	if b.repo, t.done, err = b.clone.Repo.CloneBranch(ctx, out.Repository, out.Branch, b.token()); err != nil {
		return nil, err
	}
	if b.head, err = b.repo.Head(); err == nil {
		err = b.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Close removes the clone.
func (t *TreeProposer) Close() error { return t.done() }

// Propose renders the lock. If the result differs from the tree that the GitOps tool reads, Propose commits it
// to the branch of the environment. Otherwise it closes the branch of an earlier run.
func (t *TreeProposer) Propose(ctx context.Context) (*PublishedProposal, error) {
	p, branch := t.clone.Project, t.environmentBranch(t.opt.Branch)
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	before, err := readSourceRecord(t.head.Read, p.Settings.Output.Path)
	if err != nil {
		return nil, err
	}
	if newer, err := t.checkSource(before); err != nil || newer {
		return &PublishedProposal{Branch: branch, Action: Keep, kept: KeptBranch{Branch: branch, Reason: "the tree is of a newer commit than this one"}}, err
	}
	if err := t.warnAbandoned(); err != nil {
		return nil, err
	}
	var old *lockfile.File
	if before != nil {
		if old, err = t.lockAtSource(before.Commit); err != nil {
			return nil, err
		}
	}
	proposed, err := t.render(ctx, before, old, lock)
	if err != nil {
		return nil, err
	}
	if len(proposed.changes) == 0 {
		return t.withdraw(ctx, branch)
	}
	if reason, err := t.reverted(ctx, before, proposed.changes); err != nil || reason != "" {
		t.keepNote(branch, reason)
		return &PublishedProposal{Branch: branch, Action: Keep, kept: KeptBranch{Branch: branch, Reason: reason, Code: declined}}, err
	}
	if reason, err := t.closedByPerson(ctx, proposed, branch); err != nil || reason != "" {
		return &PublishedProposal{Branch: branch, Action: Keep, kept: KeptBranch{Branch: branch, Reason: reason, Code: declined}}, err
	}
	record := newSourceRecord(t.clone, t.source)
	text, err := record.text()
	if err != nil {
		return nil, err
	}
	proposed.trailers = record.trailers()
	proposed.changes = append(proposed.changes, gitrepo.FileEdit{Path: path.Join(p.Settings.Output.Path, recordName), Data: text})
	return proposed.publish(ctx, branch, t.bodyFile(branch), old, nil)
}

// render renders the lock. The proposal contains the changes to all files in the other repository except the
// record. before and old are the record and the lock in the other repository, or nil if missing.
func (t *TreeProposer) render(ctx context.Context, before *sourceRecord, old, lock *lockfile.File) (*proposal, error) {
	p := t.clone.Project
	have, err := readTree(t.head, p.Settings.Output.Path)
	if err != nil {
		return nil, err
	}
	res, err := p.Render(ctx, lock)
	if err != nil {
		return nil, err
	}
	tree, err := SelfContained(ctx, p, res)
	if err != nil {
		return nil, err
	}
	out := &proposal{Proposer: t.Proposer, upgrade: workspace.Upgrade{Resolution: &workspace.Resolution{Lock: lock, Changes: workspace.Changes(old, lock, nil)}}}
	if before != nil {
		out.since = before.Commit
	}
	out.changes, err = treeEdits(p.Settings.Output.Path, have, tree)
	return out, err
}

// lockAtSource returns the lock of the workspace at a commit, or nil if there was none.
func (t *TreeProposer) lockAtSource(commit string) (*lockfile.File, error) {
	rev, err := t.clone.Repo.Revision(commit)
	if err != nil {
		return nil, err
	}
	return t.lockAt(rev)
}

// checkSource compares the commit that the tree was rendered from with the commit of the workspace.
// It returns true if the commit of the tree is newer. If the history of the workspace lacks the
// commit of the tree, it returns an error, because that commit may be newer.
func (t *TreeProposer) checkSource(before *sourceRecord) (newer bool, err error) {
	if before == nil || before.Commit == t.source.Hash() {
		return false, nil
	}
	name := path.Join(t.clone.Project.Settings.Output.Path, recordName)
	then, err := t.clone.Repo.Revision(before.Commit)
	switch {
	case err == nil && t.clone.Repo.Contains(t.source, then):
		return false, nil
	case err == nil && t.clone.Repo.Contains(then, t.source):
		return true, nil
	case t.clone.Repo.Shallow():
		return false, fmt.Errorf("%s: cannot determine whether the tree's commit %.12s is older than %.12s: fetch the whole history (git fetch --unshallow; fetch-depth: 0)", name, before.Commit, t.source.Hash())
	}
	return false, diag.Hintf(diag.Pos{}, "run this for the newest commit; if the history was rewritten on purpose, delete "+name+" in "+t.opt.Remote,
		"%s: the tree was rendered from commit %.12s, which is not in the history of %.12s", name, before.Commit, t.source.Hash())
}

// reverted returns the reason not to propose changes again if somebody reverted them in the other repository, or
// "". The changes were reverted if a former tree in that repository contained them, that tree was rendered from a
// newer commit than the current tree, and the lock has not changed since that commit. before is the current record.
func (t *TreeProposer) reverted(ctx context.Context, before *sourceRecord, changes []gitrepo.FileEdit) (string, error) {
	if before == nil {
		return "", nil
	}
	output := t.clone.Project.Settings.Output.Path
	past, err := t.head.Changes(ctx, nil, path.Join(output, recordName))
	if err != nil {
		return "", err
	}
	then, err := t.clone.Repo.Revision(before.Commit)
	if err != nil {
		return "", err
	}
	for _, rev := range past {
		record, err := readSourceRecord(rev.Read, output)
		if err != nil || record == nil || record.Commit == before.Commit {
			continue
		}
		newer, err := t.clone.Repo.Revision(record.Commit)
		if err != nil || !t.clone.Repo.Contains(newer, then) {
			break // the tree before
		}
		again, err := t.source.Changes(ctx, newer, t.clone.Path(workspace.LockFile))
		if err != nil || len(again) > 0 {
			return "", err
		}
		tree, err := readTree(rev, output)
		if err != nil || !isWritten(tree, output, changes) {
			return "", err
		}
		return fmt.Sprintf("the tree of commit %.12s was reverted in %s: revert the change in this repository, or merge a newer change", record.Commit, t.opt.Remote), nil
	}
	return "", nil
}

// isWritten reports whether tree already contains all changes. output is the path of the tree.
func isWritten(tree *filetree.Tree, output string, changes []gitrepo.FileEdit) bool {
	return !slices.ContainsFunc(changes, func(c gitrepo.FileEdit) bool {
		data, ok := tree.Get(filetree.Relative(output, c.Path))
		return ok == c.Removed || string(data) != string(c.Data)
	})
}

// closedByPerson returns the reason not to propose changes again if a person closed their pull request, or "".
func (t *TreeProposer) closedByPerson(ctx context.Context, b *proposal, branch string) (string, error) {
	if b.forge == nil {
		return "", nil
	}
	number, err := b.forge.Declined(ctx, b.pull(branch))
	if err != nil || number == 0 {
		return "", err
	}
	reason := fmt.Sprintf("pull request %d was closed without merging: reopen it", number)
	t.keepNote(branch, reason)
	return reason, nil
}

// warnAbandoned adds a warning for each tree in the other repository that a workspace of this repository used
// to write but no longer writes.
func (t *TreeProposer) warnAbandoned() error {
	entries, err := t.head.List(".")
	if err != nil {
		return err
	}
	p := t.clone.Project
	var out []diag.Warning
	for _, e := range entries {
		dir := path.Dir(e.Path)
		if path.Base(e.Path) != recordName || dir == p.Settings.Output.Path {
			continue
		}
		record, err := readSourceRecord(t.head.Read, dir)
		if err != nil || record == nil || cmp.Or(record.RepoURL, "-") != cmp.Or(t.clone.Repo.Origin(), "-") {
			continue
		}
		w, err := workspace.Revision(t.source, record.Path).ReadSettings()
		if err == nil && w.File != "" && w.Output.Repository == t.opt.Remote && w.Output.Path == dir {
			continue
		}
		out = append(out, diag.Warning{Code: "abandoned-tree", Subject: dir, Msg: fmt.Sprintf("%s in %s was rendered from %s, which no longer writes it: delete this tree when nothing applies it", dir, t.opt.Remote, record.Path)})
	}
	t.messages = append(t.messages, compare.Message{Warnings: p.Waive(out)})
	return nil
}

// withdraw closes the branch of an earlier run, because the tree is up to date.
func (t *TreeProposer) withdraw(ctx context.Context, branch string) (*PublishedProposal, error) {
	if t.branches.remote[branch] == nil {
		return &PublishedProposal{Branch: branch, Action: Unchanged, title: "up to date"}, nil
	}
	return &PublishedProposal{Branch: branch, Action: Close, title: "up to date"}, t.close(ctx, branch)
}

// id returns an identifier of the proposal. It does not depend on the catalogs, the time or the commit.
func (b *proposal) id() string {
	if b.repo == b.clone.Repo {
		return proposalID(b.upgrade)
	}
	var text strings.Builder
	for _, c := range b.changes {
		if path.Base(c.Path) != recordName {
			fmt.Fprintf(&text, "%s %t %s\n", c.Path, c.Removed, catalog.DigestOf(c.Data))
		}
	}
	return string(catalog.DigestOf([]byte(text.String())))
}

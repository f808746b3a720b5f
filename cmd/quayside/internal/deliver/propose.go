package deliver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/forge"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/window"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Proposer proposes upgrades of a workspace. Each proposal is a branch with one commit. Its parent is HEAD or,
// for a tree in another repository, the branch that the GitOps tool reads.
type Proposer struct {
	// Environment is the name of the workspace, or the base name of its directory if it has no
	// name. If HEAD contains another workspace with that name, Environment is the path of the
	// directory instead. It is empty for a workspace without a name at the top of the repository.
	Environment string

	opt        ProposalOptions
	clone      *workspace.Clone
	author     gitrepo.Author
	repo       *gitrepo.Repo     // repository of the branches
	head       *gitrepo.Revision // commit that the branches start from
	forge      *forge.Client     // for pull requests; nil if none are requested
	branches   *branches
	unreadable map[string]error // error for each operator in HEAD's lock whose bundle cannot be opened; nil before findUnreadable
	messages   []compare.Message
}

// TakeMessages returns the messages for the user that were added since its last call.
func (b *Proposer) TakeMessages() []compare.Message {
	out := b.messages
	b.messages = nil
	return out
}

// keepNote adds a message with the reason why a branch is kept.
func (b *Proposer) keepNote(branch, reason string) {
	b.messages = append(b.messages, compare.Message{Note: fmt.Sprintf("branch %s: %s", sanitize.Line(branch), reason)})
}

// proposal is a rendered upgrade, with the file changes for a commit.
type proposal struct {
	*Proposer
	upgrade  workspace.Upgrade
	changes  []gitrepo.FileEdit
	trailers string          // lines at the end of the commit message
	since    string          // commit of the workspace with which to compare the work tree; empty: compare the locks
	window   window.Decision // whether it may be merged now; set by body
}

// OpenProposer returns the Proposer of a workspace. It returns an error if the work tree has
// uncommitted changes to inputs of the lock.
func OpenProposer(ctx context.Context, p *workspace.Project, opt ProposalOptions) (*Proposer, error) {
	b, err := newProposer(ctx, p, opt)
	if err != nil {
		return nil, err
	}
	return b, b.open(ctx)
}

// newProposer does the work of OpenProposer, without reading the existing branches.
func newProposer(ctx context.Context, p *workspace.Project, opt ProposalOptions) (*Proposer, error) {
	clone, err := p.Clone()
	if errors.Is(err, gitrepo.ErrNone) || err == nil && clone.Repo.Root() == "" {
		return nil, fmt.Errorf("%s is not in a Git work tree: cannot create branches", p.Location())
	}
	if err != nil {
		return nil, err
	}
	b := &Proposer{opt: opt, clone: clone, repo: clone.Repo}
	if b.head, err = clone.Repo.Head(); err != nil {
		return nil, err
	}
	if err := clone.CheckClean(ctx); err != nil {
		return nil, err
	}
	if b.author, err = clone.Repo.Author(ctx, p.Getenv); err != nil {
		return nil, err
	}
	b.Environment, err = b.environment()
	return b, err
}

// open opens the forge, and reads the existing branches.
func (b *Proposer) open(ctx context.Context) error {
	if b.opt.Request { // fail before anything is pushed
		remote, err := b.repo.Address(b.opt.Remote)
		if err != nil {
			return err
		}
		if b.forge, err = forge.Open(b.opt.Forge, remote, b.clone.Project.Getenv); err != nil {
			return err
		}
	}
	var err error
	b.branches, err = b.readBranches(ctx)
	return err
}

func (b *Proposer) render(ctx context.Context, upgrade workspace.Upgrade) (*proposal, error) {
	upgrade, err := b.overrideWindows(upgrade)
	if err != nil {
		return nil, err
	}
	changes, err := b.renderEdits(ctx, upgrade.Lock)
	return &proposal{Proposer: b, upgrade: upgrade, changes: changes}, err
}

// overrideWindows returns a copy of the upgrade that records ProposalOptions.OutsideWindow for the operators
// that a window may hold back.
func (b *Proposer) overrideWindows(upgrade workspace.Upgrade) (workspace.Upgrade, error) {
	if b.opt.OutsideWindow == "" {
		return upgrade, nil
	}
	p := b.clone.Project
	before, err := p.LockIfAny()
	if err != nil {
		return upgrade, err
	}
	found, err := rules.Evaluate(workspace.ChangeState(p, before, upgrade.Lock, nil), rules.Windows)
	res := *upgrade.Resolution
	res.Lock = workspace.OutsideWindow(res.Lock, found, b.opt.OutsideWindow)
	upgrade.Resolution = &res
	return upgrade, err
}

// commit creates the branch and returns the hash of its commit. The commit has the time of HEAD, so that
// proposing the same upgrade on the same HEAD again gives the same hash.
func (b *proposal) commit(ctx context.Context, branch string) (hash string, err error) {
	return b.repo.Branch(ctx, branch, b.head, gitrepo.Commit{
		Message: b.message(), Changes: b.changes, Author: b.author, When: b.head.Time(),
	})
}

// findUnreadable sets b.unreadable, and adds a warning for each unreadable operator. Later calls do nothing.
func (b *Proposer) findUnreadable(ctx context.Context, lock *lockfile.File) error {
	if b.unreadable != nil {
		return nil
	}
	p := b.clone.Project
	unreadable, err := p.Unreadable(ctx, lock)
	if err != nil {
		return err
	}
	b.unreadable = unreadable
	var warnings []diag.Warning
	for _, operator := range slices.Sorted(maps.Keys(unreadable)) {
		warnings = append(warnings, diag.Warning{Code: "not-fetched", Subject: operator, Msg: fmt.Sprintf("the files of %s stay as they are: %v", operator, unreadable[operator])})
	}
	b.messages = append(b.messages, compare.Message{Warnings: p.Waive(warnings)})
	return nil
}

// Unreadable returns the error for each operator that cannot be rendered because a bundle cannot be
// opened. This is an operator in HEAD's lock with an unreadable bundle, or an operator that lock
// changes and that requires an unreadable one, in HEAD's lock or in lock. Unreadable itself opens
// no bundle. It returns nil if rendering found no unreadable bundle.
func (b *Proposer) Unreadable(lock *lockfile.File) map[string]error {
	out := maps.Clone(b.unreadable)
	before, err := b.clone.Project.LockIfAny()
	if err != nil || before == nil || len(out) == 0 {
		return nil
	}
	for _, c := range lockfile.Diff(before, lock) {
		operator := c.Namespace + "/" + c.Package
		if needed := b.neededUnreadable(operator, before, lock); needed != "" {
			out[operator] = b.unreadable[needed]
		}
	}
	return out
}

// neededUnreadable returns an operator whose bundle cannot be opened and that the given operator
// requires in one of the locks. It returns "" if there is none.
func (b *Proposer) neededUnreadable(operator string, locks ...*lockfile.File) string {
	for _, lock := range locks {
		needed := lock.Needed(operator)
		for _, key := range slices.Sorted(maps.Keys(b.unreadable)) {
			if needed[key] {
				return key
			}
		}
	}
	return ""
}

// renderTree renders lock. If the bundles of unchanged operators cannot be opened, it renders the readable
// operators, and copies the files of the unreadable ones from have, the tree of HEAD. It returns an error if a
// changed operator requires an unreadable operator in HEAD's lock or in lock, because their files refer to each
// other.
func (b *Proposer) renderTree(ctx context.Context, lock *lockfile.File, have *filetree.Tree) (*filetree.Tree, error) {
	p := b.clone.Project
	res, cause := p.Render(ctx, lock)
	if cause == nil {
		return res.Tree, nil
	}
	before, err := p.LockIfAny()
	if err != nil || before == nil {
		return nil, cause
	}
	if err := b.findUnreadable(ctx, before); err != nil || len(b.unreadable) == 0 {
		return nil, cause
	}
	for _, c := range lockfile.Diff(before, lock) {
		if b.neededUnreadable(c.Namespace+"/"+c.Package, before, lock) != "" {
			return nil, cause
		}
	}
	old, err := p.Render(ctx, workspace.WithoutPins(before, before, b.unreadable))
	if err != nil {
		return nil, cause
	}
	next, err := p.Render(ctx, workspace.WithoutPins(lock, before, b.unreadable))
	if err != nil {
		return nil, err
	}
	if !slices.Equal(readmeFiles(old.Tree), readmeFiles(next.Tree)) {
		return nil, cause // because of the omitted operators, other directories are empty
	}
	tree, err := filetree.EditsOf(old.Tree, next.Tree).Apply(old.Tree, have)
	if err != nil {
		return nil, fmt.Errorf("%w\n%w", cause, err)
	}
	return tree, nil
}

// readmeFiles returns the names of all README.md files of a tree, sorted. Only a directory without other files
// has a README.md.
func readmeFiles(tree *filetree.Tree) []string {
	var out []string
	for name := range tree.Names() {
		if path.Base(name) == "README.md" {
			out = append(out, name)
		}
	}
	return out
}

// renderEdits renders lock, and returns the file changes from HEAD. It returns nil for a tree in another
// repository.
func (b *Proposer) renderEdits(ctx context.Context, lock *lockfile.File) ([]gitrepo.FileEdit, error) {
	changes := []gitrepo.FileEdit{{Path: b.clone.Path(workspace.LockFile), Data: lockfile.Format(lock)}}
	output := b.clone.Path(b.clone.Project.Settings.OutputDir())
	have, err := readTree(b.head, output)
	if err != nil {
		return nil, err
	}
	tree, err := b.renderTree(ctx, lock, have)
	if err != nil || b.clone.Project.Settings.Output.Repository != "" {
		return changes, err
	}
	edits, err := treeEdits(output, have, tree)
	return append(changes, edits...), err
}

// readTree reads a directory of a revision. If it does not exist, the tree is empty.
func readTree(rev *gitrepo.Revision, dir string) (*filetree.Tree, error) {
	out := filetree.New()
	entries, err := rev.List(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := rev.ReadEntry(e)
		if err != nil {
			return nil, err
		}
		if err := out.Add(filetree.Relative(dir, e.Path), data); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// treeEdits returns the file changes that turn have, the current files of the directory output, into the files of tree.
func treeEdits(output string, have, tree *filetree.Tree) ([]gitrepo.FileEdit, error) {
	want, err := filetree.SimulateWrite(have, tree)
	if err != nil {
		return nil, workspace.TreeError(output, fmt.Errorf("%s: %w", output, err))
	}
	var changes []gitrepo.FileEdit
	for name, data := range want.All() {
		if old, ok := have.Get(name); !ok || !bytes.Equal(old, data) {
			changes = append(changes, gitrepo.FileEdit{Path: path.Join(output, name), Data: data})
		}
	}
	for name := range have.All() {
		if _, ok := want.Get(name); !ok {
			changes = append(changes, gitrepo.FileEdit{Path: path.Join(output, name), Removed: true})
		}
	}
	return changes, nil
}

// body returns the text of a pull request in Markdown: the preface, the report of the comparison, and the
// operators that are held back. If this text is too long for a forge, body returns only the report. It also
// sets the fields of pull that depend on the report.
func (b *proposal) body(ctx context.Context, branch string, before *lockfile.File, held []resolve.Hold, now time.Time, pull *forge.Pull) ([]byte, error) {
	names := [2]string{cmp.Or(b.clone.Repo.HeadBranch(), "HEAD"), branch}
	report, err := b.report(ctx, names, before, now)
	if err != nil {
		return nil, err
	}
	b.window = rules.MergeWindow(workspace.ChangeState(b.clone.Project, before, b.upgrade.Lock, compare.Severities(report)))
	if err := b.configure(pull, report); err != nil {
		return nil, err
	}
	for i := range report.Reading { // the preface already has the other links
		r := &report.Reading[i]
		r.Links = slices.DeleteFunc(r.Links, func(l diff.ReadingLink) bool { return l.What != "link" })
	}
	report.Reading = slices.DeleteFunc(report.Reading, func(r diff.Reading) bool { return len(r.Links)+len(r.Texts) == 0 })
	text := diff.Markdown(report)
	head, err := b.preface(ctx, before)
	if err != nil {
		return nil, err
	}
	marker, rest, _ := bytes.Cut(text, []byte("\n"))
	full := slices.Concat(marker, []byte("\n"+b.summary(report)+head+"\n"), rest, []byte(heldSection(held)))
	if len(full) >= diff.MaxComment {
		return text, nil
	}
	return full, nil
}

// report compares before, the lock of HEAD, with the lock of the upgrade. It omits operators whose bundle in
// HEAD cannot be opened. The report therefore lists an upgrade of such an operator as an added operator.
func (b *proposal) report(ctx context.Context, names [2]string, before *lockfile.File, now time.Time) (*diff.Report, error) {
	var c *compare.Comparison
	var err error
	if b.since != "" {
		c, err = compare.Revisions(b.clone.Project, compare.Auto, "", b.since)
	} else {
		c, err = compare.Locks(b.clone.Project, compare.Lock, names, workspace.WithoutPins(before, before, b.unreadable), workspace.WithoutPins(b.upgrade.Lock, before, b.unreadable))
	}
	if err != nil {
		return nil, err
	}
	c.Scans, c.Reading = b.opt.Scans, true
	report, err := c.Report(ctx, now)
	b.messages = append(b.messages, c.TakeMessages()...)
	if err == nil || before == nil || len(b.unreadable) > 0 || b.since != "" {
		return report, err
	}
	if fault := b.findUnreadable(ctx, before); fault != nil || len(b.unreadable) == 0 {
		return nil, err
	}
	return b.report(ctx, names, before, now)
}

// heldSection returns the section with the operators that are held back, or "".
func heldSection(held []resolve.Hold) string {
	if len(held) == 0 {
		return ""
	}
	const longest = 400
	var text strings.Builder
	text.WriteString("\nHeld back at their versions by this run:\n\n")
	for _, h := range held {
		fmt.Fprintf(&text, "- %s: %s\n", sanitize.Markdown(h.Operator), sanitize.Markdown(sanitize.Truncate(h.Reason, longest)))
	}
	return text.String()
}

// summary returns the first lines of the text: the worst finding, the window, the removed operators, and the
// number of affected clusters.
func (b *proposal) summary(report *diff.Report) string {
	const longest = 200
	var text strings.Builder
	if f, found := report.Worst(); found {
		fmt.Fprintf(&text, "**Worst finding: %s**, %s: %s (%s)\n\n", f.Severity, sanitize.Markdown(f.Operator), sanitize.Markdown(sanitize.Truncate(f.Message, longest)), sanitize.Code(f.Rule))
	}
	if line := b.windowText(); line != "" {
		text.WriteString("**" + sanitize.Markdown(line) + "**\n\n")
	}
	if line := workspace.Removals(b.upgrade.Changes); line != "" {
		text.WriteString("**" + sanitize.Markdown(line) + "**\n\n")
	}
	clusters := map[string]bool{}
	for _, op := range report.Operators {
		names := op.Clusters
		if names == nil {
			names = b.clone.Project.Settings.ClusterNames()
		}
		for _, name := range names {
			clusters[name] = true
		}
	}
	if len(clusters) > 0 {
		fmt.Fprintf(&text, "Applies at once to %s.\n\n", diag.Count(len(clusters), "cluster"))
	}
	return text.String()
}

// windowText returns a line with the time from which the proposal may be merged, or with the user's reason to
// merge it outside of its windows. It returns "" if the proposal may be merged now.
func (b *proposal) windowText() string {
	if !b.window.May {
		return "This pull request " + rules.WindowText(b.window) + "."
	}
	for _, pin := range b.upgrade.Lock.Pins {
		changes := slices.ContainsFunc(b.upgrade.Changes, func(c workspace.Change) bool { return c.Operator == pin.Key() && c.Change != lockfile.Changed })
		if changes && pin.OutsideWindow != "" {
			return "May be merged outside of its windows: " + pin.OutsideWindow
		}
	}
	return ""
}

// preface returns the text before the report: the environment, the changes with their reasons and
// links to releases, the observations, and the reasons why operators are upgraded together.
func (b *proposal) preface(ctx context.Context, before *lockfile.File) (string, error) {
	links, err := b.links(ctx, before)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if b.Environment != "" {
		fmt.Fprintf(&text, "Environment: %s\n\n", sanitize.Code(b.Environment))
	}
	for _, c := range b.upgrade.Changes {
		text.WriteString("- " + sanitize.Markdown(c.String()))
		if list := links[c.Operator]; len(list) > 0 {
			text.WriteString(": " + strings.Join(list, ", "))
		}
		text.WriteString("\n")
	}
	if len(b.upgrade.Observations) > 0 {
		text.WriteString("\nObservations:\n\n")
	}
	for _, line := range b.upgrade.Observations {
		text.WriteString("- " + sanitize.Markdown(line) + "\n")
	}
	if len(b.upgrade.Bonds) > 0 {
		text.WriteString("\nUpgraded together:\n\n")
	}
	const longest = 400
	for _, bond := range b.upgrade.Bonds {
		fmt.Fprintf(&text, "- %s cannot be upgraded without %s", sanitize.Markdown(bond.Operator), sanitize.Markdown(bond.With))
		if bond.Why != "" {
			text.WriteString(": " + sanitize.Markdown(sanitize.Truncate(bond.Why, longest)))
		}
		text.WriteString("\n")
	}
	return text.String(), nil
}

// title returns the title of the pull request and its commit: the upgrades, and the
// environment.
func (b *proposal) title() string {
	title := b.subject()
	if b.Environment != "" {
		title += " in " + b.Environment
	}
	return sanitize.Commit(title)
}

// subject returns the title without the environment: the upgrades or, without upgrades, the other changes.
func (b *proposal) subject() string {
	var upgraded, changed []workspace.Change
	for _, c := range b.upgrade.Changes {
		switch {
		case c.Operator == "":
		case c.Change == lockfile.Changed:
			changed = append(changed, c)
		default:
			upgraded = append(upgraded, c)
		}
	}
	if len(upgraded) == 0 {
		upgraded = changed
	}
	if len(upgraded) == 0 && b.trailers != "" {
		return "Render the tree"
	}
	if len(upgraded) == 0 && len(b.upgrade.Changes) > 0 {
		return "Update declared Namespaces"
	}
	if len(upgraded) == 0 {
		return "Update " + workspace.LockFile
	}
	if len(b.upgrade.Operators) == 0 && len(upgraded) > 1 {
		return fmt.Sprintf("Update %s", diag.Count(len(upgraded), "operator"))
	}
	first := upgraded[0]
	if i := slices.IndexFunc(upgraded, func(c workspace.Change) bool { return slices.Index(b.upgrade.Operators, c.Operator) == 0 }); i > 0 {
		first = upgraded[i]
	}
	subject := "Update " + first.Operator
	if first.Change == lockfile.Removed {
		subject = "Remove " + first.Operator
	}
	if first.From != "" && first.To != "" && first.From != first.To {
		subject += fmt.Sprintf(" from %s to %s", first.From, first.To)
	}
	if others := len(upgraded) - 1; others > 0 {
		subject += fmt.Sprintf(" together with %s", diag.Count(others, "operator"))
	}
	return subject
}

// message returns the commit message: the title, and a line for each change with its reason.
func (b *proposal) message() string {
	var text strings.Builder
	text.WriteString(b.title() + "\n\n")
	for _, c := range b.upgrade.Changes {
		text.WriteString(c.Sign() + " " + sanitize.Commit(c.String()) + "\n")
	}
	if b.trailers != "" {
		text.WriteString("\n" + b.trailers)
	}
	return text.String()
}

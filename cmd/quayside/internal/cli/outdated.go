package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/resolve"
)

type outdatedOptions struct {
	*app
	current  bool
	observed []string
	feed     string // value of --feed: output directory; empty: write no feed
}

func newOutdated(a *app) *cobra.Command {
	o := &outdatedOptions{app: a}
	cmd := &cobra.Command{
		Use:   "outdated",
		Short: "List the operators with newer versions in the catalogs",
		Long: Doc(`
			List the operators in the lock that have a newer version in their channel: the next
			version, the highest version that upgrades can reach, the head of the channel, and the
			reason if an upgrade is blocked. It includes operators whose version, channel or package
			their catalog has withdrawn, and those that cannot be judged. If the catalog has support
			dates, the list shows them, and includes unsupported operators at the head of their
			channel. Tags of catalog images are looked up again.

			--feed also writes the available upgrades as JSON files for a custom datasource of
			Renovate. Blocked upgrades are omitted. Files without changes are not rewritten.

			  operators/<namespace>/<package>.json   the pinned version and the next one
			  packages/<package>/<channel>.json      every version in the channel

			Exit codes: 0 done; 2 an error.`),
		Example: Examples(`
			quayside outdated
			quayside outdated --current -o json

			# write files for Renovate, for every workspace
			quayside outdated --all --feed public

			# list the operators that will be unsupported on a date
			quayside outdated --now 2027-01-31

			# include the upgrades that a cluster holds back
			quayside status --save observed.yaml
			quayside outdated --observed observed.yaml`),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().BoolVar(&o.current, "current", false, "also list the operators at the head of their channel")
	cmd.Flags().StringArrayVar(&o.observed, "observed", nil, "observations of a cluster: a `FILE` written by 'quayside status --save'; list the operators that the observations hold back, with the reason; may be given several times, one for each cluster")
	cmd.Flags().StringVar(&o.feed, "feed", "", "also write the upgrades as JSON files for Renovate to `DIR`, relative to the workspace; with --all, to a subdirectory of DIR for each workspace, with DIR relative to the root of the repository")
	addNow(cmd, a, "support and windows")
	addOutput(cmd, a, nil, outdatedView{})
	addAll(cmd, a)
	addOffline(cmd, o.app)
	return cmd
}

// outdatedView is the output of `quayside outdated`.
type outdatedView struct {
	Operators []outdatedOperator `json:"operators"`
}

// outdatedOperator is an operator with the window of its next upgrade.
type outdatedOperator struct {
	resolve.Age   `json:",inline"`
	MergeableFrom string `json:"mergeableFrom,omitempty" doc:"time from which the next version may be merged; absent: it may be merged now; never: not in the next five years"`

	window string // note about the window
}

func (o *outdatedOptions) run(cmd *cobra.Command) error {
	s, err := o.open()
	if err != nil {
		return err
	}
	observed, err := o.readObserved(s, o.observed...)
	if err != nil {
		return err
	}
	pr, err := o.freshProblem(cmd.Context(), s)
	if err != nil {
		return err
	}
	if pr, err = pr.HoldBack(observed...); err != nil {
		return err
	}
	o.log.Warn(workspace.WarnStale(cmd.Context(), s))
	all := pr.Outdated(o.now.orNow().Format(time.DateOnly))
	if o.feed != "" {
		if err := o.writeFeed(s, pr.Index, all); err != nil {
			return err
		}
	}
	ages := []outdatedOperator{}
	o.log.Done()
	for _, a := range all {
		if o.current || !a.Current() || a.Unsupported() {
			ages = append(ages, o.withWindow(s, a))
		}
	}
	switch {
	case len(all) == 0:
		o.log.Note("no operators: %s has none", workspace.LockFile)
	case len(ages) == 0:
		o.log.Note("all operators are at the head of their channels")
	}
	return o.printTable(outdatedView{ages}, ageTable(ages))
}

// withWindow returns an operator with the time from which an upgrade to its next version may be merged.
func (o *outdatedOptions) withWindow(p *workspace.Project, a resolve.Age) outdatedOperator {
	out := outdatedOperator{Age: a}
	if a.Next == "" {
		return out
	}
	if d := rules.UpgradeWindow(workspace.ChangeState(p, nil, nil, nil), a.Namespace+"/"+a.Package); !d.May {
		out.MergeableFrom, out.window = "never", a.Next+" "+rules.WindowText(d)
		if !d.From.IsZero() {
			out.MergeableFrom = d.From.UTC().Format(time.RFC3339)
		}
	}
	return out
}

// writeFeed writes the feed of upgrades, for Renovate.
func (o *outdatedOptions) writeFeed(p *workspace.Project, x *catalog.Index, ages []resolve.Age) error {
	want, err := inventory.NewFeed(x, ages)
	if err != nil {
		return err
	}
	shown, dir, err := o.feedDirectory()
	if err != nil {
		return err
	}
	have, err := p.WithRoot(workspace.Arguments(p.Name())).Tree(dir)
	if err != nil {
		return err
	}
	changes := filetree.Diff(have, want)
	if err := filetree.Write(p.Path(dir), want, filetree.Force(true)); err != nil {
		return err
	}
	o.log.Note("wrote %s (%s, %d changed)", shown, diag.Count(want.Len(), "file"), len(changes))
	return nil
}

// feedDirectory returns the directory of the feed, as shown in messages and as a path. With --all, each
// workspace has its own subdirectory.
func (o *outdatedOptions) feedDirectory() (shown, dir string, err error) {
	if !o.all {
		return o.feed, o.feed, nil
	}
	within, err := filepath.Rel(o.top, o.workspace)
	if err != nil {
		return "", "", err
	}
	dir = o.feed
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(o.top, dir)
	}
	dir, err = filepath.Abs(filepath.Join(dir, within))
	return filepath.ToSlash(filepath.Join(o.feed, within)), dir, err
}

// freshProblem reads the resolver's input. It looks up the digests of catalog tags anew instead of using the
// locked digests. It returns an error if there is no lock.
func (a *app) freshProblem(ctx context.Context, p *workspace.Project) (*workspace.Problem, error) {
	if _, err := p.NeedLock(); err != nil {
		return nil, err
	}
	pr, err := workspace.ReadProblem(ctx, p, workspace.Request{Options: p.ResolveOptions(), Fresh: true})
	if err != nil {
		return nil, err
	}
	return pr, a.warnBroken(p, pr.Index)
}

// ageTable returns a table of pins and their newer versions, with notes in the last column.
func ageTable(ages []outdatedOperator) *terminal.Table {
	t := &terminal.Table{Head: []string{"operator", "pinned", "next", "reachable", "head", "channel", "note"}}
	supported := slices.ContainsFunc(ages, func(a outdatedOperator) bool { return a.Support != nil })
	if supported {
		t.Head = slices.Insert(t.Head, 2, "supported until")
	}
	for _, a := range ages {
		notes := a.Deprecated
		if a.HeldBackReason != "" {
			notes = append([]string{a.HeldBackReason}, notes...)
		}
		if a.Dropped != "" {
			notes = append([]string{"catalog " + a.Dropped + " no longer has it"}, notes...)
		}
		switch {
		case a.Withdrawn():
			notes = append([]string{"withdrawn: " + notes[0]}, notes[1:]...)
		case a.HeldBack == resolve.HeldByFault:
			notes = append([]string{"cannot be judged: " + notes[0]}, notes[1:]...)
		}
		if a.ByVersion && a.Next != "" {
			notes = append(notes, "by version order")
		}
		if a.window != "" {
			notes = append(notes, a.window)
		}
		if a.LifecycleError != "" {
			notes = append(notes, a.LifecycleError)
		}
		row := []string{a.Namespace + "/" + a.Package, a.Pinned, a.Next, a.Reachable, a.Head, a.Channel, strings.Join(notes, "; ")}
		if supported {
			row = slices.Insert(row, 2, a.Support.String())
		}
		t.Add(row...)
	}
	return t
}

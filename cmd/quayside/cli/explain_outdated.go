package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/resolve"
)

type outdatedOptions struct {
	*app
	current  bool
	observed []string
	today    dayFlag
}

func newOutdated(a *app) *cobra.Command {
	o := &outdatedOptions{app: a}
	cmd := &cobra.Command{
		Use:   "outdated",
		Short: "List the operators for which the catalogs have something newer",
		Long: doc(`
			List the operators in the lock that are not at the head of their channel: where
			one hop leads, where all of them lead, and what holds the operator back; where a
			catalog says it, until when the pinned version is supported. One whose support
			has ended is listed at the head of its channel, too. Catalog tags are looked up
			again. Nothing is written.`),
		Example: examples(`
			quayside outdated
			quayside outdated --current -o json

			# what will be without support by then?
			quayside outdated --today 2027-01-31

			# with what a cluster holds back
			quayside status --save observed.yaml
			quayside outdated --observed observed.yaml`),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().BoolVar(&o.current, "current", false, "also list the operators at the head of their channel")
	cmd.Flags().StringArrayVar(&o.observed, "observed", nil, "say which operators `FILE`, written by 'quayside status --save', keeps from moving, and why; may be given several times, one for each cluster")
	addToday(cmd, &o.today, "support")
	addOutput(cmd, a, nil, outdatedView{})
	addAll(cmd, a)
	addOffline(cmd, o.app)
	return cmd
}

// outdatedView is what `quayside outdated` prints.
type outdatedView struct {
	Operators []resolve.Age `json:"operators"`
}

func (o *outdatedOptions) run(cmd *cobra.Command) error {
	s, err := o.open()
	if err != nil {
		return err
	}
	observed, err := o.readObserved(o.observed...)
	if err != nil {
		return err
	}
	in, err := o.freshInputs(cmd.Context(), s)
	if err != nil {
		return err
	}
	if err := in.Hold(observed...); err != nil {
		return err
	}
	ages := []resolve.Age{}
	o.talk.Done()
	for _, a := range in.Outdated(o.today.text()) {
		if o.current || !a.Current() || a.Unsupported() {
			ages = append(ages, a)
		}
	}
	if len(ages) == 0 {
		o.talk.Note("every operator is at the head of its channel")
	}
	return o.printTable(outdatedView{ages}, ageTable(ages))
}

// freshInputs reads what resolving reads, with the tags of catalogs looked up
// again, and demands a lock.
func (a *app) freshInputs(ctx context.Context, p *project.Project) (*project.Inputs, error) {
	if _, err := p.NeedLock(); err != nil {
		return nil, err
	}
	in, err := p.Inputs(ctx, p.ResolveOptions(), true)
	if err != nil {
		return nil, err
	}
	return in, a.warnBroken(p, in.Index)
}

// ageTable lists ages, with what is worth knowing in the last column.
func ageTable(ages []resolve.Age) *terminal.Table {
	t := &terminal.Table{Head: []string{"operator", "pinned", "next", "reachable", "head", "channel", "note"}}
	supported := slices.ContainsFunc(ages, func(a resolve.Age) bool { return a.Support != nil })
	if supported {
		t.Head = slices.Insert(t.Head, 2, "supported until")
	}
	for _, a := range ages {
		notes := a.Deprecated
		if a.Stays != "" {
			notes = append([]string{a.Stays}, notes...)
		}
		if a.Dropped != "" {
			notes = append(notes, "catalog "+a.Dropped+" no longer has it")
		}
		if a.Unclear != "" {
			notes = append(notes, a.Unclear)
		}
		row := []string{a.Namespace + "/" + a.Package, a.Pinned, a.Next, a.Reachable, a.Head, a.Channel, strings.Join(notes, "; ")}
		if supported {
			row = slices.Insert(row, 2, a.Support.String())
		}
		t.Add(row...)
	}
	return t
}

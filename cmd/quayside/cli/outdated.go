package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/resolve"
)

type outdatedOptions struct {
	explainOptions
	all      bool
	observed string
}

func newOutdated(a *app) *cobra.Command {
	o := &outdatedOptions{explainOptions: explainOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "outdated",
		Short: "List the operators for which the catalogs have something newer",
		Long: doc(`
			List the operators in the lock that are not at the head of their channel: where
			one hop leads, where all of them lead, and what holds the operator back. Tags of
			catalogs are looked up again. Nothing is written.`),
		Example: examples(`
			quayside outdated
			quayside outdated --all -o json

			# with what a cluster holds back
			quayside status --output observed.yaml
			quayside outdated --observed observed.yaml`),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "list the operators at the head of their channel too")
	cmd.Flags().StringVar(&o.observed, "observed", "", "say what `FILE`, written by 'quayside status --output', has against moving")
	addOutput(cmd, &o.output)
	addOffline(cmd, &o.offline)
	return cmd
}

func (o *outdatedOptions) run(cmd *cobra.Command) error {
	s, err := o.open()
	if err != nil {
		return err
	}
	observed, err := o.app.observed(o.observed)
	if err != nil {
		return err
	}
	_, behind, err := s.ages(cmd.Context(), observed, o.offline)
	if err != nil {
		return err
	}
	ages := []resolve.Age{}
	for _, a := range behind {
		if o.all || !a.Current() {
			ages = append(ages, a)
		}
	}
	v := struct {
		Operators []resolve.Age `json:"operators"`
	}{ages}
	return o.print(o.output, v, func(io.Writer) error { return ageTable(ages).write(o.out) })
}

// ages looks the catalogs up again and returns what was read, and how far behind
// every pin is; observed says what holds pins back, nil for nothing.
func (s *space) ages(ctx context.Context, observed *report.ObservedFile, offline bool) (*inputs, []resolve.Age, error) {
	lock, err := s.needLock()
	if err != nil {
		return nil, nil, err
	}
	in, err := s.inputs(ctx, s.resolveOptions(), true, offline)
	if err != nil {
		return nil, nil, err
	}
	if err := brokenOnes(s.app, in.index); err != nil {
		return nil, nil, err
	}
	opt := s.resolveOptions()
	for _, h := range holds(observed, lock) {
		opt.Held = append(opt.Held, h.Hold)
	}
	return in, resolve.Outdated(in.index, in.set, lock, opt), nil
}

// ageTable lists ages, with what is worth knowing in the last column.
func ageTable(ages []resolve.Age) *table {
	t := &table{head: []string{"operator", "pinned", "next", "reachable", "head", "channel", "note"}}
	for _, a := range ages {
		notes := a.Deprecated
		if a.Stays != "" {
			notes = append([]string{a.Stays}, notes...)
		}
		t.add(a.Namespace+"/"+a.Package, a.Pinned, a.Next, a.Reachable, a.Head, a.Channel, strings.Join(notes, "; "))
	}
	return t
}

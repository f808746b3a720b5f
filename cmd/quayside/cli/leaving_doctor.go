package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
)

type doctorOptions struct {
	*app
	login loginFlags
}

func newDoctor(a *app) *cobra.Command {
	o := &doctorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "doctor [FILE | DIR | -]",
		Short: "Report which operators need OLM while they run",
		Long: doc(`
			Report for every operator in the lock whether it needs OLM while it runs, by what
			it may do with OLM's objects, by what its pods read and are told, and by what it
			brings: with what it loses where OLM is not, and what can be done.

			With an argument, --context or --kubeconfig, report it for every operator that OLM
			installed in a cluster; no workspace is needed. The cluster is a file as 'kubectl
			get -o json' or '-o yaml' prints it ('-' for standard input), a directory of such
			files, a must-gather, or the live cluster of a kubeconfig. It is only read.

			An operator needs OLM (it installs others through it), loses something without it
			(it reads or writes objects that only OLM fills or heeds), could need it (it may do
			everything in the cluster, or speaks of OLM; nobody can see whether it makes use of
			that), or does not need it.

			Exit codes: 0 no operator needs OLM or loses something; 1 some do; 2 an error.`),
		Example: examples(`
			# the operators in the lock
			quayside doctor

			# those of a cluster
			quayside doctor --context prod
			quayside doctor must-gather.local.4711`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && o.live() {
				return usagef(cmd, "%q or a live cluster: leave out --context and --kubeconfig", args[0])
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.login.flags(cmd)
	addOffline(cmd, a)
	addOutput(cmd, a, nil, adopt.Diagnosis{})
	a.offer(cmd, "context", func(context.Context, string) []string { return o.login.contexts(a) })
	return cmd
}

// live reports whether a live cluster is asked for.
func (o *doctorOptions) live() bool { return o.login.context != "" || o.login.kubeconfig != "" }

func (o *doctorOptions) run(ctx context.Context, args []string) error {
	found, err := o.diagnose(ctx, args)
	if err != nil {
		return err
	}
	if err := o.print(found, func(w io.Writer) { o.show(w, found) }); err != nil {
		return err
	}
	var names []string
	for _, op := range found.Operators {
		if op.NeedsOLM == adopt.NeedsOLM || op.NeedsOLM == adopt.InPart {
			names = append(names, op.Namespace+"/"+op.Package)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &project.DiffersError{Msg: inert.Line(diag.Count(len(names), "operator") + " with a need of OLM: " + strings.Join(names, ", "))}
}

func (o *doctorOptions) diagnose(ctx context.Context, args []string) (*adopt.Diagnosis, error) {
	if len(args) > 0 || o.live() {
		s, err := o.snapshot(ctx, args, o.login, snapshot.Options{Keep: adopt.Tells})
		if err != nil {
			return nil, err
		}
		return adopt.DiagnoseCluster(s), nil
	}
	p, err := o.open()
	if err != nil {
		return nil, err
	}
	return p.Diagnose(ctx)
}

// show prints each operator with what points to OLM.
func (o *doctorOptions) show(w io.Writer, found *adopt.Diagnosis) {
	verdicts := map[adopt.Need]string{
		adopt.NeedsOLM: "needs OLM", adopt.InPart: "loses something without OLM", adopt.MayNeed: "could need OLM", adopt.NeedsNone: "does not need OLM",
	}
	count := map[adopt.Need]int{}
	for _, op := range found.Operators {
		count[op.NeedsOLM]++
		fmt.Fprintf(w, "%s: %s\n", inert.Line(op.Namespace+"/"+op.Package+" ("+op.Bundle+")"), verdicts[op.NeedsOLM])
		for _, s := range op.Signals {
			fmt.Fprintf(w, "    %s\n", inert.Line(s.Object+" "+s.What))
			fmt.Fprintf(w, "        without OLM: %s\n        to do: %s\n", s.Loses, s.Do)
		}
		if len(op.Definitions) > 0 {
			fmt.Fprintf(w, "    keep when OLM is uninstalled, for it watches them: %s\n", strings.Join(op.Definitions, ", "))
		}
	}
	for _, u := range found.Unread {
		fmt.Fprintf(w, "not read: %s\n", inert.Line(u.Kind+" ("+u.APIVersion+"): "+u.Reason))
	}
	fmt.Fprintf(w, "%s: %d in need of OLM, %d that lose something without it, %d that could need it, %d that do not\n",
		diag.Count(len(found.Operators), "operator"), count[adopt.NeedsOLM], count[adopt.InPart], count[adopt.MayNeed], count[adopt.NeedsNone])
}

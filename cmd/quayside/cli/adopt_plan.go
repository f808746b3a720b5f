package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/yamlnode"
)

type adoptPlanOptions struct {
	*app
	login      loginFlags
	cluster    string
	mode       string
	namespaces []string
	file       string
	kubectl    bool
	rbac       string // the name of the roles to print
}

func newAdoptPlan(a *app) *cobra.Command {
	o := &adoptPlanOptions{app: a, mode: string(plan.Stopped)}
	cmd := &cobra.Command{
		Use:   "plan [FILE | DIR | -]",
		Short: "Write down, step by step, how operators leave OLM",
		Long: doc(`
			Write a plan of how the operators that OLM installed in a cluster are taken over
			as they run: numbered steps, namespace by namespace, each with what is done to
			which object and with what must hold before and after. Nothing is written to the
			cluster. Review the plan and commit it; 'quayside adopt run' does what it says,
			and nothing else.

			The cluster is a file as 'kubectl get -o json' or '-o yaml' prints it ('-' for
			standard input), a directory of such files, a must-gather, or without an argument
			the live cluster of the kubeconfig's current context, or of --context. The lock
			must say already what the tree keeps of OLM's: 'quayside adopt inspect --record',
			then 'quayside render'.

			OLM's two controllers are stopped for seconds while each namespace is taken over.
			Where they cannot be, --mode live does without, and loses the OperatorConditions,
			which are made again.

			Of an operator that OLM has forgotten, once the lock keeps nothing of OLM's for it
			('quayside adopt run --finish', or its next version), the plan has what is left of OLM's in
			its objects go, with one rollout.

			Begin with one namespace that matters little: --namespace. An operator that cannot
			be taken over is left to OLM with those that are tied to it, and named with the
			reason.

			With --rbac, print the roles with the rights that it takes to do what the plan in
			--file says, to check that nothing was lost, and to go back to OLM, and no others: a
			ClusterRole, and a Role in each namespace where something is changed. They are bound
			to nobody: bind them to who runs the plan, and delete them afterwards. A plan
			applies roles, so these give the right to hand on exactly these roles (escalate,
			bind), whether or not who runs the plan has what they give.

			Exit codes: 0 every operator that was asked for is in the plan; 1 some are not; 2 an
			error.`),
		Example: examples(`
			# one namespace first, into a file of its own
			quayside adopt plan --context prod --namespace vault -f adopt-vault.yaml

			# the same by hand
			quayside adopt plan --context prod --namespace vault --kubectl

			# the rights that the plan takes, for 'kubectl apply -f -'
			quayside adopt plan --rbac -f adopt-plan.yaml`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && (o.login.context != "" || o.login.kubeconfig != ""):
				return usagef(cmd, "%q or a live cluster: leave out --context and --kubeconfig", args[0])
			case o.kubectl && o.output != "text":
				return usagef(cmd, "--kubectl prints commands: leave out --output")
			case o.rbac != "" && (len(args) > 0 || o.login != (loginFlags{}) || o.cluster != "" || len(o.namespaces) > 0 || o.kubectl || o.output != "text"):
				return usagef(cmd, "--rbac prints the rights that the plan in --file takes, and goes with --file and --offline alone")
			case o.rbac != "":
				return o.printRoles(cmd.Context())
			}
			return o.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	o.login.flags(cmd)
	modes := []string{string(plan.Stopped), string(plan.Live)}
	f.StringVar(&o.cluster, "cluster", "", "the `NAME` of a cluster in quayside.yaml, for what it gets (default: the only one)")
	f.StringArrayVar(&o.namespaces, "namespace", nil, "take over the operators installed in this `NAMESPACE` only; may be given several times")
	f.Var(&format{value: &o.mode, known: modes}, "mode", "what becomes of OLM's controllers meanwhile")
	f.StringVarP(&o.file, "file", "f", "", "write the plan to this `FILE` (default: "+project.PlanFile+" in the workspace)")
	f.BoolVar(&o.kubectl, "kubectl", false, "print the plan as commands of kubectl, and write no file")
	f.StringVar(&o.rbac, "rbac", "", "print the roles, of this `NAME`, with the rights that the plan in --file takes; no cluster is read")
	f.Lookup("rbac").NoOptDefVal = "quayside-adopt"
	f.BoolVar(&o.offline, "offline", false, "ask no registry for the bundles; name what is missing")
	addOutput(cmd, a, nil, adoptPlanView{})
	a.complete(cmd, "mode", modes)
	a.offer(cmd, "context", func(context.Context, string) []string { return o.login.contexts(a) })
	a.offer(cmd, "cluster", a.overlays)
	return cmd
}

// adoptPlanView is what `quayside adopt plan` prints.
type adoptPlanView struct {
	File string     `json:"file,omitempty" doc:"Where the plan was written. Absent where no operator is taken over."`
	Plan *plan.Plan `json:"plan"`
}

func (o *adoptPlanOptions) run(ctx context.Context, args []string) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	cluster, err := p.Cluster(o.cluster, "--cluster")
	if err != nil {
		return err
	}
	seen, err := o.snapshot(ctx, args, o.login, snapshot.Options{ManagedFields: true})
	if err != nil {
		return err
	}
	made, found, err := p.Plan(ctx, seen, project.PlanOptions{Cluster: cluster, Mode: plan.Mode(o.mode), Namespaces: o.namespaces})
	if err != nil {
		return err
	}
	if o.kubectl {
		if _, err := io.WriteString(o.out, made.Script(found.Rendered)); err != nil {
			return err
		}
		return o.verdict(made, found.Report)
	}
	v := adoptPlanView{Plan: made}
	if len(made.Steps) > 0 {
		if v.File, err = o.write(p, made); err != nil {
			return err
		}
	}
	if err := o.print(v, func(w io.Writer) { o.show(w, v) }); err != nil {
		return err
	}
	return o.verdict(made, found.Report)
}

// printRoles prints the roles with the rights that the plan in --file takes.
func (o *adoptPlanOptions) printRoles(ctx context.Context) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	name, shown := o.planFile(p)
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	made, err := plan.Parse(shown, data)
	if err != nil {
		return err
	}
	rendered, err := p.ForPlan(ctx, made)
	o.talk.Done()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, role := range plan.Roles(o.rbac, plan.Rules(made, rendered)) {
		b.WriteString("---\n")
		b.Write(yamlnode.Encode(role))
	}
	_, err = o.out.Write(b.Bytes())
	return err
}

// planFile returns where the plan lies, and how a person names that.
func (o *adoptPlanOptions) planFile(p *project.Project) (name, shown string) {
	if o.file != "" {
		return o.argPath(o.file), o.file
	}
	return p.Path(project.PlanFile), project.PlanFile
}

// write puts a plan into its file, and returns how a person names that. A plan
// that is being carried out stays as it is.
func (o *adoptPlanOptions) write(p *project.Project, made *plan.Plan) (string, error) {
	name, shown := o.planFile(p)
	text := plan.Format(made)
	journal, err := project.JournalOf(name)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(journal); err == nil {
		if have, err := os.ReadFile(name); err != nil || string(have) != string(text) {
			return "", fmt.Errorf("%s is being carried out, or was: its journal lies in %s. Finish it or go back with 'quayside adopt revert', and put both away; or name another file with --file", shown, filepath.Base(journal))
		}
	}
	_, err = filetree.WriteFile(name, text)
	return shown, err
}

// verdict is the exit code's reason.
func (o *adoptPlanOptions) verdict(made *plan.Plan, rep *adopt.Report) error {
	var names []string
	for _, l := range made.Left {
		if len(o.namespaces) == 0 || slices.Contains(o.namespaces, l.Namespace) {
			names = append(names, l.Namespace+"/"+l.Package)
		}
	}
	switch {
	case len(names) > 0:
		return &project.DiffersError{Msg: inert.Line(diag.Count(len(names), "operator") + " left to OLM: " + strings.Join(names, ", "))}
	case len(made.Steps) == 0:
		o.talk.Note("OLM has nothing that could be taken over: %s looked at", diag.Count(len(rep.Operators), "operator"))
	}
	return nil
}

// show prints what a plan does, for a person.
func (o *adoptPlanOptions) show(w io.Writer, v adoptPlanView) {
	for _, op := range v.Plan.Operators {
		fmt.Fprintf(w, "%s %s\n", o.out.Sign("+"), inert.Line(op.Namespace+"/"+op.Package+" ("+op.CSV+")"))
		for _, note := range notesOn(op) {
			fmt.Fprintf(w, "      %s\n", inert.Line(note))
		}
	}
	for _, l := range v.Plan.Left {
		fmt.Fprintf(w, "%s %s\n", o.out.Sign("-"), inert.Line(l.Namespace+"/"+l.Package+" stays with OLM"))
		for _, reason := range l.Reasons {
			fmt.Fprintf(w, "      %s\n", inert.Line(reason))
		}
	}
	actions := 0
	for _, s := range v.Plan.Steps {
		what := diag.Count(len(s.Actions), "action")
		if s.Manual != "" {
			what = "by hand"
		}
		actions += len(s.Actions)
		fmt.Fprintf(w, "%4d  %s (%s)\n", s.Number, inert.Line(s.Title), what)
		if s.Manual != "" {
			fmt.Fprintf(w, "      %s\n", inert.Line(s.Manual))
		}
	}
	if v.File != "" {
		fmt.Fprintf(w, "%s: %s, %s, %s\n", inert.Line(v.File), diag.Count(len(v.Plan.Operators), "operator"), diag.Count(len(v.Plan.Steps), "step"), diag.Count(actions, "action"))
	}
}

// notesOn returns what is worth knowing of an operator that is taken over.
func notesOn(op plan.Operator) []string {
	var out []string
	if op.Forgotten {
		out = append(out, "OLM has forgotten it: what its objects still have of OLM's goes")
	}
	if len(op.Restarts) > 0 {
		out = append(out, "the pods of "+strings.Join(op.Restarts, ", ")+" restart")
	}
	if len(op.Losses) > 0 {
		out = append(out, "lost, and made again: "+strings.Join(op.Losses, ", "))
	}
	if op.Certificates != "" {
		out = append(out, "OLM's certificates end on "+op.Certificates+", and nobody renews them")
	}
	return out
}

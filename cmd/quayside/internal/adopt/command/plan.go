package command

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

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
)

// planFile is the default file name of an adoption plan.
const planFile = "adopt-plan.yaml"

type adoptPlanOptions struct {
	cli.Host
	login      *cli.Login
	cluster    string
	mode       string
	namespaces []string
	file       string
	kubectl    bool
	rbac       string // name for the printed roles
}

func newAdoptPlan(h cli.Host) *cobra.Command {
	o := &adoptPlanOptions{Host: h, mode: string(plan.Stopped)}
	cmd := &cobra.Command{
		Use:   "plan [FILE | DIR | -]",
		Short: "Write a step-by-step plan for adopting operators from OLM or Helm",
		Long: cli.Doc(`
			Write a plan for adopting operators that OLM or Helm installed in a cluster: numbered steps,
			by namespace, each with its actions on objects, its preconditions and its
			postconditions. Nothing is written to the cluster. Review and commit the plan; 'quayside
			adopt run' executes it. Before you plan, run 'quayside adopt inspect --record' and
			'quayside render'.
` + sourceDoc + `

			Start with one unimportant namespace (--namespace). Operators that cannot leave OLM
			now, and those that are tied to them, stay with OLM; the output gives the reason.
			'quayside adopt run' refuses a plan for OLM v1 (ClusterExtensions): run the commands
			that --kubectl prints.

			The plan stops OLM's two controllers once for some seconds, and restarts them once. If
			you cannot stop them, use --mode live: OperatorConditions are then deleted and created
			again, without the conditions that the operators reported.

			Of operators whose settings of OLM have left the lock ('quayside adopt run --finish', or
			their next version), the plan removes OLM's remaining fields. Their pods restart once.

			--rbac prints a ClusterRole and Roles with exactly the permissions for run, verify and
			revert of the plan in --file, which must match the cluster's current state. Bind
			them to the account that runs the plan, and delete them afterwards. They allow this
			account to grant these roles (escalate, bind).

			See also: docs/adopt.md
			Exit codes: 0 the plan has every requested operator; 1 some are missing; 2 an error.`),
		Example: cli.Examples(`
			# plan one namespace first
			quayside adopt plan --context prod --namespace vault -f adopt-vault.yaml

			# print kubectl commands instead
			quayside adopt plan --context prod --namespace vault --kubectl

			# print the roles for the plan, for 'kubectl apply -f -'
			quayside adopt plan --rbac -f adopt-plan.yaml`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSource(cmd, args, o.login); err != nil {
				return err
			}
			switch {
			case o.kubectl && !o.IsText():
				return cli.Usagef(cmd, "--kubectl cannot be used with --output")
			case o.rbac != "" && (o.cluster != "" || len(o.namespaces) > 0 || o.kubectl || !o.IsText()):
				return cli.Usagef(cmd, "--rbac prints the permissions that the plan in --file needs: use it only with --file, --offline, --context and --kubeconfig")
			case o.rbac != "":
				return o.printRoles(cmd.Context(), args)
			}
			return o.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	o.login = o.AddLogin(cmd)
	o.AddCluster(cmd, &o.cluster)
	f.StringArrayVar(&o.namespaces, "namespace", nil, "adopt only the operators installed in this `NAMESPACE`; may be given several times")
	o.AddChoice(cmd, &o.mode, "mode", "how to handle OLM's controllers during the plan", []string{string(plan.Stopped), string(plan.Live)})
	f.StringVarP(&o.file, "file", "f", "", "write the plan to this `FILE` (default: "+planFile+" in the workspace)")
	f.BoolVar(&o.kubectl, "kubectl", false, "print the plan as kubectl commands; write no file")
	f.StringVar(&o.rbac, "rbac", "", "print roles with this `NAME` and the permissions that the plan in --file needs")
	f.Lookup("rbac").NoOptDefVal = "quayside-adopt"
	f.BoolVar(o.Offline, "offline", false, "fetch no bundles; list missing ones")
	h.AddOutput(cmd, adoptPlanView{})
	return cmd
}

// adoptPlanView is the output of `quayside adopt plan`.
type adoptPlanView struct {
	File string     `json:"file,omitempty" doc:"File of the plan. Absent if no operator is adopted."`
	Plan *plan.Plan `json:"plan"`
}

// read opens the workspace, and reads the cluster.
func (o *adoptPlanOptions) read(ctx context.Context, args []string, selection snapshot.Selection) (p *workspace.Project, cluster string, snap *snapshot.Snapshot, err error) {
	if p, err = o.Open(); err != nil {
		return nil, "", nil, err
	}
	if cluster, err = p.Settings.ClusterName(o.cluster, "--cluster"); err != nil {
		return nil, "", nil, err
	}
	selection.Releases = inspect.Releases(p)
	snap, err = readCluster(ctx, o.Host, args, o.login, selection)
	return p, cluster, snap, err
}

func (o *adoptPlanOptions) run(ctx context.Context, args []string) error {
	p, cluster, snap, err := o.read(ctx, args, snapshot.Selection{ManagedFields: true})
	if err != nil {
		return err
	}
	pl, found, err := inspect.Plan(ctx, p, snap, inspect.PlanOptions{Cluster: cluster, Mode: plan.Mode(o.mode), Namespaces: o.namespaces})
	if err != nil {
		return err
	}
	if o.kubectl {
		if _, err := io.WriteString(o.Out, pl.Script(found.Rendered)); err != nil {
			return err
		}
		return o.resultError(pl, found.Report)
	}
	v := adoptPlanView{Plan: pl}
	if len(pl.Steps) > 0 {
		if v.File, err = o.write(p, pl); err != nil {
			return err
		}
	}
	if err := o.Print(v, func(w io.Writer) { o.show(w, v) }); err != nil {
		return err
	}
	return o.resultError(pl, found.Report)
}

// printRoles prints roles with the permissions that the plan in --file needs.
func (o *adoptPlanOptions) printRoles(ctx context.Context, args []string) error {
	p, err := o.Open()
	if err != nil {
		return err
	}
	name, shown := o.planPath(p)
	data, err := filetree.ReadFile(name)
	if err != nil {
		return err
	}
	pl, err := plan.Parse(shown, data)
	if err != nil {
		return err
	}
	rendered, err := inspect.RenderForPlan(ctx, p, pl)
	if err != nil {
		return err
	}
	if err := pl.CheckLimits(); err != nil {
		return err
	}
	dir, err := journalOf(name)
	if err != nil {
		return err
	}
	journal, err := run.OpenJournal(run.JournalDir(dir), pl)
	var snap *snapshot.Snapshot
	if err == nil {
		snap, err = checkDerived(ctx, o.Host, p, pl, journal, args, o.login)
	}
	o.Log.Done()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, role := range plan.Roles(o.rbac, plan.Rules(pl, rendered, snap)) {
		b.WriteString("---\n")
		b.Write(yamlnode.Encode(role))
	}
	_, err = o.Out.Write(b.Bytes())
	return err
}

// planPath returns the path of the plan file, and its name in messages.
func (o *adoptPlanOptions) planPath(p *workspace.Project) (name, shown string) {
	if o.file != "" {
		return o.Path(o.file), o.file
	}
	return p.Path(planFile), planFile
}

// write writes the plan file and returns its name in messages.
func (o *adoptPlanOptions) write(p *workspace.Project, pl *plan.Plan) (string, error) {
	name, shown := o.planPath(p)
	text := plan.Format(pl)
	if err := o.checkNotStarted(p, text); err != nil {
		return "", err
	}
	_, err := filetree.WriteFile(name, text)
	return shown, err
}

// isWritten reports whether the plan file contains exactly this plan.
func (o *adoptPlanOptions) isWritten(p *workspace.Project, pl *plan.Plan) bool {
	name, _ := o.planPath(p)
	have, err := filetree.ReadFile(name)
	return err == nil && bytes.Equal(have, plan.Format(pl))
}

// checkNotStarted returns an error if writing text would overwrite a different plan that has been started. A
// started plan has a journal.
func (o *adoptPlanOptions) checkNotStarted(p *workspace.Project, text []byte) error {
	name, shown := o.planPath(p)
	journal, err := journalOf(name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(journal); err != nil {
		return nil //nolint:nilerr // it has no journal
	}
	if have, err := filetree.ReadFile(name); err != nil || string(have) != string(text) {
		return fmt.Errorf("%s was started, and its journal is in %s: choose another file with --file, or finish this plan ('quayside adopt run') or revert it ('quayside adopt revert'), then move the plan and its journal away", shown, filepath.Base(journal))
	}
	return nil
}

// journalOf returns the journal directory for a plan file, in the same directory as the file.
func journalOf(file string) (string, error) {
	base, ok := strings.CutSuffix(file, filepath.Ext(file))
	if !ok || base == "" || filepath.Base(base) == "." {
		return "", fmt.Errorf("%s: must be a file name such as %s, whose journal is adopt-plan.journal in the same directory", file, planFile)
	}
	return base + ".journal", nil
}

// resultError returns the error for the exit code. It is nil if the plan contains every requested operator.
func (o *adoptPlanOptions) resultError(pl *plan.Plan, rep *adopt.Inspection) error {
	var names []string
	for _, l := range pl.Skipped {
		selected := !slices.ContainsFunc(rep.Operators, func(op adopt.Operator) bool {
			return op.Key() == l.Namespace+"/"+l.Package && op.State == adopt.NotSelected
		})
		if selected && (len(o.namespaces) == 0 || slices.Contains(o.namespaces, l.Namespace)) {
			names = append(names, l.Namespace+"/"+l.Package)
		}
	}
	switch {
	case len(names) > 0:
		return &workspace.DiffersError{Msg: sanitize.Line(diag.Count(len(names), "operator") + " not adopted: " + strings.Join(names, ", "))}
	case len(pl.Steps) == 0:
		o.Log.Note("OLM and Helm have no operators to adopt: %s inspected", diag.Count(len(rep.Operators), "operator"))
	}
	return nil
}

// show prints a plan as text.
func (o *adoptPlanOptions) show(w io.Writer, v adoptPlanView) {
	for _, op := range v.Plan.Operators {
		fmt.Fprintf(w, "%s %s\n", o.Out.Sign("+"), sanitize.Line(op.Namespace+"/"+op.Package+" ("+op.CSV+")"))
		for _, note := range operatorNotes(op) {
			fmt.Fprintf(w, "      %s\n", sanitize.Line(note))
		}
	}
	for _, l := range v.Plan.Skipped {
		origin := "OLM"
		if l.Release != "" {
			origin = "Helm"
		}
		fmt.Fprintf(w, "%s %s\n", o.Out.Sign("-"), sanitize.Line(l.Namespace+"/"+l.Package+" stays with "+origin))
		for _, reason := range l.Reasons {
			fmt.Fprintf(w, "      %s\n", sanitize.Line(reason))
		}
	}
	actions := 0
	for _, s := range v.Plan.Steps {
		what := diag.Count(len(s.Actions), "action")
		if s.Manual != "" {
			what = "by hand"
		}
		actions += len(s.Actions)
		fmt.Fprintf(w, "%4d  %s (%s)\n", s.Number, sanitize.Line(s.Title), what)
		if s.Manual != "" {
			fmt.Fprintf(w, "      %s\n", sanitize.Line(s.Manual))
		}
	}
	if v.File != "" {
		fmt.Fprintf(w, "%s: %s, %s, %s\n", sanitize.Line(v.File), diag.Count(len(v.Plan.Operators), "operator"), diag.Count(len(v.Plan.Steps), "step"), diag.Count(actions, "action"))
	}
}

// operatorNotes returns notes about an adopted operator, such as restarts and losses.
func operatorNotes(op plan.Operator) []string {
	var out []string
	if op.Detached {
		out = append(out, "no longer managed by OLM: the plan removes OLM's leftovers from the operator's objects")
	}
	if op.Release != "" {
		out = append(out, "managed by Helm (release "+op.Release+")")
	}
	for _, hook := range op.Hooks {
		out = append(out, "not applied by the plan, because it is a hook: "+hook+"; it runs when the GitOps tool first applies the tree")
	}
	if len(op.Restarts) > 0 {
		out = append(out, "the pods of "+strings.Join(op.Restarts, ", ")+" restart")
	}
	if op.Extension != "" {
		out = append(out, "managed by OLM v1 (ClusterExtension "+op.Extension+"): the steps are yours ('quayside adopt plan --kubectl')")
	}
	switch {
	case len(op.Losses) == 0:
	case op.Extension != "":
		out = append(out, "the API server rejects the requests that these webhooks intercept until the certificate provider has injected the CA: "+strings.Join(op.Losses, ", "))
	default:
		out = append(out, "deleted and recreated: "+strings.Join(op.Losses, ", "))
	}
	if op.Certificates != "" {
		out = append(out, "OLM's certificates expire on "+op.Certificates+", and they are no longer renewed")
	}
	return out
}

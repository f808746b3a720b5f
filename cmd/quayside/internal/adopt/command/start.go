package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/extend"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

type adoptStartOptions struct {
	cli.Host
	login   *cli.Login
	cluster string
	file    string
	yes     bool
}

func newAdoptStart(h cli.Host) *cobra.Command {
	o := &adoptStartOptions{Host: h}
	cmd := &cobra.Command{
		Use:   "start NAMESPACE",
		Short: "Prepare the workspace for one namespace to leave OLM: import, select, record, render, plan",
		Long: cli.Doc(`
			Prepare everything in the workspace that the operators of one namespace need to leave
			OLM: the files of 'quayside import', 'adopt inspect --record', 'render' and 'adopt
			plan', and the entry in the cluster's operators in quayside.yaml. Steps that are done
			already are skipped. Nothing is written to the cluster, which is only read.

			The entry is NAMESPACE/*, or the operators that can leave now if others cannot. If the
			cluster has no operators in quayside.yaml yet, and so gets all of them, the entry also
			lists the other operators that OLM does not manage.

			quayside computes all files first, and shows and writes them only if there is no error.
			It asks before it writes; --yes skips the question. Without a terminal and without --yes
			it writes nothing. You can repeat the command until the plan is started.

			See also: docs/adopt.md
			Exit codes: 0 the plan has every operator of the namespace; 1 some are missing, or
			nothing was written; 2 an error.`),
		Example: cli.Examples(`
			# the first namespace of a cluster that quayside.yaml does not have yet
			quayside adopt start my-etcd --context prod --cluster prod

			# another namespace, without questions
			quayside adopt start my-etcd --context prod --yes`),
		Args: cli.WantArgs("NAMESPACE"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	o.login = o.AddLogin(cmd)
	o.AddCluster(cmd, &o.cluster)
	f.StringVarP(&o.file, "file", "f", "", "write the plan to this `FILE` (default: NAMESPACE.yaml)")
	f.BoolVar(&o.yes, "yes", false, "write the files without a question")
	f.BoolVar(o.Offline, "offline", false, "no network access except to the cluster; list missing content")
	o.AddWriter(cmd)
	return cmd
}

// preparation contains the files to write to the workspace.
type preparation struct {
	imported *extend.ImportReport // nil: nothing to import, because every operator is declared and pinned
	edit     *edit.Edit           // change to the declarations and the lock; nil: none
	cluster  string
	patterns []string           // patterns to add to the cluster's operators in spec.clusters
	settings []byte             // new content of quayside.yaml; nil: unchanged
	project  *workspace.Project // workspace with all changes
	found    *inspect.Inspection
	report   *adopt.Inspection      // inspection of the whole namespace
	skipped  []plan.SkippedOperator // operators that the first plan of the whole namespace skipped
	tree     *workspace.TreeReport  // nil: the plan adopts no operator
	plan     *plan.Plan
}

func (o *adoptStartOptions) run(ctx context.Context, namespace string) error {
	p, err := o.Open()
	if err != nil {
		return err
	}
	planner := &adoptPlanOptions{Host: o.Host, namespaces: []string{namespace}, file: cmp.Or(o.file, namespace+".yaml")}
	if err := planner.checkNotStarted(p, nil); err != nil {
		return err
	}
	snap, err := readCluster(ctx, o.Host, nil, o.login, snapshot.Selection{ManagedFields: true})
	if err != nil {
		return err
	}
	ready, err := o.prepare(ctx, p, snap, namespace)
	o.Log.Done()
	if err != nil {
		return err
	}
	shown := *ready.plan
	shown.Skipped = ready.skipped
	view := adoptPlanView{Plan: &shown}
	if len(shown.Operators) > 0 {
		view.File = planner.file
	}
	o.show(ready)
	planner.show(o.Out, view)
	if len(shown.Operators) == 0 {
		if !slices.ContainsFunc(shown.Skipped, func(s plan.SkippedOperator) bool { return s.Namespace == namespace }) {
			o.Log.Note("OLM manages no operator of namespace %s", sanitize.Line(namespace))
			return nil
		}
		return &workspace.DiffersError{Msg: sanitize.Line("no operator of namespace " + namespace + " can leave OLM now: nothing was written")}
	}
	if planner.isWritten(p, ready.plan) && !ready.isChanged(p) {
		o.Log.Note("every file is up to date")
	} else if err := o.write(ctx, p, ready, planner); err != nil {
		return err
	}
	then := "then: try the plan with 'quayside adopt run " + planner.file + " --check', and execute it without --check"
	if ready.plan.IsForExtensions() {
		then = "then: run 'quayside adopt verify " + planner.file + " --record', and carry out the steps that 'quayside adopt plan --namespace " + namespace + " --kubectl' prints"
	}
	for _, line := range []string{
		"next: commit the changed files to a branch, and open a pull request; do not merge it yet", then,
	} {
		o.Log.Note("%s", sanitize.Line(line))
	}
	return planner.resultError(&shown, ready.report)
}

// write asks for confirmation, then writes the files.
func (o *adoptStartOptions) write(ctx context.Context, p *workspace.Project, ready *preparation, planner *adoptPlanOptions) error {
	if !o.yes && !o.Prompt.IsInteractive() {
		return &workspace.DiffersError{Msg: "nothing was written, because there is no terminal for the confirmation: repeat the command with --yes"}
	}
	if !o.yes {
		if yes, err := o.Prompt.Confirm(ctx, "Write these files?"); err != nil || !yes {
			return cmp.Or(err, error(&workspace.DiffersError{Msg: "aborted by user: nothing was written"}))
		}
	}
	if err := ready.write(ctx, p); err != nil {
		return err
	}
	_, err := planner.write(p, ready.plan)
	return err
}

// prepare computes the files to write. It first selects all operators of the namespace. If some of them cannot
// leave OLM, it selects the others by name.
func (o *adoptStartOptions) prepare(ctx context.Context, p *workspace.Project, snap *snapshot.Snapshot, namespace string) (*preparation, error) {
	lock, err := p.LockIfAny()
	if err != nil {
		return nil, err
	}
	set, err := p.DeclarationsIfAny()
	if err != nil {
		return nil, err
	}
	config, err := p.Read(settings.FileName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out, current := &preparation{}, p.Settings
	if c := extend.Read(snap); !c.IsPinned(lock) {
		if out.edit, out.imported, err = extend.Import(ctx, p, c, nil, false); err != nil {
			return nil, err
		}
		o.Log.Warn(out.imported.Warnings)
	}
	if out.edit != nil {
		lock, set = out.edit.Resolution.Lock, out.edit.Problem.Declared
	}
	if config == nil {
		config = settings.Draft{KubernetesVersion: snap.Version}.Text()
		if out.edit != nil && out.edit.Settings() != nil {
			config = out.edit.Settings()
		}
		if current, err = settings.Parse(settings.FileName, config); err != nil {
			return nil, err
		}
	}
	if lock == nil || !slices.ContainsFunc(lock.Pins, func(pin lockfile.Pin) bool { return pin.Namespace == namespace }) {
		o.show(out)
		return nil, fmt.Errorf("no operator of namespace %s could be imported%s", namespace, diag.DidYouMean(namespace, pinNamespaces(lock)))
	}
	if err := o.chooseCluster(ctx, out, current); err != nil {
		return nil, err
	}
	names := []string{namespace + "/*"}
	for {
		w, err := out.selectOperators(config, current, lock, snap, names)
		if err != nil {
			return nil, err
		}
		if err := out.makePlan(ctx, p.With(w, set, lock), snap, namespace); err != nil {
			return nil, err
		}
		left := slices.ContainsFunc(out.plan.Skipped, func(s plan.SkippedOperator) bool { return s.Namespace == namespace })
		if out.report == nil {
			out.report, out.skipped = out.found.Report, out.plan.Skipped
		}
		if len(out.plan.Operators) == 0 || !left || names[0] != namespace+"/*" {
			break
		}
		names = nil
		for _, op := range out.plan.Operators {
			names = append(names, op.Namespace+"/"+op.Package)
		}
	}
	if len(out.plan.Operators) > 0 {
		out.tree, err = out.project.PrepareTree(ctx, false)
		if out.tree != nil {
			out.project.Log.Warn(out.tree.Warnings)
		}
	}
	return out, err
}

func pinNamespaces(lock *lockfile.File) []string {
	var out []string
	if lock != nil {
		for _, pin := range lock.Pins {
			out = append(out, pin.Namespace)
		}
	}
	return out
}

// chooseCluster sets out.cluster, the name that the cluster has in quayside.yaml. If spec.clusters is not set,
// any name is valid.
func (o *adoptStartOptions) chooseCluster(ctx context.Context, out *preparation, current *settings.Workspace) (err error) {
	if _, isSet := current.Fields["spec.clusters"]; isSet {
		out.cluster, err = current.ClusterName(o.cluster, "--cluster")
		return err
	}
	out.cluster = cmp.Or(o.cluster, current.Clusters[0].Name)
	if o.cluster == "" && !o.yes && o.Prompt.IsInteractive() {
		name, err := o.Prompt.Line(ctx, "name of the cluster in quayside.yaml ["+out.cluster+"]:")
		out.cluster = cmp.Or(name, out.cluster)
		return err
	}
	return nil
}

// selectOperators adds names to the cluster's list of operators in quayside.yaml. It returns the changed
// settings, and sets r.patterns to the added patterns. A cluster without a list gets all operators. If OLM
// still manages operators that are not in names, this would be too many: the cluster then gets a list of names
// and of the operators that OLM does not manage.
func (r *preparation) selectOperators(config []byte, current *settings.Workspace, lock *lockfile.File, snap *snapshot.Snapshot, names []string) (*settings.Workspace, error) {
	w := *current
	i := max(0, slices.IndexFunc(w.Clusters, func(c profile.Cluster) bool { return c.Name == r.cluster }))
	_, listed := w.Fields[diag.Item("spec.clusters", i)+".operators"]
	have, more, needed, others := w.Clusters[i], []string(nil), false, false
	for _, pin := range lock.Pins {
		isChosen, err := profile.Cluster{Operators: names}.Gets(pin.Key())
		if err != nil {
			return nil, err
		}
		isThere, err := have.Gets(pin.Key())
		if err != nil {
			return nil, err
		}
		isManaged := slices.ContainsFunc(snap.Subscriptions(), func(s snapshot.Subscription) bool {
			return s.Namespace == pin.Namespace && s.Package == pin.Package
		}) || slices.ContainsFunc(snap.ClusterExtensions(), func(e snapshot.ClusterExtension) bool {
			return e.InstallNamespace == pin.Namespace && e.Package == pin.Package
		})
		needed = needed || isChosen && !isThere
		others = others || isManaged && !isChosen
		if !isManaged && !isChosen {
			more = append(more, pin.Key())
		}
	}
	r.patterns, r.settings = nil, nil
	switch {
	case listed && needed:
		r.patterns, have.Operators = names, slices.Concat(have.Operators, names)
	case !listed && (others || r.cluster != have.Name):
		r.patterns = slices.Concat(names, more)
		have.Operators = r.patterns
	default:
		return &w, nil
	}
	if at, isSet := w.Fields["spec.clusters"]; isSet && at.File != w.File {
		return nil, diag.Hintf(at, "add "+strings.Join(r.patterns, ", ")+" to the operators of cluster "+r.cluster+" there", "spec.clusters is inherited, and quayside edits only %s", settings.FileName)
	}
	have.Name = r.cluster
	w.Clusters = slices.Clone(w.Clusters)
	w.Clusters[i] = have
	var err error
	r.settings, err = settings.AddOperators(config, r.cluster, r.patterns)
	return &w, err
}

// makePlan compares the cluster with the workspace p, and makes the plan. It sets r.plan, and sets r.project to
// a copy of p with the new lock.
func (r *preparation) makePlan(ctx context.Context, p *workspace.Project, snap *snapshot.Snapshot, namespace string) (err error) {
	if r.found, err = inspect.Inspect(ctx, p, snap, r.cluster); err != nil {
		return err
	}
	set, err := p.Declarations()
	if err != nil {
		return err
	}
	r.project = p.With(p.Settings, set, r.found.Lock)
	r.plan, err = inspect.MakePlan(r.project, snap, r.found, inspect.PlanOptions{Cluster: r.cluster, Mode: plan.Stopped, Namespaces: []string{namespace}})
	return err
}

// isChanged reports whether any file except the plan must be written.
func (r *preparation) isChanged(p *workspace.Project) bool {
	return r.edit != nil || r.settings != nil || r.isRecorded(p) || len(r.tree.OwnChanges()) > 0
}

// isRecorded reports whether the lock changes while the declarations stay the same.
func (r *preparation) isRecorded(p *workspace.Project) bool {
	before, err := p.Read(workspace.LockFile)
	return r.edit == nil && (err != nil || !bytes.Equal(before, lockfile.Format(r.found.Lock)))
}

// write writes the files of the workspace. If it is interrupted, the user can repeat the command.
func (r *preparation) write(ctx context.Context, p *workspace.Project) error {
	if r.edit != nil {
		r.edit.Resolution.Lock = r.found.Lock
		if _, err := r.edit.Write(ctx, false); err != nil {
			return err
		}
	} else if _, err := p.WriteFile(workspace.LockFile, lockfile.Format(r.found.Lock)); err != nil {
		return err
	}
	if r.settings != nil {
		if _, err := p.WriteFile(settings.FileName, r.settings); err != nil {
			return err
		}
	}
	return r.project.WritePrepared(r.tree, false)
}

// show prints the changes to the workspace, and the inspection.
func (o *adoptStartOptions) show(r *preparation) {
	line := func(sign, text string) { fmt.Fprintln(o.Out, o.Out.Sign(sign)+" "+sanitize.Line(text)) }
	if r.imported != nil {
		(&importOptions{Host: o.Host}).show(o.Out, r.imported)
	} else {
		o.Log.Note("every operator of the cluster is declared and pinned")
	}
	if r.patterns != nil {
		line("~", settings.FileName+": operators of cluster "+r.cluster+": "+strings.Join(r.patterns, ", "))
	}
	if r.report != nil {
		r.report.WriteText(o.Out, false)
	}
	if r.tree != nil && len(r.tree.OwnChanges()) > 0 {
		line("~", r.tree.Output+": "+diag.Count(len(r.tree.OwnChanges()), "file"))
	}
}

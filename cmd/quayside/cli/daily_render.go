package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/render"
)

type renderOptions struct {
	*app
	stdout  bool
	overlay string
	check   bool
	foreign bool // list what is not quayside's too
}

func newRender(a *app) *cobra.Command {
	o := &renderOptions{app: a}
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Write the plain manifests of everything in quayside.lock",
		Long: doc(`
			Write the plain manifests of every operator in quayside.lock as a tree of
			kustomizations: a base per operator, an overlay per cluster, the
			CustomResourceDefinitions in a directory of their own. The tree is written to
			rendered/, or to spec.output of quayside.yaml.

			Only the lock, quayside.yaml and the content of the bundles are read. The same
			lock gives the same bytes on every machine. Files that quayside did not write
			are never touched; its own files that are no longer needed are removed.

			With --stdout nothing is written: a cluster's overlay, including your own
			patches, is built as 'kubectl kustomize' would build it, and printed after the
			CustomResourceDefinitions of the operators in it.

			Exit codes: 0 done; 1 with --check, the tree is not what the lock says; 2 an
			error.`),
		Example: examples(`
			# write the tree
			quayside render

			# in CI: is the committed tree what the lock says?
			quayside render --check

			# what one cluster gets, as one stream in the order to apply it
			quayside render --stdout --overlay default`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.stdout && (o.check || cmd.Flags().Changed("output")) {
				return usagef(cmd, "--stdout prints the manifests and nothing else: leave out --check and --output")
			}
			if o.overlay != "" && !o.stdout {
				return usagef(cmd, "--overlay chooses what --stdout prints: add --stdout")
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.stdout, "stdout", false, "print one stream of YAML documents in apply order instead of writing the tree")
	f.StringVar(&o.overlay, "overlay", "", "with --stdout, the `CLUSTER` to print (default: the only one)")
	f.BoolVar(&o.check, "check", false, "write nothing; print what differs and exit with 1 if anything does")
	addOffline(cmd, o.app)
	addOutput(cmd, a, nil, renderReport{})
	addAll(cmd, a, "stdout")
	offer(cmd, "overlay", a.overlays)
	return cmd
}

func (o *renderOptions) run(ctx context.Context) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	if o.stdout {
		res, err := o.rendered(ctx, p)
		if err != nil {
			return err
		}
		return o.stream(p, res)
	}
	r, err := o.compare(ctx, p)
	if err != nil {
		return err
	}
	err = o.print(r, func(w io.Writer) {
		o.printChanges(w, r)
	})
	if err == nil && o.check {
		err = r.differs()
	}
	return err
}

// rendered renders the lock of p.
func (o *renderOptions) rendered(ctx context.Context, p *project.Project) (*render.Result, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	res, err := p.Render(ctx, lock)
	if err == nil {
		o.talk.Warn(res.Warnings)
	}
	return res, err
}

// compare compares the tree with what the lock of p renders to, and unless this
// is a check writes that.
func (o *renderOptions) compare(ctx context.Context, p *project.Project) (*renderReport, error) {
	res, err := o.rendered(ctx, p)
	if err != nil {
		return nil, err
	}
	have, err := p.Rendered(res.Tree)
	if err != nil {
		return nil, err
	}
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	changes := filetree.Diff(have, res.Tree)
	if !o.check {
		if err := filetree.Write(p.Path(p.Settings.Output), res.Tree); err != nil {
			return nil, err
		}
	}
	r := &renderReport{
		Output:    p.Settings.Output,
		Written:   !o.check && len(changes) > 0,
		Operators: len(lock.Pins),
		Files:     res.Tree.Len(),
		Changes:   append([]filetree.Change{}, changes...),
		Warnings:  append([]diag.Warning{}, res.Warnings...),
		result:    res,
	}
	if o.foreign {
		for _, name := range filetree.Foreign(have, res.Tree) {
			r.Changes = append(r.Changes, filetree.Change{Path: name, Kind: foreign})
		}
	}
	return r, nil
}

// stream prints what a cluster gets, the user's own files included.
func (o *renderOptions) stream(p *project.Project, res *render.Result) error {
	cluster, err := p.Cluster(o.overlay, "--overlay")
	if err != nil {
		return err
	}
	build, err := state.Builder(p, res)
	if err != nil {
		return err
	}
	text, err := render.StreamOverlay(res, build, cluster)
	if err != nil {
		return err
	}
	_, err = o.out.Write(text)
	return err
}

// renderReport is what `quayside render` prints.
type renderReport struct {
	Output    string            `json:"output"`
	Written   bool              `json:"written"`
	Operators int               `json:"operators"`
	Files     int               `json:"files"`
	Changes   []filetree.Change `json:"changes" doc:"of the files: missing, differs, extra (as they were before); foreign: not quayside's"`
	Warnings  []diag.Warning    `json:"warnings"`

	result *render.Result
}

// differs returns what a check says of the report.
func (r *renderReport) differs() error {
	ours, applied := 0, 0
	for _, c := range r.Changes {
		switch {
		case c.Kind != foreign:
			ours++
		case strings.HasPrefix(c.Path, "crds/"): // where every file is applied
			applied++
		}
	}
	switch {
	case ours > 0:
		return &project.DiffersError{Msg: fmt.Sprintf("%s is not what %s says (%s): run 'quayside render'", r.Output, project.LockFile, diag.Count(ours+applied, "file"))}
	case applied > 0:
		return &project.DiffersError{Msg: fmt.Sprintf("%s/crds is applied as it is and holds what is not quayside's (%s): move it away", r.Output, diag.Count(applied, "file"))}
	}
	return nil
}

// foreign is what a file is called that quayside did not write. Most of these
// are the user's patches.
const foreign = "foreign"

func (o *renderOptions) printChanges(w io.Writer, r *renderReport) {
	changes := r.Changes
	if !o.check && len(changes) > manyFiles {
		changes = folded(changes)
	}
	theirs := 0
	for _, c := range changes {
		if c.Kind == foreign {
			fmt.Fprintf(w, "? %s (not quayside's)\n", inert.Line(c.Path))
			theirs++
			continue
		}
		fmt.Fprintf(w, "%s %s\n", o.out.Sign(c.Kind.Sign()), inert.Line(c.Path))
	}
	switch {
	case r.Written:
		o.talk.Note("wrote %s (%s, %s)", r.Output, diag.Count(r.Operators, "operator"), diag.Count(r.Files, "file"))
	case len(changes) == theirs:
		o.talk.Note("%s is up to date (%s, %s)", r.Output, diag.Count(r.Operators, "operator"), diag.Count(r.Files, "file"))
	}
}

// manyFiles is how many written files are listed one by one.
const manyFiles = 40

// folded returns a change for every operator, package of CRDs or other
// directory in place of those of its files.
func folded(changes []filetree.Change) []filetree.Change {
	var dirs []string
	files := map[string][]filetree.Change{}
	for _, c := range changes {
		parts := strings.Split(c.Path, "/")
		depth := 1 // clusters/, namespaces/
		switch parts[0] {
		case "operators":
			depth = 3
		case "crds":
			depth = 2
		}
		dir := strings.Join(parts[:min(depth, len(parts)-1)], "/")
		if files[dir] == nil {
			dirs = append(dirs, dir)
		}
		files[dir] = append(files[dir], c)
	}
	var out []filetree.Change
	for _, dir := range dirs {
		all := files[dir]
		if dir == "" || len(all) == 1 {
			out = append(out, all...)
			continue
		}
		kind := all[0].Kind
		if slices.ContainsFunc(all, func(c filetree.Change) bool { return c.Kind != kind }) {
			kind = filetree.Differs
		}
		out = append(out, filetree.Change{Path: fmt.Sprintf("%s/ (%s)", dir, diag.Count(len(all), "file")), Kind: kind})
	}
	return out
}

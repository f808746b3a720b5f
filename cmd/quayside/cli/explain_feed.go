package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/feed"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
)

type feedOptions struct {
	*app
	to string
}

func newFeed(a *app) *cobra.Command {
	o := &feedOptions{app: a}
	cmd := &cobra.Command{
		Use:   "feed",
		Short: "Write the available upgrades as JSON files, for Renovate and others",
		Long: doc(`
			Write static JSON files in the form of a custom datasource of Renovate, one
			for each operator in the lock and one for each channel of its package:

			  operators/<namespace>/<package>.json   the pinned version, and where one hop leads
			  packages/<package>/<channel>.json      every version that the channel offers

			With --all there is such a directory for each workspace, below one that is
			relative to the root of the repository, by the path that the workspace has there:
			envs/prod/operators/<namespace>/<package>.json. Nothing is mixed up where several
			environments have one name, or pin one operator at several versions.

			Where a catalog says how long a version is supported, supportedUntil is the last
			day of it.

			An upgrade that cannot be made is left out: its declaration holds the operator, or
			the next version does not run there. Serve the directory, or read it in place. Only
			files that change are written.`),
		Example: examples(`
			quayside feed --offline
			quayside feed --all --to public -o json`),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().StringVar(&o.to, "to", "feed", "write to `DIR`, relative to the workspace; with --all, to the root of the repository")
	addOffline(cmd, o.app)
	addOutput(cmd, a, nil, feedView{})
	addAll(cmd, a)
	return cmd
}

// feedView is what `quayside feed` prints.
type feedView struct {
	Directory string            `json:"directory"`
	Files     int               `json:"files"`
	Changes   []filetree.Change `json:"changes"`
}

func (o *feedOptions) run(cmd *cobra.Command) error {
	s, err := o.open()
	if err != nil {
		return err
	}
	in, err := o.freshInputs(cmd.Context(), s)
	if err != nil {
		return err
	}
	want, err := feed.Of(in.Index, in.Outdated(""))
	if err != nil {
		return err
	}
	shown, to, err := o.place()
	if err != nil {
		return err
	}
	have, err := s.Tree(to)
	if err != nil {
		return err
	}
	changes := filetree.Diff(have, want)
	if err := filetree.Write(s.Path(to), want, filetree.Force(true)); err != nil {
		return err
	}
	v := feedView{shown, want.Len(), append([]filetree.Change{}, changes...)}
	return o.print(v, func(w io.Writer) {
		for _, c := range v.Changes {
			fmt.Fprintf(w, "%s %s\n", o.out.Sign(c.Kind.Sign()), inert.Line(c.Path))
		}
		o.talk.Note("%s holds %s, %d changed", v.Directory, diag.Count(v.Files, "file"), len(v.Changes))
	})
}

// place returns the directory of the feed, as it is shown and where it is: with
// --all, one for each workspace.
func (o *feedOptions) place() (shown, dir string, err error) {
	if !o.all {
		return o.to, o.to, nil
	}
	within, err := filepath.Rel(o.top, o.workspace)
	if err != nil {
		return "", "", err
	}
	dir = o.to
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(o.top, dir)
	}
	dir, err = filepath.Abs(filepath.Join(dir, within))
	return filepath.ToSlash(filepath.Join(o.to, within)), dir, err
}

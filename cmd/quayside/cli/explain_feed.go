package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/resolve"
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

			Serve the directory, or read it in place. Only files that change are written.`),
		Example: examples(`
			quayside feed --offline
			quayside feed --to public/feed -o json`),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().StringVar(&o.to, "to", "feed", "write to `DIR`, relative to the workspace")
	addOffline(cmd, o.app)
	addOutput(cmd, a, nil, feedView{})
	return cmd
}

// feedView is what `quayside feed` prints.
type feedView struct {
	Directory string            `json:"directory"`
	Files     int               `json:"files"`
	Changes   []filetree.Change `json:"changes"`
}

// feedFile is one file of the feed, as Renovate reads it.
type feedFile struct {
	Releases []feedRelease `json:"releases"` // oldest first
}

type feedRelease struct {
	Version      string `json:"version"`
	IsDeprecated bool   `json:"isDeprecated,omitempty"`
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
	want, err := feed(in.Index, in.Outdated())
	if err != nil {
		return err
	}
	have, err := s.Tree(o.to)
	if err != nil {
		return err
	}
	changes := filetree.Diff(have, want)
	if err := filetree.Write(s.Path(o.to), want); err != nil {
		return err
	}
	return o.finish(want, changes)
}

// feed returns the files for operators of these ages.
func feed(x *catalog.Index, ages []resolve.Age) (*filetree.Tree, error) {
	t := filetree.New()
	packages := map[string]bool{}
	for _, a := range ages {
		f := feedFile{Releases: []feedRelease{{Version: a.Pinned, IsDeprecated: len(a.Deprecated) > 0}}}
		if a.Next != "" {
			f.Releases = append(f.Releases, feedRelease{Version: a.Next})
		}
		if err := addFeed(t, path.Join("operators", a.Namespace, a.Package), f); err != nil {
			return nil, err
		}
		if packages[a.Package] {
			continue
		}
		packages[a.Package] = true
		for channel, f := range channelFeeds(x, a.Package) {
			if err := addFeed(t, path.Join("packages", a.Package, url.PathEscape(channel)), f); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// channelFeeds returns what each channel of a package offers, in any catalog.
func channelFeeds(x *catalog.Index, pkg string) map[string]feedFile {
	out := map[string]feedFile{}
	for _, cat := range x.Having(pkg) {
		p, ok := cat.Package(pkg)
		if !ok {
			continue
		}
		for _, c := range p.Channels() {
			f := out[c.Name()]
			for _, e := range slices.Backward(c.Walk()) {
				r := feedRelease{Version: e.Bundle().Version().String(), IsDeprecated: e.Bundle().Deprecated() || e.Bundle().Deprecation() != ""}
				if !slices.ContainsFunc(f.Releases, func(have feedRelease) bool { return have.Version == r.Version }) {
					f.Releases = append(f.Releases, r)
				}
			}
			out[c.Name()] = f
		}
	}
	return out
}

func addFeed(t *filetree.Tree, name string, f feedFile) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return t.Add(name+".json", append(data, '\n'))
}

func (o *feedOptions) finish(want *filetree.Tree, changes []filetree.Change) error {
	v := feedView{o.to, want.Len(), append([]filetree.Change{}, changes...)}
	return o.print(v, func(w io.Writer) {
		for _, c := range v.Changes {
			fmt.Fprintf(w, "%s %s\n", o.out.sign(c.Kind.Sign()), inert.Line(c.Path))
		}
		o.talk.Note("%s holds %s, %d changed", v.Directory, diag.Count(v.Files, "file"), len(v.Changes))
	})
}

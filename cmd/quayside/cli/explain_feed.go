package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/lockfile"
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

// feedFile is one file of the feed, as Renovate reads it.
type feedFile struct {
	Releases  []feedRelease `json:"releases"`            // oldest first
	SourceURL string        `json:"sourceUrl,omitempty"` // of the repository, as the bundle names it
}

type feedRelease struct {
	Version        string `json:"version"`
	IsDeprecated   bool   `json:"isDeprecated,omitempty"`
	SupportedUntil string `json:"supportedUntil,omitempty"` // the last day, where the catalog says it; Renovate does not read it
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
	want, err := feed(in.Index, in.Outdated(""))
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
	if err := filetree.Write(s.Path(to), want); err != nil {
		return err
	}
	return o.finish(shown, want, changes)
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

// feed returns the files for operators of these ages.
func feed(x *catalog.Index, ages []resolve.Age) (*filetree.Tree, error) {
	t := filetree.New()
	packages := map[string]bool{}
	for _, a := range ages {
		f := feedFile{Releases: []feedRelease{{Version: a.Pinned, IsDeprecated: len(a.Deprecated) > 0, SupportedUntil: a.Lifecycle.Ends()}}}
		if a.Next != "" && offered(a) {
			next := feedRelease{Version: a.Next}
			if b := bundleOf(x, a.Package, a.Next); b != nil {
				next.SupportedUntil, f.SourceURL = b.Lifecycle().Ends(), inert.URL(b.Metadata().Annotations["repository"])
			}
			f.Releases = append(f.Releases, next)
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

// offered reports whether an upgrade that is asked for by name can be made, as far
// as the operator itself goes.
func offered(a resolve.Age) bool {
	switch a.HeldBack {
	case lockfile.HeldByHold, lockfile.HeldByRange, lockfile.HeldByInstallMode, lockfile.HeldByCluster:
		return false
	default:
		return true
	}
}

// bundleOf returns a version of a package, of the first catalog that has it; nil
// where none does.
func bundleOf(x *catalog.Index, pkg, version string) *catalog.Bundle {
	for _, cat := range x.Having(pkg) {
		p, ok := cat.Package(pkg)
		if !ok {
			continue
		}
		for _, b := range p.Bundles() {
			if b.Version().String() == version {
				return b
			}
		}
	}
	return nil
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
				r := feedRelease{Version: e.Bundle().Version().String(), IsDeprecated: e.Bundle().Deprecated() || e.Bundle().Deprecation() != "", SupportedUntil: e.Bundle().Lifecycle().Ends()}
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

func (o *feedOptions) finish(dir string, want *filetree.Tree, changes []filetree.Change) error {
	v := feedView{dir, want.Len(), append([]filetree.Change{}, changes...)}
	return o.print(v, func(w io.Writer) {
		for _, c := range v.Changes {
			fmt.Fprintf(w, "%s %s\n", o.out.Sign(c.Kind.Sign()), inert.Line(c.Path))
		}
		o.talk.Note("%s holds %s, %d changed", v.Directory, diag.Count(v.Files, "file"), len(v.Changes))
	})
}

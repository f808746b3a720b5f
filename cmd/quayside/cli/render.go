package cli

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/workspace"
)

type renderOptions struct {
	*app
	output  format
	stdout  bool
	overlay string
	check   bool
	foreign bool // list what is not quayside's too
	offline bool
}

func newRender(a *app) *cobra.Command {
	o := &renderOptions{app: a}
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Write the plain manifests of everything in quayside.lock",
		Long: doc(`
			Write the plain manifests of every operator in quayside.lock as a tree of
			kustomizations: a base per operator, an overlay per cluster, the
			CustomResourceDefinitions in a directory of their own. It is written to
			rendered/, or to where spec.output of quayside.yaml says.

			Only the lock, quayside.yaml and the content of the bundles are read. The same
			lock gives the same bytes on every machine. Files that quayside did not write
			are never touched; its own that are no longer needed go.

			With --stdout nothing is written: the overlay of a cluster, with your own patches
			in it, is built as 'kubectl kustomize' would, and printed after the
			CustomResourceDefinitions that it needs.

			Exit codes: 0 done; 1 with --check, the tree is not what the lock says; 2 an
			error.`),
		Example: examples(`
			# write the tree
			quayside render

			# in CI: is the committed tree what the lock says?
			quayside render --check

			# what one cluster gets, as one stream in the order to apply it
			quayside render --stdout --overlay default`),
		Args: noArgs,
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
	addOffline(cmd, &o.offline)
	addOutput(cmd, &o.output)
	return cmd
}

func (o *renderOptions) run(ctx context.Context) error {
	s, err := o.open()
	if err != nil {
		return err
	}
	lock, err := s.needLock()
	if err != nil {
		return err
	}
	res, err := s.render(ctx, lock, o.offline)
	if err != nil {
		return err
	}
	have, err := s.rendered()
	if err != nil {
		return err
	}
	if o.stdout {
		return o.stream(s, res, have)
	}
	changes := filetree.Diff(have, res.Tree)
	if !o.check {
		if err := filetree.Write(s.path(s.ws.Output), res.Tree); err != nil {
			return err
		}
	}
	return o.finish(s, lock, res, changes, have)
}

// stream prints what a cluster gets; have is the tree as it stands, with the
// user's own files.
func (o *renderOptions) stream(s *space, res *render.Result, have *filetree.Tree) error {
	names := s.clusterNames()
	switch {
	case o.overlay == "" && len(names) > 1:
		return fmt.Errorf("there are several clusters: name one with --overlay (have %s)", strings.Join(names, ", "))
	case o.overlay == "":
		o.overlay = names[0]
	case !slices.Contains(names, o.overlay):
		return fmt.Errorf("no cluster %q (have %s)%s", o.overlay, strings.Join(names, ", "), diag.DidYouMean(o.overlay, names))
	}
	text, err := render.StreamOverlay(res, have, o.overlay)
	if err != nil {
		return err
	}
	_, err = o.out.Write(text)
	return err
}

// clusterNames returns the names of the overlays, as quayside.yaml has them.
func (s *space) clusterNames() []string {
	var names []string
	for _, c := range s.ws.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// render renders a lock and prints the warnings.
func (s *space) render(ctx context.Context, lock *lockfile.File, offline bool) (*render.Result, error) {
	res, err := s.renderQuietly(ctx, lock, offline)
	if err != nil {
		return nil, err
	}
	s.talk.warn(res.Warnings)
	return res, nil
}

// renderQuietly renders a lock.
func (s *space) renderQuietly(ctx context.Context, lock *lockfile.File, offline bool) (*render.Result, error) {
	opt, err := s.renderOptions()
	if err != nil {
		return nil, err
	}
	c, err := s.contents(lock, offline)
	if err != nil {
		return nil, err
	}
	defer c.close()
	res, err := render.All(lock, opt, func(p lockfile.Pin) (fs.FS, error) { return c.open(ctx, p) })
	s.talk.done()
	return res, err
}

// rendered reads the tree as it stands, empty where there is none.
func (s *space) rendered() (*filetree.Tree, error) {
	dir := s.path(s.ws.Output)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return filetree.New(), nil
	}
	return filetree.Read(os.DirFS(dir))
}

// renderOptions returns what quayside.yaml says about rendering.
func (s *space) renderOptions() (render.Options, error) {
	set, err := s.declarations()
	if err != nil {
		return render.Options{}, err
	}
	w := s.ws
	mirrors, err := s.mirrors()
	if err != nil {
		return render.Options{}, err
	}
	opt := render.Options{
		Profile:           render.Profile(w.Profile),
		Certificates:      render.Provider(w.Certificates),
		KubernetesVersion: w.KubernetesVersion,
		Proxy:             render.Proxy{HTTP: w.Proxy.HTTPProxy, HTTPS: w.Proxy.HTTPSProxy, None: w.Proxy.NoProxy},
		ImagePullSecrets:  w.ImagePullSecrets,
		GitOps:            gitops(w.GitOps),
		CSVAnnotations:    w.CSVAnnotations,
		HealthChecks:      w.HealthChecks,
		CertificateSecret: w.CertificateSecret.Name,
		CASecret:          w.CertificateSecret.CASecret,
	}
	if name := w.CertificateSecret.CAFile; name != "" {
		if opt.CABundle, err = s.certificates(name); err != nil {
			return render.Options{}, diag.Errorf(w.At("spec.certificateSecret.caFile"), "%w", err)
		}
	}
	for _, m := range mirrors.Rewrites() {
		opt.Mirrors = append(opt.Mirrors, render.Mirror{Source: m.Prefix, Mirror: m.Mirror, DigestOnly: !m.Tags, TagOnly: !m.Digests})
	}
	for _, c := range w.Clusters {
		opt.Clusters = append(opt.Clusters, render.Cluster{
			Name: c.Name, Server: c.Server, KubernetesVersion: c.KubernetesVersion, Operators: c.Operators, Config: []byte(c.Config),
		})
	}
	if r := w.Reporter; r.Enabled {
		opt.Reporter = &render.Reporter{Image: r.Image, Namespace: r.Namespace, LeaderElection: r.LeaderElection}
	}
	for _, n := range set.Namespaces {
		opt.Namespaces = append(opt.Namespaces, n.Name)
	}
	return opt, nil
}

func gitops(g *workspace.GitOps) *render.GitOps {
	if g == nil {
		return nil
	}
	return &render.GitOps{
		RepoURL: g.RepoURL, Revision: g.Revision, Path: g.Path, Namespace: g.Namespace, Project: g.Project,
		SourceKind: g.SourceRef.Kind, SourceName: g.SourceRef.Name, SourceNamespace: g.SourceRef.Namespace,
	}
}

// certificates reads a file with certificates, and with nothing that is
// secret: its content goes into the tree.
func (s *space) certificates(name string) ([]byte, error) {
	data, err := readFile(s.path(name))
	if err != nil {
		return nil, err
	}
	found := false
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s holds a %s: only certificates belong there", name, strings.ToLower(block.Type))
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found = true
	}
	if !found {
		return nil, fmt.Errorf("%s holds no certificate in PEM", name)
	}
	return data, nil
}

// renderReport is what `quayside render` prints.
type renderReport struct {
	Output    string        `json:"output"`
	Written   bool          `json:"written"`
	Operators int           `json:"operators"`
	Files     int           `json:"files"`
	Changes   []fileChange  `json:"changes"`
	Warnings  []warningView `json:"warnings"`
}

type fileChange struct {
	Path   string `json:"path"`
	Change string `json:"change"` // missing, differs, extra: as it was before; foreign: not quayside's
}

func (o *renderOptions) finish(s *space, lock *lockfile.File, res *render.Result, changes []filetree.Change, have *filetree.Tree) error {
	r := &renderReport{
		Output:    s.ws.Output,
		Written:   !o.check && len(changes) > 0,
		Operators: len(lock.Pins),
		Files:     res.Tree.Len(),
		Changes:   []fileChange{},
		Warnings:  warningViews(res.Warnings),
	}
	for _, c := range changes {
		r.Changes = append(r.Changes, fileChange{Path: c.Path, Change: string(c.Kind)})
	}
	out := len(changes)
	if o.foreign {
		out += r.addForeign(filetree.Foreign(have, res.Tree))
	}
	err := o.print(o.output, r, func(w io.Writer) error {
		o.printChanges(w, r)
		return nil
	})
	if err != nil {
		return err
	}
	switch {
	case o.check && len(changes) > 0:
		return &differsError{fmt.Sprintf("%s is not what %s says (%s): run 'quayside render'", r.Output, lockFile, count(out, "file"))}
	case o.check && out > 0:
		return &differsError{fmt.Sprintf("%s/crds is applied as it is and holds what is not quayside's (%s): move it away", r.Output, count(out, "file"))}
	}
	return nil
}

// foreign is what a file is called that quayside did not write.
const foreign = "foreign"

// addForeign lists files that are not quayside's and returns how many of them
// lie where every file is applied: among the CustomResourceDefinitions, which
// no kustomization lists. Elsewhere they are the user's patches.
func (r *renderReport) addForeign(names []string) int {
	applied := 0
	for _, name := range names {
		r.Changes = append(r.Changes, fileChange{Path: name, Change: foreign})
		if strings.HasPrefix(name, "crds/") {
			applied++
		}
	}
	return applied
}

func (o *renderOptions) printChanges(w io.Writer, r *renderReport) {
	changes := r.Changes
	if !o.check && len(changes) > manyFiles {
		changes = folded(changes)
	}
	theirs := 0
	for _, c := range changes {
		if c.Change == foreign {
			fmt.Fprintf(w, "? %s (not quayside's)\n", c.Path)
			theirs++
			continue
		}
		sign, color := "~", yellow
		switch filetree.Kind(c.Change) {
		case filetree.Missing:
			sign, color = "+", green
		case filetree.Extra:
			sign, color = "-", red
		case filetree.Differs:
		}
		fmt.Fprintf(w, "%s %s\n", o.out.paint(color, sign), c.Path)
	}
	switch {
	case r.Written:
		o.talk.note("wrote %s (%s, %s)", r.Output, count(r.Operators, "operator"), count(r.Files, "file"))
	case len(changes) == theirs:
		o.talk.note("%s is up to date (%s, %s)", r.Output, count(r.Operators, "operator"), count(r.Files, "file"))
	}
}

// manyFiles is how many written files are listed one by one.
const manyFiles = 40

// folded returns a change for every operator, package of CRDs or other
// directory in place of those of its files.
func folded(changes []fileChange) []fileChange {
	var dirs []string
	files := map[string][]fileChange{}
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
	var out []fileChange
	for _, dir := range dirs {
		all := files[dir]
		if dir == "" || len(all) == 1 {
			out = append(out, all...)
			continue
		}
		kind := all[0].Change
		if slices.ContainsFunc(all, func(c fileChange) bool { return c.Change != kind }) {
			kind = string(filetree.Differs)
		}
		out = append(out, fileChange{Path: fmt.Sprintf("%s/ (%s)", dir, count(len(all), "file")), Change: kind})
	}
	return out
}

package project

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle/fetch"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/report/look"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/subscription"
	"github.com/quayside/quayside/workspace"
)

// contents returns the content of bundles.
func (p *Project) contents() (*fetch.Contents, error) {
	indexes, err := p.indexes()
	if err != nil {
		return nil, err
	}
	client, err := p.Client()
	return fetch.New(client, indexes), err
}

// Render renders a lock.
func (p *Project) Render(ctx context.Context, lock *lockfile.File) (*render.Result, error) {
	opt, err := p.renderOptions()
	if err != nil {
		return nil, err
	}
	return p.render(ctx, lock, opt)
}

// RenderPlain renders a lock without what the team changes of it.
func (p *Project) RenderPlain(ctx context.Context, lock *lockfile.File) (*render.Result, error) {
	opt, err := p.plainOptions()
	if err != nil {
		return nil, err
	}
	return p.render(ctx, lock, opt)
}

func (p *Project) render(ctx context.Context, lock *lockfile.File, opt render.Options) (*render.Result, error) {
	c, err := p.contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	res, err := render.All(lock, opt, func(pin lockfile.Pin) (fs.FS, error) {
		p.Talk.Progress("reading bundle %s", pin.Bundle)
		return c.Open(ctx, pin)
	})
	p.Talk.Done()
	if err != nil {
		return nil, err
	}
	p.Talk.Detail("rendered %s into %s", diag.Count(len(lock.Pins), "operator"), diag.Count(res.Tree.Len(), "file"))
	res.Warnings = p.Waive(append(res.Warnings, p.reviewWaivers(diag.Rendering, res.Warnings)...))
	return res, nil
}

// Rendered reads the tree as it stands, empty where there is none. What is the
// same in want is held once.
func (p *Project) Rendered(want *filetree.Tree) (*filetree.Tree, error) {
	return p.tree(p.Settings.Output, want)
}

// Tree reads a directory of the workspace, which may be absent.
func (p *Project) Tree(name string) (*filetree.Tree, error) { return p.tree(name, filetree.New()) }

func (p *Project) tree(name string, like *filetree.Tree) (*filetree.Tree, error) {
	dir, err := p.lookup(name)
	if errors.Is(err, fs.ErrNotExist) {
		return filetree.New(), nil
	}
	if err != nil {
		return nil, err
	}
	return filetree.ReadLike(dir.FS, like)
}

// renderOptions returns what quayside.yaml says about rendering, with the overlays of
// the clusters.
func (p *Project) renderOptions() (render.Options, error) {
	opt, err := p.plainOptions()
	if err != nil {
		return render.Options{}, err
	}
	overlays, err := p.Overlays()
	if err != nil {
		return render.Options{}, err
	}
	for i, c := range opt.Clusters {
		opt.Clusters[i].Overlays = overlays[c.Name]
	}
	return opt, nil
}

// plainOptions returns what quayside.yaml says about rendering.
func (p *Project) plainOptions() (render.Options, error) {
	w := p.Settings
	mirrors, err := p.RenderMirrors()
	if err != nil {
		return render.Options{}, err
	}
	client, err := p.Client()
	if err != nil {
		return render.Options{}, err
	}
	opt := render.Options{
		Mirrors:           mirrors,
		Taken:             taken{client.Store, p.Version},
		Profile:           w.Profile,
		Certificates:      w.Certificates,
		KubernetesVersion: w.KubernetesVersion,
		StorageMigration:  w.StorageMigration,
		OpenShift:         w.OpenShiftVersion != "",
		AllowNames:        w.AllowNames,
		Proxy:             render.Proxy{HTTP: w.Proxy.HTTPProxy, HTTPS: w.Proxy.HTTPSProxy, None: w.Proxy.NoProxy},
		ImagePullSecrets:  w.ImagePullSecrets,
		CSVAnnotations:    w.CSVAnnotations,
		HealthChecks:      w.HealthChecks,
		NoAggregatedRoles: !w.AggregatedRoles,
		GitOps:            w.GitOps,
		OverlaysDir:       p.OverlaysDir(),
		CertificateSecret: w.CertificateSecret.Name,
		CASecret:          w.CertificateSecret.CASecret,
	}
	if name := w.CertificateSecret.CAFile; name != "" {
		if opt.CABundle, err = p.certificates(name); err != nil {
			return render.Options{}, diag.Errorf(w.At("spec.certificateSecret.caFile"), "%w", err)
		}
	}
	for _, c := range w.Clusters {
		opt.Clusters = append(opt.Clusters, render.Cluster{
			Name: c.Name, Server: c.Server, Destination: c.Destination, KubeConfig: c.KubeConfig, Values: c.Values, KubernetesVersion: c.KubernetesVersion, Operators: c.Operators, Config: []byte(c.Config),
		})
	}
	if r := w.Reporter; r.Enabled {
		opt.Reporter = &render.Reporter{Image: r.Image, Namespace: r.Namespace, LeaderElection: r.LeaderElection}
	}
	return opt, nil
}

// RenderMirrors returns where clusters pull images from.
func (p *Project) RenderMirrors() ([]render.Mirror, error) {
	mirrors, err := p.Mirrors()
	var out []render.Mirror
	for _, m := range mirrors.Rewrites() {
		out = append(out, render.Mirror{Source: m.Prefix, Mirror: m.Mirror, DigestOnly: !m.Tags, TagOnly: !m.Digests})
	}
	return out, err
}

// taken keeps in the store which CRDs a version of this program saw taken.
type taken struct {
	store   *store.Store
	version string
}

const takenKind = "definitions"

func (t taken) key(text []byte) string { return t.version + " " + store.DigestOf(text) }

// Known reports whether text was noted before.
func (t taken) Known(text []byte) bool {
	_, err := t.store.Record(takenKind, t.key(text))
	return err == nil
}

// Note keeps text in mind, where the store can be written to.
func (t taken) Note(text []byte) { _ = t.store.PutRecord(takenKind, t.key(text), nil) }

// certificates reads a file with certificates, and with nothing that is
// secret: its content goes into the tree.
func (p *Project) certificates(name string) ([]byte, error) {
	data, err := p.Read(name)
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

// Clusters returns the names of the clusters, as quayside.yaml has them.
func (p *Project) Clusters() []string {
	var names []string
	for _, c := range p.Settings.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// Cluster returns the cluster of that name, or the only one for "". flag is
// what a user names one with.
func (p *Project) Cluster(name, flag string) (string, error) {
	have := p.Clusters()
	switch {
	case name == "" && len(have) > 1:
		return "", fmt.Errorf("there are several clusters: name one with %s (have %s)", flag, strings.Join(have, ", "))
	case name == "":
		return have[0], nil
	case !slices.Contains(have, name):
		return "", fmt.Errorf("no cluster %q (have %s)%s", name, strings.Join(have, ", "), diag.DidYouMean(name, have))
	default:
		return name, nil
	}
}

// Expected renders the lock and returns what a cluster should have of the
// operators named, of all where none is.
func (p *Project) Expected(ctx context.Context, cluster string, names []string) (*look.Expected, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, err
	}
	want := &look.Expected{All: len(names) == 0, Reporter: p.Settings.Reporter.Enabled}
	if want.Cluster, err = p.Cluster(cluster, "--cluster"); err != nil {
		return nil, err
	}
	part, err := chosen(lock, names)
	if err != nil {
		return nil, err
	}
	res, err := p.Render(ctx, lock)
	if err != nil {
		return nil, err
	}
	here, err := res.Installations(want.Cluster)
	if err != nil {
		return nil, err
	}
	var pins []lockfile.Pin
	for _, in := range here {
		if pin, ok := part.Pin(in.Namespace, in.Spec.Package); ok {
			want.Installations = append(want.Installations, in)
			pins = append(pins, pin)
		}
	}
	if len(pins) < len(names) {
		return nil, fmt.Errorf("cluster %q does not get all of %s: see spec.clusters of %s", want.Cluster, strings.Join(names, ", "), workspace.FileName)
	}
	want.Lock = lock.With(pins)
	return want, nil
}

// chosen returns the part of a lock that has the operators named, all where
// none is.
func chosen(lock *lockfile.File, names []string) (*lockfile.File, error) {
	if len(names) == 0 {
		return lock, nil
	}
	var pins []lockfile.Pin
	var have []string
	names = slices.Clone(names)
	for i, name := range names {
		if strings.Contains(name, "/") {
			continue
		}
		t, err := Placed(resolve.Target{Package: name}, lock, &subscription.Set{})
		if err != nil {
			return nil, err
		}
		names[i] = t.Namespace + "/" + t.Package
	}
	for _, p := range lock.Pins {
		have = append(have, p.Key())
		if slices.Contains(names, p.Key()) {
			pins = append(pins, p)
		}
	}
	var errs []error
	for _, name := range names {
		if !slices.Contains(have, name) {
			errs = append(errs, fmt.Errorf("no operator %q in %s%s", name, LockFile, diag.DidYouMean(name, have)))
		}
	}
	return lock.With(pins), errors.Join(errs...)
}

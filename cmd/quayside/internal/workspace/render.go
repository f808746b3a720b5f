package workspace

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/resolve"
)

// Contents returns a Contents that uses the client and cache of the workspace. The caller must
// close it.
func (p *Registries) Contents() (*Contents, error) {
	indexes, err := p.indexes()
	if err != nil {
		return nil, err
	}
	client, err := p.Client()
	return NewContents(client, indexes), err
}

// Render renders a lock.
func (p *Registries) Render(ctx context.Context, lock *lockfile.File) (*render.Result, error) {
	opt, warnings, err := p.renderOptions()
	if err != nil {
		return nil, err
	}
	return p.renderWith(ctx, lock, opt, warnings...)
}

// RenderSelfContained renders a lock like Render, except that the tree refers to copies of the user's overlays,
// in overlays/ inside of the tree. Without overlays it returns rendered, which is the result of Render.
func (p *Registries) RenderSelfContained(ctx context.Context, lock *lockfile.File, rendered *render.Result) (*render.Result, error) {
	opt, _, err := p.renderOptions()
	if err != nil || !slices.ContainsFunc(opt.Clusters, func(c profile.Cluster) bool { return len(c.Overlays) > 0 }) {
		return rendered, err
	}
	opt.OverlaysInside = true
	return p.renderWith(ctx, lock, opt)
}

// RenderObjects renders the objects of a lock, but no tree of files.
func (p *Registries) RenderObjects(ctx context.Context, lock *lockfile.File) (*render.Result, error) {
	opt, _, err := p.renderOptions()
	if err != nil {
		return nil, err
	}
	opt.ObjectsOnly = true
	return p.renderWith(ctx, lock, opt)
}

// RenderPlain renders a lock without the user's overlays.
func (p *Registries) RenderPlain(ctx context.Context, lock *lockfile.File) (*render.Result, error) {
	opt, err := p.plainOptions()
	if err != nil {
		return nil, err
	}
	return p.renderWith(ctx, lock, opt)
}

func (p *Registries) renderWith(ctx context.Context, lock *lockfile.File, opt render.Options, warnings ...diag.Warning) (*render.Result, error) {
	c, err := p.Contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	res, err := render.All(lock, opt, func(pin lockfile.Pin) (fs.FS, error) {
		p.Log.Progress("reading bundle %s", pin.Bundle)
		fsys, err := c.Open(ctx, pin)
		if dropped := new(NoContentError); errors.As(err, &dropped) {
			return nil, diag.Hintf(diag.Pos{}, "restore the bundle in the catalog, upgrade or remove the operator, or copy the cache of a machine that has rendered the bundle", "%w", err)
		}
		return fsys, err
	})
	p.Log.Done()
	if err != nil {
		return nil, err
	}
	if client, err := p.Client(); err == nil {
		p.storeAcceptedCRDs(client.Store, res.AcceptedCRDs)
	}
	p.Log.Detail("rendered %s into %s", diag.Count(len(lock.Pins), "operator"), diag.Count(res.Tree.Len(), "file"))
	res.Warnings = append(res.Warnings, warnings...)
	res.Warnings = p.Waive(append(res.Warnings, p.reviewWaivers(diag.Rendering, res.Warnings)...))
	return res, nil
}

// Rendered reads the rendered tree on disk. If the directory does not exist, the tree is empty. To save
// memory, files that are equal to those in want share their data. If the tree is in another repository, it
// returns want.
func (p *Opened) Rendered(want *filetree.Tree) (*filetree.Tree, error) {
	if p.Settings.Output.Repository != "" {
		return want, nil
	}
	return p.readTree(p.Settings.OutputDir(), want)
}

// Tree reads a directory of the workspace. If it does not exist, the tree is empty.
func (r Root) Tree(name string) (*filetree.Tree, error) { return r.readTree(name, filetree.New()) }

// isRendered reports whether the tree on disk has a directory for an operator.
func (p *Opened) isRendered(pin lockfile.Pin) (bool, error) {
	tree, err := p.Tree(p.Settings.OutputDir())
	if err != nil {
		return false, err
	}
	for name := range tree.Names() {
		if slices.Contains(strings.Split(path.Dir(name), "/"), pin.Namespace+"."+pin.Package) {
			return true, nil
		}
	}
	return false, nil
}

func (r Root) readTree(name string, like *filetree.Tree) (*filetree.Tree, error) {
	dir, err := r.lookup(name)
	if errors.Is(err, fs.ErrNotExist) {
		return filetree.New(), nil
	}
	if err != nil {
		return nil, err
	}
	return filetree.ReadLike(dir.FS, like)
}

// renderOptions returns the options for rendering, including overlays, and warnings about the
// overlays.
func (p *Registries) renderOptions() (render.Options, []diag.Warning, error) {
	opt, err := p.plainOptions()
	if err != nil {
		return render.Options{}, nil, err
	}
	overlays, warnings, err := p.Overlays()
	if err != nil {
		return render.Options{}, nil, err
	}
	for i, c := range opt.Clusters {
		opt.Clusters[i].Overlays = overlays[c.Name]
	}
	return opt, warnings, nil
}

// plainOptions returns the options for rendering, without overlays.
func (p *Registries) plainOptions() (render.Options, error) {
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
		AcceptedCRDs:      p.readAcceptedCRDs(client.Store),
		Profile:           w.Profile,
		Certificates:      w.Certificates,
		KubernetesVersion: w.KubernetesVersion,
		StorageMigration:  w.StorageMigration,
		OpenShift:         w.OpenShiftVersion != "",
		AllowNames:        w.AllowNames,
		Recreate:          w.Recreate,
		Proxy:             render.Proxy{HTTP: w.Proxy.HTTPProxy, HTTPS: w.Proxy.HTTPSProxy, None: w.Proxy.NoProxy},
		ImagePullSecrets:  w.ImagePullSecrets,
		CSVAnnotations:    w.CSVAnnotations,
		PodLabels:         w.PodLabels,
		HealthChecks:      w.HealthChecks,
		NoAggregatedRoles: !w.AggregatedRoles,
		GitOps:            w.GitOps,
		Clusters:          slices.Clone(w.Clusters), // renderOptions sets their Overlays
		OverlaysDir:       p.Settings.OverlaysDir(),
	}
	for i, c := range opt.Clusters {
		opt.Clusters[i] = w.EffectiveCluster(c)
		opt.Clusters[i].ValuesAt = map[string]diag.Pos{}
		for operator := range c.HelmValues {
			opt.Clusters[i].ValuesAt[operator] = w.At(diag.Item("spec.clusters", i) + ".helmValues." + operator)
		}
	}
	if opt.CertificateSettings, err = p.certificateSettings(); err != nil {
		return render.Options{}, err
	}
	if r := w.Reporter; r.Enabled {
		opt.Reporter = &render.Reporter{Image: r.Image, Namespace: r.Namespace, LeaderElection: r.LeaderElection}
	}
	return opt, nil
}

// RenderMirrors returns the mirrors that clusters pull images from.
func (p *Registries) RenderMirrors() ([]render.Mirror, error) {
	mirrors, err := p.Mirrors()
	var out []render.Mirror
	for _, m := range mirrors.Rewrites() {
		out = append(out, render.Mirror{Source: m.Prefix, Mirror: m.Mirror, DigestOnly: !m.Tags, TagOnly: !m.Digests})
	}
	return out, err
}

// acceptedCRDRecords is the kind of records in the store that contain digests of CRDs. Each record
// has the CRDs that one version of quayside has accepted.
const acceptedCRDRecords = "definitions"

// maxAcceptedCRDs is the maximum number of digests in this record, whose size is limited to 1 MiB.
const maxAcceptedCRDs = 10_000

// readAcceptedCRDs returns the digests of CRDs that this version of quayside has accepted before.
func (e Env) readAcceptedCRDs(s *store.Store) map[string]bool {
	data, _ := s.Record(acceptedCRDRecords, e.Version) // without a record, every CRD is checked
	out := map[string]bool{}
	for _, digest := range strings.Fields(string(data)) {
		out[digest] = true
	}
	return out
}

// storeAcceptedCRDs adds digests of accepted CRDs to the record. If the store is not writable, it does
// nothing.
func (e Env) storeAcceptedCRDs(s *store.Store, more []string) {
	if len(more) == 0 {
		return
	}
	known := e.readAcceptedCRDs(s) // another command may have added digests meanwhile
	for _, digest := range more {
		known[digest] = true
	}
	if len(known) > maxAcceptedCRDs {
		clear(known)
	}
	_ = s.PutRecord(acceptedCRDRecords, e.Version, []byte(strings.Join(slices.Sorted(maps.Keys(known)), "\n")))
}

// certificateSettings returns the settings for the certificate providers, including the content of
// files that they name.
func (p *Opened) certificateSettings() (certificates.ProviderSettings, error) {
	out := p.Settings.ProviderSettings
	out.Contents = map[string][]byte{}
	for field, name := range out.Files() {
		if name == "" {
			continue
		}
		data, err := p.readCertificates(name)
		if err != nil {
			return out, diag.Errorf(p.Settings.At("spec."+field), "%w", err)
		}
		out.Contents[field] = data
	}
	return out, nil
}

// readCertificates reads a PEM file. Other content than certificates, such as a private key, is an error,
// because the content is written to the tree.
func (r Root) readCertificates(name string) ([]byte, error) {
	data, err := r.Read(name)
	if err != nil {
		return nil, err
	}
	found := false
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s contains a %s: only certificates are allowed", name, strings.ToLower(block.Type))
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found = true
	}
	if !found {
		return nil, fmt.Errorf("%s contains no PEM certificate", name)
	}
	return data, nil
}

// SelectPins returns lock with only the pins of the named operators, such as "etcd" or
// "my-etcd/etcd". Without names it returns lock.
func SelectPins(lock *lockfile.File, names []string) (*lockfile.File, error) {
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
		t, err := WithNamespace(resolve.Target{Package: name}, lock, &declare.Set{})
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

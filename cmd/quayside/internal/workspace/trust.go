package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// signatures caches the results of verifying images.
type signatures struct {
	mu   sync.Mutex
	seen map[string]*trust.Verification // successful verifications, by reference and required statements
}

// readPolicy reads spec.trust and the files that it names. It returns nil if spec.trust is empty.
func (p *Opened) readPolicy() (*trust.Policy, error) {
	w := p.Settings
	if len(w.Trust) == 0 {
		return nil, nil
	}
	var rules []trust.SignerRule
	var errs diag.List
	read := func(field, name string) []byte {
		data, err := p.Read(name)
		if err != nil {
			errs.Add(w.At(field), err)
		}
		return data
	}
	for i, t := range w.Trust {
		field := fmt.Sprintf("spec.trust[%d]", i)
		r := trust.SignerRule{
			Match: t.Match, Identity: t.Identity, IdentityRegexp: t.IdentityRegexp, Issuer: t.Issuer,
			Where: w.At(field).String(),
		}
		for j, name := range t.Keys {
			r.Keys = append(r.Keys, trust.Key{Name: name, PEM: read(fmt.Sprintf("%s.keys[%d]", field, j), name)})
		}
		if t.TrustRoot != "" {
			r.TrustRoot = read(field+".trustRoot", t.TrustRoot)
		}
		rules = append(rules, r)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return trust.New(rules)
}

// Verify verifies the signatures of an image with a digest. It returns the signers and their
// statements; statements of the given types are required. It returns nil if quayside.yaml requires
// no signature, or if ref is not in a registry.
func (p *Registries) Verify(ctx context.Context, ref string, digest catalog.Digest, statements ...string) (*trust.Verification, error) {
	policy, err := p.policy()
	if err != nil || policy == nil {
		return nil, err
	}
	src, err := oci.ParseReference(ref)
	if err != nil || src.Kind != oci.Remote {
		return nil, err
	}
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	ref = src.Name + "@" + string(digest)
	key := strings.Join(append([]string{ref}, statements...), " ")
	p.signatures.mu.Lock()
	known := p.signatures.seen[key]
	p.signatures.mu.Unlock()
	if known != nil {
		return known, nil
	}
	required, err := policy.RequiresSignature(ref)
	if err != nil {
		return nil, err
	}
	if required {
		p.Log.Progress("verifying the signature of %s", src.Name)
	}
	got, err := policy.Verify(ctx, client, ref, statements...)
	if err != nil || got == nil {
		return nil, err
	}
	p.signatures.mu.Lock()
	defer p.signatures.mu.Unlock()
	if p.signatures.seen == nil {
		p.signatures.seen = map[string]*trust.Verification{}
	}
	p.signatures.seen[key] = got
	return got, nil
}

// VerifyObserved sets Unsigned in each summary: to the reason why the summary's file lacks a
// signature that spec.trust requires, or to "" if it is signed.
func (p *Registries) VerifyObserved(observed []*health.Summary) error {
	policy, err := p.policy()
	if err != nil {
		return err
	}
	for _, s := range observed {
		switch {
		case s.Cluster == "" || s.Combined:
			s.Unsigned = "the file does not name its cluster, so no signature covers the name"
		case s.File == nil || s.File.Signature == nil:
			s.Unsigned = "no signature beside its file"
		default:
			s.Unsigned = ""
			if err := policy.VerifyObservation(s.File.Data, s.File.Signature); err != nil {
				s.Unsigned = err.Error()
			}
		}
	}
	return nil
}

// download returns the file at a URL that the workspace names.
func (p *Registries) download(ctx context.Context, url, digest string, limit int64) (*oci.Downloaded, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	p.Log.Progress("downloading %s", url)
	return client.Download(ctx, url, digest, limit)
}

// maxProvenance limits the provenance file of a chart.
const maxProvenance = 1 << 20 // bytes

// verifyArchive verifies the archive of a chart from a web server; see [source.Resolver]. Its provenance file is
// at the same URL with ".prov".
func (p *Registries) verifyArchive(ctx context.Context, chart, version, url, digest string) error {
	policy, err := p.policy()
	if err != nil {
		return err
	}
	return policy.VerifyArchive(chart, version, digest, func() ([]byte, error) {
		file, err := p.download(ctx, url+".prov", "", maxProvenance)
		if err != nil {
			return nil, err
		}
		return file.Read()
	})
}

// tags returns the tags of a repository in a registry.
func (p *Registries) tags(ctx context.Context, repository string) ([]string, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	p.Log.Progress("listing the versions of %s", repository)
	return client.Tags(ctx, repository)
}

// gitTags returns the tags of a Git repository, with the commit of each tag.
func (p *Registries) gitTags(ctx context.Context, url string) (map[string]string, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	p.Log.Progress("listing the tags of %s", url)
	return client.GitTags(ctx, url)
}

// gitFiles passes the files at a tag of a Git repository to choose, and returns the files that choose selects.
func (p *Registries) gitFiles(ctx context.Context, url, tag, commit, key string, choose func(commit fs.FS) (map[string][]byte, error)) (fs.FS, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	p.Log.Progress("downloading %s of %s", tag, url)
	return client.GitFiles(ctx, url, tag, commit, key, choose)
}

// openImage opens an image that the workspace names. A missing signature that quayside.yaml requires is an
// error.
func (p *Registries) openImage(ctx context.Context, ref string) (*image.Image, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	im, err := image.Open(ctx, client, ref, image.OpenOptions{})
	if err != nil {
		return nil, err
	}
	if _, err := p.Verify(ctx, ref, im.Digest()); err != nil {
		return nil, errors.Join(err, im.Close())
	}
	return im, nil
}

// chooseSigner returns the signer to record in the lock for an image, or "" if no signature is required. If
// there are several valid signers, it prefers before, the recorded signer.
func (p *Registries) chooseSigner(ctx context.Context, ref string, digest catalog.Digest, before string) (string, error) {
	got, err := p.Verify(ctx, ref, digest)
	switch {
	case err != nil || got == nil:
		return "", err
	case slices.Contains(got.Identities, before):
		return before, nil
	default:
		return got.Identities[0], nil
	}
}

// addSigners returns lock with the signers of its catalogs and bundles. It keeps the signers in before that
// are still valid. In an unattended run, it also keeps the signers of unchanged pins that cannot be verified.
// before may be nil.
func addSigners(ctx context.Context, p *Registries, lock, before *lockfile.File, unattended bool) (*lockfile.File, error) {
	var errs []error
	pins := slices.Clone(lock.Pins)
	signers := map[lockfile.Catalog]string{}
	for i, pin := range pins {
		old, _ := before.Operator(pin.Key())
		c := pin.Catalog
		c.Identity = old.Catalog.Identity
		id, known := signers[c]
		if source.Ref(c.Source).IsRemote() && !known {
			var err error
			id, err = p.chooseSigner(ctx, c.Source, c.Digest, c.Identity)
			if unattended && err != nil && old.Catalog == c && c.Identity != "" {
				id, err = c.Identity, nil
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("catalog %q: %w", c.ID, err))
			}
			signers[c] = id
		}
		pins[i].Catalog.Identity = id
		if pin.Image == "" {
			pins[i].Identity = ""
			if !unattended || old.ContentDigest != pin.ContentDigest {
				errs = append(errs, checkProvenance(ctx, p, pin))
			}
			continue
		}
		var err error
		pins[i].Identity, err = p.chooseSigner(ctx, "image:"+pin.Image, catalog.Digest(imageref.DigestIn(pin.Image)), old.Identity)
		if unattended && err != nil && old.Image == pin.Image && old.Identity != "" {
			pins[i].Identity, err = old.Identity, nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("bundle %q of %s: %w", pin.Bundle, pin.Key(), err))
		}
	}
	p.Log.Done()
	return lock.With(pins), errors.Join(errs...)
}

// checkProvenance verifies the archive of a pinned chart from a web server, if spec.trust requires a signature: the
// rule may be newer than the stored content of the pin. Other errors of reading the archive are ignored.
func checkProvenance(ctx context.Context, p *Registries, pin lockfile.Pin) error {
	_, isChart := source.Ref(pin.Catalog.Source).ChartLocation()
	if !isChart || !source.Ref(pin.Catalog.Source).IsServed() || len(p.Settings.Trust) == 0 {
		return nil
	}
	c, err := p.Contents()
	if err != nil {
		return err
	}
	defer c.Close()
	var untrusted *trust.ProvenanceError
	if _, err := c.readEmbedded(ctx, pin); errors.As(err, &untrusted) {
		return fmt.Errorf("bundle %q of %s: %w", pin.Bundle, pin.Key(), err)
	}
	return nil
}

// checkSigners verifies the signatures of pinned images. It returns an error for each image whose
// recorded signer differs.
func checkSigners(ctx context.Context, p *Registries, lock *lockfile.File, unattended bool) error {
	now, err := addSigners(ctx, p, lock, lock, unattended)
	if err != nil {
		return err
	}
	var errs []error
	for i, pin := range now.Pins {
		old := lock.Pins[i]
		errs = append(errs, compareSigners(old.Fields.At("catalog", old.Pos), fmt.Sprintf("catalog %q", pin.Catalog.ID), old.Catalog.Identity, pin.Catalog.Identity))
		errs = append(errs, compareSigners(lock.Pins[i].Pos, "pin "+pin.Key(), lock.Pins[i].Identity, pin.Identity))
	}
	return errors.Join(errs...)
}

func compareSigners(pos diag.Pos, what, recorded, found string) error {
	msg := ""
	switch {
	case recorded == found:
		return nil
	case found == "":
		msg = fmt.Sprintf("is recorded as signed by %q, but %s requires no signature", recorded, settings.FileName)
	case recorded == "":
		msg = fmt.Sprintf("is signed by %q, which is not recorded", found)
	default:
		msg = fmt.Sprintf("is recorded as signed by %q, but is signed by %q", recorded, found)
	}
	return &DiffersError{fmt.Sprintf("%s: %s %s: run 'quayside resolve'", pos, what, msg)}
}

package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/trust"
	"github.com/quayside/quayside/workspace"
)

// signatures knows which images were found to meet what quayside.yaml demands.
type signatures struct {
	mu   sync.Mutex
	seen map[string]*trust.Verified // by reference and what has to be stated; only what is good
}

// policy reads what spec.trust names.
func (p *Project) policy() (*trust.Policy, error) {
	w := p.Settings
	if len(w.Trust) == 0 {
		return nil, nil
	}
	var rules []trust.Rule
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
		r := trust.Rule{
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

// Verified returns who signed an image of a registry at a digest, nil where
// quayside.yaml does not demand that anybody has; of each type in statements they
// must have stated something of it, too. Anything else than an image
// of a registry is a file of the workspace, which nobody signs.
func (p *Project) Verified(ctx context.Context, ref string, digest catalog.Digest, statements ...string) (*trust.Verified, error) {
	policy, err := p.trusted()
	if err != nil || policy == nil {
		return nil, err
	}
	src, err := registry.ParseSource(ref)
	if err != nil || src.Kind != registry.Remote {
		return nil, err
	}
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	ref = src.Name + "@" + string(digest)
	asked := strings.Join(append([]string{ref}, statements...), " ")
	p.signed.mu.Lock()
	known := p.signed.seen[asked]
	p.signed.mu.Unlock()
	if known != nil {
		return known, nil
	}
	demanded, err := policy.Demands(ref)
	if err != nil {
		return nil, err
	}
	if demanded {
		p.Talk.Progress("verifying the signature of %s", src.Name)
	}
	got, err := policy.Verify(ctx, client, ref, statements...)
	if err != nil || got == nil {
		return nil, err
	}
	p.signed.mu.Lock()
	defer p.signed.mu.Unlock()
	if p.signed.seen == nil {
		p.signed.seen = map[string]*trust.Verified{}
	}
	p.signed.seen[asked] = got
	return got, nil
}

// openImage opens an image that the workspace names: what quayside.yaml demands
// to be signed is not read unless it is.
func (p *Project) openImage(ctx context.Context, ref string) (*image.Image, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	im, err := image.Open(ctx, client, ref, image.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := p.Verified(ctx, ref, im.Digest()); err != nil {
		return nil, errors.Join(err, im.Close())
	}
	return im, nil
}

// identity returns what the lock records of an image: who signed it, of
// several the one that was recorded before, and "" where nobody has to.
func (p *Project) identity(ctx context.Context, ref string, digest catalog.Digest, before string) (string, error) {
	got, err := p.Verified(ctx, ref, digest)
	switch {
	case err != nil || got == nil:
		return "", err
	case slices.Contains(got.Identities, before):
		return before, nil
	default:
		return got.Identities[0], nil
	}
}

// sign records in a lock that is about to be written who signed its catalogs
// and bundles. What the lock before records is kept where it still holds.
func (p *Project) sign(ctx context.Context, lock, before *lockfile.File) (*lockfile.File, error) {
	if before == nil {
		before = &lockfile.File{}
	}
	var errs []error
	pins := slices.Clone(lock.Pins)
	signers := map[lockfile.Catalog]string{}
	for i, pin := range pins {
		old, _ := before.Pin(pin.Namespace, pin.Package)
		c := pin.Catalog
		c.Identity = old.Catalog.Identity
		id, known := signers[c]
		if _, remote := source.Ref(c.Source).Remote(); remote && !known {
			var err error
			if id, err = p.identity(ctx, c.Source, c.Digest, c.Identity); err != nil {
				errs = append(errs, fmt.Errorf("catalog %q: %w", c.ID, err))
			}
			signers[c] = id
		}
		pins[i].Catalog.Identity = id
		if pin.Image == "" {
			pins[i].Identity = ""
			continue
		}
		var err error
		if pins[i].Identity, err = p.identity(ctx, "image:"+pin.Image, catalog.Digest(imageref.DigestIn(pin.Image)), old.Identity); err != nil {
			errs = append(errs, fmt.Errorf("bundle %q of %s: %w", pin.Bundle, pin.Key(), err))
		}
	}
	p.Talk.Done()
	return lock.With(pins), errors.Join(errs...)
}

// checkSigned verifies the signatures of what a lock pins, and says where it
// records other signers than there are.
func (p *Project) checkSigned(ctx context.Context, lock *lockfile.File) error {
	now, err := p.sign(ctx, lock, lock)
	if err != nil {
		return err
	}
	var errs []error
	for i, pin := range now.Pins {
		was := lock.Pins[i]
		errs = append(errs, otherSigner(was.Fields.At("catalog", was.Pos), fmt.Sprintf("catalog %q", pin.Catalog.ID), was.Catalog.Identity, pin.Catalog.Identity))
		errs = append(errs, otherSigner(lock.Pins[i].Pos, "pin "+pin.Key(), lock.Pins[i].Identity, pin.Identity))
	}
	return errors.Join(errs...)
}

func otherSigner(pos diag.Pos, what, recorded, found string) error {
	msg := ""
	switch {
	case recorded == found:
		return nil
	case found == "":
		msg = fmt.Sprintf("is recorded as signed by %q, which %s does not demand", recorded, workspace.FileName)
	case recorded == "":
		msg = fmt.Sprintf("is signed by %q, which is not recorded", found)
	default:
		msg = fmt.Sprintf("is recorded as signed by %q, and is signed by %q", recorded, found)
	}
	return &DiffersError{fmt.Sprintf("%s: %s %s: run 'quayside resolve'", pos, what, msg)}
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/trust"
	"github.com/quayside/quayside/workspace"
)

// signatures knows what quayside.yaml demands of images, and which images were
// found to meet it.
type signatures struct {
	mu     sync.Mutex
	loaded bool
	policy *trust.Policy
	seen   map[string]*trust.Verified // by reference; only what is good
}

// trusted reads what spec.trust names, once.
func (s *space) trusted() (*trust.Policy, error) {
	s.signatures.mu.Lock()
	defer s.signatures.mu.Unlock()
	if s.signatures.loaded || len(s.ws.Trust) == 0 {
		return s.signatures.policy, nil
	}
	var rules []trust.Rule
	var errs diag.List
	read := func(field, name string) []byte {
		data, err := readFile(s.path(name))
		if err != nil {
			errs.Add(s.ws.At(field), err)
		}
		return data
	}
	for i, t := range s.ws.Trust {
		field := fmt.Sprintf("spec.trust[%d]", i)
		r := trust.Rule{
			Match: t.Match, Identity: t.Identity, IdentityRegexp: t.IdentityRegexp, Issuer: t.Issuer,
			Where: s.ws.At(field).String(),
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
	policy, err := trust.New(rules)
	if err != nil {
		return nil, err
	}
	s.signatures.policy, s.signatures.loaded = policy, true
	return policy, nil
}

// verified returns who signed an image of a registry at a digest, nil where
// quayside.yaml does not demand that anybody has. Anything else than an image
// of a registry is a file of the workspace, which nobody signs.
func (s *space) verified(ctx context.Context, client *registry.Client, ref string, digest catalog.Digest) (*trust.Verified, error) {
	policy, err := s.trusted()
	if err != nil || policy == nil {
		return nil, err
	}
	src, err := registry.ParseSource(ref)
	if err != nil || src.Kind != registry.Remote {
		return nil, err
	}
	ref = src.Name + "@" + string(digest)
	s.signatures.mu.Lock()
	known := s.signatures.seen[ref]
	s.signatures.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if policy.Demands(ref) {
		s.talk.progress("verifying the signature of %s", src.Name)
	}
	got, err := policy.Verify(ctx, client, ref)
	if err != nil || got == nil {
		return nil, err
	}
	s.signatures.mu.Lock()
	defer s.signatures.mu.Unlock()
	if s.signatures.seen == nil {
		s.signatures.seen = map[string]*trust.Verified{}
	}
	s.signatures.seen[ref] = got
	return got, nil
}

// openImage opens an image that the workspace names: what quayside.yaml demands
// to be signed is not read unless it is.
func (s *space) openImage(ctx context.Context, client *registry.Client, ref string) (*image.Image, error) {
	im, err := image.Open(ctx, client, ref, image.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := s.verified(ctx, client, ref, im.Digest()); err != nil {
		return nil, errors.Join(err, im.Close())
	}
	return im, nil
}

// identity returns what the lock records of an image: who signed it, of
// several the one that was recorded before, and "" where nobody has to.
func (s *space) identity(ctx context.Context, client *registry.Client, ref string, digest catalog.Digest, before string) (string, error) {
	got, err := s.verified(ctx, client, ref, digest)
	switch {
	case err != nil || got == nil:
		return "", err
	case slices.Contains(got.Identities, before):
		return before, nil
	default:
		return got.Identities[0], nil
	}
}

// catalogIdentity is identity for a catalog of a lock.
func (s *space) catalogIdentity(ctx context.Context, client *registry.Client, c lockfile.Catalog, before string) (string, error) {
	if !strings.HasPrefix(c.Source, "image:") {
		return "", nil
	}
	id, err := s.identity(ctx, client, c.Source, c.Digest, before)
	if err != nil {
		return "", fmt.Errorf("catalog %q: %w", c.ID, err)
	}
	return id, nil
}

// pinIdentity is identity for a pin of a lock.
func (s *space) pinIdentity(ctx context.Context, client *registry.Client, p lockfile.Pin, before string) (string, error) {
	if p.Image == "" {
		return "", nil
	}
	return s.identity(ctx, client, "image:"+p.Image, catalog.Digest(digestIn(p.Image)), before)
}

// sign records in a lock that is about to be written who signed its catalogs
// and bundles.
func (s *space) sign(ctx context.Context, client *registry.Client, lock, before *lockfile.File) (*lockfile.File, error) {
	if before == nil {
		before = &lockfile.File{}
	}
	var errs []error
	cats, pins := slices.Clone(lock.Catalogs), slices.Clone(lock.Pins)
	for i, c := range cats {
		old, _ := before.Catalog(c.ID)
		id, err := s.catalogIdentity(ctx, client, c, old.Identity)
		errs = append(errs, err)
		cats[i].Identity = id
	}
	for i, p := range pins {
		old, _ := before.Pin(p.Namespace, p.Package)
		id, err := s.pinIdentity(ctx, client, p, old.Identity)
		if err != nil {
			errs = append(errs, fmt.Errorf("bundle %q of %s: %w", p.Bundle, p.Key(), err))
		}
		pins[i].Identity = id
	}
	s.talk.done()
	out := lockfile.New(cats, pins)
	out.Accepted = lock.Accepted
	return out, errors.Join(errs...)
}

// checkSigned verifies the signatures of what a lock pins, and says where it
// records other signers than there are.
func (s *space) checkSigned(ctx context.Context, lock *lockfile.File, offline bool) error {
	client, err := s.client(offline)
	if err != nil {
		return err
	}
	now, err := s.sign(ctx, client, lock, lock)
	if err != nil {
		return err
	}
	var errs []error
	for i, c := range now.Catalogs {
		errs = append(errs, s.otherSigner(lock.Catalogs[i].Pos, fmt.Sprintf("catalog %q", c.ID), lock.Catalogs[i].Identity, c.Identity))
	}
	for i, p := range now.Pins {
		errs = append(errs, s.otherSigner(lock.Pins[i].Pos, "pin "+p.Key(), lock.Pins[i].Identity, p.Identity))
	}
	return errors.Join(errs...)
}

func (s *space) otherSigner(pos diag.Pos, what, recorded, found string) error {
	switch {
	case recorded == found:
		return nil
	case found == "":
		return &differsError{fmt.Sprintf("%s: %s is recorded as signed by %q, which %s does not demand: run 'quayside resolve'", pos, what, recorded, workspace.FileName)}
	case recorded == "":
		return &differsError{fmt.Sprintf("%s: %s is signed by %q, which is not recorded: run 'quayside resolve'", pos, what, found)}
	default:
		return &differsError{fmt.Sprintf("%s: %s is recorded as signed by %q, and is signed by %q: run 'quayside resolve'", pos, what, recorded, found)}
	}
}

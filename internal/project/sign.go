package project

import (
	"context"
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/sign"
)

// Keyless is the value of Signing.Key for signing with an identity.
const Keyless = "keyless"

// Signing is the key or the identity to sign with.
type Signing struct {
	Key       string // a file with a private key, or Keyless
	Fulcio    string // for Keyless: URLs of services, of which the last two may be empty
	Rekor     string
	Timestamp string
	TokenFile string // likewise; empty: what the environment holds
}

// Signer returns what signs. Files are relative to the workspace.
func (p *Project) Signer(ctx context.Context, s Signing) (*sign.Signer, error) {
	if s.Key != Keyless {
		text, err := p.Read(s.Key)
		if err != nil {
			return nil, fmt.Errorf("the key: %w", err)
		}
		signer, err := sign.NewKey(text, p.Getenv("COSIGN_PASSWORD"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Key, err)
		}
		return signer, nil
	}
	token, err := p.token(ctx, s.TokenFile)
	if err != nil {
		return nil, err
	}
	return sign.Keyless(sign.Services{Fulcio: s.Fulcio, Rekor: s.Rekor, Timestamp: s.Timestamp, Token: token})
}

func (p *Project) token(ctx context.Context, file string) (string, error) {
	if file == "" {
		return sign.Token(ctx, p.Getenv)
	}
	text, err := p.Read(file)
	if err != nil {
		return "", fmt.Errorf("the identity token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Sign signs an image of a registry, which ref names by digest, and reports whether
// it was signed now: what a key has signed is left, and so is what quayside.yaml
// takes for signed where an identity signs, for each of its signatures is another
// one.
func (p *Project) Sign(ctx context.Context, s *sign.Signer, ref string) (bool, error) {
	client, err := p.Client()
	if err != nil {
		return false, err
	}
	if s.PublicKey() == nil && p.isSigned(ctx, client, ref) {
		return false, nil
	}
	p.Talk.Progress("signing %s", ref)
	defer p.Talk.Done()
	return s.Sign(ctx, client, ref)
}

// Attest puts a signed statement beside an image of a registry, which ref names by
// digest, and reports whether it did so now: as with Sign, what a key has stated is
// left, and so is what quayside.yaml takes for stated where an identity signs.
func (p *Project) Attest(ctx context.Context, s *sign.Signer, ref, kind string, predicate any) (bool, error) {
	client, err := p.Client()
	if err != nil {
		return false, err
	}
	if s.PublicKey() == nil && p.isSigned(ctx, client, ref, kind) {
		return false, nil
	}
	p.Talk.Progress("signing %s", ref)
	defer p.Talk.Done()
	return s.Attest(ctx, client, ref, kind, predicate)
}

// isSigned reports whether the registry has a signature that quayside.yaml
// demands, and statements of some types.
func (p *Project) isSigned(ctx context.Context, client *registry.Client, ref string, statements ...string) bool {
	if found, err := client.Signatures(ctx, ref); err != nil || len(found) == 0 {
		return false
	}
	got, err := p.Verified(ctx, ref, catalog.Digest(imageref.DigestIn(ref)), statements...)
	return err == nil && got != nil
}

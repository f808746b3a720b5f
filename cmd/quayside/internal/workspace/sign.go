package workspace

import (
	"context"
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/sign"
)

// Keyless is the value of Signing.Key for signing with an OIDC identity.
const Keyless = "keyless"

// Signing selects the key or the identity to sign with.
type Signing struct {
	Key       string // file with the private key, or Keyless
	Fulcio    string // for Keyless: URL of the certificate authority
	Rekor     string // for Keyless: URL of the transparency log; optional
	Timestamp string // for Keyless: URL of the timestamp authority; optional
	TokenFile string // for Keyless: file with the identity token; empty: use the environment
}

// Signer returns a signer. File names in s are relative to the workspace.
func (p *Registries) Signer(ctx context.Context, s Signing) (*sign.Signer, error) {
	if s.Key != Keyless {
		text, err := p.Read(s.Key)
		if err != nil {
			return nil, fmt.Errorf("signing key: %w", err)
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

func (p *Registries) token(ctx context.Context, file string) (string, error) {
	if file == "" {
		return sign.Token(ctx, p.Getenv)
	}
	text, err := p.Read(file)
	if err != nil {
		return "", fmt.Errorf("identity token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Sign signs an image in a registry, and reports whether it added a signature. ref must have a digest. It
// does not add a second signature with the same key. Keyless signatures always differ, so it adds none if the
// image already has a signature that quayside.yaml requires.
func (p *Registries) Sign(ctx context.Context, s *sign.Signer, ref string) (bool, error) {
	return p.signOnce(ctx, s, ref, nil, func(client *oci.Client) (bool, error) { return s.Sign(ctx, client, ref) })
}

// Attest attaches a signed statement to an image in a registry, and reports whether it added one.
// ref must have a digest. As in Sign, an existing statement is not added again.
func (p *Registries) Attest(ctx context.Context, s *sign.Signer, ref, kind string, predicate any) (bool, error) {
	return p.signOnce(ctx, s, ref, []string{kind}, func(client *oci.Client) (bool, error) { return s.Attest(ctx, client, ref, kind, predicate) })
}

func (p *Registries) signOnce(ctx context.Context, s *sign.Signer, ref string, statements []string, add func(*oci.Client) (bool, error)) (bool, error) {
	client, err := p.Client()
	if err != nil {
		return false, err
	}
	if s.PublicKey() == nil && p.isSigned(ctx, client, ref, statements...) {
		return false, nil
	}
	p.Log.Progress("signing %s", ref)
	defer p.Log.Done()
	return add(client)
}

// isSigned reports whether quayside.yaml requires a signature of the image and the image already has it, with
// signed statements of the given types.
func (p *Registries) isSigned(ctx context.Context, client *oci.Client, ref string, statements ...string) bool {
	if found, err := client.Signatures(ctx, ref); err != nil || len(found) == 0 {
		return false
	}
	got, err := p.Verify(ctx, ref, catalog.Digest(imageref.DigestIn(ref)), statements...)
	return err == nil && got != nil
}

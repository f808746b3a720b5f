// Package trust verifies the signatures of images against the trust policy of a workspace.
//
// A [Policy] is a list of rules. The first rule that matches the repository of an image defines the required
// signer: the owner of a public key, or an identity with a certificate. An authority of the given trust root
// must have issued the certificate. cosign's simple signatures and sigstore bundles are supported, and provenance files of charts. A
// signature must be valid and contain the digest of the image. The same applies to required statements, such
// as provenance. The registry is not trusted. No other trust root is used, and no external service is called.
//
// Start from [New] and [Policy.Verify].
package trust

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/sanitize"
)

// SignerRule defines the required signer of the matching images. If Keys is set, the signer must own one of
// these keys. Otherwise the signer must be Identity, or any subject that IdentityRegexp matches, authenticated
// by Issuer. The certificate must be from an authority in TrustRoot.
type SignerRule struct {
	Match          string // pattern for repositories: "quay.io/org/name", "quay.io/org/*" or "*"; see [Matches]
	Keys           []Key
	Identity       string // the subject of the certificate: "https://github.com/org/repo/.github/workflows/release.yml@refs/heads/main"
	IdentityRegexp string // alternative to Identity; must match the whole subject of the certificate
	Issuer         string // "https://token.actions.githubusercontent.com"
	TrustRoot      []byte // content of trusted_root.json
	Where          string // position of the rule for errors: "quayside.yaml:12:5"
}

// Key is a public key.
type Key struct {
	Name string // name of the key for errors: "cosign.pub"
	PEM  []byte
}

// Policy is a list of parsed rules. It is safe for concurrent use. A nil *Policy requires no
// signatures.
type Policy struct {
	rules        []rule
	observations []rule
}

// Observations is the value of SignerRule.Match for rules about observations of clusters instead of
// images.
const Observations = "observations"

type rule struct {
	SignerRule
	pattern string // normal form of Match
	check   checker
}

// checker verifies signatures against one rule.
type checker interface {
	check(digest string, s oci.Signature) (finding, error)
	checkBlob(data, bundle []byte) (finding, error) // verifies a sigstore bundle that signs data
	signerName() string                             // accepted signers, for messages
}

// finding is the result of verifying a signature.
type finding struct {
	signer    string
	predicate string // predicate type of the statement; empty for an image signature
}

// New parses rules. The error lists all invalid rules.
func New(rules []SignerRule) (*Policy, error) {
	p := &Policy{}
	var errs []error
	for _, r := range rules {
		var pattern string
		check, err := newChecker(r)
		if err == nil && r.Match == Observations {
			p.observations = append(p.observations, rule{SignerRule: r, check: check})
			continue
		}
		if err == nil {
			pattern, err = normalMatch(r.Match)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Where, err))
			continue
		}
		p.rules = append(p.rules, rule{SignerRule: r, pattern: pattern, check: check})
	}
	return p, errors.Join(errs...)
}

func newChecker(r SignerRule) (checker, error) {
	if len(r.Keys) > 0 {
		return newKeyChecker(r.Keys)
	}
	return newIdentityChecker(r)
}

// normalMatch returns a pattern in the normal form of repository names. It returns an error for a
// pattern that no repository can match, because the rule would silently have no effect.
func normalMatch(pattern string) (string, error) {
	if pattern == "*" {
		return pattern, nil
	}
	prefix, wild := strings.CutSuffix(pattern, "*")
	normal, err := imageref.NormalPrefix(prefix)
	example := normal
	if wild {
		example += "x/x"
	}
	if err == nil {
		var ref imageref.Ref
		if ref, err = imageref.Normal(example); err == nil && ref.Name() == example {
			return normal + pattern[len(prefix):], nil
		}
	}
	return "", fmt.Errorf("match %q: no repository can match: write the repository in full and in lower case, such as quay.io/org/* or docker.io/library/busybox", pattern)
}

// VerifyObservation verifies that bundle, a sigstore bundle, is a signature of data by a signer that any
// rule for [Observations] accepts.
func (p *Policy) VerifyObservation(data, bundle []byte) error {
	if p == nil || len(p.observations) == 0 {
		return errors.New("no rule for " + Observations + " in spec.trust")
	}
	var faults []string
	for _, r := range p.observations {
		err := verifyBlob(r.check, data, bundle)
		if err == nil {
			return nil
		}
		faults = append(faults, err.Error())
	}
	return errors.New(sanitize.TruncateLine(strings.Join(faults, "; "), maxText))
}

// Matches reports whether a pattern matches a repository ("quay.io/org/name"). Both must be in
// normal form. A final * matches any rest.
func Matches(pattern, repository string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(repository, prefix)
	}
	return pattern == repository
}

// RequiresSignature reports whether a rule matches an image ("quay.io/org/name@sha256:…"). It treats
// different spellings of a registry as equal. It returns an error if the reference has no normal form.
func (p *Policy) RequiresSignature(ref string) (bool, error) {
	_, ok, err := p.matchingRule(ref)
	return ok, err
}

func (p *Policy) matchingRule(ref string) (rule, bool, error) {
	if p == nil {
		return rule{}, false, nil
	}
	src, err := oci.ParseReference(ref)
	if err != nil {
		return rule{}, false, err
	}
	if src.Kind != oci.Remote {
		return rule{}, false, nil
	}
	name, err := imageref.Normal(src.Name)
	if err != nil {
		return rule{}, false, fmt.Errorf("looking up its required signer: %w", err)
	}
	r, ok := p.firstRule(name.Name())
	return r, ok, nil
}

// firstRule returns the first rule whose pattern matches a name, and whether there is one.
func (p *Policy) firstRule(name string) (rule, bool) {
	i := slices.IndexFunc(p.rules, func(r rule) bool { return Matches(r.pattern, name) })
	if i < 0 {
		return rule{}, false
	}
	return p.rules[i], true
}

// Verification is the result of verifying an image against a rule.
type Verification struct {
	Identities []string        // accepted signers with a signature of the image, sorted; never empty
	Signatures []oci.Signature // valid signatures
	Statements []Statement     // required statements, in the order of the registry
}

// Statement is a verified statement about an image.
type Statement struct {
	Type      string // predicate type, such as [Provenance]
	Predicate []byte // predicate as JSON
}

// Provenance is the predicate type of SLSA provenance statements.
const Provenance = "https://slsa.dev/provenance/v1"

// Verify verifies the signatures of an image, given by digest ("quay.io/org/name@sha256:…"). It returns nil
// if no rule matches. For each type in statements, Verify also requires a statement of this type by an
// accepted signer. It contacts the registry only if the signatures in the store and the vendored layout are
// not sufficient. The error is an [*Error] if a valid signature or statement is missing, or if signatures
// are not available offline.
func (p *Policy) Verify(ctx context.Context, c *oci.Client, ref string, statements ...string) (*Verification, error) {
	r, ok, err := p.matchingRule(ref)
	if err != nil || !ok {
		return nil, err
	}
	digest := imageref.Split(ref).Digest
	if digest == "" {
		return nil, fmt.Errorf("image %q: signatures can only be looked up by digest", ref)
	}
	var provenance []oci.Signature
	if r.openPGP() != nil {
		s, found, err := c.Provenance(ctx, ref)
		if err != nil {
			return nil, err
		}
		if found {
			provenance = append(provenance, s)
		}
	}
	known, err := c.LocalSignatures(ctx, ref)
	if err != nil {
		return nil, err
	}
	known = append(known, provenance...)
	got, fault := r.checkSignatures(digest, known, statements)
	if fault != nil && !c.Offline {
		fetched, err := c.Signatures(ctx, ref)
		if err != nil {
			return nil, err
		}
		got, fault = r.checkSignatures(digest, append(fetched, provenance...), statements)
	}
	if fault != nil {
		fault.Image, fault.Offline = ref, c.Offline
		return nil, fault
	}
	return got, nil
}

// checkSignatures returns the valid signatures and statements of an image. If a required signature or statement
// is missing, the error names the requirement, and the reasons why the existing ones are not accepted.
func (r rule) checkSignatures(digest string, sigs []oci.Signature, statements []string) (*Verification, *Error) {
	var got Verification
	faults := map[string][]string{} // predicate type → reasons; "" for a signature of the image
	for _, s := range sigs {
		f, err := r.check.check(digest, s)
		switch {
		case err != nil:
			for _, wanted := range append(statements, "") {
				if claimed := claimedType(s); claimed == wanted || claimed == unknownType || wanted == "" {
					faults[wanted] = append(faults[wanted], sanitize.TruncateLine(err.Error(), maxText))
				}
			}
		case f.predicate == "":
			got.Identities = append(got.Identities, f.signer)
			got.Signatures = append(got.Signatures, s)
		case slices.Contains(statements, f.predicate):
			got.Statements = append(got.Statements, Statement{Type: f.predicate, Predicate: statementPredicate(s)})
			got.Signatures = append(got.Signatures, s)
			fallthrough
		default:
			faults[""] = append(faults[""], sanitize.TruncateLine(fmt.Sprintf("%s: contains a statement of type %q, not a signature", s.Manifest, f.predicate), maxText))
		}
	}
	if len(got.Identities) == 0 {
		return nil, r.error("", faults[""])
	}
	for _, wanted := range statements {
		if !slices.ContainsFunc(got.Statements, func(s Statement) bool { return s.Type == wanted }) {
			return nil, r.error(wanted, faults[wanted])
		}
	}
	slices.Sort(got.Identities)
	got.Identities = slices.Compact(got.Identities)
	return &got, nil
}

func (r rule) error(statement string, faults []string) *Error {
	slices.Sort(faults)
	return &Error{Rule: r.Where, Wanted: r.check.signerName(), Statement: statement, Faults: slices.Compact(faults)}
}

// Error means that a required signature or statement is missing.
type Error struct {
	Image     string   // "quay.io/org/name@sha256:…"
	Rule      string   // position of the rule in a file
	Wanted    string   // accepted signers: "key cosign.pub"
	Statement string   // predicate type of the missing statement; empty if the signature of the image is missing
	Faults    []string // reasons why existing signatures are not accepted, sorted
	Offline   bool     // the registry was not contacted, because of offline mode
}

func (e *Error) Error() string {
	const most = 3
	var b strings.Builder
	wanted, remedy := "a signature by", "sign the image"
	switch e.Statement {
	case "":
	case Provenance:
		wanted, remedy = "provenance signed by", "push the artifact again with 'quayside push --sign', which adds the provenance without changing the artifact"
	default:
		wanted, remedy = fmt.Sprintf("a statement of type %q signed by", e.Statement), "attach one to the image"
	}
	fmt.Fprintf(&b, "image %q: %s requires %s %s, but ", e.Image, e.Rule, wanted, e.Wanted)
	switch n := len(e.Faults); {
	case n == 0 && e.Offline:
		b.WriteString("none is in the cache or the vendored layout, and --offline allows no download: run once with access to the registry, or run 'quayside vendor'")
		return b.String()
	case n == 0:
		fmt.Fprintf(&b, "the image has none: %s, or change the rule", remedy)
		return b.String()
	case n == 1:
		b.WriteString("the only one is not accepted: ")
	default:
		fmt.Fprintf(&b, "none of them is accepted: ")
	}
	b.WriteString(strings.Join(e.Faults[:min(most, len(e.Faults))], "; "))
	if n := len(e.Faults) - most; n > 0 {
		fmt.Fprintf(&b, "; and %d more", n)
	}
	b.WriteString(": do not use the image before you know the reason, and correct the rule if it names the wrong signer")
	return b.String()
}

// maxText is the maximum number of bytes of untrusted text in a message.
const maxText = 400

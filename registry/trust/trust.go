// Package trust says whether an image of a registry is signed by whom a
// workspace trusts.
//
// A [Policy] is a list of rules; the first that matches an image's repository
// decides who must have signed it: the owner of one of some public keys, or an
// identity for which a certificate authority of a given trust root vouches. A
// signature counts if it is cosign's simple one or a sigstore bundle, is good
// in itself, and names the image's digest. Nothing is taken on the word of a
// registry, and no trust root but the given one is ever used: the package
// asks no service.
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
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/registry"
)

// Rule says who must have signed the images that it matches: with Keys, the
// owner of any of them; otherwise Identity (or IdentityRegexp) at Issuer,
// according to TrustRoot.
type Rule struct {
	Match          string // "quay.io/org/name", "quay.io/org/*", "*": see [Matches]
	Keys           []Key
	Identity       string // the subject of the certificate: "https://github.com/org/repo/.github/workflows/release.yml@refs/heads/main"
	IdentityRegexp string // in place of Identity; it has to match all of the subject
	Issuer         string // "https://token.actions.githubusercontent.com"
	TrustRoot      []byte // trusted_root.json
	Where          string // how errors name the rule: "quayside.yaml:12:5"
}

// Key is a public key.
type Key struct {
	Name string // how errors name it: "cosign.pub"
	PEM  []byte
}

// Policy is a list of rules, ready for use. It may be used by several
// goroutines. The nil policy demands nothing.
type Policy struct {
	rules []rule
}

type rule struct {
	Rule
	pattern string // Match in its normal form
	check   checker
}

// checker looks at one signature of an image and returns who made it.
type checker interface {
	check(digest string, s registry.Signature) (string, error)
	who() string // whose signature is wanted
}

// New prepares rules. The error names each one that cannot be used.
func New(rules []Rule) (*Policy, error) {
	p := &Policy{}
	var errs []error
	for _, r := range rules {
		var pattern string
		check, err := newChecker(r)
		if err == nil {
			pattern, err = normalMatch(r.Match)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Where, err))
			continue
		}
		p.rules = append(p.rules, rule{Rule: r, pattern: pattern, check: check})
	}
	return p, errors.Join(errs...)
}

func newChecker(r Rule) (checker, error) {
	if len(r.Keys) > 0 {
		return newKeyChecker(r.Keys)
	}
	return newIdentityChecker(r)
}

// normalMatch returns a pattern in the form that the names of repositories are
// brought into before they are compared with it. One that matches none of them
// is refused: it would demand nothing, and nobody would notice.
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
	return "", fmt.Errorf("match %q: no image's repository is written like this; in full it is registry/name, in lower case, as in quay.io/org/* or docker.io/library/busybox", pattern)
}

// Matches reports whether a pattern is for a repository ("quay.io/org/name"),
// both in their normal form: it is the same, or ends with a * that stands for
// the rest.
func Matches(pattern, repository string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(repository, prefix)
	}
	return pattern == repository
}

// Demands reports whether a rule is for an image ("quay.io/org/name@sha256:…"),
// however its registry is spelt. What has no one form to be compared in is an
// error.
func (p *Policy) Demands(ref string) (bool, error) {
	_, ok, err := p.rule(ref)
	return ok, err
}

func (p *Policy) rule(ref string) (rule, bool, error) {
	if p == nil {
		return rule{}, false, nil
	}
	src, err := registry.ParseSource(ref)
	if err != nil {
		return rule{}, false, err
	}
	if src.Kind != registry.Remote {
		return rule{}, false, nil
	}
	name, err := imageref.Normal(src.Name)
	if err != nil {
		return rule{}, false, fmt.Errorf("finding out who must have signed it: %w", err)
	}
	i := slices.IndexFunc(p.rules, func(r rule) bool { return Matches(r.pattern, name.Name()) })
	if i < 0 {
		return rule{}, false, nil
	}
	return p.rules[i], true, nil
}

// Verified is what is known of an image that a rule is for.
type Verified struct {
	Identities []string             // who signed it of those who are trusted, sorted; never empty
	Signatures []registry.Signature // the good ones
}

// Verify returns who signed an image, which is named by digest
// ("quay.io/org/name@sha256:…"), nil where no rule is for it. What the store
// and the vendored layout hold is looked at first, then the registry is asked.
// An image without a good signature is an [*Error]; so is one whose
// signatures are not at hand, where the client is offline.
func (p *Policy) Verify(ctx context.Context, c *registry.Client, ref string) (*Verified, error) {
	r, ok, err := p.rule(ref)
	if err != nil || !ok {
		return nil, err
	}
	digest := imageref.Split(ref).Digest
	if digest == "" {
		return nil, fmt.Errorf("image %q: signatures are looked for by digest", ref)
	}
	known, err := c.KnownSignatures(ctx, ref)
	if err != nil {
		return nil, err
	}
	got, faults := r.good(digest, known)
	if got != nil {
		return got, nil
	}
	if c.Offline {
		return nil, r.error(ref, faults, true)
	}
	fetched, err := c.Signatures(ctx, ref)
	if err != nil {
		return nil, err
	}
	got, faults = r.good(digest, fetched)
	if got != nil {
		return got, nil
	}
	return nil, r.error(ref, faults, false)
}

// good returns the signatures that count, nil where there is none, and what is
// wrong with the others.
func (r rule) good(digest string, sigs []registry.Signature) (*Verified, []string) {
	var got Verified
	var faults []string
	for _, s := range sigs {
		who, err := r.check.check(digest, s)
		if err != nil {
			faults = append(faults, inert.Clip(err.Error(), longest))
			continue
		}
		got.Identities = append(got.Identities, who)
		got.Signatures = append(got.Signatures, s)
	}
	if len(got.Identities) == 0 {
		return nil, faults
	}
	slices.Sort(got.Identities)
	got.Identities = slices.Compact(got.Identities)
	return &got, nil
}

func (r rule) error(ref string, faults []string, offline bool) error {
	slices.Sort(faults)
	return &Error{Image: ref, Rule: r.Where, Wanted: r.check.who(), Faults: slices.Compact(faults), Offline: offline}
}

// Error says that an image lacks the signature that a rule demands.
type Error struct {
	Image   string   // "quay.io/org/name@sha256:…"
	Rule    string   // where the rule stands
	Wanted  string   // "key cosign.pub"
	Faults  []string // of the signatures that were found, sorted; empty where there is none
	Offline bool     // whether the registry could have been asked
}

// Error names the image, what is demanded, what was found and what to do.
func (e *Error) Error() string {
	const most = 3
	var b strings.Builder
	fmt.Fprintf(&b, "image %q: %s demands a signature by %s, and ", e.Image, e.Rule, e.Wanted)
	switch n := len(e.Faults); {
	case n == 0 && e.Offline:
		b.WriteString("none is in the local store or the vendored layout, and nothing is fetched offline: run once with the registry in reach, or 'quayside vendor'")
		return b.String()
	case n == 0:
		b.WriteString("there is none: sign the image, or change the rule")
		return b.String()
	case n == 1:
		b.WriteString("the one that is there does not count: ")
	default:
		fmt.Fprintf(&b, "none of those that are there counts: ")
	}
	b.WriteString(strings.Join(e.Faults[:min(most, len(e.Faults))], "; "))
	if n := len(e.Faults) - most; n > 0 {
		fmt.Fprintf(&b, "; and %d more", n)
	}
	b.WriteString(": do not use the image unless you know why, and correct the rule if it names the wrong signer")
	return b.String()
}

// longest is how much is told of a text that strangers have a part in, in bytes.
const longest = 400

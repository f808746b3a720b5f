// Package trust says whether an image of a registry is signed by whom a
// workspace trusts.
//
// A [Policy] is a list of rules; the first that matches an image's repository
// decides who must have signed it: the owner of one of some public keys, or an
// identity for which a certificate authority of a given trust root vouches. A
// signature counts if it is cosign's simple one or a sigstore bundle, is good
// in itself, and names the image's digest; so does a signed statement about the
// image, such as its provenance, where one is asked for. Nothing is taken on the word of a
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

// checker looks at one signature of an image, or of a statement about it.
type checker interface {
	check(digest string, s registry.Signature) (finding, error)
	who() string // whose signature is wanted
}

// finding is what is good of what stands beside an image.
type finding struct {
	by        string
	predicate string // the type of what a statement states of the image; empty for its signature
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
	Statements []Statement          // that were asked for, in the order of the registry
}

// Statement is what one who is trusted states of an image.
type Statement struct {
	Type      string // of the predicate: [Provenance]
	Predicate []byte // JSON
}

// Provenance is the type of statements on what something was made of.
const Provenance = "https://slsa.dev/provenance/v1"

// Verify returns who signed an image, which is named by digest
// ("quay.io/org/name@sha256:…"), nil where no rule is for it. Of each type in
// statements somebody whom the rule trusts must have stated something, too. What
// the store and the vendored layout hold is looked at first, then the registry is
// asked. An image without a good signature, or without such a statement, is an
// [*Error]; so is one whose signatures are not at hand, where the client is offline.
func (p *Policy) Verify(ctx context.Context, c *registry.Client, ref string, statements ...string) (*Verified, error) {
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
	got, fault := r.good(digest, known, statements)
	if fault != nil && !c.Offline {
		fetched, err := c.Signatures(ctx, ref)
		if err != nil {
			return nil, err
		}
		got, fault = r.good(digest, fetched, statements)
	}
	if fault != nil {
		fault.Image, fault.Offline = ref, c.Offline
		return nil, fault
	}
	return got, nil
}

// good returns what counts of what stands beside an image, or what is missing, with
// what is wrong with the rest.
func (r rule) good(digest string, sigs []registry.Signature, statements []string) (*Verified, *Error) {
	var got Verified
	faults := map[string][]string{} // by the type of what is missing; "": a signature
	for _, s := range sigs {
		f, err := r.check.check(digest, s)
		switch {
		case err != nil:
			for _, wanted := range append(statements, "") {
				if claimed := claim(s); claimed == wanted || claimed == unknown || wanted == "" {
					faults[wanted] = append(faults[wanted], inert.Clip(err.Error(), longest))
				}
			}
		case f.predicate == "":
			got.Identities = append(got.Identities, f.by)
			got.Signatures = append(got.Signatures, s)
		case slices.Contains(statements, f.predicate):
			got.Statements = append(got.Statements, Statement{Type: f.predicate, Predicate: predicate(s)})
			got.Signatures = append(got.Signatures, s)
			fallthrough
		default:
			faults[""] = append(faults[""], inert.Clip(fmt.Sprintf("%s: a statement of type %q, which is no signature", s.Manifest, f.predicate), longest))
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
	return &Error{Rule: r.Where, Wanted: r.check.who(), Statement: statement, Faults: slices.Compact(faults)}
}

// Error says that an image lacks the signature that a rule demands, or the
// statement.
type Error struct {
	Image     string   // "quay.io/org/name@sha256:…"
	Rule      string   // where the rule stands
	Wanted    string   // "key cosign.pub"
	Statement string   // the type of the statement that is missing, of an image that is signed; empty: the signature
	Faults    []string // of the signatures that were found, sorted; empty where there is none
	Offline   bool     // whether the registry could have been asked
}

// Error names the image, what is demanded, what was found and what to do.
func (e *Error) Error() string {
	const most = 3
	var b strings.Builder
	wanted, remedy := "a signature by", "sign the image"
	switch e.Statement {
	case "":
	case Provenance:
		wanted, remedy = "provenance signed by", "push the artifact again with 'quayside push --sign', which leaves it as it is and puts that beside it"
	default:
		wanted, remedy = fmt.Sprintf("a statement of type %q signed by", e.Statement), "put one beside the image"
	}
	fmt.Fprintf(&b, "image %q: %s demands %s %s, and ", e.Image, e.Rule, wanted, e.Wanted)
	switch n := len(e.Faults); {
	case n == 0 && e.Offline:
		b.WriteString("none is in the local store or the vendored layout, and nothing is fetched offline: run once with the registry in reach, or 'quayside vendor'")
		return b.String()
	case n == 0:
		fmt.Fprintf(&b, "there is none: %s, or change the rule", remedy)
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

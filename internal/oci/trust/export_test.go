package trust

import (
	"fmt"

	"github.com/quayside/quayside/internal/oci"
)

// Check verifies one signature of an image in a repository.
func Check(p *Policy, repository, digest string, s oci.Signature) (string, error) {
	r, ok, err := p.matchingRule(repository + "@" + digest)
	if err != nil || !ok {
		return "", fmt.Errorf("no rule matches %s: %w", repository, err)
	}
	f, err := r.check.check(digest, s)
	return f.signer, err
}

// RuleFor returns the position of the first rule that matches an image.
func RuleFor(p *Policy, ref string) (string, error) {
	r, _, err := p.matchingRule(ref)
	return r.Where, err
}

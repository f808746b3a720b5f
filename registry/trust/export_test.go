package trust

import "github.com/quayside/quayside/registry"

// Check looks at one signature of an image of a repository.
func Check(p *Policy, repository, digest string, s registry.Signature) (string, error) {
	r, _ := p.rule(repository + "@" + digest)
	return r.check.check(digest, s)
}

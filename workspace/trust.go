package workspace

import (
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
)

// trust checks that each rule can match and can be met, and that no earlier
// one stands in its way.
func (v validator) trust() {
	for i, t := range v.w.Trust {
		field := index("spec.trust", i)
		v.match(field, i)
		for j, k := range t.Keys {
			v.relative(index(field+".keys", j), k)
		}
		if len(t.Keys) > 0 {
			v.without(field, "keys", map[string]string{
				"identity": t.Identity, "identityRegexp": t.IdentityRegexp, "issuer": t.Issuer, "trustRoot": t.TrustRoot,
			})
			continue
		}
		v.keyless(field, t)
	}
}

func (v validator) keyless(field string, t Trust) {
	if t.Identity == "" && t.IdentityRegexp == "" && t.Issuer == "" && t.TrustRoot == "" {
		v.Addf(field, "names no signer: give keys, or identity, issuer and trustRoot")
		return
	}
	switch {
	case t.Identity == "" && t.IdentityRegexp == "":
		v.Addf(field+".identity", "missing: say who must have signed (or give keys)")
	case t.Identity != "" && t.IdentityRegexp != "":
		v.Addf(field+".identityRegexp", "stands beside identity: one of them says who must have signed")
	}
	if _, err := regexp.Compile(t.IdentityRegexp); err != nil {
		v.Addf(field+".identityRegexp", "%q is not a regular expression: %w", t.IdentityRegexp, err)
	}
	if t.Issuer == "" {
		v.Addf(field+".issuer", "missing: say who vouches for the identity")
	}
	if t.TrustRoot == "" {
		v.Addf(field+".trustRoot", "missing: name a trusted_root.json; none is fetched")
		return
	}
	v.relative(field+".trustRoot", t.TrustRoot)
}

func (v validator) without(field, with string, others map[string]string) {
	for _, name := range []string{"identity", "identityRegexp", "issuer", "trustRoot"} {
		if others[name] != "" {
			v.Addf(field+"."+name, "stands beside %s: an entry has one or the other", with)
		}
	}
}

// match checks the pattern of entry i.
func (v validator) match(field string, i int) {
	field += ".match"
	m := v.w.Trust[i].Match
	prefix, _ := strings.CutSuffix(m, "*")
	switch {
	case m == "":
		v.Addf(field, "missing: say which repositories, as in quay.io/org/*")
		return
	case strings.Contains(prefix, "*"):
		v.Addf(field, "%q: a * may only stand at the end", m)
		return
	case strings.ContainsAny(prefix, "@ ") || strings.Contains(prefix[strings.LastIndex(prefix, "/")+1:], ":") && strings.Contains(prefix, "/"):
		v.Addf(field, "%q: a repository has no tag and no digest", m)
		return
	case prefix != "" && !strings.Contains(prefix, "/"):
		v.Addf(field, "%q names no registry: write it in full, as in docker.io/library/%s, or * for all", m, m)
		return
	}
	prefix = normalPrefix(prefix)
	before := slices.IndexFunc(v.w.Trust[:i], func(t Trust) bool {
		shorter, wild := strings.CutSuffix(t.Match, "*")
		shorter = normalPrefix(shorter)
		return shorter == prefix && wild == strings.HasSuffix(m, "*") || wild && strings.HasPrefix(prefix, shorter)
	})
	if before >= 0 {
		v.Addf(field, "%q is never reached: %q at %s decides first", m, v.w.Trust[before].Match, v.At(index("spec.trust", before)+".match"))
	}
}

// normalPrefix returns what a pattern is compared as; what has no normal form
// is refused when the rules are put to use, and stays.
func normalPrefix(s string) string {
	if normal, err := imageref.NormalPrefix(s); err == nil {
		return normal
	}
	return s
}

package settings

import (
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci/trust"
)

// checkTrust validates each entry of spec.trust. An entry must be complete, and no earlier entry may match all
// its images.
func (v validator) checkTrust() {
	for i, t := range v.w.Trust {
		field := diag.Item("spec.trust", i)
		v.checkMatch(field, i)
		for j, k := range t.Keys {
			v.checkRelative(diag.Item(field+".keys", j), k)
		}
		if len(t.Keys) > 0 {
			v.checkExclusive(field, "keys", map[string]string{
				"identity": t.Identity, "identityRegexp": t.IdentityRegexp, "issuer": t.Issuer, "trustRoot": t.TrustRoot,
			})
			continue
		}
		v.checkKeyless(field, t)
	}
}

// checkKeyless validates the identity in an entry without keys.
func (v validator) checkKeyless(field string, t Trust) {
	if t.Identity == "" && t.IdentityRegexp == "" && t.Issuer == "" && t.TrustRoot == "" {
		v.Addf(field, "no signer: specify keys, or identity, issuer and trustRoot")
		return
	}
	switch {
	case t.Identity == "" && t.IdentityRegexp == "":
		v.Addf(field+".identity", "missing: specify the required signer (or keys)")
	case t.Identity != "" && t.IdentityRegexp != "":
		v.Addf(field+".identityRegexp", "conflicts with identity: only one of them can be set")
	}
	if _, err := regexp.Compile(t.IdentityRegexp); err != nil {
		v.Addf(field+".identityRegexp", "%q is not a regular expression: %w", t.IdentityRegexp, err)
	}
	if t.Issuer == "" {
		v.Addf(field+".issuer", "missing: specify the issuer of the identity")
	}
	if t.TrustRoot == "" {
		v.Addf(field+".trustRoot", "missing: specify a trusted_root.json; none is downloaded")
		return
	}
	v.checkRelative(field+".trustRoot", t.TrustRoot)
}

// checkExclusive adds a fault for each non-empty field in others. The field named in with excludes them.
func (v validator) checkExclusive(field, with string, others map[string]string) {
	for _, name := range []string{"identity", "identityRegexp", "issuer", "trustRoot"} {
		if others[name] != "" {
			v.Addf(field+"."+name, "conflicts with %s: an entry can have only one of them", with)
		}
	}
}

// checkMatch validates the pattern of entry i of spec.trust.
func (v validator) checkMatch(field string, i int) {
	field += ".match"
	m := v.w.Trust[i].Match
	prefix, _ := strings.CutSuffix(m, "*")
	switch {
	case m == trust.Observations:
		return
	case m == "":
		v.Addf(field, "missing: specify the repositories, such as quay.io/org/*")
		return
	case strings.Contains(prefix, "*"):
		v.Addf(field, "%q: * is only allowed at the end", m)
		return
	case strings.ContainsAny(prefix, "@ ") || strings.Contains(prefix[strings.LastIndex(prefix, "/")+1:], ":") && strings.Contains(prefix, "/"):
		v.Addf(field, "%q: a repository must not have a tag or digest", m)
		return
	case prefix != "" && !strings.Contains(prefix, "/"):
		v.Addf(field, "%q has no registry: write it in full, such as docker.io/library/%s, or * for all", m, m)
		return
	}
	prefix = normalPrefix(prefix)
	before := slices.IndexFunc(v.w.Trust[:i], func(t Trust) bool {
		shorter, wild := strings.CutSuffix(t.Match, "*")
		shorter = normalPrefix(shorter)
		return shorter == prefix && wild == strings.HasSuffix(m, "*") || wild && strings.HasPrefix(prefix, shorter)
	})
	if before >= 0 {
		v.Addf(field, "%q never applies: %q at %s matches first", m, v.w.Trust[before].Match, v.At(diag.Item("spec.trust", before)+".match"))
	}
}

// normalPrefix returns the normal form of a pattern, for comparing patterns. It returns an invalid pattern
// unchanged: the pattern is reported when the entries are used.
func normalPrefix(s string) string {
	if normal, err := imageref.NormalPrefix(s); err == nil {
		return normal
	}
	return s
}

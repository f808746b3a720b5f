package diff

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

func certificateRules() []RuleInfo {
	return []RuleInfo{
		{"certificates.identity", Critical, "certificate for an identity of the cluster", "whoever has a client certificate for system:masters, a node, a controller or an account has the permissions of that identity"},
		{"certificates.name", Medium, "certificate for names outside of the operator", "everybody who trusts the issuer accepts the holder as the named server or user"},
		{"certificates.authority", Critical, "certificate of an authority", "the holder can issue certificates for any name, and everybody who trusts the authority accepts them"},
	}
}

// compareCertificates reports objects that newly request a certificate with an identity of the cluster, or the
// certificate of a certificate authority. It searches objects of all kinds.
func compareCertificates(c *comparison) {
	for _, p := range c.changed {
		if p.after == nil || p.after.Key().Is(crdKind) {
			continue
		}
		had := map[string]bool{}
		if p.before != nil {
			for _, name := range requestedIdentities(p.before.Content) {
				had[name] = true
			}
		}
		var identities []string
		authority := false
		for _, name := range requestedIdentities(p.after.Content) {
			switch {
			case had[name]:
			case name == certificateAuthority:
				authority = true
			default:
				identities = append(identities, name)
			}
		}
		if names := foreignNames(p); len(names) > 0 {
			c.add("certificates.name", p.after, Finding{
				After: strings.Join(names, ", "), Message: "requests a certificate for " + diag.Some(names, 5), path: fieldAt("spec"), explains: noField(),
			})
		}
		if len(identities) > 0 {
			c.add("certificates.identity", p.after, Finding{
				After: strings.Join(identities, ", "), Message: "requests a certificate for " + diag.Some(identities, 5), path: fieldAt("spec"), explains: noField(),
			})
		}
		if authority {
			limit := Critical
			if c.isSelfSigned(p.after) {
				limit = Medium
			}
			c.add("certificates.authority", p.after, Finding{Message: "requests the certificate of an authority", path: fieldAt("spec"), explains: noField()}, limit)
		}
	}
}

// foreignNames returns the names in a Certificate that its old version lacks. It omits the names of Services in
// the namespace of the Certificate, and the common name of a certificate that is not for clients.
func foreignNames(p pair) []string {
	if !p.after.Key().Is(certificateKind) {
		return nil
	}
	names := func(o *Object) []string {
		if o == nil {
			return nil
		}
		spec := k8s.Map(o.Content, "spec")
		all := slices.Concat(k8s.Texts(spec, "dnsNames"), k8s.Texts(spec, "ipAddresses"), k8s.Texts(spec, "uris"), k8s.Texts(spec, "emailAddresses"))
		out := slices.DeleteFunc(all, func(name string) bool {
			parts := strings.Split(strings.TrimPrefix(name, "*."), ".")
			return name == "localhost" || name == "127.0.0.1" || name == "::1" || parts[0] != "" && (len(parts) == 1 || parts[1] == o.Key().Namespace && (len(parts) == 2 || parts[2] == "svc"))
		})
		if name := k8s.Text(spec, "commonName"); name != "" && slices.Contains(k8s.Texts(spec, "usages"), "client auth") {
			out = append(out, name)
		}
		return out
	}
	had := names(p.before)
	return slices.DeleteFunc(names(p.after), func(name string) bool { return slices.Contains(had, name) })
}

const certificateKind = "Certificate.cert-manager.io"

// certificateAuthority stands for the certificate of a certificate authority in the result of requestedIdentities.
const certificateAuthority = "authority"

// requestedIdentities returns, sorted, the identities of the cluster for which an object requests a certificate: users
// and groups with the prefix "system:". The result includes certificateAuthority if the object requests the
// certificate of a certificate authority. It searches the spec of objects whose kind contains "Certificate", and in
// all objects the fields with "cert-manager.io/" in their names, such as annotations.
func requestedIdentities(o map[string]any) []string {
	var out []string
	isCertificate := strings.Contains(k8s.Text(o, "kind"), "Certificate")
	var visit func(field string, v any, whole bool)
	visit = func(field string, v any, whole bool) {
		name := strings.ToLower(field[strings.LastIndexByte(field, '/')+1:])
		switch x := v.(type) {
		case map[string]any:
			for _, key := range sortedKeys(x) {
				// The API server sets these fields of a certificate request.
				if key != "status" && !(whole && isCertificate && slices.Contains([]string{"username", "groups", "uid", "extra", "managedFields"}, key)) {
					visit(key, x[key], whole || isCertificate && key == "spec" || strings.Contains(key, "cert-manager.io/"))
				}
			}
		case []any:
			for _, e := range x {
				visit(field, e, whole)
			}
		case bool:
			if whole && x && isAuthorityField(name) {
				out = append(out, certificateAuthority)
			}
		case string:
			if !whole {
				return
			}
			if truth, err := strconv.ParseBool(x); err == nil && truth && isAuthorityField(name) || isAuthorityUsage(name, x) {
				out = append(out, certificateAuthority)
			}
			out = append(out, identitiesIn(x)...)
		}
	}
	visit("", o, false)
	slices.Sort(out)
	return slices.Compact(out)
}

func isAuthorityField(name string) bool {
	return slices.Contains([]string{"isca", "is-ca", "ca"}, name)
}

// isAuthorityUsage reports whether a field lists the key usage "cert sign", which allows a certificate to sign others.
func isAuthorityUsage(field, value string) bool {
	return strings.HasSuffix(field, "usages") && slices.ContainsFunc(strings.Split(value, ","), func(s string) bool {
		return strings.EqualFold(strings.TrimSpace(s), "cert sign")
	})
}

// identitiesIn returns the identities in a text. The text may be a name, a distinguished name with escapes,
// or a certificate request in PEM, also in base64.
func identitiesIn(text string) []string {
	var out []string
	for _, encoded := range [][]byte{[]byte(text), decodeBase64(text)} {
		if block, _ := pem.Decode(encoded); block != nil {
			out = append(out, identitiesOfRequest(block.Bytes)...)
		}
	}
	plain := regexp.MustCompile(`\\[0-9a-fA-F]{2}`).ReplaceAllStringFunc(text, func(escape string) string {
		n, _ := strconv.ParseUint(escape[1:], 16, 8)
		return string(rune(n))
	})
	plain = strings.ReplaceAll(plain, `\`, "")
	out = append(out, regexp.MustCompile(`(?i)\bsystem:[a-z0-9:._-]+`).FindAllString(plain, -1)...)
	for _, value := range regexp.MustCompile(`=#([0-9a-fA-F]+)`).FindAllStringSubmatch(text, -1) {
		// In a distinguished name, "#" begins a value in hexadecimal DER.
		if raw, err := hex.DecodeString(value[1]); err == nil {
			out = append(out, regexp.MustCompile(`(?i)system:[a-z0-9:._-]+`).FindAllString(string(raw), -1)...) // the preceding byte may be a letter
		}
	}
	return out
}

func decodeBase64(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil
	}
	return data
}

// identitiesOfRequest returns the identities in a certificate request in DER.
func identitiesOfRequest(der []byte) []string {
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil
	}
	var out []string
	for _, name := range append(slices.Clone(request.Subject.Organization), request.Subject.CommonName) {
		if strings.HasPrefix(name, "system:") {
			out = append(out, name)
		}
	}
	for _, e := range request.Extensions {
		var constraints struct {
			IsCA bool `asn1:"optional"`
			Path int  `asn1:"optional"`
		}
		if _, err := asn1.Unmarshal(e.Value, &constraints); err == nil && constraints.IsCA && e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 19}) {
			out = append(out, certificateAuthority)
		}
	}
	return out
}

// isSelfSigned reports whether the Issuer of a Certificate is self-signed and belongs to the operator of the
// Certificate. Nobody trusts such a certificate authority yet.
func (c *comparison) isSelfSigned(o *Object) bool {
	ref := k8s.Map(o.Content, "spec", "issuerRef")
	if kind := k8s.Text(ref, "kind"); !o.Key().Is(certificateKind) || kind != "" && kind != "Issuer" {
		return false
	}
	issuer := c.after.byKey[k8s.Key{Group: "cert-manager.io", Kind: "Issuer", Namespace: o.Key().Namespace, Name: k8s.Text(ref, "name")}]
	return issuer != nil && issuer.Operator == o.Operator && k8s.Map(issuer.Content, "spec", "selfSigned") != nil
}

package imageref

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
)

// Normal returns the one form of all references that a client would take for
// the same image: the registry in lower case, by its usual name and without the
// port that is asked anyway; library/ before Docker's own images; the digest
// alone where there is one, else the tag, which is latest where none is given.
// Repositories and tags keep their case: in another one they are others, or none.
//
// A reference whose registry or path can be written or read in another way has no
// normal form: a name with a dot at its end, a % or beyond ASCII; an IP address
// that is not in its shortest form; a path with dots or slashes that servers may
// drop.
func Normal(s string) (Ref, error) {
	r := Split(s)
	host, err := normalHost(r.Registry)
	if err != nil {
		return Ref{}, fmt.Errorf("image reference %q has no normal form: %w", s, err)
	}
	r.Registry = host
	if host == dockerHub && !strings.Contains(r.Repository, "/") {
		r.Repository = official + r.Repository
	}
	if !normalPath().MatchString(r.Repository) {
		return Ref{}, fmt.Errorf("image reference %q has no normal form: the path %q is not made of lower-case letters and digits, with single dots, underscores and dashes between them", s, r.Repository)
	}
	switch {
	case r.Digest != "":
		r.Tag = ""
	case r.Tag == "":
		r.Tag = name.DefaultTag
	}
	return r, nil
}

// NormalPrefix returns the normal form of a registry with the beginning of a
// path, as in "quay.io/org/" or "quay.io/org/my-". The slash after the
// registry must be there, for without it the registry's name might go on.
func NormalPrefix(s string) (string, error) {
	host, under, found := strings.Cut(s, "/")
	if !found || !isHost(host) {
		return "", fmt.Errorf("%q: no registry with a slash after it", s)
	}
	host, err := normalHost(host)
	if err != nil {
		return "", fmt.Errorf("%q: %w", s, err)
	}
	return host + "/" + under, nil
}

// NormalPlace returns the normal form of a prefix as [Below] takes it.
func NormalPlace(s string) (string, error) {
	host, under, found := strings.Cut(s, "/")
	host, err := normalPattern(host)
	if err != nil {
		return "", fmt.Errorf("%q: %w", s, err)
	}
	if found {
		host += "/" + under
	}
	return host, nil
}

// normalPattern does for "*.example.com" too what normalHost does.
func normalPattern(s string) (string, error) {
	domain, wild := strings.CutPrefix(s, "*.")
	if !wild {
		return normalHost(s)
	}
	host, err := normalHost("any." + domain)
	return "*" + strings.TrimPrefix(host, "any"), err
}

// hostOrText returns the normal form of a registry, or s where it has none.
func hostOrText(s string) string {
	if host, err := normalPattern(s); err == nil {
		return host
	}
	return s
}

// normalHost returns a registry in lower case, by its usual name, and without
// the port that is asked anyway. Every other spelling of a place is a fault, as
// a dot at the end, zeros before a port, or an IP address that is not written
// in its shortest form.
func normalHost(s string) (string, error) {
	host := strings.ToLower(s)
	if plain, ok := strings.CutSuffix(host, ":443"); ok && isHost(plain) {
		host = plain
	}
	if slices.Contains(dockerNames(), host) {
		host = dockerHub
	}
	plain, port := host, "1"
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		plain, port = host[:i], host[i+1:]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	valid := err == nil && n > 0 && strconv.FormatUint(n, 10) == port && (n != 443 || !isHost(plain))
	local := plain == "localhost" || strings.HasSuffix(plain, ".localhost")
	if addr, err := netip.ParseAddr(strings.Trim(plain, "[]")); err == nil {
		text := addr.String()
		if addr.Is6() {
			text = "[" + text + "]"
		}
		valid = valid && text == plain && !addr.Is4In6() && addr.Zone() == ""
		local = addr.IsLoopback() || addr.IsPrivate()
	} else {
		valid = valid && isDomain(plain)
	}
	if !valid {
		return "", fmt.Errorf("the registry %q is not a domain name in ASCII or an IP address in its shortest form, without a dot at the end, with a port without zeros before it or without one", s)
	}
	if local && n == 80 { // clients ask these for plain HTTP too
		return plain, nil
	}
	return host, nil
}

// isDomain reports whether a lower-case name is a domain's. One that ends in
// a number is not: some resolvers take it for an IPv4 address.
func isDomain(host string) bool {
	return len(host) <= 253 && domain().MatchString(host) && !number().MatchString(host)
}

// Compiled once, for a tree has thousands of images, and not by commands that look
// at none.
//
//nolint:gochecknoglobals // they never change
var (
	normalPath = pattern(`^` + pathPart + `(?:/` + pathPart + `)*$`)
	domain     = pattern(`^(?:` + label + `\.)*` + label + `$`)
	number     = pattern(`(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$`)
)

const label = `[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?`

func pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}

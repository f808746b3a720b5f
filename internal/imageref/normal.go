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
// the same image: the registry in lower case, by its usual name, without the
// dot that ends a domain's name in full and without the port that is asked
// anyway; an IP address in its shortest form; library/ before Docker's own
// images; the digest alone where there is one, else the tag, which is latest
// where none is given. Repositories and tags keep their case: in another one
// they are others, or none.
//
// A reference whose registry or path can be read in more than one way has no
// normal form: a name with a % or beyond ASCII, which clients translate; a
// number that some take for an IP address; a path with dots or slashes that
// servers may drop.
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

// normalHost returns the one name of a registry, with its port where that has
// to be said.
func normalHost(s string) (string, error) {
	fault := func() (string, error) {
		return "", fmt.Errorf("the registry %q is not a domain name in ASCII or an IP address, with a port or without one", s)
	}
	host, port, bracket := strings.ToLower(s), "", strings.HasPrefix(s, "[")
	if bracket {
		inside, after, ok := strings.Cut(host[1:], "]")
		if !ok || after != "" && after[0] != ':' {
			return fault()
		}
		host, port = inside, strings.TrimPrefix(after, ":")
	} else {
		host, port, _ = strings.Cut(host, ":")
		host = strings.TrimSuffix(host, ".")
	}
	port, ok := normalPort(port)
	if !ok {
		return fault()
	}
	plain := host == "localhost" || strings.HasSuffix(host, ".localhost")
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && (addr.Zone() != "" || bracket != addr.Is6()):
		return fault()
	case err == nil:
		addr = addr.Unmap()
		plain = addr.IsLoopback() || addr.IsPrivate()
		if host = addr.String(); addr.Is6() {
			host = "[" + host + "]"
		}
	case bracket || !isDomain(host):
		return fault()
	}
	// Clients ask these for plain HTTP too, whose port is another one.
	if port == "443" || plain && port == "80" {
		port = ""
	}
	if slices.Contains(dockerNames(), host) {
		host = dockerHub
	}
	switch {
	case port != "":
		host += ":" + port
	case !isHost(host):
		host += ":443" // for it would be read as the beginning of a path
	}
	return host, nil
}

// normalPort returns a port without the zeros before it; none is one too.
func normalPort(s string) (string, bool) {
	if s == "" {
		return "", true
	}
	if strings.Trim(s, "0123456789") != "" {
		return "", false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return strconv.FormatUint(n, 10), err == nil && n > 0
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

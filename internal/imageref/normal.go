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

// Normal returns the normal form of a reference. References have the same normal form if clients resolve them
// to the same image. The registry is in lower case, with its usual name and without the default port.
// Docker's own images begin with "library/". If there is a digest, the tag is dropped. If there is neither a
// digest nor a tag, the tag is "latest". Repositories and tags keep their case, which is significant.
//
// It returns an error for an ambiguous registry or path:
//   - a host with a final dot, a % or non-ASCII characters
//   - an IP address that is longer than its shortest form
//   - a path with dots or slashes that servers may drop
func Normal(s string) (Ref, error) {
	r := Split(s)
	host, err := normalHost(r.Registry)
	if err != nil {
		return Ref{}, fmt.Errorf("image reference %q has no canonical form: %w", s, err)
	}
	r.Registry = host
	if host == dockerHub && !strings.Contains(r.Repository, "/") {
		r.Repository = officialPrefix + r.Repository
	}
	if !repositoryPattern().MatchString(r.Repository) {
		return Ref{}, fmt.Errorf("image reference %q has no canonical form: the path %q may only contain lower-case letters and digits, separated by single dots, underscores or dashes", s, r.Repository)
	}
	switch {
	case r.Digest != "":
		r.Tag = ""
	case r.Tag == "":
		r.Tag = name.DefaultTag
	}
	return r, nil
}

// NormalPrefix returns the normal form of a registry with the beginning of a path, such as "quay.io/org/" or
// "quay.io/org/my-". A slash must follow the registry: without it, the name of the registry might be
// incomplete.
func NormalPrefix(s string) (string, error) {
	host, rest, found := strings.Cut(s, "/")
	if !found || !isHost(host) {
		return "", fmt.Errorf("%q: must start with a registry and a slash, such as quay.io/", s)
	}
	host, err := normalHost(host)
	if err != nil {
		return "", fmt.Errorf("%q: %w", s, err)
	}
	return host + "/" + rest, nil
}

// NormalRepositoryPrefix returns the normal form of a prefix for [CutPrefix].
func NormalRepositoryPrefix(s string) (string, error) {
	host, rest, found := strings.Cut(s, "/")
	host, err := normalPattern(host)
	if err != nil {
		return "", fmt.Errorf("%q: %w", s, err)
	}
	if found {
		host += "/" + rest
	}
	return host, nil
}

// normalPattern is like normalHost, but also accepts wildcards such as "*.example.com".
func normalPattern(s string) (string, error) {
	domain, wildcard := strings.CutPrefix(s, "*.")
	if !wildcard {
		return normalHost(s)
	}
	host, err := normalHost("any." + domain)
	return "*" + strings.TrimPrefix(host, "any"), err
}

// hostOrText returns the normal form of the registry s, or s itself if there is no normal form.
func hostOrText(s string) string {
	if host, err := normalPattern(s); err == nil {
		return host
	}
	return s
}

// normalHost returns a registry in lower case, with its usual name and without the default port. It returns
// an error for other spellings of the same host, such as a final dot, a port with leading zeros, or an IP
// address that is not in its shortest form.
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
		return "", fmt.Errorf("registry %q is not an ASCII domain name or IP address in its canonical form, optionally with a port", s)
	}
	if local && n == 80 { // port 80 is a default, too: clients try plain HTTP for local registries
		return plain, nil
	}
	return host, nil
}

// isDomain reports whether a name in lower case is a domain name. It returns false for a name that ends in a
// number, because some resolvers parse such a name as an IPv4 address.
func isDomain(host string) bool {
	return len(host) <= 253 && domainPattern().MatchString(host) && !numericPattern().MatchString(host)
}

// Compiled once, on first use: a tree may have thousands of images, and some commands need no pattern.
//
//nolint:gochecknoglobals // they never change
var (
	repositoryPattern = compilePattern(`^` + segmentPattern + `(?:/` + segmentPattern + `)*$`)
	domainPattern     = compilePattern(`^(?:` + labelPattern + `\.)*` + labelPattern + `$`)
	numericPattern    = compilePattern(`(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$`)
)

const labelPattern = `[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?`

func compilePattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}

package oci

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// containerdHosts has the fields of a hosts.toml, as described in docs/hosts.md of containerd. Only the
// field server names the registry.
type containerdHosts struct {
	Server string `toml:"server"`
	Host   map[string]struct {
		Capabilities []string `toml:"capabilities"`
		CA           any      `toml:"ca"`
		Client       any      `toml:"client"`
		Header       any      `toml:"header"`
		DialTimeout  string   `toml:"dial_timeout"`
		SkipVerify   bool     `toml:"skip_verify"`
		OverridePath bool     `toml:"override_path"`
	} `toml:"host"`
}

func parseContainerdHosts(file string, data []byte) (Mirrors, error) {
	var conf containerdHosts
	order, err := decodeTOML(file, data, &conf)
	if err != nil {
		return Mirrors{}, err
	}
	var faults diag.List
	pos := diag.Pos{File: file}
	server, _ := url.Parse(conf.Server)
	if server == nil || server.Host == "" {
		return Mirrors{}, diag.Errorf(pos, "server is missing: set the URL of the original registry, such as %q", "https://quay.io")
	}
	host := server.Host
	if host == "registry-1.docker.io" {
		host = "docker.io"
	}
	rule := mirrorRule{prefix: normalPrefix(&faults, pos, "server", host), from: file}
	for _, address := range order {
		h := conf.Host[address]
		to := mirrorAt(&faults, pos, fmt.Sprintf("host %q", address), address, h.OverridePath)
		to.insecure = to.insecure || h.SkipVerify
		to.digests = len(h.Capabilities) == 0 || slices.Contains(h.Capabilities, "pull")
		to.tags = to.digests && (len(h.Capabilities) == 0 || slices.Contains(h.Capabilities, "resolve"))
		rule.mirrors = append(rule.mirrors, to)
	}
	return Mirrors{rules: []mirrorRule{rule}}, faults.Err()
}

// decodeTOML decodes a TOML file into a struct. An unknown field is an error. It returns the keys of
// the table host in the order of the file.
func decodeTOML(file string, data []byte, into any) (hosts []string, err error) {
	meta, err := toml.Decode(string(data), into)
	if err != nil {
		var at toml.ParseError
		if errors.As(err, &at) {
			return nil, diag.Errorf(diag.Pos{File: file, Line: at.Position.Line, Col: at.Position.Col}, "%s", at.Message)
		}
		return nil, diag.Errorf(diag.Pos{File: file}, "%w", err)
	}
	var faults diag.List
	for _, key := range meta.Undecoded() {
		if key[0] != "registries" { // version 1 of registries.conf has its own error
			faults.Addf(diag.Pos{File: file}, "unknown field %q", key.String())
		}
	}
	for _, key := range meta.Keys() {
		if len(key) == 2 && key[0] == "host" {
			hosts = append(hosts, key[1])
		}
	}
	return hosts, faults.Err()
}

// k3sRegistries has the fields of registries.yaml of k3s and RKE2.
type k3sRegistries struct {
	Mirrors map[string]struct {
		Endpoint []string          `json:"endpoint"`
		Rewrite  map[string]string `json:"rewrite"`
	} `json:"mirrors"`
	Configs map[string]struct {
		Auth *yamlnode.Node `json:"auth"`
		TLS  struct {
			CA         string `json:"ca_file"`
			Cert       string `json:"cert_file"`
			Key        string `json:"key_file"`
			SkipVerify bool   `json:"insecure_skip_verify"`
		} `json:"tls"`
	} `json:"configs"`
}

// k3sRules returns the rules of a registries.yaml.
func k3sRules(faults *diag.List, file string, doc *yamlnode.Node) []mirrorRule {
	var conf k3sRegistries
	pos := yamlnode.At(file, doc)
	if err := yamlnode.Decode(file, doc, &conf); err != nil {
		faults.Add(pos, err)
		return nil
	}
	var out []mirrorRule
	for _, registry := range slices.Sorted(maps.Keys(conf.Mirrors)) {
		m := conf.Mirrors[registry]
		where := fmt.Sprintf("mirrors[%q]", registry)
		prefix := registry
		if registry != "*" {
			prefix = normalPrefix(faults, pos, where, registry)
		}
		prefixes := k3sRewrites(faults, pos, where, prefix, m.Rewrite)
		for _, p := range prefixes {
			rule := mirrorRule{prefix: p[0], from: file}
			for _, address := range m.Endpoint {
				to := mirrorAt(faults, pos, where+".endpoint", address, true)
				host, _, _ := strings.Cut(to.location, "/")
				to.insecure = to.insecure || conf.Configs[host].TLS.SkipVerify
				to.location = strings.TrimSuffix(to.location+"/"+p[1], "/")
				to.tags, to.digests = true, true
				rule.mirrors = append(rule.mirrors, to)
			}
			out = append(out, rule)
		}
	}
	return out
}

// k3sRewrites returns a pair for each pattern in the field rewrite: a prefix of image names, and
// the path in the mirror that replaces the prefix. A pattern that does not keep the end of the path
// is a fault.
func k3sRewrites(faults *diag.List, pos diag.Pos, where, prefix string, rewrite map[string]string) [][2]string {
	if len(rewrite) == 0 {
		return [][2]string{{prefix, ""}}
	}
	form := regexp.MustCompile(`^\^?([a-z0-9][a-z0-9._/-]*/)?\(\.[*+]\)\$?$`)
	var out [][2]string
	for _, pattern := range slices.Sorted(maps.Keys(rewrite)) {
		found := form.FindStringSubmatch(pattern)
		to, keepsEnd := strings.CutSuffix(rewrite[pattern], "$1")
		if found == nil || !keepsEnd || strings.Contains(to, "$") || to != "" && !strings.HasSuffix(to, "/") || found[1] != "" && prefix == "*" {
			faults.Addf(pos, "%s.rewrite: %q: %q cannot be applied: use a pattern such as \"^org/(.*)\" with \"mirror/org/$1\"", where, pattern, rewrite[pattern])
			continue
		}
		out = append(out, [2]string{strings.TrimSuffix(prefix+"/"+found[1], "/"), strings.TrimSuffix(to, "/")})
	}
	return out
}

// mirrorAt returns the mirror for a URL. containerd adds /v2 to the path of the URL unless overridePath
// is set. With overridePath, the path itself must begin with /v2.
func mirrorAt(faults *diag.List, pos diag.Pos, where, address string, overridePath bool) mirror {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		if u, err = url.Parse("https://" + address); err != nil || u.Host == "" {
			faults.Addf(pos, "%s: %q is not a URL", where, address)
			return mirror{}
		}
	}
	rest := strings.Trim(u.Path, "/")
	inner, isAPI := strings.CutPrefix(rest+"/", "v2/")
	if rest != "" && (!isAPI || !overridePath && inner != "") {
		faults.Addf(pos, "%s: the path of %q must be below /v2 (with override_path in hosts.toml): image references can only use paths below /v2", where, address)
		return mirror{}
	}
	location := strings.TrimSuffix(path.Join(u.Host, inner), "/")
	if rest == "" {
		location = u.Host
	}
	checkLocation(faults, pos, where, location)
	return mirror{location: location, insecure: u.Scheme == "http"}
}

package oci

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Mirrors are rules for pulling images from mirrors of their registries. A mirror is used only for
// requests: references, locks and records keep the original name. The zero value has no rules.
type Mirrors struct {
	rules []mirrorRule
}

// mirrorRule is the rule for a registry or for a part of a registry. It includes the mirrors.
type mirrorRule struct {
	prefix   string // images that the rule is for: "quay.io/org", "*.example.com"
	location string // replaces the prefix in requests to the original registry; empty: no replacement
	insecure bool
	blocked  bool // requests to the original registry are not allowed
	mirrors  []mirror
	from     string // file that contains the rule
}

// mirror is a location to try before the original registry.
type mirror struct {
	location string
	insecure bool
	tags     bool // serves references by tag
	digests  bool // serves references by digest
}

// Join returns the rules of m followed by the rules of o.
func (m Mirrors) Join(o Mirrors) Mirrors {
	return Mirrors{rules: slices.Concat(m.rules, o.rules)}
}

// ParseMirrors parses a file with mirror rules. The name determines the format. hosts.toml is the file of
// containerd. Other names that end in .conf or .toml mean registries.conf version 2. Any other file is
// YAML: registries.yaml of k3s and RKE2, or objects of the kinds ImageDigestMirrorSet,
// ImageTagMirrorSet and ImageContentSourcePolicy. In a file with such objects, objects of other API groups
// are ignored. A file without rules, and an unknown field, are errors.
func ParseMirrors(file string, data []byte) (Mirrors, error) {
	m, err := parseMirrors(file, data)
	if err == nil && len(m.rules) == 0 {
		err = diag.Errorf(diag.Pos{File: file}, "contains no mirror: expected a registries.conf, a hosts.toml, a registries.yaml of k3s, or objects of the kinds %s", strings.Join(mirrorKinds(), ", "))
	}
	return m, err
}

func parseMirrors(file string, data []byte) (Mirrors, error) {
	switch {
	case path.Base(file) == "hosts.toml":
		return parseContainerdHosts(file, data)
	case path.Ext(file) == ".conf" || path.Ext(file) == ".toml":
		return parseRegistriesConf(file, data)
	default:
		return parseMirrorSets(file, data)
	}
}

func mirrorKinds() []string {
	return []string{"ImageDigestMirrorSet", "ImageTagMirrorSet", "ImageContentSourcePolicy"}
}

// registriesConf contains the fields of containers-registries.conf(5).
type registriesConf struct {
	Search    []string          `toml:"unqualified-search-registries"`
	ShortMode string            `toml:"short-name-mode"`
	Helpers   []string          `toml:"credential-helpers"`
	Store     string            `toml:"additional-layer-store-auth-helper"`
	Aliases   map[string]string `toml:"aliases"`

	Registry []struct {
		Prefix             string `toml:"prefix"`
		Location           string `toml:"location"`
		Insecure           bool   `toml:"insecure"`
		Blocked            bool   `toml:"blocked"`
		MirrorByDigestOnly bool   `toml:"mirror-by-digest-only"`
		Mirror             []struct {
			Location string `toml:"location"`
			Insecure bool   `toml:"insecure"`
			Pull     string `toml:"pull-from-mirror"`
		} `toml:"mirror"`
	} `toml:"registry"`
	First map[string]any `toml:"registries"` // tables of version 1 of the format
}

func parseRegistriesConf(file string, data []byte) (Mirrors, error) {
	var conf registriesConf
	if _, err := decodeTOML(file, data, &conf); err != nil {
		return Mirrors{}, err
	}
	var m Mirrors
	var faults diag.List
	if conf.First != nil {
		faults.Addf(diag.Pos{File: file}, "[registries.search], [registries.insecure] and [registries.block] belong to version 1 of the format, which is not supported: use [[registry]]")
	}
	for i, r := range conf.Registry {
		where := fmt.Sprintf("registry[%d]", i)
		rule := mirrorRule{prefix: strings.TrimRight(r.Prefix, "/"), location: strings.TrimRight(r.Location, "/"), insecure: r.Insecure, blocked: r.Blocked, from: file}
		if rule.prefix == "" {
			rule.prefix, rule.location = normalPrefix(&faults, diag.Pos{File: file}, where+".location", rule.location), ""
		} else {
			rule.prefix = normalPrefix(&faults, diag.Pos{File: file}, where+".prefix", rule.prefix)
		}
		if rule.location != "" {
			checkLocation(&faults, diag.Pos{File: file}, where+".location", rule.location)
		}
		for j, e := range r.Mirror {
			one := mirror{location: strings.TrimRight(e.Location, "/"), insecure: e.Insecure}
			if r.MirrorByDigestOnly && e.Pull != "" {
				faults.Addf(diag.Pos{File: file}, "%s.mirror[%d]: pull-from-mirror conflicts with the registry's mirror-by-digest-only: set only one", where, j)
			}
			switch e.Pull {
			case "", "all":
				one.tags, one.digests = !r.MirrorByDigestOnly, true
			case "digest-only":
				one.digests = true
			case "tag-only":
				one.tags = true
			default:
				faults.Addf(diag.Pos{File: file}, "%s.mirror[%d]: pull-from-mirror %q: must be one of all, digest-only, tag-only", where, j, e.Pull)
			}
			checkLocation(&faults, diag.Pos{File: file}, fmt.Sprintf("%s.mirror[%d].location", where, j), one.location)
			rule.mirrors = append(rule.mirrors, one)
		}
		m.rules = append(m.rules, rule)
	}
	return m, faults.Err()
}

// mirrorSet is an object of one of the three kinds that ParseMirrors supports.
type mirrorSet struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   *yamlnode.Node `json:"metadata"`
	Status     *yamlnode.Node `json:"status"`
	Spec       struct {
		ImageDigestMirrors      []mirrorEntry `json:"imageDigestMirrors"`
		ImageTagMirrors         []mirrorEntry `json:"imageTagMirrors"`
		RepositoryDigestMirrors []mirrorEntry `json:"repositoryDigestMirrors"`
	} `json:"spec"`
}

type mirrorEntry struct {
	Source  string   `json:"source"`
	Mirrors []string `json:"mirrors"`
	Policy  string   `json:"mirrorSourcePolicy"`
}

func parseMirrorSets(file string, data []byte) (Mirrors, error) {
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{})
	if err != nil {
		return Mirrors{}, err
	}
	var m Mirrors
	var faults diag.List
	for _, doc := range docs {
		_, kind := yamlnode.Field(doc, "kind")
		_, version := yamlnode.Field(doc, "apiVersion")
		_, mirrors := yamlnode.Field(doc, "mirrors")
		switch {
		case kind == nil && mirrors != nil:
			m.rules = append(m.rules, k3sRules(&faults, file, doc)...)
		case kind == nil:
		case slices.Contains(mirrorKinds(), kind.Value):
			m.rules = append(m.rules, mirrorSetRules(&faults, file, doc)...)
		case version != nil && (strings.HasPrefix(version.Value, "config.openshift.io/") || strings.HasPrefix(version.Value, "operator.openshift.io/")):
			faults.Addf(yamlnode.At(file, kind), "kind %s: must be one of %s", kind.Value, strings.Join(mirrorKinds(), ", "))
		}
	}
	return m, faults.Err()
}

func mirrorSetRules(faults *diag.List, file string, doc *yamlnode.Node) []mirrorRule {
	var set mirrorSet
	pos := yamlnode.At(file, doc)
	if err := yamlnode.Decode(file, doc, &set); err != nil {
		faults.Add(pos, err)
		return nil
	}
	var rules []mirrorRule
	add := func(entries []mirrorEntry, tags bool) {
		for _, e := range entries {
			rule := mirrorRule{prefix: normalPrefix(faults, pos, set.Kind+": source", e.Source), from: file}
			switch e.Policy {
			case "", "AllowContactingSource":
			case "NeverContactSource":
				rule.blocked = true
			default:
				faults.Addf(pos, "%s: source %q: mirrorSourcePolicy %q: must be one of AllowContactingSource, NeverContactSource", set.Kind, e.Source, e.Policy)
			}
			for _, to := range e.Mirrors {
				checkLocation(faults, pos, set.Kind+": mirror of "+e.Source, to)
				rule.mirrors = append(rule.mirrors, mirror{location: to, tags: tags, digests: !tags})
			}
			rules = append(rules, rule)
		}
	}
	add(set.Spec.ImageDigestMirrors, false)
	add(set.Spec.RepositoryDigestMirrors, false)
	add(set.Spec.ImageTagMirrors, true)
	return rules
}

// normalPrefix returns the normal form of a registry with or without a path, or of a wildcard for
// all hosts of a domain. It adds a fault for any other text.
func normalPrefix(faults *diag.List, pos diag.Pos, where, s string) string {
	if plain := strings.TrimPrefix(s, "*."); !imageref.IsRepositoryPrefix(plain) {
		checkLocation(faults, pos, where, plain)
		return s
	}
	normal, err := imageref.NormalRepositoryPrefix(s)
	if err != nil {
		faults.Addf(pos, "%s: %w", where, err)
	}
	return normal
}

// checkLocation adds a fault unless s is a registry with or without a path.
func checkLocation(faults *diag.List, pos diag.Pos, where, s string) {
	if !imageref.IsRepositoryPrefix(s) {
		faults.Addf(pos, "%s: %q is not a registry, or a registry and a path (without a scheme, a tag and a digest)", where, s)
	} else if _, err := imageref.NormalRepositoryPrefix(s); err != nil {
		faults.Addf(pos, "%s: %w", where, err)
	}
}

// locations returns the repositories to try for an image of repo, in order: the mirrors of the
// longest matching prefix, then the original registry. If several rules have this prefix, their
// mirrors are joined in the order of the rules. locations omits mirrors that another rule blocks. It
// returns an error if no location remains, or if the rules are ambiguous.
func (m Mirrors) locations(repo string, byDigest bool) ([]string, error) {
	if _, err := imageref.NormalRepositoryPrefix(repo); err != nil && len(m.rules) > 0 {
		return nil, fmt.Errorf("mirror rules cannot be applied: %w", err)
	}
	source, blockedBy := repo, ""
	var all []string
	for _, r := range m.matchingRules(repo) {
		rest, _ := imageref.CutPrefix(repo, r.prefix)
		for _, to := range r.mirrors {
			if location := to.location + rest; (byDigest && to.digests || !byDigest && to.tags) && (location == repo || m.blockingFile(location) == "") {
				all = append(all, location)
			}
		}
		if r.location != "" {
			source = r.location + rest
		}
		if r.blocked {
			blockedBy = r.from
		}
	}
	if blockedBy == "" && source != repo {
		blockedBy = m.blockingFile(source)
	}
	if blockedBy == "" {
		all = append(all, source)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s blocks %s and has no mirror for it", blockedBy, repo)
	}
	return uniqueStrings(all), nil
}

// matchingRules returns the rules with the longest prefix that matches repo.
func (m Mirrors) matchingRules(repo string) []mirrorRule {
	var best []mirrorRule
	for _, r := range m.rules {
		_, ok := imageref.CutPrefix(repo, r.prefix)
		switch {
		case !ok || len(best) > 0 && len(r.prefix) < len(best[0].prefix):
		case len(best) > 0 && r.prefix == best[0].prefix:
			best = append(best, r)
		case len(best) == 0 || len(r.prefix) > len(best[0].prefix):
			best = []mirrorRule{r}
		}
	}
	return best
}

// blockingFile returns the name of the file whose rule blocks a location, or "" if no rule blocks it.
func (m Mirrors) blockingFile(location string) string {
	for _, r := range m.matchingRules(location) {
		if r.blocked {
			return r.from
		}
	}
	return ""
}

// Rewrite is the mirror that a cluster uses for images whose name begins with Prefix.
type Rewrite struct {
	Prefix        string // "quay.io/org" or "*.example.com"
	Mirror        string // replaces the prefix: "mirror.example.com/org"
	Tags, Digests bool   // the mirror serves references by tag, by digest, or both
}

// Rewrites returns, for each prefix, the first mirror for references by tag and the first mirror for
// references by digest, in the order of the rules. If a prefix has no mirror for one kind of references,
// clusters pull the images of these references from the original registry.
func (m Mirrors) Rewrites() []Rewrite {
	type key struct {
		prefix string
		tags   bool
	}
	done := map[key]bool{}
	var out []Rewrite
	for _, r := range m.rules {
		for _, to := range r.mirrors {
			w := Rewrite{Prefix: r.prefix, Mirror: to.location}
			w.Tags = to.tags && !done[key{r.prefix, true}]
			w.Digests = to.digests && !done[key{r.prefix, false}]
			if w.Tags {
				done[key{r.prefix, true}] = true
			}
			if w.Digests {
				done[key{r.prefix, false}] = true
			}
			if w.Tags || w.Digests {
				out = append(out, w)
			}
		}
	}
	return out
}

// uniqueStrings returns the strings without duplicates, in order of first appearance.
func uniqueStrings(all []string) []string {
	var kept []string
	for _, s := range all {
		if !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// isInsecure reports whether a rule marks the registry of a repository as insecure.
func (m Mirrors) isInsecure(repo string) bool {
	within := func(prefix string) bool {
		_, ok := imageref.CutPrefix(repo, prefix)
		return ok
	}
	return slices.ContainsFunc(m.rules, func(r mirrorRule) bool {
		if r.insecure {
			if within(r.prefix) || within(r.location) {
				return true
			}
		}
		return slices.ContainsFunc(r.mirrors, func(to mirror) bool { return to.insecure && within(to.location) })
	})
}

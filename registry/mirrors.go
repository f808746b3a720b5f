package registry

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Mirrors says where images are fetched from instead of the registry that
// their references name. References, digests, locks and records keep the
// canonical name; only requests go elsewhere. The zero value has none.
type Mirrors struct {
	rules []mirrorRule
}

// mirrorRule is one source with its mirrors.
type mirrorRule struct {
	prefix   string // "quay.io/org", "*.example.com"
	location string // what the prefix is replaced by where the source itself is asked; empty: nothing
	insecure bool
	blocked  bool // the source itself is never asked
	mirrors  []mirror
	from     string // the file
}

// mirror is one place to ask before the source.
type mirror struct {
	location string
	insecure bool
	tags     bool // asked for references by tag
	digests  bool // asked for references by digest
}

// Join returns the rules of both, m's first.
func (m Mirrors) Join(o Mirrors) Mirrors {
	return Mirrors{rules: slices.Concat(m.rules, o.rules)}
}

// ParseMirrors reads one file: registries.conf (version 2, by its ending .conf
// or .toml), or YAML with objects of the kinds ImageDigestMirrorSet,
// ImageTagMirrorSet and ImageContentSourcePolicy; other kinds are ignored.
func ParseMirrors(file string, data []byte) (Mirrors, error) {
	switch path.Ext(file) {
	case ".conf", ".toml":
		return parseRegistriesConf(file, data)
	default:
		return parseMirrorSets(file, data)
	}
}

// registriesConf is the part of containers-registries.conf(5) that says where
// to pull from.
type registriesConf struct {
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
	First map[string]any `toml:"registries"` // of version 1 of the format
}

func parseRegistriesConf(file string, data []byte) (Mirrors, error) {
	var conf registriesConf
	if err := toml.Unmarshal(data, &conf); err != nil {
		var at toml.ParseError
		if errors.As(err, &at) {
			return Mirrors{}, diag.Errorf(diag.Pos{File: file, Line: at.Position.Line, Col: at.Position.Col}, "%s", at.Message)
		}
		return Mirrors{}, diag.Errorf(diag.Pos{File: file}, "%w", err)
	}
	var m Mirrors
	var faults diag.List
	if conf.First != nil {
		faults.Addf(diag.Pos{File: file}, "[registries.search], [registries.insecure] and [registries.block] are of version 1 of the format, which is not supported: use [[registry]]")
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
				faults.Addf(diag.Pos{File: file}, "%s.mirror[%d]: pull-from-mirror beside the registry's mirror-by-digest-only: want one of the two", where, j)
			}
			switch e.Pull {
			case "", "all":
				one.tags, one.digests = !r.MirrorByDigestOnly, true
			case "digest-only":
				one.digests = true
			case "tag-only":
				one.tags = true
			default:
				faults.Addf(diag.Pos{File: file}, "%s.mirror[%d]: pull-from-mirror %q: want all, digest-only or tag-only", where, j, e.Pull)
			}
			checkLocation(&faults, diag.Pos{File: file}, fmt.Sprintf("%s.mirror[%d].location", where, j), one.location)
			rule.mirrors = append(rule.mirrors, one)
		}
		m.rules = append(m.rules, rule)
	}
	return m, faults.Err()
}

// mirrorSet is any of the three kinds.
type mirrorSet struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   *yaml.Node `json:"metadata"`
	Status     *yaml.Node `json:"status"`
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
		switch _, kind := yamlnode.Field(doc, "kind"); {
		case kind == nil:
			continue
		case kind.Value != "ImageDigestMirrorSet" && kind.Value != "ImageTagMirrorSet" && kind.Value != "ImageContentSourcePolicy":
			continue
		}
		m.rules = append(m.rules, mirrorSetRules(&faults, file, doc)...)
	}
	return m, faults.Err()
}

func mirrorSetRules(faults *diag.List, file string, doc *yaml.Node) []mirrorRule {
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
				faults.Addf(pos, "%s: source %q: mirrorSourcePolicy %q: want AllowContactingSource or NeverContactSource", set.Kind, e.Source, e.Policy)
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

// normalPrefix wants what checkLocation wants, or all hosts of a domain, and
// returns it in the form by which rules about one place are known.
func normalPrefix(faults *diag.List, pos diag.Pos, where, s string) string {
	if plain := strings.TrimPrefix(s, "*."); !imageref.IsPlace(plain) {
		checkLocation(faults, pos, where, plain)
		return s
	}
	normal, err := imageref.NormalPlace(s)
	if err != nil {
		faults.Addf(pos, "%s: %w", where, err)
	}
	return normal
}

// checkLocation wants a host, or a host and a path.
func checkLocation(faults *diag.List, pos diag.Pos, where, s string) {
	if !imageref.IsPlace(s) {
		faults.Addf(pos, "%s: %q is not a registry, or a registry and a path (without a scheme, a tag and a digest)", where, s)
	} else if _, err := imageref.NormalPlace(s); err != nil {
		faults.Addf(pos, "%s: %w", where, err)
	}
}

// places returns where to ask for an image of repo, in order: the mirrors of
// the longest prefix that matches, then the source. The rules of one prefix
// are joined in the order of their files. A mirror that another prefix blocks
// is left out. The error says that none is left, or that the rules cannot tell
// which registry is meant.
func (m Mirrors) places(repo string, byDigest bool) ([]string, error) {
	if _, err := imageref.NormalPlace(repo); err != nil && len(m.rules) > 0 {
		return nil, fmt.Errorf("no rule for mirrors can be applied: %w", err)
	}
	source, blockedBy := repo, ""
	var all []string
	for _, r := range m.about(repo) {
		rest, _ := imageref.Below(repo, r.prefix)
		for _, to := range r.mirrors {
			if place := to.location + rest; (byDigest && to.digests || !byDigest && to.tags) && (place == repo || m.blocks(place) == "") {
				all = append(all, place)
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
		blockedBy = m.blocks(source)
	}
	if blockedBy == "" {
		all = append(all, source)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s does not allow to ask %s, and names no mirror for it", blockedBy, repo)
	}
	return unique(all), nil
}

// about returns the rules of the longest prefix that matches.
func (m Mirrors) about(repo string) []mirrorRule {
	var best []mirrorRule
	for _, r := range m.rules {
		_, ok := imageref.Below(repo, r.prefix)
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

// blocks returns the file that does not allow to ask a place, "" where none
// does.
func (m Mirrors) blocks(place string) string {
	for _, r := range m.about(place) {
		if r.blocked {
			return r.from
		}
	}
	return ""
}

// Rewrite is what becomes of the references below a prefix on a cluster that
// knows the mirrors.
type Rewrite struct {
	Prefix        string // "quay.io/org", "*.example.com"
	Mirror        string // the first of its mirrors: "mirror.example.com/org"
	Tags, Digests bool   // which references it serves
}

// Rewrites returns the first mirror of every prefix, for references by tag and
// for those by digest, in the order of the rules. Where a prefix has none for
// one of the two, images are pulled from where their references say.
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

// unique keeps the first of equal words.
func unique(all []string) []string {
	var kept []string
	for _, s := range all {
		if !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// insecure reports whether a rule calls a repository, as it is asked for,
// insecure.
func (m Mirrors) insecure(repo string) bool {
	within := func(prefix string) bool {
		_, ok := imageref.Below(repo, prefix)
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

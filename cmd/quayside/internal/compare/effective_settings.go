package compare

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/internal/settings"
)

// effectiveSetting is a setting of a workspace after defaults are applied. For a list or map, it is one entry.
// The zero value is a missing setting.
type effectiveSetting struct {
	path    string            // field in quayside.yaml, such as "spec.promotion.soak"
	key     string            // identifies the entry of a list or map, such as the ID of a catalog
	field   string            // position in quayside.yaml, such as "spec.trust[2]"; empty: path
	text    string            // value as shown to users
	rank    int               // strictness, higher is stricter; a missing setting has 0
	variant string            // part of the value that text does not show
	note    string            // explanation by the user, such as the reason of a waiver
	items   map[string]string // for a set: the text of each item, by an identifier
}

func (s effectiveSetting) isMissing() bool { return s.path == "" }

// comparedNames contains all image patterns and cluster names in the settings of both sides, to compare each.
type comparedNames struct {
	patterns        []string // image patterns in spec.trust
	clusters        []string
	vulnerabilities bool // whether the policy of a side lists refused vulnerabilities
}

// effectiveSettings returns those settings of a side that sensitiveSettings lists. names are the names of both sides.
func (c *Comparison) effectiveSettings(s *Side, names comparedNames) (settingsList, error) {
	p, w := s.project, s.project.Settings
	var e settingsList
	e.set("spec.extends", cmp.Or(strings.Join(w.Extended, ", "), w.Extends), 0).variant = fmt.Sprintf("%q", append([]string{w.Extends}, w.Extended...))
	e.set("spec.output", strings.TrimSpace(w.OutputName()+" "+w.Output.Branch), 0)
	e.set("spec.requirements", w.Requirements, strictIf(w.Requirements == "enforce"))
	e.set("spec.allowOverlap", w.AllowOverlap, strictIf(!w.AllowOverlap))
	e.set("spec.sharedDependencies", w.SharedDependencies, strictIf(!w.SharedDependencies))
	// A missing setting has rank 0. A set value is therefore less strict if its rank is negative, and stricter
	// if its rank is positive.
	e.setNames("spec.allowNames", w.AllowNames)
	e.setNames("spec.globalCatalogNamespaces", w.GlobalCatalogs)
	if w.Follows != "" {
		e.set("spec.follows", w.Follows, 0)
	}
	if g := w.Promotion; g != nil {
		e.set("spec.promotion", "set", 1)
		e.set("spec.promotion.healthy", g.Healthy, int(g.Healthy))
		e.set("spec.promotion.soak", g.Soak, int(g.Soak))
		e.set("spec.promotion.clusters", g.Clusters, g.Clusters)
		e.set("spec.promotion.observedWithin", g.ObservedWithin, -int(g.ObservedWithin))
		e.set("spec.promotion.signed", g.Signed, strictIf(g.Signed))
	}
	if len(w.Windows) > 0 {
		e.set("spec.windows", diag.Count(len(w.Windows), "window"), 0).variant = fmt.Sprintf("%+v", w.Windows)
	}
	if w.Freeze != nil {
		e.set("spec.freeze", "until "+w.Freeze.Until, 0)
	}
	if w.Propose != nil && w.Propose.Automerge != nil {
		a := w.Propose.Automerge
		worst, err := diff.ParseSeverity(a.MaxSeverity)
		if err != nil {
			return nil, err
		}
		e.set("spec.propose.automerge", "up to severity "+a.MaxSeverity, -1)
		e.set("spec.propose.automerge.maxSeverity", a.MaxSeverity, -int(worst))
		e.set("spec.propose.automerge.after", a.After, int(a.After))
	}
	if g := w.Propose; g != nil {
		for _, name := range g.Reviewers {
			e.set("spec.propose.reviewers", name, 1).key = name
		}
		e.setNames("spec.propose.labels", g.Labels)
		e.set("spec.propose.draft", g.Draft, strictIf(g.Draft))
	}
	e.setVersion("spec.kubernetesVersion", w.KubernetesVersion)
	e.setVersion("spec.openshiftVersion", w.OpenShiftVersion)
	for _, pattern := range names.patterns {
		e.setTrust(p, pattern)
	}
	for _, catalog := range c.catalogsOf(s) {
		id := catalog.ID.String()
		x := e.set("catalog", string(catalog.Source), -1)
		x.key, x.field, x.variant = id, "catalog "+id, repositoryOf(catalog.Source)
		x = e.set("catalog priority", fmt.Sprint("priority ", catalog.Priority), 0)
		x.key, x.field = id, "catalog "+id
	}
	mirrors, err := p.Mirrors()
	if err != nil {
		return nil, err
	}
	byPrefix := map[string]*effectiveSetting{}
	for _, m := range mirrors.Rewrites() {
		x := byPrefix[m.Prefix]
		if x == nil {
			x = e.set("spec.mirrors", "", 0)
			x.key, x.items, byPrefix[m.Prefix] = m.Prefix, map[string]string{}, x
		}
		x.text, x.items[m.Mirror] = strings.TrimPrefix(x.text+", "+m.Mirror, ", "), m.Mirror
	}
	err = e.setPolicy(p, names)
	return e, err
}

// settingsList collects the effective settings of a side.
type settingsList []*effectiveSetting

// set adds a setting and returns it, so that the caller can set more fields.
func (e *settingsList) set(path string, value any, rank int) *effectiveSetting {
	s := &effectiveSetting{path: path, text: fmt.Sprint(value), rank: rank}
	*e = append(*e, s)
	return s
}

// setNames adds the entries of a list of names.
func (e *settingsList) setNames(path string, names []string) {
	for i, name := range names {
		s := e.set(path, name, -1)
		s.key, s.field = name, diag.Item(path, i)
	}
}

// setVersion adds the version of a platform. Its rank is computed from the major and minor number. An empty
// version is not added.
func (e *settingsList) setVersion(path, version string) {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	if version != "" {
		x, _ := strconv.Atoi(major)
		y, _ := strconv.Atoi(minor)
		e.set(path, version, x*1000+y)
	}
}

// find returns the setting at path or, for a list or map, its entry called key. If there is none, it returns zero.
func (e settingsList) find(path, key string) effectiveSetting {
	for _, s := range e {
		if s.path == path && s.key == key {
			return *s
		}
	}
	return effectiveSetting{}
}

// strictIf returns rank 1 for strict, and 0 otherwise.
func strictIf(strict bool) int {
	if strict {
		return 1
	}
	return 0
}

// setTrust adds the permitted signers of images that match a pattern. It adds nothing if these images need no
// signature.
func (e *settingsList) setTrust(p *workspace.Project, pattern string) {
	entries := p.Settings.Trust
	i := trustFor(entries, pattern)
	if i < 0 {
		return
	}
	accepted := signers(p, entries[i])
	s := e.set("spec.trust", strings.Join(slices.Sorted(maps.Values(accepted)), ", "), 1)
	s.field, s.items = diag.Item("spec.trust", i), accepted
	if s.key = pattern; pattern != trust.Observations {
		s.key = "images of " + pattern
	}
}

// setPolicy adds the settings in spec.policy.
func (e *settingsList) setPolicy(p *workspace.Project, names comparedNames) error {
	policy, err := rules.PolicyOf(p.Settings)
	if err != nil {
		return err
	}
	tuned, err := severities(p.Settings)
	if err != nil {
		return err
	}
	for _, r := range diff.Rules() {
		severity, ok := tuned[r.ID]
		if !ok {
			severity = r.Severity
		}
		s := e.set("spec.policy.severity", severity, int(severity))
		s.key, s.field = r.ID, "spec.policy.severity."+r.ID
	}
	outside := e.set("spec.policy.severity", tuned[rules.OutsideWindow], int(tuned[rules.OutsideWindow]))
	outside.key, outside.field = rules.OutsideWindow, "spec.policy.severity."+rules.OutsideWindow
	e.set("spec.policy.failOn", policy.FailOn, levelRank(policy.FailOn))
	for _, name := range names.clusters {
		level := policy.Level(name)
		s := e.set("spec.policy.clusters", level, levelRank(level))
		if s.key = name; level == policy.FailOn {
			s.variant = "default"
		}
	}
	if names.vulnerabilities {
		refused := policy.Refused()
		for _, severity := range scan.Severities() {
			isRefused := slices.Contains(refused, severity.String())
			e.set("spec.policy.vulnerabilities.added", strings.Join(refused, ", "), strictIf(isRefused)).key = severity.String()
		}
	}
	for i, r := range policy.Rules {
		s := e.set("spec.policy.rules", r.Expression, 1)
		s.key, s.field, s.variant = r.Name, diag.Item("spec.policy.rules", i), fmt.Sprint(r.Tree)
	}
	for i, w := range policy.Waivers {
		day, _ := strconv.Atoi(strings.ReplaceAll(w.Expires, "-", ""))
		s := e.set("spec.policy.waivers", w.Expires, -day)
		s.key, s.field, s.note = w.Selectors(), diag.Item("spec.policy.waivers", i), w.Reason
	}
	return nil
}

// levelRank returns the rank of spec.policy.failOn. A lower severity is stricter and has a higher rank.
func levelRank(level diff.Severity) int {
	if level == diff.Off {
		return -int(diff.Critical) - 1
	}
	return -int(level)
}

// trustFor returns the index of the first rule that applies to all images of a pattern, or -1.
func trustFor(rules []settings.Trust, match string) int {
	normal := func(s string) (string, bool) {
		s, wild := strings.CutSuffix(s, "*")
		if n, err := imageref.NormalPrefix(s); err == nil {
			s = n
		}
		return s, wild
	}
	want, _ := normal(match)
	return slices.IndexFunc(rules, func(t settings.Trust) bool {
		prefix, wild := normal(t.Match)
		if t.Match == trust.Observations || match == trust.Observations {
			return t.Match == match
		}
		return t.Match == match || prefix == want && strings.HasSuffix(match, "*") == wild || wild && strings.HasPrefix(want, prefix)
	})
}

// signers returns a description of each signer in an entry of spec.trust. The map keys depend on the content of
// the key files and of the trust root.
func signers(p *workspace.Project, t settings.Trust) map[string]string {
	digest := func(name string) string {
		data, err := p.Read(name)
		if err != nil {
			return name // the name of an unreadable file is never equal to a digest
		}
		return fmt.Sprintf("sha256:%.12x", sha256.Sum256(data))
	}
	out := map[string]string{}
	for _, name := range t.Keys {
		d := digest(name)
		out["key "+d] = fmt.Sprintf("key %s (%s)", name, d)
	}
	if len(t.Keys) == 0 {
		d := digest(t.TrustRoot)
		out[fmt.Sprintf("%q", []string{t.Identity, t.IdentityRegexp, t.Issuer, d})] = fmt.Sprintf("%s of %s (%s %s)", cmp.Or(t.Identity, t.IdentityRegexp), t.Issuer, t.TrustRoot, d)
	}
	return out
}

// catalogsOf returns the catalogs in quayside.yaml and in the declarations of a side.
func (c *Comparison) catalogsOf(s *Side) []cache.CatalogSpec {
	set, err := s.project.Declarations()
	if err != nil {
		c.notes = append(c.notes, fmt.Sprintf("sources of declared catalogs not compared: %v", s.wrapName(err)))
		set = &declare.Set{}
	}
	return s.project.Catalogs(set)
}

// repositoryOf returns the address of a catalog without the tag or digest of its image.
func repositoryOf(ref source.Ref) string {
	image, is := strings.CutPrefix(string(ref), string(source.ImageRef("")))
	if !is {
		return string(ref)
	}
	r := imageref.Split(image)
	return r.Registry + "/" + r.Repository
}

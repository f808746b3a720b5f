package compare

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// settingsComparer collects findings about settings that are less strict after than before.
type settingsComparer struct {
	c             *Comparison
	before, after *workspace.Project
	found         []diff.Finding
}

// compareSettings returns findings about settings that are less strict on the side after. It returns none
// if policyBase returns nil.
func (c *Comparison) compareSettings() ([]diff.Finding, error) {
	if c.policyBase() == nil {
		return nil, nil
	}
	l := &settingsComparer{c: c, before: c.Before.project, after: c.After.project}
	l.compareTrust()
	l.compareCatalogs()
	if err := l.compareMirrors(); err != nil {
		return nil, err
	}
	a, b := l.before.Settings, l.after.Settings
	for i, name := range b.AllowNames {
		if !slices.Contains(a.AllowNames, name) {
			l.add("settings.names", diag.Item("spec.allowNames", i), "", name, "bundles may contain "+name)
		}
	}
	if a.Extends != b.Extends || !slices.Equal(a.Extended, b.Extended) {
		l.add("settings.extends", "spec.extends", cmp.Or(strings.Join(a.Extended, ", "), a.Extends), cmp.Or(strings.Join(b.Extended, ", "), b.Extends), "settings are inherited from other files")
	}
	for i, namespace := range b.GlobalCatalogs {
		if !slices.Contains(a.GlobalCatalogs, namespace) {
			l.add("settings.catalogs", diag.Item("spec.globalCatalogNamespaces", i), "", namespace, "catalogs of the namespace serve all namespaces")
		}
	}
	l.comparePromotion()
	l.compareAutomerge()
	l.compareRequirements()
	return l.found, l.comparePolicy()
}

// comparePromotion compares the requirements for a promotion into this environment.
func (l *settingsComparer) comparePromotion() {
	from, to := l.before.Settings.Follows, l.after.Settings.Follows
	if from != "" && from != to {
		l.add("settings.promotion", "spec.follows", from, to, "versions are promoted from another environment")
	}
	a, b := l.before.Settings.Promotion, l.after.Settings.Promotion
	switch {
	case a == nil:
	case b == nil:
		l.add("settings.promotion", "spec.promotion", "set", "", "versions are promoted without observed health")
	default:
		for _, f := range []struct {
			name          string
			before, after any
			looser        bool
		}{
			{"healthy", a.Healthy, b.Healthy, b.Healthy < a.Healthy},
			{"soak", a.Soak, b.Soak, b.Soak < a.Soak},
			{"clusters", a.Clusters, b.Clusters, b.Clusters < a.Clusters},
			{"observedWithin", a.ObservedWithin, b.ObservedWithin, b.ObservedWithin > a.ObservedWithin},
			{"signed", a.Signed, b.Signed, a.Signed && !b.Signed},
		} {
			if f.looser {
				l.add("settings.promotion", "spec.promotion."+f.name, fmt.Sprint(f.before), fmt.Sprint(f.after), "versions are promoted with less observed health")
			}
		}
	}
}

// compareRequirements compares the requirements of operators that limit their versions, and the
// output directory.
func (l *settingsComparer) compareRequirements() {
	a, b := l.before.Settings, l.after.Settings
	const rule = "settings.requirements"
	if a.Requirements != b.Requirements && b.Requirements != "enforce" {
		l.add(rule, "spec.requirements", a.Requirements, b.Requirements, "versions that do not support the platform may be installed")
	}
	if b.AllowOverlap && !a.AllowOverlap {
		l.add(rule, "spec.allowOverlap", "false", "true", "two operators with the same API may watch the same namespace")
	}
	if b.SharedDependencies && !a.SharedDependencies {
		l.add(rule, "spec.sharedDependencies", "false", "true", "dependencies are satisfied by operators in other namespaces")
	}
	if a.Output != b.Output {
		l.add("settings.output", "spec.output", a.Output, b.Output, "the tree has another directory")
	}
}

// compareAutomerge compares the pull requests that are merged automatically.
func (l *settingsComparer) compareAutomerge() {
	automerge := func(p *settings.Propose) *settings.Automerge {
		if p == nil {
			return nil
		}
		return p.Automerge
	}
	a, b := automerge(l.before.Settings.Propose), automerge(l.after.Settings.Propose)
	severity := func(s string) diff.Severity {
		out, _ := diff.ParseSeverity(s) // the settings have been checked
		return out
	}
	const field = "spec.propose.automerge"
	switch {
	case b == nil:
	case a == nil:
		l.add("settings.automerge", field, "", "up to severity "+b.MaxSeverity, "pull requests are merged automatically")
	default:
		if severity(b.MaxSeverity) > severity(a.MaxSeverity) {
			l.add("settings.automerge", field+".maxSeverity", a.MaxSeverity, b.MaxSeverity, "pull requests with worse findings are merged automatically")
		}
		if b.After < a.After {
			l.add("settings.automerge", field+".after", fmt.Sprint(a.After), fmt.Sprint(b.After), "pull requests are merged automatically after a shorter time")
		}
	}
}

// add records a finding about a field in the settings of the side after.
func (l *settingsComparer) add(rule, field, before, after, message string, severity ...diff.Severity) {
	f := diff.Finding{Rule: rule, Field: field, Before: before, After: after, Message: message}
	f.Place.Path = l.c.InRepo(settings.FileName)
	w := l.after.Settings
	if p := w.At(field); p.Line > 0 && p.File == w.File {
		f.Place.Line, f.Place.Column, f.Place.EndLine, f.Place.EndCol = p.Line, p.Col, p.Line, p.Col+1
	}
	for _, s := range severity {
		f.Severity = s
	}
	l.found = append(l.found, f)
}

// compareTrust compares the signers for every pattern in spec.trust of either side.
func (l *settingsComparer) compareTrust() {
	old, now := l.before.Settings.Trust, l.after.Settings.Trust
	seen := map[string]bool{}
	for _, t := range slices.Concat(old, now) {
		b := trustFor(old, t.Match)
		if b < 0 || seen[t.Match] {
			continue
		}
		seen[t.Match] = true
		oldSigners, newSigners := signers(l.before, old[b]), map[string]string{}
		a, field := trustFor(now, t.Match), "spec.trust"
		if a >= 0 {
			newSigners, field = signers(l.after, now[a]), diag.Item("spec.trust", a)
		}
		added := maps.Clone(newSigners)
		maps.DeleteFunc(added, func(id, _ string) bool { return oldSigners[id] != "" })
		subject := "images of " + t.Match
		if t.Match == trust.Observations {
			subject = t.Match
		}
		switch {
		case a < 0:
			l.add(diff.SettingsTrust, field, joinSigners(oldSigners), "", subject+" need no signature")
		case len(added) > 0:
			l.add(diff.SettingsTrust, field, joinSigners(oldSigners), joinSigners(newSigners), fmt.Sprintf("%s may be signed by %s", subject, joinSigners(added)))
		}
	}
}

// trustFor returns the index of the entry that applies to all repositories of a pattern, or -1.
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

// signers returns descriptions of the signers in an entry of spec.trust. The map keys include the
// digests of the key files or of the trust root.
func signers(p *workspace.Project, t settings.Trust) map[string]string {
	digest := func(name string) string {
		data, err := p.Read(name)
		if err != nil {
			return name // never equal to a digest
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

func joinSigners(s map[string]string) string {
	return strings.Join(slices.Sorted(maps.Values(s)), ", ")
}

// compareCatalogs compares the sources of catalogs in quayside.yaml and in declarations.
func (l *settingsComparer) compareCatalogs() {
	was := map[catalog.ID]cache.Catalog{}
	for _, c := range l.catalogsOf(l.c.Before) {
		was[c.ID] = c
	}
	for _, c := range l.catalogsOf(l.c.After) {
		b, known := was[c.ID]
		before, after := string(b.Source), string(c.Source)
		if known && b.Priority != c.Priority {
			l.add("settings.catalogs", "catalog "+c.ID.String(), fmt.Sprint("priority ", b.Priority), fmt.Sprint("priority ", c.Priority), "dependencies are preferred from another catalog")
		}
		switch {
		case before == after:
		case !known:
			l.add("settings.catalogs", "catalog "+c.ID.String(), "", after, "catalog added", diff.Low)
		case repositoryOf(b.Source) == repositoryOf(c.Source):
			l.add("settings.catalogs", "catalog "+c.ID.String(), before, after, "catalog is read at another tag or digest", diff.Low)
		default:
			l.add("settings.catalogs", "catalog "+c.ID.String(), before, after, "catalog has another source under the same name")
		}
	}
}

func (l *settingsComparer) catalogsOf(s *Side) []cache.Catalog {
	set, err := s.project.Declarations()
	if err != nil {
		l.c.notes = append(l.c.notes, fmt.Sprintf("sources of declared catalogs not compared: %v", s.wrapName(err)))
		set = &declare.Set{}
	}
	return s.project.Catalogs(set)
}

// repositoryOf returns a source without the tag and digest of its image.
func repositoryOf(ref source.Ref) string {
	image, is := strings.CutPrefix(string(ref), string(source.ImageRef("")))
	if !is {
		return string(ref)
	}
	r := imageref.Split(image)
	return r.Registry + "/" + r.Repository
}

func (l *settingsComparer) compareMirrors() error {
	before, err := l.before.Mirrors()
	if err != nil {
		return l.c.Before.wrapName(err)
	}
	after, err := l.after.Mirrors()
	if err != nil {
		return l.c.After.wrapName(err)
	}
	was := map[string][]string{}
	for _, m := range before.Rewrites() {
		was[m.Prefix] = append(was[m.Prefix], m.Mirror)
	}
	for _, m := range after.Rewrites() {
		if !slices.Contains(was[m.Prefix], m.Mirror) {
			l.add("settings.catalogs", "spec.mirrors", strings.Join(was[m.Prefix], ", "), m.Mirror, fmt.Sprintf("images of %s come from another mirror", m.Prefix))
		}
	}
	return nil
}

// comparePolicy compares the policies of both sides.
func (l *settingsComparer) comparePolicy() error {
	before, err := policyOf(l.before)
	if err != nil {
		return l.c.Before.wrapName(err)
	}
	after, err := policyOf(l.after)
	if err != nil {
		return l.c.After.wrapName(err)
	}
	l.compareLevels(before, after)
	if err := l.compareSeverities(); err != nil {
		return err
	}
	now := after.Refused()
	for _, s := range before.Refused() {
		if (before.Vulnerabilities != nil || after.Vulnerabilities != nil) && !slices.Contains(now, s) {
			l.add(diff.SettingsPolicy, "spec.policy.vulnerabilities.added", strings.Join(before.Refused(), ", "), strings.Join(now, ", "), fmt.Sprintf("new vulnerabilities rated %s are accepted", s))
		}
	}
	for _, r := range before.Rules {
		i := slices.IndexFunc(after.Rules, func(n diff.CELRule) bool { return n.Name == r.Name })
		switch {
		case i < 0:
			l.add(diff.SettingsPolicy, "spec.policy.rules", r.Expression, "", fmt.Sprintf("rule %s removed", r.Name))
		case after.Rules[i].Expression != r.Expression || after.Rules[i].Tree != r.Tree:
			l.add(diff.SettingsPolicy, diag.Item("spec.policy.rules", i), r.Expression, after.Rules[i].Expression, fmt.Sprintf("rule %s changed", r.Name))
		}
	}
	for i, w := range after.Waivers {
		until := ""
		if at := slices.IndexFunc(before.Waivers, func(b diag.Waiver) bool { return b.Selectors() == w.Selectors() }); at >= 0 {
			until = before.Waivers[at].Expires
		}
		if w.Expires > until {
			l.add(diff.SettingsWaiver, diag.Item("spec.policy.waivers", i), until, w.Expires, fmt.Sprintf("%s is waived until %s: %s", w.Selectors(), w.Expires, w.Reason))
		}
	}
	return nil
}

// compareLevels compares spec.policy.failOn, which is the default for clusters, and the level that
// applies to each cluster.
func (l *settingsComparer) compareLevels(before, after diff.Policy) {
	looser := func(a, b diff.Severity) bool { return a != diff.Off && (b == diff.Off || b > a) }
	if looser(before.FailOn, after.FailOn) {
		l.add(diff.SettingsPolicy, "spec.policy.failOn", before.FailOn.String(), after.FailOn.String(), "more findings are accepted")
	}
	names := slices.Concat(l.before.Clusters(), l.after.Clusters())
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a, b := before.Level(name), after.Level(name)
		if looser(a, b) && (a != before.FailOn || b != after.FailOn) {
			l.add(diff.SettingsPolicy, "spec.policy.clusters", a.String(), b.String(), fmt.Sprintf("more findings are accepted for cluster %s", name))
		}
	}
}

// compareSeverities compares the severity of every rule.
func (l *settingsComparer) compareSeverities() error {
	before, err := severities(l.before.Settings)
	if err != nil {
		return err
	}
	after, err := severities(l.after.Settings)
	if err != nil {
		return err
	}
	for _, r := range diff.Rules() {
		was, is := r.Severity, r.Severity
		if s, tuned := before[r.ID]; tuned {
			was = s
		}
		if s, tuned := after[r.ID]; tuned {
			is = s
		}
		if is < was {
			l.add(diff.SettingsPolicy, "spec.policy.severity."+r.ID, was.String(), is.String(), fmt.Sprintf("findings of %s are less severe", r.ID))
		}
	}
	return nil
}

// changesOnlyPolicy reports whether the sides differ only in spec.policy and spec.trust. Other
// settings, the lock and the tree must be equal.
func (c *Comparison) changesOnlyPolicy(found []diff.Finding) bool {
	if c.Before.lock == nil || c.After.lock == nil {
		return false
	}
	return !slices.ContainsFunc(found, func(f diff.Finding) bool {
		return f.Rule != diff.SettingsTrust && f.Rule != diff.SettingsPolicy && f.Rule != diff.SettingsWaiver
	}) &&
		bytes.Equal(otherSettings(c.Before.project.Settings), otherSettings(c.After.project.Settings)) &&
		bytes.Equal(lockfile.Format(c.Before.lock), lockfile.Format(c.After.lock)) &&
		maps.EqualFunc(c.Before.contents, c.After.contents, bytes.Equal)
}

// otherSettings returns the effective settings except for the policy and trust.
func otherSettings(w *settings.Workspace) []byte {
	other := *w
	other.Policy, other.Trust, other.Fields = settings.Default().Policy, nil, maps.Clone(w.Fields)
	maps.DeleteFunc(other.Fields, func(field string, _ diag.Pos) bool {
		return strings.HasPrefix(field, "spec.policy") || strings.HasPrefix(field, "spec.trust")
	})
	return other.EffectiveJSON()
}

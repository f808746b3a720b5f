package compare

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// Report compares the two sides, and applies the policy. It ignores waivers that had expired at the
// time now.
func (c *Comparison) Report(ctx context.Context, now time.Time) (*diff.Report, error) {
	if err := c.ensureTrees(ctx); err != nil {
		return nil, err
	}
	day := now.UTC().Format(time.DateOnly)
	opt, err := c.options()
	if err != nil {
		return nil, err
	}
	opt.Today, opt.Scans, opt.Lifecycle = day, c.Scans, c.lifecycles(ctx)
	if opt.RolledBack, err = c.rolledBack(ctx); err != nil {
		return nil, err
	}
	parts, err := c.compareParts(opt)
	if err != nil {
		return nil, err
	}
	if opt.Settings, err = c.compareSettings(); err != nil {
		return nil, err
	}
	opt.PolicyOnlyChange = c.changesOnlyPolicy(opt.Settings)
	states, err := c.compareStates(ctx)
	if err != nil {
		return nil, err
	}
	opt.Settings = append(opt.Settings, states...)
	report := diff.Join(parts, c.fleet(), opt)
	if c.ImageSizes {
		if err := c.addSizes(ctx, report); err != nil {
			return nil, err
		}
	}
	if c.Reading {
		if report.Reading, err = c.readings(ctx); err != nil {
			return nil, err
		}
	}
	report.Notes = slices.Concat(report.Notes, c.notes)
	policy, err := rules.PolicyOf(c.After.project.Settings)
	if err != nil {
		return nil, err
	}
	if base := c.policyBase(); base != nil {
		strict, err := rules.PolicyOf(base.Settings)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Before.Name, err)
		}
		policy.Base = &strict
	}
	if report, err = diff.Judge(report, policy, day); err != nil {
		return nil, c.After.wrapName(err)
	}
	report.Verdict.Waivers = c.After.project.JudgeUnused(report.Verdict.Waivers)
	return report, nil
}

// compareStates returns a finding for each rule about locks that the new side violates, but not the old side.
func (c *Comparison) compareStates(ctx context.Context) ([]diff.Finding, error) {
	if c.After.treeOnly || c.Before.treeOnly || c.clone.Repo == nil {
		return nil, nil
	}
	remotes, err := c.clone.Repo.Remotes()
	if err != nil {
		return nil, err
	}
	after, err := c.After.project.StateFindings(ctx, c.After.Lock, c.After.Fleet, remotes)
	if err != nil || len(after) == 0 {
		return nil, c.After.wrapName(err)
	}
	before, err := c.Before.project.StateFindings(ctx, c.Before.Lock, c.Before.Fleet, remotes)
	if err != nil {
		return nil, c.Before.wrapName(err)
	}
	var out []diff.Finding
	for _, f := range after.Introduced(before) {
		rule, known := diff.StateRules()[f.Rule]
		if !known || f.Severity != rules.Error || f.Waived {
			continue
		}
		found := diff.Finding{Rule: rule, Severity: diff.High, Message: f.Msg}
		if slices.Contains([]string{"promotion", "one-owner", "requirements"}, f.Rule) {
			found.Operator = f.Subject
		}
		out = append(out, found)
	}
	return out, nil
}

// rolledBack returns the operators that have a lower version on the new side, if an earlier lock
// contains the same pin. It searches the old side's history along first parents. It also returns
// dependencies that are no longer pinned. Other operators with a lower version count as downgrades.
func (c *Comparison) rolledBack(ctx context.Context) ([]string, error) {
	if c.Before.rev == nil || c.Before.Lock == nil || c.After.Lock == nil {
		return nil, nil
	}
	var lower []lockfile.Pin
	var out []string
	for _, old := range c.Before.Lock.Pins {
		now, pinned := c.After.Lock.Pin(old.Namespace, old.Package)
		switch {
		case pinned && now.CompareVersions(old) < 0:
			lower = append(lower, now)
		case !pinned && old.Generated():
			out = append(out, old.Key())
		}
	}
	if len(lower) == 0 {
		return nil, nil
	}
	lines, err := c.Before.rev.ChangedLines(ctx, c.InRepo(workspace.LockFile))
	if err != nil {
		return nil, err
	}
	dependencies := len(out)
	for _, pin := range lower {
		if bytes.Contains(lines, []byte("checksum: "+string(pin.Checksum()))) {
			out = append(out, pin.Key())
		} else if c.Before.rev.Shallow() {
			c.notes = append(c.notes, fmt.Sprintf("cannot tell whether %s had %s before: the clone is shallow (in CI set fetch-depth: 0 or GIT_DEPTH: 0)", pin.Key(), pin.VersionText()))
		}
	}
	if len(out) == dependencies {
		return nil, nil
	}
	return out, nil
}

// lifecycles returns a function that looks up the support lifecycle of a pin. The function supports
// added pins, and both versions of upgraded pins. If the OpenShift version differs between the
// sides, it supports all pins of the new side. lifecycles returns nil if a side has no lock.
func (c *Comparison) lifecycles(ctx context.Context) func(lockfile.Pin) *catalog.SupportedVersion {
	if c.Before.Lock == nil || c.After.Lock == nil {
		return nil
	}
	known := map[catalog.Digest]*catalog.SupportedVersion{}
	lookup := c.project.Lifecycles(ctx, func(failure string) { c.notes = append(c.notes, failure) })
	openShiftDiffers := c.Before.Settings.OpenShiftVersion != c.After.Settings.OpenShiftVersion
	for _, p := range c.After.Lock.Pins {
		old, had := c.Before.Lock.Pin(p.Namespace, p.Package)
		if !had || old.Version != p.Version || openShiftDiffers {
			known[p.Checksum()] = lookup(p)
		}
		if had && old.Version != p.Version {
			known[old.Checksum()] = lookup(old)
		}
	}
	return func(p lockfile.Pin) *catalog.SupportedVersion { return known[p.Checksum()] }
}

// options returns the options for the comparison: the settings of the new side, and the severities of
// policyBase.
func (c *Comparison) options() (diff.CompareOptions, error) {
	w := c.After.Settings
	opt := diff.CompareOptions{Stored: c.Stored}
	var err error
	if opt.Severity, err = severities(w); err != nil {
		return opt, err
	}
	base := c.policyBase()
	if base != nil {
		if opt.BaseSeverity, err = severities(base.Settings); err != nil {
			return opt, err
		}
	}
	delete(opt.Severity, rules.OutsideWindow) // not a rule of diff
	delete(opt.BaseSeverity, rules.OutsideWindow)
	mirrors, err := c.After.project.Mirrors()
	if err != nil {
		return opt, err
	}
	for _, m := range mirrors.Rewrites() {
		opt.Mirrors = append(opt.Mirrors, m.Prefix, m.Mirror)
	}
	if base != nil && !reflect.DeepEqual(policyWithoutPositions(base.Settings), policyWithoutPositions(w)) {
		c.notes = append(c.notes, "the policy in quayside.yaml changed: both the old and the new policy apply")
	}
	return opt, nil
}

// severities returns the severities that the policy sets, by rule.
func severities(w *settings.Workspace) (map[string]diff.Severity, error) {
	out := map[string]diff.Severity{}
	for rule, text := range w.Policy.Severity {
		severity, err := diff.ParseSeverity(text)
		if err != nil {
			return nil, err
		}
		out[rule] = severity
	}
	return out, nil
}

// policyBase returns a second workspace whose policy also applies to the comparison, so that a change
// cannot weaken the policy that it is checked against. This is the workspace at the tip of the target
// branch or, if that is unknown, the old side. If neither exists, policyBase returns nil.
func (c *Comparison) policyBase() *workspace.Project {
	switch {
	case c.Before.rev == nil || c.Before.project == c.After.project || !c.Before.hasWorkspace():
		return nil
	case c.target != nil:
		return c.target
	}
	return c.Before.project
}

// policyWithoutPositions returns the policy of w without positions in files, so that two policies can be
// compared.
func policyWithoutPositions(w *settings.Workspace) settings.Policy {
	p := w.Policy
	p.Waivers, p.Rules = append([]diag.Waiver{}, p.Waivers...), append([]settings.PolicyRule{}, p.Rules...)
	for i := range p.Waivers {
		p.Waivers[i].Pos = diag.Pos{}
	}
	for i := range p.Rules {
		p.Rules[i].Pos = diag.Pos{}
	}
	return p
}

// FilePair is a file with its content on both sides. The content of a missing file is empty.
type FilePair struct{ Path, Before, After string }

// Files returns the differing files of the trees and of the overlays, sorted by path.
func (c *Comparison) Files(ctx context.Context) ([]FilePair, error) {
	if err := c.ensureTrees(ctx); err != nil {
		return nil, err
	}
	a, err := c.Before.allFiles()
	if err != nil {
		c.note("%v: files that only an overlay of this revision refers to are not compared", c.Before.wrapName(err))
	}
	b, err := c.After.allFiles()
	if err != nil {
		return nil, c.After.wrapName(err)
	}
	a = moveFiles(a, c.Before.DisplayPath(c.Before.Out), c.After.DisplayPath(c.After.Out))
	var out []FilePair
	for name, data := range b {
		if old := a[name]; old != data {
			out = append(out, FilePair{Path: name, Before: old, After: data})
		}
	}
	for name, data := range a {
		if _, stays := b[name]; !stays {
			out = append(out, FilePair{Path: name, Before: data})
		}
	}
	slices.SortFunc(out, func(x, y FilePair) int { return strings.Compare(x.Path, y.Path) })
	return out, nil
}

// moveFiles returns a copy of files in which the directory with the path from has the path to.
func moveFiles(files map[string]string, from, to string) map[string]string {
	if from == to {
		return files
	}
	out := map[string]string{}
	for name, data := range files {
		if rest, inside := strings.CutPrefix(name, strings.TrimPrefix(from+"/", "./")); inside {
			name = path.Join(to, rest)
		}
		out[name] = data
	}
	return out
}

// allFiles returns the files of the tree and of the overlays by path. If a cluster is unreadable, allFiles
// returns the files of the other clusters and an error.
func (s *Side) allFiles() (map[string]string, error) {
	out := map[string]string{}
	for _, f := range s.Manifests {
		out[f.Path] = string(f.Data)
	}
	var errs []error
	for _, cluster := range s.Clusters() {
		x, err := s.Inputs(cluster)
		errs = append(errs, err)
		for _, o := range x.Overlays {
			for name, data := range o.All() {
				out[s.DisplayPath(name)] = string(data)
			}
		}
	}
	return out, errors.Join(errs...)
}

// fleet returns the cluster names of both sides. If the new side has no tree, fleet returns no names. The
// removal of the whole tree is then reported only once.
func (c *Comparison) fleet() diff.Fleet {
	after := c.After.Clusters()
	if len(after) == 0 && len(c.After.Manifests) == 0 {
		return diff.Fleet{}
	}
	return diff.Fleet{Before: c.Before.Clusters(), After: after}
}

// source returns the files and settings of a side as input for diff.Read. It omits user files that an overlay
// uses, because the states of the clusters already include these files.
func (s *Side) source(groups []group) diff.Input {
	got, seen := map[string]bool{}, map[*overlay.Overlay]bool{}
	for _, g := range groups {
		for _, o := range slices.Concat(g.before.Overlays, g.after.Overlays) {
			for k := range o.Kustomizations() {
				if seen[k] { // base that is shared by several clusters
					continue
				}
				seen[k] = true
				for _, name := range k.Files() {
					got[name] = true
				}
			}
		}
	}
	own := slices.DeleteFunc(slices.Clone(s.userManifests), func(f diff.File) bool { return got[f.Path] })
	w := s.Settings
	out := diff.Input{Name: s.Name, KubernetesVersion: w.KubernetesVersion, OpenShiftVersion: w.OpenShiftVersion, KeepsDefinitions: w.Tool().About().UntracksCRDs, ByOperator: s.project.Settings.ByOperator(), Tree: s.Manifests, Own: own, Declared: []string{w.Reporter.Namespace}, Recreate: w.Recreate}
	if s.rev != nil {
		out.Revision = s.Name
	}
	out.Pins = s.Pins()
	if s.Lock != nil {
		out.Leaving = s.Lock.Leaving
	}
	return out
}

// ensureTrees renders the lock of each side whose committed tree is out of date, and replaces the side by the
// result. If c.from is Tree, it renders no lock. If c.from is Lock, it renders both.
func (c *Comparison) ensureTrees(ctx context.Context) error {
	var stale []**Side
	for _, to := range []**Side{&c.Before, &c.After} {
		d := *to
		if d.treeOnly || d.Lock == nil || c.from == Tree {
			continue
		}
		upToDate, changed := d.isUpToDate(c.otherSide(d)), d.unrenderedSettings(c.otherSide(d))
		if c.from == Auto && upToDate && changed == "" && (d == c.Before || !c.clusterSettingsDiffer()) {
			continue
		}
		switch {
		case len(d.Manifests) == 0 || c.from != Auto:
		case upToDate && changed != "":
			c.note("%s of %s may be out of date: the settings of %s changed, but its rendered files did not; rendering the lock instead", d.Settings.OutputDir(), d.Name, changed)
		case upToDate:
			c.note("%s of %s may be out of date, because spec.clusters changed: rendering it from the lock", d.Settings.OutputDir(), d.Name)
		default:
			c.note("%s of %s is out of date with %s: rendering it from the lock", d.Settings.OutputDir(), d.Name, workspace.LockFile)
		}
		stale = append(stale, to)
	}
	locks := make([]*lockfile.File, len(stale))
	for i, d := range stale {
		locks[i] = (*d).Lock
	}
	if len(stale) == 2 && c.Before.project == c.After.project && c.After.canRenderPart() {
		locks[0], locks[1] = changedPins(locks[0], locks[1])
	}
	for i, d := range stale {
		s, err := c.render(ctx, *d, locks[i], i == len(stale)-1)
		if err != nil {
			return (*d).wrapName(err)
		}
		*d = s
	}
	return nil
}

// otherSide returns the side that is not d.
func (c *Comparison) otherSide(d *Side) *Side {
	if d == c.Before {
		return c.After
	}
	return c.Before
}

// isUpToDate reports whether the committed tree of a side appears up to date with its lock. It does not render:
// it compares only versions, clusters and overlays. other is the other side of the comparison, or nil.
func (s *Side) isUpToDate(other *Side) bool {
	return s.hasPinnedVersions(other) && s.usesOverlays()
}

// hasPinnedVersions reports whether the tree has exactly the pinned operators, with the pinned versions in
// their version labels. An operator without a Deployment has no label. It counts as the pinned version, unless
// other has the same files for another pin.
func (s *Side) hasPinnedVersions(other *Side) bool {
	have := s.operatorFiles()
	for _, p := range s.Lock.Pins {
		version, labelled := labelledVersion(have[p.Key()])
		switch {
		case len(have[p.Key()]) == 0 || labelled && version != p.Version:
			return false
		case !labelled && (other == nil || other.Lock == nil):
			return false
		case !labelled:
			before, had := other.Lock.Pin(p.Namespace, p.Package)
			if had && before.Checksum() != p.Checksum() && sameFiles(have[p.Key()], other.operatorFiles()[p.Key()]) {
				return false
			}
		}
		delete(have, p.Key())
	}
	for _, l := range s.Lock.Leaving {
		delete(have, l.Key())
	}
	return len(have) == 0
}

// unrenderedSettings returns the first operator whose settings in the lock, such as values, differ between s and
// other, although its files in both trees are equal. The tree may have been rendered before the settings changed.
func (s *Side) unrenderedSettings(other *Side) string {
	if other == nil || other.Lock == nil {
		return ""
	}
	changed := slices.DeleteFunc(slices.Clone(s.Lock.Pins), func(p lockfile.Pin) bool {
		before, had := other.Lock.Pin(p.Namespace, p.Package)
		return !had || before.Version != p.Version || sameSettings(before, p)
	})
	if len(changed) == 0 {
		return ""
	}
	have, others := s.operatorFiles(), other.operatorFiles()
	i := slices.IndexFunc(changed, func(p lockfile.Pin) bool { return sameFiles(have[p.Key()], others[p.Key()]) })
	if i < 0 {
		return ""
	}
	return changed[i].Key()
}

// sameSettings reports whether the user's settings for rendering are equal in two pins.
func sameSettings(a, b lockfile.Pin) bool {
	x, y := cmp.Or(a.Template, &lockfile.Template{}), cmp.Or(b.Template, &lockfile.Template{})
	return x.Release == y.Release && x.KubernetesVersion == y.KubernetesVersion && bytes.Equal(x.Values, y.Values) &&
		bytes.Equal(a.Config, b.Config) && a.InstallMode == b.InstallMode && slices.Equal(a.WatchNamespaces, b.WatchNamespaces)
}

// operatorFiles returns, by operator, the files of the operator's base.
func (s *Side) operatorFiles() map[string][]diff.File {
	out := map[string][]diff.File{}
	for _, f := range s.Manifests {
		rest, inside := strings.CutPrefix(f.Path, path.Join(s.Out, "operators")+"/")
		if operator, is := layout.Operator("operators/" + rest); inside && is {
			out[operator] = append(out[operator], f)
		}
	}
	return out
}

// sameFiles reports whether two lists have files with the same content, in the same order.
func sameFiles(a, b []diff.File) bool {
	return slices.EqualFunc(a, b, func(x, y diff.File) bool { return bytes.Equal(x.Data, y.Data) })
}

// labelledVersion returns the first version label in files, and whether there is one.
func labelledVersion(files []diff.File) (string, bool) {
	label := []byte("    quayside.dev/version: ")
	for _, f := range files {
		if _, rest, ok := bytes.Cut(f.Data, label); ok {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			return strings.Trim(string(line), `"'`), true
		}
	}
	return "", false
}

// changedPins returns both locks, reduced to the pins that may render differently. These are the pins that
// differ between the sides, and the pins that share a namespace or an API with one of these pins, directly or
// through other pins.
func changedPins(a, b *lockfile.File) (*lockfile.File, *lockfile.File) {
	changed := map[string]bool{}
	for _, ch := range lockfile.Diff(a, b) {
		if ch.Package != "" {
			changed[ch.Namespace+"/"+ch.Package] = true
		}
	}
	pins := slices.Concat(a.Pins, b.Pins)
	for _, l := range slices.Concat(a.Leaving, b.Leaving) {
		pins = append(pins, l.Pin)
	}
	for again := true; again; {
		again = false
		shared := map[string]bool{}
		for _, p := range pins {
			if changed[p.Key()] {
				for _, s := range sharedNames(p) {
					shared[s] = true
				}
			}
		}
		for _, p := range pins {
			if !changed[p.Key()] && slices.ContainsFunc(sharedNames(p), func(s string) bool { return shared[s] }) {
				changed[p.Key()], again = true, true
			}
		}
	}
	only := func(f *lockfile.File) *lockfile.File {
		out := f.With(slices.DeleteFunc(slices.Clone(f.Pins), func(p lockfile.Pin) bool { return !changed[p.Key()] }))
		out.Leaving = slices.DeleteFunc(out.Leaving, func(l lockfile.Leaving) bool { return !changed[l.Key()] })
		return out
	}
	return only(a), only(b)
}

// sharedNames returns the names that a pin may share with other pins: its namespace and its APIs.
func sharedNames(p lockfile.Pin) []string {
	out := []string{"namespace " + p.Namespace}
	for _, prop := range p.Properties {
		if prop.Type == catalog.TypeGVK {
			out = append(out, string(prop.Value))
		}
	}
	return out
}

// usesOverlays reports whether the tree of a side has exactly the clusters in its settings, and all
// current overlays.
func (s *Side) usesOverlays() bool {
	if !slices.Equal(s.Clusters(), slices.Sorted(slices.Values(s.project.Settings.ClusterNames()))) {
		return false
	}
	overlays, _, err := s.project.Overlays()
	if err != nil {
		return true // render reports this error
	}
	have := map[string]map[string]bool{}
	if len(overlays) > 0 || slices.ContainsFunc(s.Layout.Clusters, func(c layout.Cluster) bool { return c.Overlays }) {
		have = s.usedOverlays()
	}
	for cluster, names := range have {
		for name := range names {
			if !slices.Contains(overlays[cluster], name) {
				return false
			}
		}
	}
	for cluster, names := range overlays {
		for _, name := range names {
			if !have[cluster][name] && s.needsOverlay(cluster, name) {
				return false
			}
		}
	}
	return true
}

// usedOverlays returns the names of the overlays in the tree, by cluster.
func (s *Side) usedOverlays() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for name, data := range s.ClusterFiles() {
		cluster, _, _ := strings.Cut(name, "/")
		if path.Base(name) != layout.Kustomization {
			continue
		}
		for line := range strings.Lines(string(data)) {
			_, ref, is := strings.Cut(strings.TrimSpace(line), "../"+layout.Overlays+"/")
			at, name, _ := strings.Cut(strings.Trim(ref, `"'`), "/")
			if !is || at != cluster {
				continue
			}
			if out[cluster] == nil {
				out[cluster] = map[string]bool{}
			}
			out[cluster][name] = true
		}
	}
	return out
}

// needsOverlay reports whether render would use an overlay for a cluster. It returns false if the
// cluster does not get the operator of the overlay.
func (s *Side) needsOverlay(cluster, name string) bool {
	switch name {
	case "", layout.Resources:
		return true
	case "reporter":
		return s.Settings.Reporter.Enabled
	}
	key := strings.Replace(name, ".", "/", 1)
	if !slices.ContainsFunc(s.Lock.Pins, func(p lockfile.Pin) bool { return p.Key() == key }) {
		return false
	}
	for _, c := range s.Settings.Clusters {
		if c.Name == cluster {
			gets, err := c.Gets(key)
			return gets || err != nil
		}
	}
	return false
}

// clusterSettingsDiffer reports whether the settings of clusters differ between the sides while the rendered
// files of these clusters are equal.
func (c *Comparison) clusterSettingsDiffer() bool {
	a, b := c.Before, c.After
	return !reflect.DeepEqual(a.Settings.Clusters, b.Settings.Clusters) && maps.EqualFunc(a.ClusterFiles(), b.ClusterFiles(), bytes.Equal)
}

// canRenderPart reports whether some of the operators can be rendered without the others. This is not possible
// with overlays or values of clusters, because they may name operators that would then be missing.
func (s *Side) canRenderPart() bool {
	overlays, _, err := s.project.Overlays()
	hasValues := slices.ContainsFunc(s.Settings.Clusters, func(c profile.Cluster) bool { return len(c.HelmValues) > 0 })
	return err == nil && len(overlays) == 0 && !hasValues
}

// render renders a lock, and returns a copy of the side with this lock and tree.
func (c *Comparison) render(ctx context.Context, s *Side, lock *lockfile.File, warn bool) (*Side, error) {
	res, err := s.project.Render(ctx, lock)
	if err != nil {
		return nil, err
	}
	if warn {
		c.messages = append(c.messages, Message{Warnings: res.Warnings})
	}
	out := *s
	out.Tree, err = s.WithRendered(res)
	return &out, err
}

package state

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/diff/lines"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/waiver"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/render/profile"
	"github.com/quayside/quayside/workspace"
)

// Report compares the two sides, and judges what is found by the policy of the
// side after, as of today.
func (c *Comparison) Report(ctx context.Context, now time.Time) (*diff.Report, error) {
	if err := c.fill(ctx); err != nil {
		return nil, err
	}
	day := now.UTC().Format(time.DateOnly)
	opt, err := c.options()
	if err != nil {
		return nil, err
	}
	opt.Today, opt.Scans, opt.Lifecycle = day, c.Scans, c.lifecycles(ctx)
	parts, err := c.reports(opt)
	if err != nil {
		return nil, err
	}
	report := diff.Join(parts, c.fleet(), opt)
	if c.ImageSizes {
		if err := c.measure(ctx, report); err != nil {
			return nil, err
		}
	}
	if c.Reading {
		if report.Reading, err = c.readings(ctx); err != nil {
			return nil, err
		}
	}
	report.Notes = slices.Concat(report.Notes, c.notes)
	policy, err := c.After.policy()
	if err != nil {
		return nil, err
	}
	report, err = diff.Judge(report, policy, day)
	return report, c.After.named(err)
}

// lifecycles returns a function that looks up the lifecycles of the pins that the
// comparison is about: those that are new or have another version, as they are and as
// they were, and all where the version of OpenShift is another.
func (c *Comparison) lifecycles(ctx context.Context) func(lockfile.Pin) *lifecycle.Version {
	if c.Before.lock == nil || c.After.lock == nil {
		return nil
	}
	known := map[catalog.Digest]*lifecycle.Version{}
	of := c.project.Lifecycles(ctx, func(failure string) { c.notes = append(c.notes, failure) })
	target := c.Before.project.Settings.OpenShiftVersion != c.After.project.Settings.OpenShiftVersion
	for _, p := range c.After.lock.Pins {
		old, had := c.Before.lock.Pin(p.Namespace, p.Package)
		if !had || old.Version != p.Version || target {
			known[p.Checksum()] = of(p)
		}
		if had && old.Version != p.Version {
			known[old.Checksum()] = of(old)
		}
	}
	return func(p lockfile.Pin) *lifecycle.Version { return known[p.Checksum()] }
}

// options returns what the settings of the side after say about comparing.
func (c *Comparison) options() (diff.Options, error) {
	w := c.After.project.Settings
	opt := diff.Options{Severity: map[string]diff.Severity{}, Stored: c.Stored}
	for rule, text := range w.Policy.Severity {
		severity, err := diff.ParseSeverity(text)
		if err != nil {
			return opt, err
		}
		opt.Severity[rule] = severity
	}
	mirrors, err := c.After.project.Mirrors()
	if err != nil {
		return opt, err
	}
	for _, m := range mirrors.Rewrites() {
		opt.Mirrors = append(opt.Mirrors, m.Prefix, m.Mirror)
	}
	if c.Before.rev != nil && !reflect.DeepEqual(plainPolicy(c.Before.project.Settings), plainPolicy(w)) {
		c.notes = append(c.notes, "the policy in quayside.yaml is itself changed: this report was judged by the new one")
	}
	return opt, nil
}

// plainPolicy returns the policy of settings without positions.
func plainPolicy(w *workspace.Workspace) workspace.Policy {
	p := w.Policy
	p.Waivers, p.Rules = append([]waiver.Waiver{}, p.Waivers...), append([]workspace.Rule{}, p.Rules...)
	for i := range p.Waivers {
		p.Waivers[i].Pos = diag.Pos{}
	}
	for i := range p.Rules {
		p.Rules[i].Pos = diag.Pos{}
	}
	return p
}

// policy returns what quayside.yaml refuses.
func (s *Side) policy() (diff.Policy, error) {
	w := s.project.Settings.Policy
	failOn, err := diff.ParseSeverity(w.FailOn)
	if err != nil {
		return diff.Policy{}, err
	}
	p := diff.Policy{FailOn: failOn, Waivers: w.Waivers}
	for _, l := range w.Clusters {
		if failOn, err = diff.ParseSeverity(l.FailOn); err != nil {
			return p, err
		}
		p.Clusters = append(p.Clusters, diff.Level{Names: l.Names, FailOn: failOn})
	}
	for _, r := range w.Rules {
		p.Rules = append(p.Rules, diff.CELRule{Name: r.Name, Expression: r.Expression, Message: r.Message, Tree: r.On == "tree", Pos: r.Pos})
	}
	if _, said := s.project.Settings.Fields["spec.policy.vulnerabilities.added"]; said {
		p.Vulnerabilities = append([]string{}, w.Vulnerabilities.Added...)
	}
	return p, nil
}

// Files returns the files in which the two sides differ, by path: those of the
// trees, and those of the user's that go into what a cluster gets.
func (c *Comparison) Files(ctx context.Context) ([]lines.File, error) {
	if err := c.fill(ctx); err != nil {
		return nil, err
	}
	a, err := c.Before.everything()
	if err != nil {
		c.project.Talk.Note("%v: files that only an overlay there names are not compared", c.Before.named(err))
	}
	b, err := c.After.everything()
	if err != nil {
		return nil, c.After.named(err)
	}
	a = moved(a, path.Join(c.Before.as, c.Before.out), path.Join(c.After.as, c.After.out))
	var out []lines.File
	for name, data := range b {
		if old := a[name]; old != data {
			out = append(out, lines.File{Path: name, Before: old, After: data})
		}
	}
	for name, data := range a {
		if _, stays := b[name]; !stays {
			out = append(out, lines.File{Path: name, Before: data})
		}
	}
	slices.SortFunc(out, func(x, y lines.File) int { return strings.Compare(x.Path, y.Path) })
	return out, nil
}

// moved returns files with those below one directory below another.
func moved(files map[string]string, from, to string) map[string]string {
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

// everything returns the files of a side by path, as far as the error leaves.
func (s *Side) everything() (map[string]string, error) {
	out := map[string]string{}
	for _, f := range s.tree {
		out[f.Path] = string(f.Data)
	}
	var errs []error
	for _, cluster := range s.clusters {
		x, err := s.share(cluster)
		errs = append(errs, err)
		for _, o := range x.overlays {
			for name, data := range o.All() {
				out[path.Join(s.as, name)] = string(data)
			}
		}
	}
	return out, errors.Join(errs...)
}

// fleet returns what clusters there are. Where the side after has no tree at all,
// everything goes, and that clusters do is not said beside it.
func (c *Comparison) fleet() diff.Fleet {
	if len(c.After.clusters) == 0 && len(c.After.tree) == 0 {
		return diff.Fleet{}
	}
	return diff.Fleet{Before: c.Before.clusters, After: c.After.clusters}
}

// source returns the files of a side, to be read. What clusters get by their
// overlays is judged there, and is nobody's beside.
func (s *Side) source(groups []group) diff.Source {
	got, seen := map[string]bool{}, map[*overlay.Overlay]bool{}
	for _, g := range groups {
		for _, o := range slices.Concat(g.before.overlays, g.after.overlays) {
			for k := range o.Kustomizations() {
				if seen[k] { // the base, in every cluster
					continue
				}
				seen[k] = true
				for _, name := range k.Files() {
					got[name] = true
				}
			}
		}
	}
	own := slices.DeleteFunc(slices.Clone(s.own), func(f diff.File) bool { return got[f.Path] })
	w := s.project.Settings
	out := diff.Source{Name: s.Name, KubernetesVersion: w.KubernetesVersion, OpenShiftVersion: w.OpenShiftVersion, KeepsDefinitions: w.Profile == profile.ArgoCD, ByOperator: s.project.ByOperator(), Tree: s.tree, Own: own}
	if s.rev != nil {
		out.Revision = s.Name
	}
	out.Pins = s.pins()
	if s.lock != nil {
		out.Leaving = s.lock.Leaving
	}
	return out
}

// pins returns what the lock of a side pins.
func (s *Side) pins() []lockfile.Pin {
	if s.lock == nil {
		return nil
	}
	return s.lock.Pins
}

// fill sees to it that both sides have a tree: the committed one where it is
// what the lock says, else the lock, rendered.
func (c *Comparison) fill(ctx context.Context) error {
	var stale []*Side
	for _, d := range []*Side{&c.Before, &c.After} {
		if d.read || d.lock == nil || c.from == Tree {
			continue
		}
		if c.from == Auto && d.inStep() && (d == &c.Before || !c.configured()) {
			continue
		}
		if len(d.tree) > 0 && c.from == Auto {
			c.project.Talk.Note("%s of %s is not what %s says: rendering it from there", d.project.Settings.Output, d.Name, project.LockFile)
		}
		stale = append(stale, d)
	}
	locks := make([]*lockfile.File, len(stale))
	for i, d := range stale {
		locks[i] = d.lock
	}
	if len(stale) == 2 && stale[0].project == stale[1].project && c.After.unpatched() {
		locks[0], locks[1] = touched(locks[0], locks[1])
	}
	for i, d := range stale {
		if err := c.render(ctx, d, locks[i], i == len(stale)-1); err != nil {
			return d.named(err)
		}
	}
	return nil
}

// inStep reports whether the committed tree of a side is what its lock says, as
// far as can be told without rendering.
func (s *Side) inStep() bool {
	return s.committed(path.Join(s.out, "operators")+"/") && s.overlaid()
}

// committed reports whether the tree of a side holds what its lock pins, as
// far as the versions that stand on the objects tell. dir is where the operators
// lie.
func (s *Side) committed(dir string) bool {
	have := map[string][]diff.File{}
	for _, f := range s.tree {
		rest, inside := strings.CutPrefix(f.Path, dir)
		if operator, is := layout.Operator("operators/" + rest); inside && is {
			have[operator] = append(have[operator], f)
		}
	}
	for _, p := range s.lock.Pins {
		if !carry(have[p.Key()], p.Version) {
			return false
		}
		delete(have, p.Key())
	}
	for _, l := range s.lock.Leaving {
		delete(have, l.Key())
	}
	return len(have) == 0
}

// carry reports whether the objects of an operator carry a version.
func carry(files []diff.File, version string) bool {
	label := []byte("    quayside.dev/version: ")
	for _, f := range files {
		if _, rest, ok := bytes.Cut(f.Data, label); ok {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			return strings.Trim(string(line), `"'`) == version
		}
	}
	return false
}

// touched returns both locks without the pins that are equal and that share
// neither a namespace nor an API with one that is not: these render to the
// same on both sides.
func touched(a, b *lockfile.File) (*lockfile.File, *lockfile.File) {
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
				for _, s := range shares(p) {
					shared[s] = true
				}
			}
		}
		for _, p := range pins {
			if !changed[p.Key()] && slices.ContainsFunc(shares(p), func(s string) bool { return shared[s] }) {
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

// shares returns what a pin may have in common with others.
func shares(p lockfile.Pin) []string {
	out := []string{"namespace " + p.Namespace}
	for _, prop := range p.Properties {
		if prop.Type == olm.TypeGVK {
			out = append(out, string(prop.Value))
		}
	}
	return out
}

// overlaid reports whether the tree of a side is for the clusters that its settings
// name, and takes in the overlays that the team has for them.
func (s *Side) overlaid() bool {
	if !slices.Equal(s.clusters, slices.Sorted(slices.Values(s.project.Clusters()))) {
		return false
	}
	overlays, err := s.project.Overlays()
	if err != nil {
		return true // rendering would fail
	}
	have := map[string]map[string]bool{}
	if len(overlays) > 0 || slices.ContainsFunc(s.layout.Clusters, func(c layout.Cluster) bool { return c.Overlays }) {
		have = s.takenIn()
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

// takenIn returns the names of the overlays that the tree takes in, by cluster.
func (s *Side) takenIn() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for file, data := range s.have {
		rest, own := strings.CutPrefix(file, path.Join(s.out, "clusters")+"/")
		cluster, _, _ := strings.Cut(rest, "/")
		if !own || path.Base(rest) != layout.Kustomization {
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

// needsOverlay reports whether rendering takes in an overlay of that name: where the
// cluster gets what it changes.
func (s *Side) needsOverlay(cluster, name string) bool {
	switch name {
	case "", layout.Resources:
		return true
	case "reporter":
		return s.project.Settings.Reporter.Enabled
	}
	key := strings.Replace(name, ".", "/", 1)
	if !slices.ContainsFunc(s.lock.Pins, func(p lockfile.Pin) bool { return p.Key() == key }) {
		return false
	}
	for _, c := range s.project.Settings.Clusters {
		if c.Name == cluster {
			gets, err := render.Cluster{Operators: c.Operators}.Gets(key)
			return gets || err != nil
		}
	}
	return false
}

// configured reports whether the settings of clusters changed, and what is
// rendered for them did not.
func (c *Comparison) configured() bool {
	generated := func(s *Side) map[string][]byte {
		out := map[string][]byte{}
		for name, data := range s.have {
			if rest, inside := strings.CutPrefix(name, path.Join(s.out, "clusters")+"/"); inside {
				out[rest] = data
			}
		}
		return out
	}
	a, b := &c.Before, &c.After
	return !reflect.DeepEqual(a.project.Settings.Clusters, b.project.Settings.Clusters) && maps.EqualFunc(generated(a), generated(b), bytes.Equal)
}

// unpatched reports whether the team adds nothing of its own to what clusters get: then
// this can be built of some operators alone.
func (s *Side) unpatched() bool {
	overlays, err := s.project.Overlays()
	return err == nil && len(overlays) == 0
}

// render renders the lock of a side from the files of that side.
func (c *Comparison) render(ctx context.Context, s *Side, lock *lockfile.File, warn bool) error {
	res, err := s.project.Render(ctx, lock)
	if err != nil {
		return err
	}
	if warn {
		c.project.Talk.Warn(res.Warnings)
	}
	return s.rendered(res, c.pool)
}

// rendered sets the tree of a side to what a lock renders to, beside the team's own
// files.
func (s *Side) rendered(res *render.Result, pool pool) error {
	var files []diff.File
	ours := map[string]bool{} // the files and directories of the tree
	for name, data := range res.Tree.All() {
		name := path.Join(s.out, name)
		files = append(files, diff.File{Path: name, Data: pool.add(data)})
		for at := name; at != s.out && at != "." && !ours[at]; at = path.Dir(at) {
			ours[at] = true
		}
	}
	if link := s.link; link != nil {
		s.link = func(name string) (string, bool) {
			if ours[name] {
				return "", false
			}
			return link(name)
		}
	}
	return s.holds(files, func(name string) ([]byte, error) {
		if rest, inside := strings.CutPrefix(name, strings.TrimPrefix(s.out+"/", "./")); inside {
			if data, there := res.Tree.Get(rest); there {
				return data, nil
			}
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return s.below(name)
	})
}

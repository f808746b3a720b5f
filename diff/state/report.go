package state

import (
	"bytes"
	"context"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/workspace"
)

// Report compares the two sides, and judges what is found by the policy of the
// side after, as of today.
func (c *Comparison) Report(ctx context.Context, now time.Time) (*diff.Report, error) {
	if err := c.fill(ctx); err != nil {
		return nil, err
	}
	before, after, err := diff.Read(c.Before.source(), c.After.source())
	if err != nil {
		return nil, err
	}
	opt, err := c.options()
	if err != nil {
		return nil, err
	}
	report, err := diff.Compare(before, after, opt)
	if err != nil {
		return nil, err
	}
	report.Notes = slices.Concat(report.Notes, c.notes)
	policy, err := c.After.policy()
	if err != nil {
		return nil, err
	}
	report, err = diff.Judge(report, policy, now.UTC().Format(time.DateOnly))
	return report, c.After.named(err)
}

// options returns what the settings of the side after say about comparing.
func (c *Comparison) options() (diff.Options, error) {
	w := c.After.project.Settings
	opt := diff.Options{Severity: map[string]diff.Severity{}}
	for rule, text := range w.Policy.Severity {
		severity, err := diff.ParseSeverity(text)
		if err != nil {
			return opt, err
		}
		opt.Severity[rule] = severity
	}
	if lock := c.After.lock; lock != nil {
		for _, a := range lock.Accepted {
			opt.Accepted = append(opt.Accepted, diff.Accepted{Operator: a.Operator, Permissions: a.Permissions, APIs: a.APIs})
		}
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

func plainPolicy(w *workspace.Workspace) workspace.Policy {
	p := w.Policy
	if len(p.Waivers) == 0 {
		p.Waivers = nil
	}
	return p
}

// policy returns what quayside.yaml refuses.
func (s *Side) policy() (diff.Policy, error) {
	w := s.project.Settings.Policy
	failOn, err := diff.ParseSeverity(w.FailOn)
	p := diff.Policy{FailOn: failOn}
	for _, v := range w.Waivers {
		p.Waivers = append(p.Waivers, diff.Waiver{Rule: v.Rule, Operator: v.Operator, Object: v.Object, Reason: v.Reason, Expires: v.Expires})
	}
	for _, r := range w.Rules {
		p.Rules = append(p.Rules, diff.CELRule{Name: r.Name, Expression: r.Expression, Message: r.Message})
	}
	return p, err
}

// ChangedFile is a file of the trees with both contents; empty where it is
// missing.
type ChangedFile struct{ Path, Before, After string }

// Files returns the files in which the two trees differ, by path.
func (c *Comparison) Files(ctx context.Context) ([]ChangedFile, error) {
	if err := c.fill(ctx); err != nil {
		return nil, err
	}
	a, b := byPath(c.Before.tree), byPath(c.After.tree)
	var out []ChangedFile
	for name, data := range b {
		if old := a[name]; old != data {
			out = append(out, ChangedFile{name, old, data})
		}
	}
	for name, data := range a {
		if _, stays := b[name]; !stays {
			out = append(out, ChangedFile{name, data, ""})
		}
	}
	slices.SortFunc(out, func(x, y ChangedFile) int { return strings.Compare(x.Path, y.Path) })
	return out, nil
}

func byPath(files []diff.File) map[string]string {
	out := map[string]string{}
	for _, f := range files {
		out[f.Path] = string(f.Data)
	}
	return out
}

// source returns the files of a side, to be read.
func (s *Side) source() diff.Source {
	out := diff.Source{Name: s.Name, KubernetesVersion: s.project.Settings.KubernetesVersion, Tree: s.tree, Own: s.own}
	if s.rev != nil {
		out.Revision = s.Name
	}
	if s.lock != nil {
		out.Pins = s.lock.Pins
	}
	return out
}

// fill sees to it that both sides have a tree: the committed one where it is
// what the lock says, else the lock, rendered.
func (c *Comparison) fill(ctx context.Context) error {
	var stale []*Side
	for _, d := range []*Side{&c.Before, &c.After} {
		if d.read || d.lock == nil || c.from == Tree {
			continue
		}
		if c.from == Auto && d.committed(path.Join(c.InRepo(d.project.Settings.Output), "operators")+"/") {
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
	if len(stale) == 2 && stale[0].project == stale[1].project {
		locks[0], locks[1] = touched(locks[0], locks[1])
	}
	for i, d := range stale {
		var err error
		if d.tree, err = c.render(ctx, d, locks[i], i == len(stale)-1); err != nil {
			return d.named(err)
		}
	}
	return nil
}

// committed reports whether the tree of a side holds what its lock pins, as
// far as the versions that stand on the objects tell. dir is where the operators
// lie.
func (s *Side) committed(dir string) bool {
	have := map[string]bool{}
	for _, f := range s.tree {
		rest, inside := strings.CutPrefix(f.Path, dir)
		if parts := strings.Split(rest, "/"); inside && len(parts) > 2 {
			have[parts[0]+"/"+parts[1]] = true
		}
	}
	for _, p := range s.lock.Pins {
		if !have[p.Key()] || !s.holds(dir, p) {
			return false
		}
		delete(have, p.Key())
	}
	return len(have) == 0
}

// holds reports whether the objects of a pin carry its version.
func (s *Side) holds(dir string, p lockfile.Pin) bool {
	version := []byte("    quayside.dev/version: ")
	for _, f := range s.tree {
		if !strings.HasPrefix(f.Path, dir+p.Key()+"/") {
			continue
		}
		if _, rest, ok := bytes.Cut(f.Data, version); ok {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			return strings.Trim(string(line), `"'`) == p.Version
		}
	}
	return false
}

// touched returns both locks without the pins that are equal and that share
// neither a namespace nor an API with one that is not: these render to the
// same on both sides.
func touched(a, b *lockfile.File) (*lockfile.File, *lockfile.File) {
	if len(a.Accepted)+len(b.Accepted) > 0 {
		return a, b // the budget is held against everything
	}
	changed := map[string]bool{}
	for _, ch := range lockfile.Diff(a, b) {
		if ch.Package != "" {
			changed[ch.Namespace+"/"+ch.Package] = true
		}
	}
	pins := slices.Concat(a.Pins, b.Pins)
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
		return f.With(f.Catalogs, slices.DeleteFunc(slices.Clone(f.Pins), func(p lockfile.Pin) bool { return !changed[p.Key()] }))
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

// render renders the lock of a side from the files of that side.
func (c *Comparison) render(ctx context.Context, s *Side, lock *lockfile.File, warn bool) ([]diff.File, error) {
	res, err := s.project.Render(ctx, lock)
	if err != nil {
		return nil, err
	}
	if warn {
		c.project.Talk.Warn(res.Warnings)
	}
	output := c.InRepo(s.project.Settings.Output)
	var files []diff.File
	for name, data := range res.Tree.All() {
		files = append(files, diff.File{Path: path.Join(output, name), Data: c.pool.add(data)})
	}
	return diff.Base(output, files), nil
}

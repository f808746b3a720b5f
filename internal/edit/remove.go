package edit

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/subscription"
)

// Remove takes operators out of the declarations: "namespace/package", or the
// package alone where it is declared once. The OperatorGroup of a namespace in which
// nothing is declared any more goes too; a Namespace stays. What nothing else
// requires leaves the lock.
func Remove(ctx context.Context, p *project.Project, operators []string) (*Edit, error) {
	set, err := p.Declarations()
	if err != nil {
		return nil, err
	}
	lock, err := p.LockIfAny()
	if err != nil {
		return nil, err
	}
	if set, err = project.FromLock(set, lock); err != nil {
		return nil, err
	}
	r := remover{project: p, set: *set, cuts: map[string][]cut{}}
	var gone []subscription.Subscription
	for _, want := range operators {
		s, err := one(set, want)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(gone, func(g subscription.Subscription) bool { return g.Key() == s.Key() && g.Dialect == s.Dialect }) {
			gone = append(gone, s)
		}
	}
	for _, s := range gone {
		r.subscription(s)
	}
	for _, s := range gone {
		r.around(s.Namespace)
	}
	if err := r.rewrite(); err != nil {
		return nil, err
	}
	e, err := finish(ctx, p, &r.set, r.files, true)
	if e != nil {
		e.Notes = append(r.notes, e.Notes...)
	}
	return e, err
}

// one returns the subscription that want names.
func one(set *subscription.Set, want string) (subscription.Subscription, error) {
	found := declaredAs(set, want)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		var keys []string
		for _, s := range set.Subscriptions {
			keys = append(keys, s.Namespace+"/"+s.Package)
		}
		return subscription.Subscription{}, fmt.Errorf("%q is not declared%s", want, diag.DidYouMean(want, keys))
	default:
		var keys []string
		for _, s := range found {
			keys = append(keys, s.Namespace+"/"+s.Package)
		}
		return subscription.Subscription{}, fmt.Errorf("%q is declared several times: say which of %s", want, strings.Join(slices.Compact(keys), ", "))
	}
}

// remover takes documents out of files.
type remover struct {
	project *project.Project
	set     subscription.Set
	files   []File // by path
	cuts    map[string][]cut
	notes   []string
}

// cut is a document that goes.
type cut struct {
	line int
	of   subscription.Subscription
}

func (r *remover) subscription(s subscription.Subscription) {
	r.set.Subscriptions = slices.DeleteFunc(slices.Clone(r.set.Subscriptions), func(o subscription.Subscription) bool { return o.Pos == s.Pos && o.Key() == s.Key() })
	r.cuts[s.Pos.File] = append(r.cuts[s.Pos.File], cut{s.Pos.Line, s})
}

// around takes away what stands around the operators of a namespace, where none is
// left in it.
func (r *remover) around(namespace string) {
	if slices.ContainsFunc(r.set.Subscriptions, func(s subscription.Subscription) bool { return s.Namespace == namespace }) {
		return
	}
	for _, g := range r.set.OperatorGroupsIn(namespace) {
		if r.untouchable(g.Pos.File) == "" {
			r.cuts[g.Pos.File] = append(r.cuts[g.Pos.File], cut{line: g.Pos.Line})
			r.set.OperatorGroups = slices.DeleteFunc(slices.Clone(r.set.OperatorGroups), func(o subscription.OperatorGroup) bool { return o.Pos == g.Pos })
		}
	}
	for _, ns := range r.set.Namespaces {
		if ns.Name == namespace {
			r.notes = append(r.notes, fmt.Sprintf("Namespace %s stays declared at %s, and so stays in the tree", namespace, ns.Pos))
		}
	}
}

// untouchable returns why a file is not for this package to change; "" where it is.
func (r *remover) untouchable(file string) string {
	if r.project.Built(file) {
		return "which a kustomization builds"
	}
	return ""
}

// rewrite makes the files anew, and checks that they declare what they did but for
// what goes.
func (r *remover) rewrite() error {
	for _, file := range slices.Sorted(maps.Keys(r.cuts)) {
		cuts := r.cuts[file]
		for _, c := range cuts {
			if why := r.untouchable(file); c.of.Name != "" && why != "" {
				return byHand(c.of, why)
			}
		}
		text, err := r.project.Read(file)
		if err != nil {
			return err
		}
		var lines []int
		for _, c := range cuts {
			lines = append(lines, c.line)
		}
		left := without(text, lines)
		if !r.keeps(file, text, left, cuts) {
			i := slices.IndexFunc(cuts, func(c cut) bool { return c.of.Name != "" })
			return byHand(cuts[max(i, 0)].of, "in a document with more in it")
		}
		f := File{Path: file, Change: Changed, text: left}
		if empty(left) {
			f.Change, f.text = Removed, nil
		}
		r.files = append(r.files, f)
	}
	return nil
}

// keeps reports whether left declares what text does, but for what goes.
func (r *remover) keeps(file string, text, left []byte, cuts []cut) bool {
	before, err := subscription.Parse(file, text)
	if err != nil {
		return false
	}
	after, err := subscription.Parse(file, left)
	if err != nil {
		return false
	}
	goes := func(pos diag.Pos) bool {
		return slices.ContainsFunc(cuts, func(c cut) bool { return c.line == pos.Line })
	}
	return slices.Equal(inventory(before, goes), inventory(after, func(diag.Pos) bool { return false }))
}

// inventory lists what a set declares, but for what goes.
func inventory(set *subscription.Set, goes func(diag.Pos) bool) []string {
	var out []string
	note := func(pos diag.Pos, format string, args ...any) {
		if !goes(pos) {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	for _, s := range set.Subscriptions {
		note(s.Pos, "%s %s %s", s.Dialect, s.Key(), s.Digest)
	}
	for _, g := range set.OperatorGroups {
		note(g.Pos, "group %s/%s", g.Namespace, g.Name)
	}
	for _, c := range set.CatalogSources {
		note(c.Pos, "catalog %s %s", c.ID, c.Image)
	}
	for _, n := range set.Namespaces {
		note(n.Pos, "namespace %s %v %v", n.Name, n.Labels, n.Annotations)
	}
	slices.Sort(out)
	return out
}

// without returns a stream of YAML documents without those in which these lines
// are; lines count from 1.
func without(text []byte, lines []int) []byte {
	var out []byte
	var doc []byte
	first, n := 1, 0
	flush := func() {
		gone := slices.ContainsFunc(lines, func(line int) bool { return line >= first && line <= n })
		if !gone {
			out = append(out, doc...)
		}
		doc, first = nil, n+1
	}
	for line := range bytes.Lines(text) {
		if n++; bytes.HasPrefix(line, []byte("---")) && (len(bytes.TrimSpace(line)) == 3 || line[3] == ' ') {
			n--
			flush()
			n++
		}
		doc = append(doc, line...)
	}
	flush()
	if rest, ok := bytes.CutPrefix(out, []byte("---\n")); ok && !bytes.HasPrefix(text, []byte("---\n")) {
		return rest
	}
	return out
}

// empty reports whether a stream holds no document.
func empty(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && string(line) != "---" {
			return false
		}
	}
	return true
}

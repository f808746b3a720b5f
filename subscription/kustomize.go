package subscription

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/overlay"
)

// Caps on what kustomizations may bring: kustomize compares each object of a build
// with every other.
const (
	maxBuilt    = 1_000  // objects of one
	maxBuiltAll = 20_000 // of all
)

// regular reads a file for a kustomization. Links are not followed: kustomize
// takes a directory that one leads to from where it really lies.
func (l *loader) regular(name string) ([]byte, error) {
	if link := l.link(name); link != "" {
		return nil, fmt.Errorf("%s is a symbolic link: put what it leads to in its place", l.shown(link))
	}
	info, err := fs.Stat(l.fsys, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", l.shown(name))
	}
	return l.read(name)
}

// build builds the kustomizations that were found: those that are named, and of
// the others those that no other one builds on.
func (l *loader) build() {
	opened := map[*overlay.Overlay]found{}
	basis := map[*overlay.Overlay]bool{}
	for _, d := range l.dirs {
		o, err := l.kustomizations.Open(d.path)
		if err != nil {
			l.fault(d, err)
			continue
		}
		opened[o] = d
		l.tops = append(l.tops, o)
		for k := range o.Kustomizations() {
			l.reached[k] = true
			basis[k] = basis[k] || k != o
		}
	}
	l.tops = slices.DeleteFunc(l.tops, func(o *overlay.Overlay) bool {
		return !opened[o].named && (basis[o] || o.IsComponent())
	})
	built := 0
	for _, o := range l.tops {
		n, err := o.Count()
		if err != nil {
			l.fault(opened[o], err)
			continue
		}
		if built += n; n > maxBuilt || built > maxBuiltAll {
			l.fault(opened[o], diag.Errorf(diag.Pos{File: o.File}, "a build of %d objects: more than the %d of one kustomization or the %d of all", n, maxBuilt, maxBuiltAll))
			return
		}
		l.builtBy(o, opened[o])
	}
}

// fault adds what is wrong with a kustomization. One that nobody named may have
// nothing to do with operators.
func (l *loader) fault(d found, err error) {
	var errs diag.List
	errs.Add(l.pos(d.path), diag.Moved(err, l.shownPos))
	for _, e := range errs {
		if !d.named {
			what := diag.Error{Msg: e.Msg, Err: e.Err}
			e = diag.Errorf(e.Pos, "%w (it lies below %q: if it declares nothing, name the directories that do in spec.declarations)", &what, l.shown(l.entry(d.entry)))
		}
		l.errs.Add(e.Pos, e)
	}
}

// entry returns the path in LoadOptions with that index.
func (l *loader) entry(i int) string {
	if i >= len(l.opt.Paths) {
		return path.Join(".", l.opt.Dir)
	}
	return path.Join(".", l.opt.Dir, l.opt.Paths[i].Path)
}

func (l *loader) shownPos(p diag.Pos) diag.Pos {
	if p.File != "" {
		p.File = l.shown(p.File)
	}
	return p
}

// builtBy reads what a kustomization builds.
func (l *loader) builtBy(o *overlay.Overlay, d found) {
	objects, err := o.Build()
	if err != nil {
		l.fault(d, err)
		return
	}
	var trace *overlay.Trace
	warned := false
	for i, raw := range objects {
		r := collect(o.File, raw)
		move := l.shownPos
		if r.says() {
			if trace == nil {
				trace = o.Trace()
			}
			move = l.origins(trace, o, i, r)
		}
		if err := r.errs.Err(); err != nil {
			l.errs.Add(l.pos(o.File), diag.Moved(err, move))
			continue
		}
		r.set.move(move)
		for i := range r.sources {
			r.sources[i].pos = move(r.sources[i].pos)
		}
		if !r.first.IsZero() && !warned {
			if msg := l.applied(o.File); msg != "" {
				r.set.Warnings = append(r.set.Warnings, diag.Warning{Pos: l.pos(o.File), Code: "declaration-in-tree", Msg: msg})
				warned = true
			}
		}
		l.parts = append(l.parts, part{set: r.set, sources: r.sources, entry: d.entry, built: o, raw: raw})
	}
}

// origins returns where the places of an object that was built came from: the
// kustomization as a whole where that is not known.
func (l *loader) origins(t *overlay.Trace, o *overlay.Overlay, i int, r *reader) func(diag.Pos) diag.Pos {
	from := map[diag.Pos]diag.Pos{}
	if len(r.docs) == 1 {
		from = t.Places(i, r.docs[0])
	}
	return func(p diag.Pos) diag.Pos {
		origin, known := from[p]
		switch {
		case known:
			return l.shownPos(origin)
		case p.File == o.File:
			return l.pos(o.File)
		default:
			return p
		}
	}
}

// says reports whether something is said of the places in what was read.
func (r *reader) says() bool {
	return len(r.errs) > 0 || len(r.set.Warnings) > 0 || len(r.sources) > 0 || !r.first.IsZero()
}

// overridden returns the sets of all parts, without what others take the place of,
// and without what two kustomizations build in one way. What they build
// differently is a fault, and so is what two paths declare of which neither takes
// the place of the other.
func (l *loader) overridden() []*Set {
	slices.SortStableFunc(l.parts, func(a, b part) int { return cmp.Compare(a.entry, b.entry) })
	winner := map[identity]int{} // the last path by which one is declared that takes the place of others
	builders := map[identity][]part{}
	for _, p := range l.parts {
		if !l.overrides(p) {
			continue
		}
		for _, d := range p.set.identities() {
			key := d.key()
			if winner[key] != p.entry {
				builders[key] = nil
			}
			winner[key] = p.entry
			if p.built != nil {
				builders[key] = append(builders[key], p)
			}
		}
	}
	var out []*Set
	for _, p := range l.parts {
		out = append(out, p.set.without(func(d identity) bool {
			last, overridden := winner[d.key()]
			return overridden && (p.entry < last || p.built != nil && p.built != builders[d.key()][0].built)
		}))
	}
	for key, parts := range builders {
		l.ambiguous(key, parts)
	}
	return l.apart(out)
}

// apart returns the sets of all parts without what a part of an earlier path
// declares as well, which is a fault: one path alone is left to Merge.
func (l *loader) apart(sets []*Set) []*Set {
	type declared struct {
		entry int
		pos   diag.Pos
	}
	first := map[identity]declared{}
	for i, p := range l.parts {
		twice := map[identity]bool{}
		for _, d := range sets[i].identities() {
			before, known := first[d.key()]
			switch {
			case !known:
				first[d.key()] = declared{p.entry, d.pos}
			case before.entry != p.entry:
				twice[d.key()] = true
				l.errs.Addf(d.pos, "%s %q is declared twice, first at %s: to take its place, the later path of spec.declarations has to say overrides: true", d.kind, d.ID().String(), before.pos)
			}
		}
		sets[i] = sets[i].without(func(d identity) bool { return twice[d.key()] })
	}
	return sets
}

// overrides reports whether a part takes the place of what an earlier path declares.
func (l *loader) overrides(p part) bool {
	return p.built != nil || l.overriding(p.entry)
}

// ambiguous adds a fault where kustomizations build one thing in several ways.
func (l *loader) ambiguous(key identity, parts []part) {
	if len(parts) == 0 || !slices.ContainsFunc(parts, func(p part) bool { return !bytes.Equal(p.raw, parts[0].raw) }) {
		return
	}
	var dirs []string
	for _, p := range parts {
		dirs = append(dirs, fmt.Sprintf("%q", l.shown(p.built.Dir)))
	}
	const most = 10
	more := ""
	if n := len(dirs) - most; n > 0 {
		dirs, more = dirs[:most], fmt.Sprintf(" and %d more", n)
	}
	i := slices.IndexFunc(parts[0].set.identities(), func(d identity) bool { return d.key() == key })
	d := parts[0].set.identities()[i]
	l.errs.Addf(d.pos, "%s %q is built differently by %s%s: name the one that is meant in spec.declarations", d.kind, d.ID().String(), strings.Join(dirs, ", "), more)
}

// unlisted returns a warning for each file with declarations that lies in or below
// a directory with a kustomization, and that no kustomization reads.
func (l *loader) unlisted() []diag.Warning {
	read := map[string]bool{}
	dirs := map[string]bool{}
	for o := range l.reached {
		dirs[o.Dir] = true
		for _, name := range o.Files() {
			read[name] = true
		}
	}
	var out []diag.Warning
	for _, f := range l.beside {
		dir := path.Dir(f.path)
		for Kustomization(l.fsys, dir) == "" {
			dir = path.Dir(dir)
		}
		if read[f.path] || !dirs[dir] {
			continue
		}
		data, err := l.read(f.path)
		if err != nil {
			continue
		}
		if r := collect(l.shown(f.path), data); !r.first.IsZero() {
			out = append(out, diag.Warning{Pos: r.first, Code: "not-listed", Msg: fmt.Sprintf("this declaration is not read: %q does not list its file", l.shown(Kustomization(l.fsys, dir)))})
		}
	}
	return out
}

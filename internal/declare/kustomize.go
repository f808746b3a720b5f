package declare

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/k8s/overlay"
)

// Limits on the objects built by kustomizations: kustomize compares each object of a build
// with every other.
const (
	maxBuilt    = 1_000  // objects of one kustomization
	maxBuiltAll = 20_000 // objects of all kustomizations
)

// regular reads a file for a kustomization. It refuses symbolic links, because kustomize
// resolves a linked directory to its real location.
func (l *loader) regular(name string) ([]byte, error) {
	if link := l.link(name); link != "" {
		return nil, fmt.Errorf("%s is a symbolic link: replace it with a copy of its target", l.shown(link))
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

// build builds the named kustomizations, and the found ones that are not part of another build.
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
			l.fault(opened[o], diag.Errorf(diag.Pos{File: o.File}, "%d objects exceed the limit of %d for one kustomization or %d for all", n, maxBuilt, maxBuiltAll))
			return
		}
		l.builtBy(o, opened[o])
	}
}

// fault adds the faults of a kustomization. If the user did not name the kustomization, a hint
// is added: it may be unrelated to operators.
func (l *loader) fault(d found, err error) {
	var errs diag.List
	errs.Add(l.pos(d.path), diag.MapPositions(err, l.shownPos))
	for _, e := range errs {
		if !d.named {
			what := diag.Error{Msg: e.Msg, Err: e.Err}
			e = diag.Errorf(e.Pos, "%w (it is below %q: if it has no declarations, list only the directories that do in spec.declarations)", &what, l.shown(l.entry(d.entry)))
		}
		l.errs.Add(e.Pos, e)
	}
}

// entry returns the path in LoadOptions with index i, or the workspace beyond the last one.
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

// builtBy reads the objects built by a kustomization.
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
		if r.needsPositions() {
			if trace == nil {
				trace = o.Trace()
			}
			move = l.origins(trace, o, i, r)
		}
		if err := r.errs.Err(); err != nil {
			l.errs.Add(l.pos(o.File), diag.MapPositions(err, move))
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

// origins returns a function that maps positions in a built object to their origin. A position
// with an unknown origin maps to the kustomization file.
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

// needsPositions reports whether any fault, warning, source or declaration needs a position.
func (r *reader) needsPositions() bool {
	return len(r.errs) > 0 || len(r.set.Warnings) > 0 || len(r.sources) > 0 || !r.first.IsZero()
}

// overridden returns the sets of all parts without overridden declarations, and without duplicates
// that several kustomizations build identically. If they build an object differently, or if two
// paths declare an object and neither overrides the other, it adds a fault.
func (l *loader) overridden() []*Set {
	slices.SortStableFunc(l.parts, func(a, b part) int { return cmp.Compare(a.entry, b.entry) })
	winner := map[identity]int{} // the last overriding path that declares an object
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
	return l.uniqueSets(out)
}

// uniqueSets returns the sets without declarations that an earlier path also has; each of these is
// a fault. Duplicates within one path stay, for Merge to report.
func (l *loader) uniqueSets(sets []*Set) []*Set {
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
				l.errs.Addf(d.pos, "%s %q is declared twice, first at %s: to override it, set overrides: true on the later path of spec.declarations", d.kind, d.ID().String(), before.pos)
			}
		}
		sets[i] = sets[i].without(func(d identity) bool { return twice[d.key()] })
	}
	return sets
}

// overrides reports whether a part overrides declarations of earlier paths.
func (l *loader) overrides(p part) bool {
	return p.built != nil || l.overriding(p.entry)
}

// ambiguous adds a fault if kustomizations build one object differently.
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
	l.errs.Addf(d.pos, "%s %q is built differently by %s%s: list only one of them in spec.declarations", d.kind, d.ID().String(), strings.Join(dirs, ", "), more)
}

// warnUnlisted returns a warning for each file with declarations in or below a directory with a
// kustomization, if no kustomization reads the file.
func (l *loader) warnUnlisted() []diag.Warning {
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

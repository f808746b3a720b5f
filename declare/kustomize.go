package declare

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/overlay"
)

// Limits for built objects. The time of a kustomize build grows with the square of the number of objects,
// because kustomize compares each pair of objects.
const (
	maxBuilt    = 1_000  // objects of one kustomization
	maxBuiltAll = 20_000 // objects of all kustomizations
)

// readRegular reads a file for a kustomization. A symbolic link is an error, because kustomize uses the real
// path of a linked directory.
func (l *loader) readRegular(name string) ([]byte, error) {
	if link := l.findLink(name); link != "" {
		return nil, fmt.Errorf("%s is a symbolic link: replace it with a copy of its target", l.displayPath(link))
	}
	info, err := fs.Stat(l.fsys, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", l.displayPath(name))
	}
	return l.read(name)
}

// build builds the kustomizations that opt.Paths names. It also builds the kustomizations that were found in
// directories, except components, and except kustomizations that another kustomization includes.
func (l *loader) build() {
	opened := map[*overlay.Overlay]candidate{}
	faults := map[*overlay.Overlay]error{}
	isBase := map[string]bool{} // directories that another kustomization includes
	for _, d := range l.dirs {
		o, err := l.kustomizations.Open(d.path)
		if o == nil {
			l.addUnbuilt(nil, d, err)
			for _, dir := range l.mentionedDirs(d.path) {
				isBase[dir] = true
			}
			continue
		}
		opened[o], faults[o] = d, err
		l.roots = append(l.roots, o)
		for k := range o.Kustomizations() {
			l.reached[k] = true
			isBase[k.Dir] = isBase[k.Dir] || k != o
			for _, name := range k.Sources {
				isBase[name] = true
			}
		}
	}
	l.roots = slices.DeleteFunc(l.roots, func(o *overlay.Overlay) bool {
		return !opened[o].named && (isBase[o.Dir] || o.IsComponent() && faults[o] == nil)
	})
	for _, o := range l.roots {
		d, err := opened[o], faults[o]
		if err == nil {
			err = l.buildOne(o, d)
		}
		if err != nil {
			l.addUnbuilt(o, d, err)
		}
	}
}

// buildOne builds a kustomization and reads its objects. Too many objects are an error.
func (l *loader) buildOne(o *overlay.Overlay, d candidate) error {
	n, err := o.Count()
	if err != nil {
		return err
	}
	if n > maxBuilt || l.built+n > maxBuiltAll {
		return diag.Errorf(diag.Pos{File: o.File}, "%d objects exceed the limit of %d for one kustomization or %d for all", n, maxBuilt, maxBuiltAll)
	}
	l.built += n
	return l.readBuild(o, d)
}

// displayPos returns p with a file name relative to the workspace.
func (l *loader) displayPos(p diag.Pos) diag.Pos {
	if p.File != "" {
		p.File = l.displayPath(p.File)
	}
	return p
}

// readBuild builds a kustomization and parses its objects. It returns the error of the build.
func (l *loader) readBuild(o *overlay.Overlay, d candidate) error {
	objects, err := o.Build()
	if err != nil {
		return err
	}
	var trace *overlay.Trace
	warned, declares := false, false
	for i, raw := range objects {
		var variables []string
		if d.applied != nil {
			raw, variables = d.applied.Changes.SubstituteVariables(raw)
		}
		r := l.parse(d, o.File, raw)
		mapPos := l.displayPos
		if r.needsPositions() {
			if trace == nil {
				trace = o.Trace()
			}
			mapPos = l.mapApplied(o, d, l.positionMapper(trace, o, i, raw, r))
		}
		if u, unknown := l.checkKnown(d, r, variables, mapPos(r.first)); unknown {
			l.addParts(d.entry, []Unread{u})
			continue
		}
		l.addParts(d.entry, r.unread(raw, mapPos))
		declares = declares || !r.first.IsZero()
		r.set.mapPositions(mapPos)
		if !r.first.IsZero() && !warned {
			if msg := l.appliedWarning(o.File); msg != "" {
				l.warnings = append(l.warnings, diag.Warning{Pos: l.pos(o.File), Code: "declaration-in-tree", Msg: msg})
				warned = true
			}
		}
		l.parts = append(l.parts, part{set: r.set, entry: d.entry, built: o, raw: raw})
	}
	if declares {
		l.warnTargets(o, d, objects)
	}
	l.addSkipped(o, d, declares)
	return nil
}

// warnTargets adds a warning for each selector in o that selects nothing, which kustomize does not
// report. It does not check the kustomizations that o includes, whose selectors may be for other
// objects.
func (l *loader) warnTargets(o *overlay.Overlay, d candidate, built [][]byte) {
	mapPos := l.mapApplied(o, d, l.displayPos)
	for _, s := range o.UnmatchedSelectors(built) {
		l.warnings = append(l.warnings, diag.Warning{Pos: mapPos(s.Pos), Code: "no-target", Msg: s.Msg + ": kustomize ignores it"})
	}
}

// positionMapper returns a function that converts positions in a built object to positions in
// source files. If the origin is unknown, it returns the position of the kustomization file.
func (l *loader) positionMapper(t *overlay.Trace, o *overlay.Overlay, i int, raw []byte, r *reader) func(diag.Pos) diag.Pos {
	from := map[diag.Pos]diag.Pos{}
	if len(r.docs) == 1 {
		from = t.Places(i, raw, r.docs[0])
	}
	return func(p diag.Pos) diag.Pos {
		origin, known := from[p]
		switch {
		case known:
			return l.displayPos(origin)
		case p.File == o.File:
			return l.pos(o.File)
		default:
			return p
		}
	}
}

// needsPositions reports whether a position in the built object is reported or stored.
func (r *reader) needsPositions() bool {
	return len(r.errs) > 0 || len(r.set.Warnings) > 0 || !r.first.IsZero()
}

// applyOverrides returns the sets of l.parts, without overridden declarations and without identical duplicates.
// An object becomes unread in two cases: kustomizations build it differently, or two paths without Overrides
// declare it differently.
func (l *loader) applyOverrides() []*Set {
	slices.SortStableFunc(l.parts, func(a, b part) int { return cmp.Compare(a.entry, b.entry) })
	winner := map[identity]int{} // object → index of the last path that declares it and overrides earlier paths
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
	overrideConfigMaps(l.parts, out, l.overrides)
	dropped := l.ambiguous(builders)
	l.dropOverridden(out, dropped)
	l.dropRepeated(out, dropped)
	for i := range out {
		out[i] = out[i].without(func(d identity) bool { return dropped[d.key()] })
	}
	return out
}

// overrideConfigMaps drops from sets, the sets of parts, each ConfigMap that a later path overrides. overrides reports
// whether a part overrides earlier paths.
func overrideConfigMaps(parts []part, sets []*Set, overrides func(part) bool) {
	winner := map[string]int{} // ID → index of the last path that has the ConfigMap and overrides earlier paths
	for _, p := range parts {
		for _, m := range p.set.ConfigMaps {
			if overrides(p) {
				winner[m.ID] = p.entry
			}
		}
	}
	for i, p := range parts {
		sets[i].ConfigMaps = slices.DeleteFunc(slices.Clone(sets[i].ConfigMaps), func(m ConfigMap) bool { return p.entry < winner[m.ID] })
	}
}

// dropOverridden drops each declaration for which a later path with Overrides has an unread part that may
// override the declaration. It lists the dropped declarations as unread.
func (l *loader) dropOverridden(sets []*Set, dropped map[identity]bool) {
	for _, u := range slices.Clone(l.unread) {
		if !l.isOverriding(u.entry) {
			continue
		}
		for i, p := range l.parts {
			for _, d := range identitiesOf(sets[i].Subscriptions) {
				if p.entry < u.entry && u.names(d) {
					dropped[d.key()] = true
					l.unread = append(l.unread, unreadObject(diag.Errorf(d.pos, "%s %q may be overridden at %s, which is not read", d.kind, d.ID().String(), u.Pos), d))
				}
			}
		}
	}
}

// dropRepeated removes a declaration if an earlier path has an identical one. If two paths declare an object
// differently, it lists the object as unread. Duplicates within one path remain, because Merge handles them.
func (l *loader) dropRepeated(sets []*Set, dropped map[identity]bool) {
	type declared struct {
		entry   int
		pos     diag.Pos
		meaning any
	}
	first := map[identity]declared{}
	for i, p := range l.parts {
		repeated := map[identity]bool{}
		for _, d := range sets[i].identities() {
			before, known := first[d.key()]
			switch {
			case !known:
				first[d.key()] = declared{p.entry, d.pos, sets[i].meaningOf(d)}
			case before.entry != p.entry && reflect.DeepEqual(before.meaning, sets[i].meaningOf(d)):
				repeated[d.key()] = true
			case before.entry != p.entry:
				dropped[d.key()] = true
				l.unread = append(l.unread, unreadObject(diag.Errorf(d.pos, "%s %q is declared twice, first at %s: to override it, set overrides: true on the later path of spec.declarations", d.kind, d.ID().String(), before.pos), d))
			}
		}
		sets[i] = sets[i].without(func(d identity) bool { return repeated[d.key()] })
	}
}

// overrides reports whether the declarations in p override declarations of earlier paths.
func (l *loader) overrides(p part) bool {
	return p.built != nil || l.isOverriding(p.entry)
}

// ambiguous returns the objects that several kustomizations build differently, and lists them as unread.
func (l *loader) ambiguous(builders map[identity][]part) map[identity]bool {
	out := map[identity]bool{}
	for key, parts := range builders {
		if len(parts) == 0 || !slices.ContainsFunc(parts, func(p part) bool { return !bytes.Equal(p.raw, parts[0].raw) }) {
			continue
		}
		var dirs []string
		for _, p := range parts {
			dirs = append(dirs, fmt.Sprintf("%q", l.displayPath(p.built.Dir)))
		}
		i := slices.IndexFunc(parts[0].set.identities(), func(d identity) bool { return d.key() == key })
		d := parts[0].set.identities()[i]
		dirs = slices.Compact(dirs)
		e := diag.Errorf(d.pos, "%s %q is built differently by %s: list only one of them in spec.declarations", d.kind, d.ID().String(), diag.Some(dirs, 10))
		if len(dirs) == 1 {
			e = diag.Errorf(d.pos, "%s %q is declared differently by several objects of %s: a cluster can have only one of them: list each file in a separate workspace", d.kind, d.ID().String(), dirs[0])
		}
		l.unread = append(l.unread, unreadObject(e, d))
		out[key] = true
	}
	return out
}

// warnUnlisted returns a warning for each file with declarations that no kustomization lists, although the file
// is in or below a directory with a kustomization.
func (l *loader) warnUnlisted() []diag.Warning {
	read := map[string]bool{}
	dirs := map[string]bool{}
	for o := range l.reached {
		dirs[o.Dir] = true
		for _, name := range slices.Concat(o.Files(), o.Sources) {
			read[name] = true
		}
	}
	var out []diag.Warning
	for _, f := range l.maybeListed {
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
		if r := parseFile(l.displayPath(f.path), data); !r.first.IsZero() {
			out = append(out, diag.Warning{Pos: r.first, Code: "not-listed", Msg: fmt.Sprintf("declaration ignored: %q does not list this file", l.displayPath(Kustomization(l.fsys, dir)))})
		}
	}
	return out
}

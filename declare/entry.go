package declare

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/memo"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/yamlnode"
)

// IsPattern reports whether the path is a pattern that can match several files or directories, such
// as "operators/*/overlays/prod".
func (p Path) IsPattern() bool { return strings.ContainsAny(p.Path, "*?[") }

// Expand returns the files and directories that a path in spec.declarations includes. For a pattern, these
// are the matches. For the file of an entry point such as an Application, the files that the entry point
// applies are also included. The paths are relative to fsys. charts renders charts, and results remembers the
// results of kustomizations. charts and results may be nil.
func (p Path) Expand(fsys fs.FS, dir string, charts *helm.Charts, results *memo.Results) []string {
	in, inside := p.In(dir)
	if !inside {
		return nil
	}
	out := []string{in}
	if _, err := fs.Stat(fsys, in); err != nil && p.IsPattern() {
		out = survey.Match(fsys, in)
	}
	reader := survey.NewReader(fsys, func(string) bool { return false }, charts, results).WithoutValues()
	defer charts.Close()
	defer results.Save()
	for _, file := range slices.Clone(out) {
		if a := p.Chart(fsys, dir, diag.Pos{}); a != nil {
			out = append(out, a.Chart.Files...)
			for _, nested := range reader.Chart(a).Applied {
				out = append(out, nested.Dir)
			}
			continue
		}
		if info, err := fs.Stat(fsys, file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if file == Kustomization(fsys, path.Dir(file)) {
			out = append(out, path.Dir(file))
		}
		if found := reader.Entries(file); found != nil {
			for _, a := range found.Applied {
				out = append(out, a.Dir)
				if a.Chart != nil {
					out = append(out, a.Chart.Files...)
				}
			}
		}
	}
	return out
}

// isOutput reports whether a directory is quayside's own output, whose files are no declarations.
func (l *loader) isOutput(dir string) bool { return dir == l.opt.Output }

// addPath adds the file or directory p to the files to read. entry is the index of the path in
// LoadOptions.
func (l *loader) addPath(p string, entry int) {
	info, err := fs.Stat(l.fsys, p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.addInvalid(l.pos(p), fmt.Errorf("no such file or directory: %w", fs.ErrNotExist))
	case err != nil:
		l.addInvalid(l.pos(p), l.explainUnreadable(p, err))
	case entry < len(l.opt.Paths) && l.opt.Paths[entry].hasChartFields() && !l.entries.IsChart(p):
		l.addInvalid(l.pos(p), errors.New("values, valuesFiles, releaseName and namespace are only for the directory of a Helm chart"))
	case info.IsDir() && l.entries.IsChart(p) && entry < len(l.opt.Paths):
		named := survey.Named(p, l.opt.Paths[entry].chart(l.opt.Dir), diag.Pos{File: p})
		l.addFound(p, entry, l.entries.Chart(named))
	case info.IsDir():
		l.walk(candidate{path: p, entry: entry, named: true})
	case p == Kustomization(l.fsys, path.Dir(p)):
		l.walk(candidate{path: path.Dir(p), entry: entry, named: true})
		l.addEntries(p, entry)
	default:
		l.files = append(l.files, candidate{path: p, entry: entry, named: true})
		l.addEntries(p, entry)
	}
}

// addMatches adds the files and directories that match a pattern.
func (l *loader) addMatches(pattern string, entry int) {
	found := survey.Match(l.fsys, pattern)
	if len(found) == 0 {
		l.addInvalid(diag.Pos{File: l.displayPath(pattern)}, fmt.Errorf("matches no file or directory: %w", fs.ErrNotExist))
	}
	for _, name := range found {
		l.addPath(name, entry)
	}
}

// addEntries adds the directories that the entry points in a file apply.
func (l *loader) addEntries(file string, entry int) {
	if found := l.entries.Entries(file); found != nil {
		l.addFound(file, entry, found)
	}
}

// addFound adds the files and directories that entry points apply. file is the file, or the directory of the
// chart, that contains these entry points.
func (l *loader) addFound(file string, entry int, found *survey.Entries) {
	for _, u := range found.Unknown {
		if u.By != "" {
			u.Reason = fmt.Sprintf("the objects that %s applies are unknown: %s", u.By, u.Reason)
		}
		e := diag.Errorf(l.displayPos(u.Pos), "%s", u.Reason)
		l.addParts(entry, []Unread{{Pos: e.Pos, Reason: e.Msg, err: e, partial: true}})
	}
	cluster := ""
	if entry < len(l.opt.Paths) {
		cluster = l.opt.Paths[entry].Cluster
	}
	n := 0
	for _, a := range found.Applied {
		if cluster == "" || a.Cluster == cluster {
			l.applied = append(l.applied, appliedDir{a, entry})
			n++
		}
	}
	switch {
	case n == 0 && slices.ContainsFunc(found.Charts, func(c string) bool { return cluster == "" || c == cluster }): // a declaration
	case n == 0 && cluster != "":
		l.addInvalid(l.pos(file), fmt.Errorf("applies nothing of this repository to the cluster %q: %w", cluster, fs.ErrNotExist))
	case n == 0 && len(found.Unknown) == 0 && file != Kustomization(l.fsys, path.Dir(file)):
		l.addInvalid(l.pos(file), fmt.Errorf("applies nothing of this repository: %w", fs.ErrNotExist))
	}
}

// appliedDir is a directory that an entry point in a declared path applies.
type appliedDir struct {
	*survey.Applied
	entry int
}

// readApplied reads the declarations that the GitOps tool applies through the entry points in the declared
// paths. It reads them in the form that the tool applies, which may differ from the form in the files.
func (l *loader) readApplied() {
	done := map[string][]appliedDir{}
	for _, a := range l.applied {
		if slices.ContainsFunc(done[a.Dir], func(b appliedDir) bool { return a.entry == b.entry && a.Equal(b.Applied) }) {
			continue
		}
		done[a.Dir] = append(done[a.Dir], a)
		if info, err := fs.Stat(l.fsys, a.Dir); err != nil || !fs.ValidPath(a.Dir) {
			l.addAppliedFault(a, fmt.Errorf("%s applies %q: %w", a.Entry.By, l.displayPath(a.Dir), fs.ErrNotExist))
		} else if info.IsDir() {
			l.readAppliedDir(a)
		} else {
			l.readFile(candidate{path: a.Dir, entry: a.entry, applied: a.Applied})
		}
	}
}

func (l *loader) addAppliedFault(a appliedDir, err error) {
	l.addParts(a.entry, unreadAll(l.displayPos(a.Pos), err, Unread{partial: true}))
}

func (l *loader) readAppliedDir(a appliedDir) {
	if l.entries.IsChart(a.Dir) {
		l.readChart(a)
		return
	}
	files, dirs := a.Resources(l.fsys, l.isOutput)
	own := Kustomization(l.fsys, a.Dir)
	var data []byte
	var err error
	if own != "" {
		data, err = l.readRegular(own)
	}
	var text []byte
	if err == nil {
		text, err = a.Kustomization(data, slices.Concat(files, dirs))
	}
	switch {
	case err != nil:
		l.addAppliedFault(a, err)
	case text != nil:
		if own == "" {
			own = path.Join(a.Dir, "kustomization.yaml")
		}
		l.buildApplied(a, own, text)
	default:
		for _, file := range files {
			l.readFile(candidate{path: file, entry: a.entry, applied: a.Applied})
		}
		for _, dir := range dirs {
			name := Kustomization(l.fsys, dir)
			data, err := l.readRegular(name)
			if err != nil {
				l.addAppliedFault(a, err)
				continue
			}
			l.buildApplied(appliedDir{a.At(dir), a.entry}, name, data)
		}
	}
}

// buildApplied builds a kustomization and reads its declarations. text is the kustomization with the changes of
// the GitOps tool. It does not build a kustomization that certainly contains no declarations.
func (l *loader) buildApplied(a appliedDir, file string, text []byte) {
	read := func(name string) ([]byte, error) {
		switch {
		case name == file:
			return text, nil
		case path.Dir(name) == a.Dir && Kustomization(l.fsys, a.Dir) == "" && slices.Contains([]string{"kustomization.yml", "Kustomization"}, path.Base(name)):
			return nil, fs.ErrNotExist
		default:
			return l.readRegular(name)
		}
	}
	d := candidate{path: a.Dir, entry: a.entry, named: true, applied: a.Applied}
	o, err := overlay.NewTolerant(overlay.FileFunc(read), l.manifestsIn, l.opt.Results).Open(a.Dir)
	if o != nil && !namesOLM(l.ownText(o, a.Dir, err)) && !mayGenerate(o) {
		return
	}
	if err == nil {
		for k := range o.Kustomizations() {
			l.reached[k] = true
		}
		err = l.buildOne(o, d)
	}
	if err != nil {
		l.addUnbuilt(o, d, err)
	}
}

// readChart renders a chart and reads its objects.
func (l *loader) readChart(a appliedDir) {
	objects, err := l.entries.Template(a.Applied)
	if err == nil && (len(objects) > maxBuilt || l.built+len(objects) > maxBuiltAll) {
		err = fmt.Errorf("%d objects of the Helm chart %q exceed the limit of %d for one chart or %d for all", len(objects), l.displayPath(a.Dir), maxBuilt, maxBuiltAll)
	}
	if err != nil {
		l.addAppliedFault(a, err)
		return
	}
	l.built += len(objects)
	l.rendered[a.Dir] = true
	d := candidate{path: a.Dir, entry: a.entry, named: true, applied: a.Applied}
	for _, o := range objects {
		r := l.parse(d, l.displayPath(o.Pos.File), o.Text)
		at := func(diag.Pos) diag.Pos { return l.displayPos(o.Pos) }
		u, unknown := l.checkKnown(d, r, nil, at(r.first))
		if !unknown && o.Unknown != "" && (!r.first.IsZero() || len(r.errs) > 0) {
			u, unknown = unreadIn(r, diag.Errorf(at(r.first), "%s", o.Unknown)), true
		}
		if unknown {
			l.addParts(a.entry, []Unread{u})
			continue
		}
		l.addParts(a.entry, r.unread(o.Text, at))
		r.set.mapPositions(at)
		l.parts = append(l.parts, part{set: r.set, entry: a.entry})
	}
}

// mapApplied returns a function that converts positions like mapPos. If the tool changes the kustomization, the
// function converts a position in the kustomization file to the position of the entry point.
func (l *loader) mapApplied(o *overlay.Overlay, d candidate, mapPos func(diag.Pos) diag.Pos) func(diag.Pos) diag.Pos {
	if d.applied == nil || !d.applied.Changes.IsBuilt() {
		return mapPos
	}
	return func(p diag.Pos) diag.Pos {
		if p = mapPos(p); p.File == l.displayPath(o.File) {
			return l.displayPos(d.applied.Pos)
		}
		return p
	}
}

// checkKnown returns an Unread and true if the entry point changes a declaration in a way that is unknown
// offline, and false if not. variables are the variables in the declaration whose values are unknown.
func (l *loader) checkKnown(d candidate, r *reader, variables []string, pos diag.Pos) (Unread, bool) {
	if d.applied == nil || r.first.IsZero() && len(r.errs) == 0 {
		return Unread{}, false
	}
	var msg string
	switch c := d.applied.Changes; {
	case len(c.Unknown) > 0:
		msg = fmt.Sprintf("%s makes changes that are not known offline: %s", d.applied.Entry.By, strings.Join(c.Unknown, ", "))
	case len(variables) > 0 && len(c.SubstituteFrom) > 0:
		msg = fmt.Sprintf("%s replaces %s. The value may come from %s, which is not available offline", d.applied.Entry.By, strings.Join(variables, ", "), strings.Join(c.SubstituteFrom, ", "))
	case len(variables) > 0:
		msg = fmt.Sprintf("%s replaces %s with a value that is not available offline", d.applied.Entry.By, strings.Join(variables, ", "))
	default:
		return Unread{}, false
	}
	return unreadIn(r, diag.Errorf(pos, "%s", msg)), true
}

// unreadIn returns an Unread for a fault. If r has a single object, the Unread describes this object.
func unreadIn(r *reader, e *diag.Error) Unread {
	u := newUnread(e)
	if len(r.docs) == 1 {
		n := r.docs[0]
		_, meta := yamlnode.Field(n, "metadata")
		u.Kind, u.Namespace, u.Name, u.Package = scalarField(n, "kind"), scalarField(meta, "namespace"), scalarField(meta, "name"), scalarField(specOf(n), "name")
	}
	return u
}

// setDefaultNamespace adds a namespace to an object that has none. It does not change objects of a
// cluster-scoped kind.
func setDefaultNamespace(n *yamlnode.Node, namespace string) {
	group, _, _ := strings.Cut(scalarField(n, "apiVersion"), "/")
	if namespace == "" || group != string(V0) && (group != string(Quayside) || scalarField(n, "kind") != "Subscription") {
		return
	}
	_, meta := yamlnode.Field(n, "metadata")
	if _, has := yamlnode.Field(meta, "namespace"); meta == nil || meta.Kind != yamlnode.MappingNode || has != nil {
		return
	}
	text := func(value string) *yamlnode.Node {
		return &yamlnode.Node{Kind: yamlnode.ScalarNode, Tag: "!!str", Value: value, Line: meta.Line, Column: meta.Column}
	}
	meta.Content = append(meta.Content, text("namespace"), text(namespace))
}

// isPlaceholder reports whether a text contains a placeholder of argocd-vault-plugin, such as
// <path:secret/data/x#token>.
func isPlaceholder(text string) bool {
	_, rest, found := strings.Cut(text, "<path:")
	inner, _, closed := strings.Cut(rest, ">")
	return found && closed && strings.Contains(inner, "#")
}

// rejectPlaceholders adds a fault for each value of a declaration that argocd-vault-plugin would
// replace.
func (r *reader) rejectPlaceholders(n *yamlnode.Node) {
	forEachText(n, "", func(path string, v *yamlnode.Node) {
		if isPlaceholder(v.Value) {
			r.errs.Addf(r.at(v), "%s: %q is replaced by argocd-vault-plugin, with a value that is not available offline", path, v.Value)
		}
	})
}

package subscription

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// aside says of an object of another kind what a person may take for declared: it
// is counted, what it holds is named, and so is where it takes objects from.
func (r *reader) aside(n *yaml.Node, group, kind string) {
	if kind == "" || group == "" || group == "kustomize.config.k8s.io" || group == string(Quayside) {
		return
	}
	if group == string(OCM) && kind == "Policy" && r.policy(n) {
		return
	}
	r.set.Others[kind]++
	for _, s := range appliers() {
		if s.group != group || s.kind != kind {
			continue
		}
		for _, where := range s.paths {
			for _, v := range lying(n, where) {
				if name, ok := yamlnode.Text(v); ok {
					r.sources = append(r.sources, source{pos: r.at(v), by: titled(n), path: name})
				}
			}
		}
	}
	r.inside(n, n)
}

// titled returns how messages name an object: its kind and its name.
func titled(n *yaml.Node) string {
	_, meta := yamlnode.Field(n, "metadata")
	return fmt.Sprintf("%s %q", text(n, "kind"), text(meta, "name"))
}

// inside warns of declarations that stand within another object, the nearest
// around n being holder.
func (r *reader) inside(n, holder *yaml.Node) {
	if len(r.set.Warnings) > yamlnode.MaxFaults {
		return
	}
	warn := func(msg string) {
		r.set.Warnings = append(r.set.Warnings, diag.Warning{Pos: r.at(n), Code: "not-declared", Msg: msg})
	}
	group, _, versioned := strings.Cut(text(n, "apiVersion"), "/")
	kind := text(n, "kind")
	switch {
	case n != holder && versioned && slices.ContainsFunc(kinds(), func(k known) bool { return k.group == group && k.kind == kind }):
		warn(fmt.Sprintf("%s stands inside of %s and is not read: declare it in a file of its own", titled(n), titled(holder)))
		return
	case kind != "" && group != "":
		holder = n
	}
	for i, c := range n.Content {
		if n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode && i%2 == 1 {
			r.inside(c, holder)
		}
	}
}

// source is a directory that an object has a GitOps tool apply.
type source struct {
	pos  diag.Pos
	by   string // `Application "etcd"`
	path string // from the top of the repository
}

// applier is a kind that has a GitOps tool apply directories, and where it names
// them; [] stands for the items of a list.
type applier struct {
	group, kind string
	paths       []string
}

func appliers() []applier {
	return []applier{
		{"argoproj.io", "Application", []string{"spec.source.path", "spec.sources.[].path"}},
		{"argoproj.io", "ApplicationSet", []string{
			"spec.template.spec.source.path", "spec.template.spec.sources.[].path", "spec.generators.[].git.directories.[].path",
			"spec.generators.[].matrix.generators.[].git.directories.[].path", "spec.generators.[].list.elements.[].path",
		}},
		{"kustomize.toolkit.fluxcd.io", "Kustomization", []string{"spec.path"}},
	}
}

// lying returns what lies at a path such as "spec.sources.[].path".
func lying(n *yaml.Node, where string) []*yaml.Node {
	at := []*yaml.Node{n}
	for step := range strings.SplitSeq(where, ".") {
		var next []*yaml.Node
		for _, n := range at {
			if step != "[]" {
				if _, v := yamlnode.Field(n, step); v != nil {
					next = append(next, v)
				}
			} else if n.Kind == yaml.SequenceNode {
				next = append(next, n.Content...)
			}
		}
		at = next
	}
	return at
}

// maxSources bounds how many directories are looked into for declarations that are
// not read.
const maxSources = 200

// elsewhere returns a warning for each directory of this repository that is
// applied by an object in set, and that holds declarations which are not in set.
func (l *loader) elsewhere(set *Set) []diag.Warning {
	declared := map[identity]bool{}
	for _, d := range set.identities() {
		declared[d.key()] = true
	}
	var out []diag.Warning
	seen := map[string]bool{}
	var sources []source
	for _, p := range l.parts {
		sources = append(sources, p.sources...)
	}
	for ; len(sources) > 0 && len(seen) < maxSources; sources = sources[1:] {
		s := sources[0]
		dir := fixed(s.path)
		if seen[dir] || !l.foreign(dir) {
			continue
		}
		seen[dir] = true
		there := newLoader(l.fsys, LoadOptions{Dir: l.opt.Dir})
		there.opt.Output, there.bytes = l.opt.Output, l.bytes
		there.walk(found{path: dir, named: true})
		there.build()
		for _, f := range there.files {
			there.flat(f)
		}
		l.bytes = there.bytes
		more := false
		for _, p := range there.parts {
			sources = append(sources, p.sources...)
			more = more || slices.ContainsFunc(p.set.identities(), func(d identity) bool { return !declared[d.key()] && d.kind != "Namespace" })
		}
		err := there.errs.Err()
		if !more && err == nil {
			continue
		}
		msg := fmt.Sprintf("%s applies %q of this repository, which holds declarations that are not read: ", s.by, l.shown(dir))
		switch {
		case !more:
			msg = fmt.Sprintf("%s applies %q of this repository, which may hold declarations that are not read: ", s.by, l.shown(dir))
			fallthrough
		case !strings.HasPrefix(l.shown(dir), "../"):
			msg += "add it to spec.declarations"
		default:
			msg += "it lies outside of the workspace, so build on it in a kustomization inside"
		}
		out = append(out, diag.Warning{Pos: s.pos, Code: "not-declared", Msg: msg})
	}
	return out
}

// fixed returns the directory that a path names before its first variable part.
func fixed(name string) string {
	name = strings.TrimPrefix(name, "/")
	if i := strings.IndexAny(name, "*?[{$"); i >= 0 {
		name = name[:i]
		name = name[:strings.LastIndex(name, "/")+1]
	}
	return path.Clean(name)
}

// foreign reports whether a directory is there and not read as a whole anyway, nor
// a part of quayside's own tree.
func (l *loader) foreign(dir string) bool {
	if !fs.ValidPath(dir) || dir == "." {
		return false
	}
	if info, err := fs.Stat(l.fsys, dir); err != nil || !info.IsDir() {
		return false
	}
	for o := range l.reached {
		if o.Dir == dir {
			return false
		}
	}
	read := []string{l.opt.Output}
	for entry := range l.opt.Paths {
		read = append(read, l.entry(entry))
	}
	return !slices.ContainsFunc(read, func(top string) bool {
		return top != "" && (dir == top || top == "." || strings.HasPrefix(dir, top+"/"))
	})
}

// chart returns the directory of the Helm chart that a directory holds the
// templates of: the outermost one, where charts hold others.
func (l *loader) chart(templates string) (string, bool) {
	is := func(dir string) bool {
		info, err := fs.Stat(l.fsys, path.Join(dir, "Chart.yaml"))
		return err == nil && info.Mode().IsRegular()
	}
	chart := path.Dir(templates)
	if path.Base(templates) != "templates" || !is(chart) {
		return "", false
	}
	for path.Base(path.Dir(chart)) == "charts" && is(path.Dir(path.Dir(chart))) {
		chart = path.Dir(path.Dir(chart))
	}
	return chart, true
}

// countTemplates returns how many files below a directory would be manifests once
// Helm has rendered them.
func (l *loader) countTemplates(dir string) int {
	n := 0
	// What cannot be read is not counted.
	_ = fs.WalkDir(l.fsys, dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && isManifest(p) {
			n++
		}
		return nil
	})
	return n
}

// templates returns a warning that names the Helm templates that were passed over.
func (l *loader) templates() []diag.Warning {
	var names []string
	for _, chart := range slices.Sorted(maps.Keys(l.charts)) {
		if n := l.charts[chart]; n > 0 {
			names = append(names, fmt.Sprintf("%s of the chart %q", diag.Count(n, "file"), l.shown(chart)))
		}
	}
	for _, name := range l.loose {
		names = append(names, fmt.Sprintf("%q", l.shown(name)))
	}
	if len(names) == 0 {
		return nil
	}
	const most = 10
	more := ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	return []diag.Warning{{
		Code: "helm-templates",
		Msg:  fmt.Sprintf("Helm templates are not read: %s%s: render them first (helm template) and name what comes of it in spec.declarations", strings.Join(names, ", "), more),
	}}
}

// isTemplate reports whether a file is text for Helm rather than YAML: one that is
// no YAML for the braces in it, or a declaration with such braces as a plain value.
func isTemplate(r *reader, data []byte) bool {
	if len(r.docs) == 0 {
		return len(r.errs) > 0 && bare(data)
	}
	return slices.ContainsFunc(r.docs, func(n *yaml.Node) bool {
		group, _, _ := strings.Cut(text(n, "apiVersion"), "/")
		return isOurs(group) && group != string(OCM) && templated(n) // policies have templates of their own
	})
}

// bare reports whether braces of a template stand in data outside of quotes and
// comments.
func bare(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		before, _, found := strings.Cut(line, "{{")
		if found && strings.Count(before, `"`)%2 == 0 && strings.Count(before, "'")%2 == 0 && !strings.Contains(before, "#") {
			return true
		}
	}
	return false
}

// templated reports whether a plain value below n holds the braces of a template.
func templated(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return n.Style == 0 && strings.Contains(n.Value, "{{") && strings.Contains(n.Value, "}}")
	}
	return slices.ContainsFunc(n.Content, templated)
}

package declare

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// ignoreObject counts an object that is no declaration. It adds a warning for each declaration
// nested in it.
func (r *reader) ignoreObject(n *yamlnode.Node, group, kind string) {
	if kind == "" || group == "" || group == "kustomize.config.k8s.io" || group == string(Quayside) {
		return
	}
	if group == string(OCM) && slices.Contains([]string{"Policy", "ConfigurationPolicy"}, kind) && r.readPolicy(n) {
		return
	}
	r.set.Others[kind]++
	r.warnNested(n, n)
}

// objectTitle returns the kind and the quoted name of an object for messages.
func objectTitle(n *yamlnode.Node) string {
	_, meta := yamlnode.Field(n, "metadata")
	return fmt.Sprintf("%s %q", scalarField(n, "kind"), scalarField(meta, "name"))
}

// warnNested adds a warning for each declaration nested in n. holder is the innermost object that
// contains n.
func (r *reader) warnNested(n, holder *yamlnode.Node) {
	if len(r.set.Warnings) > yamlnode.MaxFaults {
		return
	}
	addWarning := func(msg string) {
		r.set.Warnings = append(r.set.Warnings, diag.Warning{Pos: r.at(n), Code: "not-declared", Msg: msg})
	}
	group, _, versioned := strings.Cut(scalarField(n, "apiVersion"), "/")
	kind := scalarField(n, "kind")
	switch {
	case n != holder && versioned && slices.ContainsFunc(knownKinds(), func(k knownKind) bool { return k.group == group && k.kind == kind }):
		addWarning(fmt.Sprintf("%s nested in %s is ignored: declare it in its own file", objectTitle(n), objectTitle(holder)))
		return
	case kind != "" && group != "":
		holder = n
	}
	for i, c := range n.Content {
		if n.Kind == yamlnode.SequenceNode || n.Kind == yamlnode.MappingNode && i%2 == 1 {
			r.warnNested(c, holder)
		}
	}
}

// findChart returns the directory of the Helm chart that owns a templates directory. If charts are nested, it
// returns the outermost chart. It returns false if there is no chart.
func (l *loader) findChart(templates string) (string, bool) {
	isChart := func(dir string) bool {
		info, err := fs.Stat(l.fsys, path.Join(dir, "Chart.yaml"))
		return err == nil && info.Mode().IsRegular()
	}
	chart := path.Dir(templates)
	if path.Base(templates) != "templates" || !isChart(chart) {
		return "", false
	}
	for path.Base(path.Dir(chart)) == "charts" && isChart(path.Dir(path.Dir(chart))) {
		chart = path.Dir(path.Dir(chart))
	}
	return chart, true
}

// addTemplates lists the templates of charts as unread, if the charts were not rendered.
func (l *loader) addTemplates() {
	for chart, dirs := range l.charts {
		if l.rendered[chart] {
			continue
		}
		n := 0
		for _, dir := range dirs {
			n += l.countTemplates(dir)
		}
		l.ignored[chart] = n
	}
}

// countTemplates counts the manifests below the templates directory of a Helm chart. It lists templates that
// name an API group of OLM as unread.
func (l *loader) countTemplates(dir string) int {
	n := 0
	// Unreadable files are not counted.
	_ = fs.WalkDir(l.fsys, dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && isManifest(p) {
			n++
			if data, err := l.read(p); err == nil {
				l.addTemplate(p, data)
			}
		}
		return nil
	})
	return n
}

// addTemplate lists a template as unread if the template names an API group with declarations.
func (l *loader) addTemplate(file string, data []byte) {
	if !namesOLM(data) {
		return
	}
	u := newUnread(diag.Hintf(l.pos(file), chartHint, "is a Helm template"))
	u.Tolerated, u.text, u.partial = true, data, true
	l.unread = append(l.unread, u)
}

const chartHint = "list the directory of the chart, or the Application that applies it, in spec.declarations"

// warnTemplates returns a warning that lists the ignored Helm templates.
func (l *loader) warnTemplates() []diag.Warning {
	var names []string
	for _, chart := range slices.Sorted(maps.Keys(l.ignored)) {
		if n := l.ignored[chart]; n > 0 {
			names = append(names, fmt.Sprintf("%s of the chart %q", diag.Count(n, "file"), l.displayPath(chart)))
		}
	}
	for _, name := range l.looseTemplates {
		names = append(names, fmt.Sprintf("%q", l.displayPath(name)))
	}
	if len(names) == 0 {
		return nil
	}
	return []diag.Warning{{
		Code: "helm-templates",
		Msg:  fmt.Sprintf("Helm templates are ignored: %s: %s", diag.Some(names, 10), chartHint),
	}}
}

// isTemplate reports whether a file is a Helm template. This is the case if braces make the file
// invalid YAML, or if a declaration in it has braces in a plain scalar.
func isTemplate(r *reader, data []byte) bool {
	if len(r.docs) == 0 {
		return len(r.errs) > 0 && hasTemplateBraces(data)
	}
	return slices.ContainsFunc(r.docs, func(n *yamlnode.Node) bool {
		group, _, _ := strings.Cut(scalarField(n, "apiVersion"), "/")
		return isOurs(group) && group != string(OCM) && hasTemplate(n) // templates in policies have another syntax
	})
}

// hasTemplateBraces reports whether data contains "{{" outside of quotes and comments.
func hasTemplateBraces(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		before, _, found := strings.Cut(line, "{{")
		if found && strings.Count(before, `"`)%2 == 0 && strings.Count(before, "'")%2 == 0 && !strings.Contains(before, "#") {
			return true
		}
	}
	return false
}

// hasTemplate reports whether a plain scalar in or below n contains "{{" and "}}".
func hasTemplate(n *yamlnode.Node) bool {
	if n.Kind == yamlnode.ScalarNode {
		return n.Style == 0 && strings.Contains(n.Value, "{{") && strings.Contains(n.Value, "}}")
	}
	return slices.ContainsFunc(n.Content, hasTemplate)
}

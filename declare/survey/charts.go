package survey

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Chart describes how a tool templates a Helm chart.
type Chart struct {
	Release     string // empty: the name of the chart
	Namespace   string
	Files       []string       // files with values, in the repository; later files override earlier ones
	IgnoresGone bool           // whether missing Files are ignored
	Values      map[string]any // override those of Files
	Assignments []Assignment   // override Values
	KubeVersion string         // empty: that of the workspace
	APIVersions []string       // in addition to those of the workspace
	Fault       string         // reason why the input is unknown; empty: it is known
}

// Assignment sets a value, as with Helm's --set or --set-string.
type Assignment struct {
	Text   string
	AsText bool // as with --set-string
}

// To makes the assignment in values.
func (a Assignment) To(values map[string]any) error {
	return helm.Assign(values, strings.ReplaceAll(a.Text, unknownText, unknownValue), a.AsText)
}

// Templated is an object that a template of a chart creates.
type Templated struct {
	Pos     diag.Pos // position in the template, or of its beginning
	Text    []byte   // JSON
	Unknown string   // reason why the object is unknown; empty: it is known
}

// maxTemplated is the maximum number of charts with values that one survey or entry point templates.
const maxTemplated = 1_000

// unknownValue replaces unknownText in values of charts, where the text must be valid in YAML and in names.
const unknownValue = "qs0unknown0qs"

// chartFiles are the files of a chart.
type chartFiles struct {
	files map[string][]byte
	dirs  map[string]string // directories of subcharts from other directories, by their path in the chart
	meta  helm.Metadata
	err   error
}

// readChart returns the files of the chart in a directory. It reads each chart once.
func (r *repository) readChart(dir string) *chartFiles {
	c, known := r.charts[dir]
	if !known {
		c = &chartFiles{}
		if c.files, c.dirs, c.err = helm.ReadRepositoryChart(r.fsys, dir); c.err == nil {
			c.meta, c.err = helm.ReadMetadata(c.files)
		}
		if len(c.files) == 0 {
			r.walk(path.Join(dir, "templates"), func(name string) bool { c.files[name] = r.read(name); return true })
		}
		r.charts[dir] = c
	}
	return c
}

// mentions reports whether the values or a file of the chart contain an API group from the list, followed by a
// version. Packed subcharts are not searched.
func (c *chartFiles) mentions(groups [][]byte, values []byte) bool {
	for _, group := range groups {
		version := slices.Concat(group, []byte("/v"))
		if bytes.Contains(values, version) {
			return true
		}
		for name, data := range c.files {
			if !strings.HasSuffix(name, ".tgz") && bytes.Contains(data, version) {
				return true
			}
		}
	}
	return false
}

// template returns the objects that a tool creates from the chart in a.Dir, in Helm's order. It returns none if
// the chart mentions none of the API groups.
func (r *repository) template(charts *helm.Charts, groups [][]byte, a *Applied) ([]Templated, error) {
	c := r.readChart(a.Dir)
	values, err := r.chartValues(a.Chart)
	text, _ := json.Marshal(values)
	switch {
	case !c.mentions(groups, text):
		return nil, nil
	case c.err != nil:
		return nil, diag.MapPositions(c.err, func(p diag.Pos) diag.Pos { p.File = path.Join(a.Dir, p.File); return p })
	case a.Chart.Fault != "":
		return nil, errors.New(a.Chart.Fault)
	case err != nil:
		return nil, err
	}
	out, err := charts.Template(c.files, helm.Options{
		ReleaseName: strings.ReplaceAll(cmp.Or(a.Chart.Release, c.meta.Name), unknownText, unknownValue),
		Namespace:   strings.ReplaceAll(cmp.Or(a.Chart.Namespace, "default"), unknownText, unknownValue),
		KubeVersion: a.Chart.KubeVersion, APIVersions: a.Chart.APIVersions, Values: values,
	})
	if err != nil {
		return nil, diag.MapPositions(err, func(p diag.Pos) diag.Pos {
			if p.File != "" {
				p.File = c.fileOf(a.Dir, p.File)
			}
			return p
		})
	}
	var list []Templated
	for _, o := range out.Resources {
		if len(o.Hooks) > 0 && !slices.ContainsFunc(o.Hooks, func(hook string) bool { return strings.Contains(hook, "install") || strings.Contains(hook, "upgrade") }) {
			continue // hooks for tests and for deleting the release
		}
		text, err := json.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		t := Templated{Pos: r.templatePos(c.fileOf(a.Dir, o.Source), o.Object), Text: text}
		switch {
		case bytes.Contains(text, []byte(unknownValue)):
			t.Unknown = "a value of the chart is not available offline"
		case slices.Contains(out.Lookups, o.Source):
			t.Unknown = "its template calls lookup, whose result is not available offline"
		}
		list = append(list, t)
	}
	return list, nil
}

// chartValues returns the values that a tool gives to a chart.
func (r *repository) chartValues(c *Chart) (map[string]any, error) {
	merged := map[string]any{}
	for _, name := range c.Files {
		data := r.read(name)
		if data == nil {
			if _, err := fs.Stat(r.fsys, name); c.IgnoresGone && err != nil {
				continue
			}
			return nil, fmt.Errorf("file with values %q cannot be read", name)
		}
		docs, err := yamlnode.Objects(name, data, yamlnode.Limits{Bytes: maxSize, Repeated: true})
		if err != nil {
			return nil, err
		}
		for _, doc := range docs {
			merged = k8s.Merge(merged, doc)
		}
	}
	// Decode a copy, so that assignments do not change the values of the entry point.
	text, err := json.Marshal(k8s.Merge(merged, c.Values))
	if err != nil {
		return nil, err
	}
	docs, err := yamlnode.Objects("values", bytes.ReplaceAll(text, []byte(`\u0000`), []byte(unknownValue)), yamlnode.Limits{Bytes: 4 * maxSize})
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, doc := range docs {
		out = doc
	}
	for _, s := range c.Assignments {
		if err := s.To(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fileOf returns the path of a template in the repository. source is its path in Helm's output, with the
// chart's name first.
func (c *chartFiles) fileOf(dir, source string) string {
	_, in, _ := strings.Cut(source, "/")
	for at := path.Dir(in); at != "."; at = path.Dir(at) {
		if from, is := c.dirs[at]; is {
			return path.Join(from, strings.TrimPrefix(in, at))
		}
	}
	return path.Join(dir, in)
}

// templatePos returns the position of the document in file that creates an object: the document with the same
// kind and name or, if there is none, the first document with the same kind.
func (r *repository) templatePos(file string, object map[string]any) diag.Pos {
	kind := regexp.MustCompile(`^[\s-]*["']?kind["']?:\s*["']?` + regexp.QuoteMeta(k8s.Text(object, "kind")) + `["']?\s*$`)
	name := regexp.MustCompile(`(?:^|[\s{,])["']?name["']?:\s*["']?` + regexp.QuoteMeta(k8s.Text(object, "metadata", "name")) + `["']?\s*(?:$|[,}#])`)
	first, start, open := diag.Pos{File: file, Line: 1, Col: 1}, 1, diag.Pos{}
	found := false
	for i, line := range strings.Split(string(r.read(file)), "\n") {
		switch {
		case strings.HasPrefix(line, "---"):
			start, open = i+2, diag.Pos{}
		case strings.HasPrefix(strings.TrimLeft(line, " -"), "apiVersion:"):
			start, open = i+1, diag.Pos{}
		case kind.MatchString(line):
			open = diag.Pos{File: file, Line: start, Col: 1}
			if !found {
				first, found = open, true
			}
		case !open.IsZero() && name.MatchString(line):
			return open
		}
	}
	return first
}

// chartReason returns the reason why the templates of a chart are not read.
func chartReason(dir string, cause error) string {
	if cause == nil {
		return fmt.Sprintf("the Helm chart %q is not rendered", dir)
	}
	return fmt.Sprintf("the Helm chart %q cannot be rendered: %v", dir, cause)
}

// templatedChart is the result of templating a chart with some values.
type templatedChart struct {
	declarations []*Declaration
	entries      []entryObject
	err          error
}

// addTemplated templates the chart in a.Dir. If several entry points apply the chart with the same values, it
// templates the chart once. It adds the resulting declarations, and the resulting objects of GitOps tools as
// entries. It returns an error if the chart names API groups of such objects, but cannot be templated.
func (s *scanner) addTemplated(a *Applied) error {
	if a.Chart == nil {
		if !s.repo.readChart(a.Dir).mentions(s.groups, nil) {
			return nil
		}
		return errors.New("its tool renders no charts")
	}
	input, err := json.Marshal(a.Chart)
	if err != nil {
		return err
	}
	key := a.Dir + "\n" + a.Changes.DefaultNamespace + "\n" + string(input)
	c, known := s.templated[key]
	if !known {
		c = &templatedChart{}
		s.templated[key] = c
		if len(s.templated) > maxTemplated {
			c.err = fmt.Errorf("more than %d charts with different values", maxTemplated)
		} else {
			s.readTemplated(c, a)
		}
		for _, o := range c.entries {
			o.within = a
			s.addEntry(o)
		}
	}
	if a.Entry.By != "" {
		for _, d := range c.declarations {
			d.applied = append(d.applied, a)
		}
	}
	return c.err
}

// readTemplated sets the fields of c, from the objects that the tool creates from the chart in a.Dir.
func (s *scanner) readTemplated(c *templatedChart, a *Applied) {
	objects, err := s.repo.template(s.charts, s.groups, a)
	c.err = err
	for _, o := range objects {
		if !isRelevant(s.groups, o.Text) {
			continue
		}
		docs, err := yamlnode.Documents(o.Pos.File, o.Text, yamlnode.Limits{Bytes: maxSize, Nodes: 200_000})
		if err != nil {
			c.err = err
			continue
		}
		before, entries := s.Declarations, s.objects
		s.Declarations, s.objects = nil, nil
		for _, n := range docs {
			s.scanDocument(o.Pos.File, n)
		}
		for _, d := range s.Declarations {
			if holder := s.holders[d.Pos]; holder != nil {
				holder.Pos = o.Pos
				s.holders[o.Pos] = holder
			}
			d.Pos, d.templated = o.Pos, true
			if d.Obstacle == "" && o.Unknown != "" {
				d.Obstacle = "is not read: " + o.Unknown
			}
			d.Namespace = cmp.Or(d.Namespace, a.Changes.DefaultNamespace)
			c.declarations = append(c.declarations, &d)
		}
		for _, e := range s.objects {
			e.pos = o.Pos
			c.entries = append(c.entries, e)
		}
		s.Declarations, s.objects = before, entries
	}
}

// templateCharts templates the charts that workspaces name, the charts that entries apply, and the charts that entries
// in these charts apply. The resulting declarations replace the declarations found in the text of templates.
func (s *scanner) templateCharts() {
	done, faults := map[string]bool{}, map[string]error{}
	template := func(a *Applied) {
		switch err := s.addTemplated(a); {
		case err == nil:
			done[a.Dir] = true
		default:
			faults[a.Dir] = err
			if a.Entry.By != "" {
				a.Entry.addUnknown(chartReason(a.Dir, err))
			}
		}
	}
	for _, a := range s.named {
		if s.repo.isChart(a.Dir) {
			template(a)
		}
	}
	for i := 0; i < len(s.Entries); i++ {
		for _, a := range s.Entries[i].Applied {
			if a.Guess == "" && s.repo.isChart(a.Dir) {
				template(a)
			}
		}
	}
	read := map[string]bool{} // directories of the charts, and of their subcharts
	for dir := range done {
		read[dir] = true
		for _, from := range s.repo.readChart(dir).dirs {
			read[from] = true
		}
	}
	var kept []Declaration
	for _, d := range s.Declarations {
		chart, in := s.repo.chartOf(d.Pos.File)
		fault := faults[chart]
		switch {
		case !in:
		case fault != nil && !done[chart]:
			d.Obstacle = "is in a template: " + chartReason(chart, fault)
		case read[chart] || slices.ContainsFunc(parents(chart), func(dir string) bool { return read[dir] }):
			continue
		}
		kept = append(kept, d)
	}
	s.Declarations = kept
	for _, key := range slices.Sorted(maps.Keys(s.templated)) {
		c := s.templated[key]
		for _, d := range c.declarations {
			s.Declarations = append(s.Declarations, *d)
		}
	}
	s.rendered = read
}

// parents returns the directories above dir, without the top of the repository.
func parents(dir string) []string {
	var out []string
	for dir = path.Dir(dir); dir != "."; dir = path.Dir(dir) {
		out = append(out, dir)
	}
	return out
}

// ArgoChart returns the settings with which Argo CD templates the chart in dir. source is the source of the
// chart in the Application app. foreign reports whether a URL belongs to another repository.
func ArgoChart(source, app map[string]any, dir string, foreign func(url string) bool) *Chart {
	name, spec := k8s.Text(app, "metadata", "name"), k8s.Map(app, "spec")
	h := k8s.Map(source, "helm")
	c := &Chart{
		Release: cmp.Or(k8s.Text(h, "releaseName"), name), Namespace: cmp.Or(k8s.Text(h, "namespace"), k8s.Text(spec, "destination", "namespace")),
		KubeVersion: k8s.Text(h, "kubeVersion"), APIVersions: k8s.Texts(h, "apiVersions"), Values: k8s.Map(h, "valuesObject"),
	}
	c.IgnoresGone, _ = h["ignoreMissingValueFiles"].(bool)
	// As Argo CD does, replace the variables of its build environment.
	env := strings.NewReplacer(
		"${ARGOCD_APP_NAME}", name, "$ARGOCD_APP_NAMESPACE", c.Namespace, "${ARGOCD_APP_NAMESPACE}", c.Namespace, "$ARGOCD_APP_NAME", name,
		"$ARGOCD_APP_SOURCE_PATH", dir, "${ARGOCD_APP_SOURCE_PATH}", dir,
	).Replace
	for _, file := range k8s.Texts(h, "valueFiles") {
		c.addFile(env(file), dir, valueSources(spec, foreign))
	}
	if text := k8s.Text(h, "values"); text != "" && c.Values == nil {
		docs, err := yamlnode.Objects("values", []byte(strings.ReplaceAll(text, unknownText, unknownValue)), yamlnode.Limits{Bytes: maxSize, Repeated: true})
		if err != nil {
			c.Fault = fmt.Sprintf("helm.values is not valid YAML: %v", err)
		}
		for _, doc := range docs {
			c.Values = doc
		}
	}
	for _, p := range k8s.Items(h, "parameters") {
		asText, _ := p["forceString"].(bool)
		value := env(k8s.Text(p, "value"))
		if !strings.HasPrefix(value, "{") {
			value = regexp.MustCompile(`\\?,`).ReplaceAllString(value, `\,`)
		}
		c.Assignments = append(c.Assignments, Assignment{k8s.Text(p, "name") + "=" + value, asText})
	}
	if len(k8s.List(h, "fileParameters")) > 0 {
		c.Fault = "helm.fileParameters is not supported"
	}
	return c
}

// valueSources returns a map of the sources of an Application that have a ref. The key is the ref. The value is
// true if the source is in another repository.
func valueSources(spec map[string]any, foreign func(url string) bool) map[string]bool {
	out := map[string]bool{}
	for _, source := range k8s.Items(spec, "sources") {
		if ref := k8s.Text(source, "ref"); ref != "" {
			out[ref] = foreign(k8s.Text(source, "repoURL"))
		}
	}
	return out
}

// addFile adds a values file of an Application whose chart is in dir. sources is the result of valueSources.
func (c *Chart) addFile(file, dir string, sources map[string]bool) {
	ref, rest, _ := strings.Cut(file, "/")
	foreign, isSource := sources[strings.TrimPrefix(ref, "$")]
	switch {
	case strings.Contains(file, unknownText):
		c.Fault = fmt.Sprintf("the file with values %q is not available offline", strings.ReplaceAll(file, unknownText, "*"))
	case strings.HasPrefix(file, "$") && isSource && !foreign:
		c.Files = append(c.Files, cleanDir(rest))
	case strings.HasPrefix(file, "$"), strings.Contains(file, "://"):
		c.Fault = fmt.Sprintf("the file with values %q is in another repository", file)
	case strings.HasPrefix(file, "/"):
		c.Files = append(c.Files, cleanDir(file))
	default:
		c.Files = append(c.Files, path.Join(dir, file))
	}
}

package survey

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

const argoGroup = "argoproj.io"

// addApplication adds the directories that an Application applies. n is the Application, or an ApplicationSet
// that creates it. fields are the fields of the Application. fieldPath is the path of its spec in n.
func (s *scanner) addApplication(e *Entry, n *yamlnode.Node, fields map[string]any, fieldPath string) {
	spec := k8s.Map(fields, "spec")
	destination := k8s.Map(spec, "destination")
	cluster := k8s.Text(destination, "name")
	if cluster == "" {
		cluster = k8s.Text(destination, "server")
	}
	if installsChart(spec) {
		s.chartTargets = append(s.chartTargets, known(cluster))
	}
	add := func(source map[string]any, where string) {
		dir := cleanDir(k8s.Text(source, "path"))
		if url := k8s.Text(source, "repoURL"); IsChartSource(k8s.Text(source, "chart"), url) || k8s.Text(source, "path") == "" && source["path"] == nil || s.isForeign(url) {
			return
		}
		a := Applied{Entry: e, Pos: e.at(n, fieldPath+"."+where+".path"), Dir: dir, Cluster: cluster}
		s.addDirs(e, a, func(a *Applied) {
			final := s.overrideSource(source, a.Dir, k8s.Text(fields, "metadata", "name"))
			a.recurse, _ = k8s.Map(final, "directory")["recurse"].(bool)
			a.include, a.exclude = k8s.Text(final, "directory", "include"), k8s.Text(final, "directory", "exclude")
			a.Changes = argoChanges(final, k8s.Text(destination, "namespace"))
			if s.repo.isChart(a.Dir) && final["directory"] == nil {
				a.Chart = ArgoChart(final, fields, a.Dir, s.isForeign)
			}
		})
	}
	if source := k8s.Map(spec, "source"); source != nil {
		add(source, "source")
	}
	for i, item := range k8s.List(spec, "sources") {
		source, _ := item.(map[string]any)
		add(source, diag.Item("sources", i))
	}
}

// overrideSource returns the source of an Application, with the parameters in the .argocd-source files of dir.
// name is the name of the Application.
func (s *scanner) overrideSource(source map[string]any, dir, name string) map[string]any {
	for _, file := range []string{".argocd-source.yaml", ".argocd-source-" + name + ".yaml"} {
		var more map[string]any
		if data := s.repo.read(path.Join(dir, file)); data != nil && yaml.Unmarshal(data, &more) == nil {
			source = k8s.Merge(source, more)
		}
	}
	return source
}

// argoChanges returns the changes that an Application makes, according to its source and destination namespace.
func argoChanges(source map[string]any, namespace string) Changes {
	c := Changes{DefaultNamespace: known(namespace)}
	if strings.Contains(namespace, unknownText) {
		c.Unknown = append(c.Unknown, "the destination namespace")
	}
	if plugin := k8s.Text(source, "plugin", "name"); source["plugin"] != nil && !replacesPlaceholders(plugin) {
		c.Unknown = append(c.Unknown, "the output of a plugin")
	}
	k := k8s.Map(source, "kustomize")
	if k == nil {
		return c
	}
	if data, err := yaml.Marshal(k); err != nil || strings.Contains(string(data), `\0`) {
		c.Unknown = append(c.Unknown, "spec.source.kustomize")
		return c
	}
	c.Namespace, c.NamePrefix, c.NameSuffix = k8s.Text(k, "namespace"), k8s.Text(k, "namePrefix"), k8s.Text(k, "nameSuffix")
	c.Labels, c.Annotations = k8s.TextMap(k, "commonLabels"), k8s.TextMap(k, "commonAnnotations")
	c.Components = k8s.Texts(k, "components")
	for _, text := range k8s.Texts(k, "images") {
		c.Images = append(c.Images, parseImage(text))
	}
	var typed struct {
		Patches []types.Patch `json:"patches"`
	}
	data, err := yaml.Marshal(k)
	if err == nil {
		err = yaml.Unmarshal(data, &typed)
	}
	if err != nil {
		c.Unknown = append(c.Unknown, "spec.source.kustomize.patches")
	}
	c.Patches = typed.Patches
	return c
}

// replacesPlaceholders reports whether a plugin only replaces placeholders in the output of
// kustomize. The output of such a plugin is known, except for declarations with placeholders, which
// count as unread.
func replacesPlaceholders(plugin string) bool {
	return strings.Contains(plugin, "vault") || strings.Contains(plugin, "avp")
}

// parseImage parses an image override in the syntax of 'kustomize edit set image'.
func parseImage(text string) types.Image {
	name, replacement, has := strings.Cut(text, "=")
	if !has {
		replacement = name
		name = splitImage(name).NewName
	}
	out := splitImage(replacement)
	out.Name = name
	return out
}

// splitImage returns the parts of an image reference.
func splitImage(text string) types.Image {
	name, digest, _ := strings.Cut(text, "@")
	tag := ""
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name, tag = name[:i], name[i+1:]
	}
	return types.Image{NewName: name, NewTag: tag, Digest: digest}
}

// SelectLabel is a label of objects of a GitOps tool that install a chart. The value "true" means that the
// chart is an operator.
const SelectLabel = "quayside.dev/operator"

// IsSelected reports whether an object of a GitOps tool has the label that selects it as a declaration.
func IsSelected(n *yamlnode.Node) bool {
	_, meta := yamlnode.Field(n, "metadata")
	_, labels := yamlnode.Field(meta, "labels")
	_, value := yamlnode.Field(labels, SelectLabel)
	text, _ := yamlnode.Text(value)
	return text == "true"
}

// InstallsChart reports whether an Application installs a chart of another repository, and nothing else. For an
// ApplicationSet, all its Applications must do so.
func InstallsChart(n *yamlnode.Node) bool {
	spec := k8s.Map(decode(n), "spec")
	if template := k8s.Map(spec, "template"); template != nil {
		spec = k8s.Map(template, "spec")
	}
	return installsChart(spec)
}

// installsChart is like InstallsChart. spec is the spec of an Application.
func installsChart(spec map[string]any) bool {
	sources := k8s.Items(spec, "sources")
	if len(sources) == 0 {
		sources = []map[string]any{k8s.Map(spec, "source")}
	}
	charts := 0
	for _, s := range sources {
		switch {
		case IsChartSource(k8s.Text(s, "chart"), k8s.Text(s, "repoURL")):
			charts++
		case k8s.Text(s, "ref") == "" || k8s.Text(s, "path") != "":
			return false
		}
	}
	return charts > 0
}

// IsChartSource reports whether a source with this chart and repoURL in an Application is a Helm chart.
func IsChartSource(chart, url string) bool { return chart != "" || strings.HasPrefix(url, "oci://") }

// Applications returns the Applications that an ApplicationSet creates, and the reasons why it may create
// others. Use [IsKnown] to check whether all values in an Application are known.
func (r *Reader) Applications(n *yamlnode.Node) (apps []map[string]any, unknown []string) {
	e := &Entry{}
	r.scanner().generate(e, n, func(app map[string]any, err error) {
		if apps = append(apps, app); err != nil {
			e.addUnknown(err.Error())
		}
	})
	return apps, e.unknown
}

// addApplicationSet adds the directories that the Applications of an ApplicationSet apply.
func (s *scanner) addApplicationSet(e *Entry, n *yamlnode.Node) {
	s.generate(e, n, func(app map[string]any, err error) {
		applied, unknown := len(e.Applied), len(e.unknown)
		s.addApplication(e, n, app, "spec.template.spec")
		if err != nil && len(e.Applied) == applied {
			e.unknown = e.unknown[:unknown] // report the fault of the template instead of its consequences
			e.addUnknown(err.Error())
		}
	})
}

// generate calls add for each Application that an ApplicationSet creates, with the error of evaluating the
// template. It adds the faults of generators to e.
func (s *scanner) generate(e *Entry, n *yamlnode.Node, add func(app map[string]any, err error)) {
	fields := decode(n)
	spec := k8s.Map(fields, "spec")
	goTemplate, _ := spec["goTemplate"].(bool)
	g := generator{repo: s.repo, foreign: s.isForeign, renderer: renderer{goTemplate: goTemplate, options: k8s.Texts(spec, "goTemplateOptions")}}
	for _, item := range k8s.List(spec, "generators") {
		one, _ := item.(map[string]any)
		list, err := g.generate(one, params{}, 0)
		if err != nil {
			e.addUnknown(err.Error())
			continue
		}
		template := k8s.Merge(k8s.Map(spec, "template"), generatorTemplate(one))
		for i, p := range list {
			if i > maxApplied || len(e.Applied) > maxApplied {
				e.addUnknown(fmt.Sprintf("it makes more than %d Applications", maxApplied))
				return
			}
			v, err := g.object(template, p)
			app, _ := v.(map[string]any)
			app = s.patchTemplate(e, g, k8s.Text(spec, "templatePatch"), app, p)
			add(app, err)
		}
	}
}

// generatorTemplate returns the fields in the template of a generator. These fields override the fields of
// the ApplicationSet's template.
func generatorTemplate(generator map[string]any) map[string]any {
	for _, v := range generator {
		if fields, isMap := v.(map[string]any); isMap && fields["template"] != nil {
			return k8s.Map(fields, "template")
		}
	}
	return nil
}

// patchTemplate applies spec.templatePatch to an Application of an ApplicationSet.
func (s *scanner) patchTemplate(e *Entry, g generator, patch string, app map[string]any, p params) map[string]any {
	if patch == "" {
		return app
	}
	v, err := g.object(patch, p)
	text, _ := v.(string)
	var fields map[string]any
	if err == nil && !strings.Contains(text, unknownText) {
		err = yaml.Unmarshal([]byte(text), &fields)
	}
	switch {
	case err != nil && strings.Contains(patch, "source"), strings.Contains(text, unknownText):
		e.addUnknown("spec.templatePatch cannot be evaluated")
	case err == nil:
		return k8s.Merge(app, fields)
	}
	return app
}

func (e *Entry) addUnknown(reason string) {
	if !slices.Contains(e.unknown, reason) && len(e.unknown) < 10 {
		e.unknown = append(e.unknown, reason)
	}
}

// known returns text if all of text is known, or else "".
func known(text string) string {
	if strings.Contains(text, unknownText) || strings.Contains(text, "{{") {
		return ""
	}
	return text
}

func cleanDir(name string) string { return path.Clean(strings.TrimPrefix(name, "/")) }

package overlay

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Plugin is a generator, transformer or validator that is a program or renders a Helm chart.
type Plugin struct {
	Pos        diag.Pos // position of the reference in the kustomization
	APIVersion string   // apiVersion of its configuration; "" for helmCharts and directories
	Kind       string   // kind of its configuration, such as "ksops"
	Chart      string   // name of the Helm chart
	Repo       string   // location of the Helm chart; may be empty
	Dir        string   // directory of the Helm chart, if the source has it
	Transforms bool     // whether it changes objects, rather than generating them
	Err        error    // error of its evaluation; nil for a program
}

// Renders reports whether the plugin renders a Helm chart.
func (p Plugin) Renders() bool { return strings.HasPrefix(strings.ToLower(p.Kind), "helmchart") }

// String returns the plugin for messages, such as "ksops of viaduct.ai/v1".
func (p Plugin) String() string {
	switch {
	case p.Kind == "helmCharts":
		return fmt.Sprintf("Helm chart %q", p.Chart)
	case p.Renders() && p.Chart != "":
		return fmt.Sprintf("%s of the chart %q", p.Kind, p.Chart)
	case p.Renders() || p.APIVersion == "":
		return p.Kind
	default:
		return p.Kind + " of " + p.APIVersion
	}
}

// Hint returns the hint how to replace the plugin by its output.
func (p Plugin) Hint() string {
	if p.Renders() {
		return "render the chart into the repository with 'helm template', and list the file under resources"
	}
	return "write its output into the repository, and list the file under resources"
}

// fault returns the error that reports the plugin, for a build that does not skip plugins.
func (p Plugin) fault() error {
	if p.Renders() {
		return diag.Hintf(p.Pos, p.Hint(), "%s is not supported: Helm charts are not rendered", p)
	}
	return diag.Hintf(p.Pos, p.Hint(), "plugin %s is not supported, because it runs a program: use only plugins of kustomize itself (apiVersion: builtin)", p)
}

// addCharts skips the charts in the field helmCharts of o if f is tolerant. Otherwise it returns an
// error for each chart.
func (f *Files) addCharts(o *Overlay) error {
	var faults diag.List
	for i, chart := range o.kustomization.HelmCharts {
		p := Plugin{Pos: o.position(fmt.Sprintf("helmCharts[%d]", i)), Kind: "helmCharts", Chart: chart.Name, Repo: chart.Repo, Dir: f.chartDir(o, chart)}
		if f.tolerant {
			o.Skipped = append(o.Skipped, p)
		} else {
			faults.Add(p.Pos, p.fault())
		}
	}
	o.kustomization.HelmCharts = nil
	return faults.Err()
}

// chartDir returns the directory in which kustomize looks for a chart before downloading the chart. It
// returns "" if this directory has no chart.
func (f *Files) chartDir(o *Overlay, chart types.HelmChart) string {
	home := types.HelmDefaultHome
	if g := o.kustomization.HelmGlobals; g != nil && g.ChartHome != "" {
		home = g.ChartHome
	}
	dir := path.Join(o.Dir, home)
	if chart.Version != "" && chart.Repo != "" {
		dir = path.Join(dir, chart.Name+"-"+chart.Version)
	}
	dir = path.Join(dir, chart.Name)
	if !fs.ValidPath(dir) || path.IsAbs(home) {
		return ""
	}
	if _, err := f.source.ReadFile(path.Join(dir, "Chart.yaml")); err != nil {
		return ""
	}
	return dir
}

// addPlugins adds the files that plugin configurations refer to. data is the content of file, which
// r refers to. Only the plugins of kustomize itself are allowed, because other plugins are programs.
func (f *Files) addPlugins(o *Overlay, r reference, file string, data []byte) error {
	o.hasOptionalFiles = true
	docs, err := yamlnode.Documents(file, data, yamlnode.Limits{})
	if err != nil {
		return err
	}
	var objects []map[string]any
	for _, doc := range docs {
		text, err := yamlnode.JSON(doc)
		if err != nil {
			return err
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			return err
		}
		objects = append(objects, object)
	}
	var fault error
	if f.list != nil && r.generates() && isPolicyGenerator(objects) {
		if fault = f.addPolicies(o, r, file, docs); fault == nil {
			return nil
		}
	}
	for _, object := range objects {
		p := Plugin{Pos: o.position(r.field), APIVersion: k8s.Text(object, "apiVersion"), Kind: k8s.Text(object, "kind"), Chart: k8s.Text(object, "name"), Transforms: !r.generates(), Err: fault}
		switch isOwn := p.APIVersion == "builtin" && !strings.HasPrefix(p.Kind, "Helm"); {
		case !isOwn && f.tolerant:
			o.skip(r, p)
			return nil
		case !isOwn:
			return p.fault()
		case k8s.Text(object, "metadata", "name") == "":
			return fmt.Errorf("%s: metadata.name is missing", p.Kind)
		}
	}
	for _, object := range objects {
		if err := f.addPluginFiles(o, object); err != nil {
			return err
		}
	}
	return nil
}

// generates reports whether the reference is in the field generators.
func (r reference) generates() bool { return strings.HasPrefix(r.field, "generators") }

// skip removes a plugin from the build of o.
func (o *Overlay) skip(r reference, p Plugin) {
	o.Skipped = append(o.Skipped, p)
	isIt := func(name string) bool { return name == r.name }
	k := &o.kustomization // copy lists before changing them: they are shared
	k.Generators = slices.DeleteFunc(slices.Clone(k.Generators), isIt)
	k.Transformers = slices.DeleteFunc(slices.Clone(k.Transformers), isIt)
	k.Validators = slices.DeleteFunc(slices.Clone(k.Validators), isIt)
}

// withoutSkipped returns the text of the kustomization without skipped plugins.
func (o *Overlay) withoutSkipped() []byte {
	k := o.kustomization
	if len(k.ConfigMapGenerator)+len(k.SecretGenerator) == 0 { // add a field without effect, because kustomize refuses an empty kustomization
		k.GeneratorOptions = &types.GeneratorOptions{DisableNameSuffixHash: true}
	}
	data, err := json.Marshal(k)
	if err != nil {
		panic(err) // impossible: it was decoded from YAML
	}
	return data
}

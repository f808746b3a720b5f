package declare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// flux is the dialect of Flux's HelmRelease.
const flux Dialect = "helm.toolkit.fluxcd.io"

// fluxSources is the API group of Flux's sources.
const fluxSources = "source.toolkit.fluxcd.io"

type specHelmRelease struct {
	Chart            *fluxChart      `json:"chart"`
	ChartRef         *fluxRef        `json:"chartRef"`
	ReleaseName      string          `json:"releaseName"`
	TargetNamespace  string          `json:"targetNamespace"`
	Values           json.RawMessage `json:"values"`
	ValuesFrom       []fluxValues    `json:"valuesFrom"`
	PostRenderers    json.RawMessage `json:"postRenderers"`
	CommonMetadata   json.RawMessage `json:"commonMetadata"`
	KubeConfig       json.RawMessage `json:"kubeConfig"`
	Interval         string          `json:"interval"`
	Suspend          bool            `json:"suspend"`
	StorageNamespace string          `json:"storageNamespace"`
	Timeout          string          `json:"timeout"`
	MaxHistory       json.RawMessage `json:"maxHistory"`
	ServiceAccount   string          `json:"serviceAccountName"`
	PersistentClient json.RawMessage `json:"persistentClient"`
	DependsOn        json.RawMessage `json:"dependsOn"`
	DriftDetection   json.RawMessage `json:"driftDetection"`
	Install          json.RawMessage `json:"install"`
	Upgrade          json.RawMessage `json:"upgrade"`
	Test             json.RawMessage `json:"test"`
	Rollback         json.RawMessage `json:"rollback"`
	Uninstall        json.RawMessage `json:"uninstall"`
	WaitStrategy     json.RawMessage `json:"waitStrategy"`
	HealthChecks     json.RawMessage `json:"healthCheckExprs"`
}

type fluxChart struct {
	Metadata json.RawMessage `json:"metadata"`
	Spec     struct {
		Chart             string          `json:"chart"`
		Version           string          `json:"version"`
		SourceRef         fluxRef         `json:"sourceRef"`
		Interval          string          `json:"interval"`
		ReconcileStrategy string          `json:"reconcileStrategy"`
		ValuesFiles       []string        `json:"valuesFiles"`
		IgnoreMissing     bool            `json:"ignoreMissingValuesFiles"`
		Verify            json.RawMessage `json:"verify"`
	} `json:"spec"`
}

type fluxValues struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	ValuesKey  string `json:"valuesKey"`
	TargetPath string `json:"targetPath"`
	Optional   bool   `json:"optional"`
}

type fluxRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
}

func fieldsFlux() map[Field]string {
	return map[Field]string{
		FieldNamespace: "spec.targetNamespace", FieldPackage: "spec.chart.spec.chart", FieldRange: "spec.chart.spec.version",
		FieldCatalog: "spec.chart.spec.sourceRef", FieldCatalogNamespace: "spec.chart.spec.sourceRef", FieldValues: "spec.values",
	}
}

// readHelmRelease reads a HelmRelease as a Subscription for its chart. Fields that have no equivalent are faults.
func (r *reader) readHelmRelease(n *yamlnode.Node) {
	var o typedObject[specHelmRelease, json.RawMessage]
	c := r.decode(n, &o)
	c.Name("metadata.name", o.Metadata.Name)
	c.Namespace("metadata.namespace", o.Metadata.Namespace)
	s := Subscription{
		Dialect: flux, Name: o.Metadata.Name, Namespace: o.Metadata.Namespace, Release: o.Metadata.Name,
	}
	if ns := o.Spec.TargetNamespace; ns != "" {
		c.Namespace("spec.targetNamespace", ns)
		s.Namespace, s.Release = ns, ns+"-"+s.Name
	}
	if o.Spec.ReleaseName != "" {
		s.Release = o.Spec.ReleaseName
		c.checkRelease("spec.releaseName", s.Release)
	}
	ref, at, local := fluxRef{}, "spec.chart.spec.sourceRef", ""
	switch {
	case o.Spec.ChartRef != nil:
		ref, at = *o.Spec.ChartRef, "spec.chartRef"
		c.oneOf(at+".kind", ref.Kind, "OCIRepository")
	case o.Spec.Chart != nil:
		chart := o.Spec.Chart.Spec
		ref, s.Package, s.Range = chart.SourceRef, chart.Chart, chart.Version
		c.oneOf(at+".kind", ref.Kind, "HelmRepository", "GitRepository")
		if ref.Kind == "GitRepository" {
			local, s.Range = path.Clean(s.Package), "" // Flux ignores the version, too
		} else {
			c.Name("spec.chart.spec.chart", s.Package)
		}
		c.reject("spec.chart.spec.valuesFiles", len(chart.ValuesFiles) > 0, "these files are in the chart: copy their values into spec.values")
		c.reject("spec.chart.spec.verify", len(chart.Verify) > 0, "use spec.trust in quayside.yaml")
	default:
		c.Addf("spec.chart", "missing")
	}
	c.Name(at+".name", ref.Name)
	for i, v := range o.Spec.ValuesFrom {
		from := diag.Item("spec.valuesFrom", i)
		c.reject(from+".kind", v.Kind == "Secret", fmt.Sprintf("Secret %q is not available offline; let the operator read it in the cluster", v.Name))
		c.oneOf(from+".kind", v.Kind, "ConfigMap", "Secret")
		c.reject(from+".targetPath", v.TargetPath != "", "write the value into spec.values")
		s.ValuesFrom = append(s.ValuesFrom, ValuesRef{o.Metadata.Namespace + "/" + v.Name, cmp.Or(v.ValuesKey, "values.yaml"), v.Optional})
	}
	c.reject("spec.postRenderers", len(o.Spec.PostRenderers) > 0, "use an overlay of quayside")
	c.reject("spec.commonMetadata", len(o.Spec.CommonMetadata) > 0, "use an overlay of quayside")
	c.reject("spec.kubeConfig", len(o.Spec.KubeConfig) > 0, "use spec.clusters in quayside.yaml")
	if ref.Namespace == "" {
		ref.Namespace = o.Metadata.Namespace
	}
	source := fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
	if local != "" {
		source += " " + local
		s.Package = r.addLocalChart(c.At("spec.chart.spec.chart"), source, ref.Name, local)
	}
	r.declareChart(c, s, source, c.mapping("spec.values", o.Spec.Values))
}

// addLocalChart adds the catalog of a chart in the directory dir of this repository. source is the ID of the
// catalog. name is the name of a GitRepository, which is assumed to be this repository. addLocalChart returns
// the name of the chart, or "" if it has added a fault.
func (r *reader) addLocalChart(pos diag.Pos, source, name, dir string) string {
	chart := ""
	if r.chartIn != nil && fs.ValidPath(dir) {
		chart = r.chartIn(dir)
	}
	if chart == "" {
		r.errs.Add(pos, diag.Hintf(pos, "copy the chart into this repository, or use a HelmRepository or an OCIRepository", "%q is not a directory of this repository with a chart", dir))
		return ""
	}
	r.set.ChartSources = append(r.set.ChartSources, ChartSource{ID: source, Name: name + "-" + chart, URL: "dir:" + r.locate(dir), Pos: pos})
	return chart
}

// readChartSource records a HelmRepository or an OCIRepository, for the HelmReleases that refer to it.
func (r *reader) readChartSource(n *yamlnode.Node) {
	_, meta := yamlnode.Field(n, "metadata")
	_, ref := yamlnode.Field(specOf(n), "ref")
	kind := scalarField(n, "kind")
	src := ChartSource{
		ID: fmt.Sprintf("%s %s/%s", kind, scalarField(meta, "namespace"), scalarField(meta, "name")), Name: scalarField(meta, "name"),
		URL: strings.TrimSuffix(scalarField(specOf(n), "url"), "/"), OCI: kind == "OCIRepository" || scalarField(specOf(n), "type") == "oci", Pos: r.at(n),
	}
	if src.Range = scalarField(ref, "semver"); src.Range == "" {
		src.Range = scalarField(ref, "tag")
	}
	for _, field := range []string{"digest", "semverFilter"} {
		if scalarField(ref, field) != "" {
			src.Fault = fmt.Sprintf("%s has spec.ref.%s, which is not supported: use spec.ref.tag or spec.ref.semver", src.ID, field)
		}
	}
	if diag.HasLogin(src.URL) {
		src.Fault = src.ID + " has a user name or a password in spec.url: log in to the host, as for images"
	}
	r.set.ChartSources = append(r.set.ChartSources, src)
}

// ValuesRef is a reference from a HelmRelease to values in a ConfigMap.
type ValuesRef struct {
	ConfigMap string // "namespace/name"
	Key       string
	Optional  bool // whether the ConfigMap or the key may be missing
}

// ConfigMap is a declared ConfigMap, which HelmReleases may refer to.
type ConfigMap struct {
	ID   string // "namespace/name"
	Data map[string]string
	Pos  diag.Pos
}

func (r *reader) readConfigMap(n *yamlnode.Node) {
	_, meta := yamlnode.Field(n, "metadata")
	_, data := yamlnode.Field(n, "data")
	m := ConfigMap{scalarField(meta, "namespace") + "/" + scalarField(meta, "name"), map[string]string{}, r.at(n)}
	if data != nil && data.Kind == yamlnode.MappingNode {
		for i := 0; i+1 < len(data.Content); i += 2 {
			m.Data[data.Content[i].Value], _ = yamlnode.Text(data.Content[i+1])
		}
	}
	r.set.ConfigMaps = append(r.set.ConfigMaps, m)
}

// addReferredValues merges the values in the ConfigMaps that d refers to, in this order, and then d's own values.
func (s *Set) addReferredValues(d *Subscription) error {
	if len(d.ValuesFrom) == 0 {
		return nil
	}
	merged := map[string]any{}
	for i, ref := range d.ValuesFrom {
		at := d.Fields.At(diag.Item("spec.valuesFrom", i), d.Pos)
		found := slices.IndexFunc(s.ConfigMaps, func(m ConfigMap) bool { return m.ID == ref.ConfigMap })
		text := ""
		if found >= 0 {
			text = s.ConfigMaps[found].Data[ref.Key]
		}
		for _, m := range s.ConfigMaps[found+1:] {
			if m.ID == ref.ConfigMap && m.Data[ref.Key] != text {
				return diag.Errorf(at, "ConfigMap %s has two values for the key %q: at %s and at %s", ref.ConfigMap, ref.Key, s.ConfigMaps[found].Pos, m.Pos)
			}
		}
		if text == "" && !ref.Optional {
			return diag.Hintf(at, "list its file in spec.declarations", "ConfigMap %s with the key %q was not found", ref.ConfigMap, ref.Key)
		}
		docs, err := yamlnode.Objects(ref.Key, []byte(text), yamlnode.Limits{})
		if err != nil {
			return diag.Errorf(at, "ConfigMap %s: %w", ref.ConfigMap, err)
		}
		for _, doc := range docs {
			merged = k8s.Merge(merged, doc)
		}
	}
	return d.overrideValues(merged)
}

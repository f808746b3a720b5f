package declare

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// argo is the dialect of Argo CD's Application and ApplicationSet.
const argo Dialect = "argoproj.io"

type application struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   metadata        `json:"metadata" yamlnode:"open"`
	Spec       specApplication `json:"spec"`
	Operation  json.RawMessage `json:"operation"`
	Status     json.RawMessage `json:"status"`
}

type specApplication struct {
	Source      *argoSource  `json:"source"`
	Sources     []argoSource `json:"sources"`
	Destination struct {
		Server    string `json:"server"`
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"destination"`
	Project              string          `json:"project"`
	SyncPolicy           json.RawMessage `json:"syncPolicy"`
	IgnoreDifferences    json.RawMessage `json:"ignoreDifferences"`
	Info                 json.RawMessage `json:"info"`
	RevisionHistoryLimit json.RawMessage `json:"revisionHistoryLimit"`
	SourceHydrator       json.RawMessage `json:"sourceHydrator"`
}

type argoSource struct {
	RepoURL        string          `json:"repoURL"`
	Chart          string          `json:"chart"`
	TargetRevision string          `json:"targetRevision"`
	Path           string          `json:"path"`
	Ref            string          `json:"ref"`
	Name           string          `json:"name"`
	Kustomize      json.RawMessage `json:"kustomize"`
	Directory      json.RawMessage `json:"directory"`
	Plugin         json.RawMessage `json:"plugin"`
	Helm           struct {
		ReleaseName   string          `json:"releaseName"`
		Namespace     string          `json:"namespace"`
		Values        string          `json:"values"`
		ValuesObject  json.RawMessage `json:"valuesObject"`
		ValueFiles    []string        `json:"valueFiles"`
		IgnoreMissing bool            `json:"ignoreMissingValueFiles"`
		Parameters    []struct {
			Name        string `json:"name"`
			Value       string `json:"value"`
			ForceString bool   `json:"forceString"`
		} `json:"parameters"`
		FileParameters  json.RawMessage `json:"fileParameters"`
		KubeVersion     string          `json:"kubeVersion"`
		APIVersions     []string        `json:"apiVersions"`
		SkipCRDs        bool            `json:"skipCrds"`
		SkipTests       bool            `json:"skipTests"`
		SkipSchema      bool            `json:"skipSchemaValidation"`
		PassCredentials bool            `json:"passCredentials"`
		Version         string          `json:"version"`
	} `json:"helm"`
}

func fieldsArgo() map[Field]string {
	return map[Field]string{
		FieldNamespace: "spec.destination.namespace", FieldPackage: "spec.source.chart", FieldRange: "spec.source.targetRevision",
		FieldCatalog: "spec.source.repoURL", FieldCatalogNamespace: "spec.source.repoURL",
		FieldValues: "spec.source.helm.valuesObject", FieldValuesFiles: "spec.source.helm.valueFiles",
	}
}

// readApplications reads the charts that an Application or an ApplicationSet installs. Each chart becomes a
// Subscription. Fields that have no equivalent are faults.
func (r *reader) readApplications(n *yamlnode.Node) {
	if scalarField(n, "kind") == "ApplicationSet" {
		r.readApplicationSet(n)
		return
	}
	var o application
	c := r.decode(n, &o)
	c.Name("metadata.name", o.Metadata.Name)
	if found := c.readApplication(o); found.chart != nil && r.isWanted(found.cluster) {
		r.declareApplication(c, found)
	}
}

// installed is a chart that an Application installs.
type installed struct {
	Subscription
	chart   *ChartSource // nil: the Application has no chart
	own     []byte
	cluster string
}

// isWanted reports whether Applications for a cluster are read.
func (r *reader) isWanted(cluster string) bool { return r.cluster == "" || r.cluster == cluster }

func (r *reader) declareApplication(c checker, a installed) {
	c.Fields = a.Fields
	for i, name := range a.ValuesFiles {
		if r.locate != nil {
			a.ValuesFiles[i] = r.locate(name)
		}
	}
	r.set.ChartSources = append(r.set.ChartSources, *a.chart)
	r.declareChart(c, a.Subscription, a.chart.ID, a.own)
}

// readApplicationSet reads the Applications that an ApplicationSet creates. If the ApplicationSet installs a
// chart on several clusters, the result is one Subscription, named after the release. It is a fault if these
// Applications differ in anything else.
func (r *reader) readApplicationSet(n *yamlnode.Node) {
	_, template := yamlnode.Field(specOf(n), "template")
	if template == nil || r.generate == nil {
		return
	}
	before := len(r.errs)
	c := r.decode(template, &application{})
	at := c.Whole
	c.Whole = r.at(n)
	apps, unknown := r.generate(n)
	if len(unknown) > 0 && !r.named { // otherwise, the entry point reports it
		r.errs.Addf(r.at(n), "cannot tell which Applications it creates: %s", strings.Join(unknown, "; "))
	}
	byOperator := map[string]installed{}
	for _, fields := range apps {
		if len(r.errs) > before {
			return
		}
		var app application
		raw, err := json.Marshal(fields)
		if err == nil {
			err = json.Unmarshal(raw, &app)
		}
		r.errs.Add(at, err)
		found := c.readApplication(app)
		if found.chart == nil || !r.isWanted(found.cluster) {
			continue
		}
		found.Name = found.Release
		key := found.Namespace + "/" + found.Package
		first, known := byOperator[key]
		if !known {
			byOperator[key] = found
			r.declareApplication(c, found)
		} else if field := first.difference(found); field != "" {
			r.errs.Add(at, diag.Hintf(at, "list the file with cluster in spec.declarations, for each environment",
				"the Applications of %s for the clusters %q and %q have a different %s", key, first.cluster, found.cluster, field))
		}
	}
}

// difference returns the first field in which two Applications with the same chart and namespace differ, or "".
func (a installed) difference(b installed) string {
	switch {
	case a.Range != b.Range:
		return "targetRevision"
	case a.Release != b.Release:
		return "release name"
	case a.chart.ID != b.chart.ID:
		return "repoURL"
	case !bytes.Equal(a.own, b.own) || a.OptionalFiles != b.OptionalFiles || !slices.Equal(a.ValuesFiles, b.ValuesFiles) || !slices.Equal(a.Assignments, b.Assignments):
		return "set of values"
	}
	return ""
}

// readApplication returns the chart that an Application installs.
func (c checker) readApplication(o application) installed {
	src, at := c.chartSource(o.Spec)
	if src == nil {
		return installed{}
	}
	h, helm := src.Helm, at+".helm."
	c.rejectFields(o.Spec, *src, at)
	chart := survey.ArgoChart(fieldsIn(src), fieldsIn(o), "", func(string) bool { return false })
	s := Subscription{Dialect: argo, Name: o.Metadata.Name, Namespace: chart.Namespace, Package: src.Chart, Range: src.TargetRevision, Release: chart.Release, ValuesFiles: chart.Files, OptionalFiles: h.IgnoreMissing, Assignments: chart.Assignments}
	if ns := o.Spec.Destination.Namespace; ns != "" {
		s.Namespace = ns
		c.reject(helm+"namespace", h.Namespace != "" && h.Namespace != ns, "use spec.destination.namespace")
	}
	values := map[string]any{
		"spec.destination.namespace": s.Namespace, at + ".chart": src.Chart, at + ".repoURL": src.RepoURL, at + ".targetRevision": src.TargetRevision, helm + "releaseName": s.Release,
		helm + "values": h.Values, helm + "valuesObject": chart.Values, helm + "valueFiles": h.ValueFiles, helm + "parameters": s.Assignments,
	}
	maps.DeleteFunc(values, func(_ string, v any) bool { return survey.IsKnown(v) })
	for _, field := range slices.Sorted(maps.Keys(values)) {
		if field == helm+"releaseName" && h.ReleaseName == "" {
			c.Addf(field, "missing: its default is the name of the Application, which is not available offline")
			continue
		}
		c.Addf(field, "depends on a value that is not available offline; write the value into the file")
	}
	if len(values) > 0 {
		return installed{}
	}
	location := chartLocation(*src)
	if src.Chart == "" {
		s.Package = path.Base(location)
	}
	c.Name(at+".chart", s.Package)
	c.Require(at+".repoURL", src.RepoURL)
	if diag.HasLogin(location) {
		c.Addf(at+".repoURL", "must not have a user name or a password: log in to the host, as for images")
	}
	c.Require(at+".targetRevision", s.Range)
	c.Namespace("spec.destination.namespace", s.Namespace)
	c.checkRelease(helm+"releaseName", s.Release)
	own := c.mapping(helm+"valuesObject", h.ValuesObject)
	if h.Values != "" && len(h.ValuesObject) == 0 {
		raw, err := json.Marshal(chart.Values)
		if err == nil {
			raw, err = yamlnode.Canonical(raw)
		}
		if err != nil || chart.Fault != "" {
			c.Addf(helm+"values", "%s", strings.TrimPrefix(chart.Fault, "helm.values "))
		}
		own = c.mapping(helm+"values", raw)
	}
	s.Fields = maps.Clone(c.Fields)
	for field, pos := range c.Fields {
		if of, is := strings.CutPrefix(field, at+"."); is {
			s.Fields["spec.source."+of] = pos
		}
	}
	if _, isSet := s.Fields["spec.source.helm.valuesObject"]; !isSet && h.Values != "" {
		s.Fields["spec.source.helm.valuesObject"] = c.At(helm + "values")
	}
	name := regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(strings.ToLower(location[strings.Index(location, "://")+3:]), "-")
	return installed{
		Subscription: s, own: own, cluster: cmp.Or(o.Spec.Destination.Name, o.Spec.Destination.Server),
		chart: &ChartSource{ID: location, Name: strings.Trim(name, "-."), URL: location, Pos: c.At(at + ".repoURL")},
	}
}

// chartSource returns the source of an Application that contains the chart, and the field path of this source.
// If no source contains a chart, it adds a fault and returns nil.
func (c checker) chartSource(spec specApplication) (src *argoSource, at string) {
	sources, pathOf := spec.Sources, func(i int) string { return diag.Item("spec.sources", i) }
	if len(sources) == 0 && spec.Source != nil {
		sources, pathOf = []argoSource{*spec.Source}, func(int) string { return "spec.source" }
	}
	refs := map[string]string{} // name of a source → URL
	for i, s := range sources {
		if s.Ref != "" {
			refs[s.Ref] = s.RepoURL
		}
		if survey.IsChartSource(s.Chart, s.RepoURL) && src == nil {
			src, at = &sources[i], pathOf(i)
		}
	}
	if src == nil {
		c.Addf("spec.source.chart", "missing")
		return nil, ""
	}
	for i, s := range sources {
		switch {
		case pathOf(i) == at:
		case survey.IsChartSource(s.Chart, s.RepoURL):
			c.reject(pathOf(i), true, "a second chart: write an Application for each")
		default:
			c.reject(pathOf(i)+".path", s.Ref == "" || s.Path != "", "apply this directory with an Application of its own")
		}
	}
	for i, name := range src.Helm.ValueFiles {
		ref, _, _ := strings.Cut(strings.TrimPrefix(name, "$"), "/")
		url, known := refs[ref]
		field := diag.Item(at+".helm.valueFiles", i)
		if known = known && strings.HasPrefix(name, "$"); !known {
			c.reject(field, true, "not a $ref/path of a file in this repository: copy the file's values into helm.valuesObject")
		}
		isForeign := known && url != "" && survey.IsKnown(url) && c.foreign != nil && c.foreign(url)
		c.reject(field, isForeign, fmt.Sprintf("a file of another repository, %s: copy the file's values into helm.valuesObject", diag.Redact(url)))
	}
	return src, at
}

// rejectFields adds faults for the fields of an Application that have no equivalent. src is the source with the
// chart, and at is the path of src.
func (c checker) rejectFields(spec specApplication, src argoSource, at string) {
	h, helm := src.Helm, at+".helm."
	c.reject(at+".path", src.Path != "" && src.Path != ".", "a chart has no path")
	c.reject(at+".kustomize", len(src.Kustomize) > 0, "use an overlay of quayside")
	c.reject(at+".directory", len(src.Directory) > 0, "a chart is no directory")
	c.reject(at+".plugin", len(src.Plugin) > 0, "quayside runs no plugins")
	c.reject(helm+"fileParameters", len(h.FileParameters) > 0, "copy the text of the files into helm.valuesObject")
	c.reject(helm+"kubeVersion", h.KubeVersion != "", "use spec.kubernetesVersion in quayside.yaml")
	c.reject(helm+"apiVersions", len(h.APIVersions) > 0, "use spec.provides in quayside.yaml")
	c.reject(helm+"skipCrds", h.SkipCRDs, "CRDs are always rendered, and applied before the operator")
	c.reject(helm+"skipSchemaValidation", h.SkipSchema, "values must match the schema of the chart")
	_, labels := c.Fields["spec.syncPolicy.managedNamespaceMetadata"]
	c.reject("spec.syncPolicy.managedNamespaceMetadata", labels, "declare a Namespace with these labels and annotations")
	c.reject("spec.sourceHydrator", len(spec.SourceHydrator) > 0, "use spec.source")
}

// chartLocation returns the location of the catalog of a chart. A repoURL without a scheme is a registry, as
// in Argo CD.
func chartLocation(s argoSource) string {
	location := strings.TrimSuffix(s.RepoURL, "/")
	u, err := url.Parse(location)
	switch {
	case err != nil || u.Host == "":
		return "oci://" + location + "/" + s.Chart
	case u.Scheme == "oci" && s.Chart != "":
		return location + "/" + s.Chart
	}
	return location
}

// fieldsIn returns the fields of a decoded object.
func fieldsIn(v any) map[string]any {
	out := map[string]any{}
	if raw, err := json.Marshal(v); err != nil || json.Unmarshal(raw, &out) != nil {
		return map[string]any{}
	}
	return out
}

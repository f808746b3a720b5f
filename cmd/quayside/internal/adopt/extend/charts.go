package extend

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/charts"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// addCharts adds an operator for each selected HelmRelease, and for each selected Application with a chart. A
// label or a pattern of include selects an object. addCharts returns the number of selected objects.
func (r *clusterReader) addCharts(include []string) int {
	selected := 0
	for _, o := range slices.Concat(r.s.Kind(snapshot.FluxGroup, "HelmRelease"), r.s.Kind(snapshot.ArgoGroup, "Application")) {
		matches := func(pattern string) bool { ok, _ := path.Match(pattern, o.Namespace+"/"+o.Name); return ok }
		if o.Labels[survey.SelectLabel] == "true" || slices.ContainsFunc(include, matches) {
			r.addChart(o)
			selected++
		} else if o.Kind == "HelmRelease" || len(chartSources(o.Body())) > 0 {
			r.NotSelected++
		}
	}
	return selected
}

// addChart adds the operator of a HelmRelease or an Application. If quayside does not support its declaration,
// or its installed version is unknown, addChart adds the object to Skipped with the reason.
func (r *clusterReader) addChart(o *snapshot.LiveObject) {
	live := installedByFlux
	if o.Kind == "Application" {
		live = installedByArgo
	}
	is, why := live(o.Body())
	if why != "" {
		r.skip(o, !is.absent, "%s", why)
		return
	}
	sub, src, err := r.declareChart(o)
	if err != nil {
		r.skip(o, true, "it cannot be declared: %s", err)
		return
	}
	release := cmp.Or(sub.Release, sub.Name)
	inRange, err := catalog.ParseVersions(cmp.Or(sub.Range, "*"))
	switch {
	case sub.Range != "" && (err != nil || !inRange(is.version)):
		r.skip(o, true, "version %s is installed, but its spec has the range %q", is.version, sub.Range)
		return
	case is.chart != "" && is.chart != sub.Package:
		r.skip(o, true, "chart %s is installed, but its spec has chart %s", is.chart, sub.Package)
		return
	case is.release != "" && is.release != sub.Namespace+"/"+release:
		r.skip(o, true, "release %s is installed, but its spec has release %s", is.release, sub.Namespace+"/"+release)
		return
	}
	for _, op := range r.Operators {
		if op.Key() == sub.Key() || op.Namespace == sub.Namespace && op.Package == sub.Package {
			r.skip(o, true, "%s %s/%s installs an operator with the same name or package in the same namespace, %s", op.Kind, op.object.Namespace, op.object.Name, op.Namespace)
			return
		}
	}
	from := ClusterCatalog{ID: src.ID, Source: source.ChartRef(src.Charts)}
	if i := slices.IndexFunc(r.Catalogs, func(c ClusterCatalog) bool { return c.ID == from.ID }); i < 0 {
		r.Catalogs = append(r.Catalogs, from)
	} else if r.Catalogs[i].Source != from.Source {
		r.skip(o, true, "its catalog %s at %s has the name of another one, at %s", from.ID, from.Source, r.Catalogs[i].Source)
		return
	}
	for _, key := range chartReferences(o) {
		if r.s.Get(key) == nil {
			is.notes = append(is.notes, fmt.Sprintf("the values of ConfigMap %s/%s are missing: the ConfigMap is optional, and not in the cluster", key.Namespace, key.Name))
		}
	}
	op := Operator{
		Kind: o.Kind, Namespace: sub.Namespace, Name: sub.Name, Package: sub.Package, Bundle: charts.BundleName(sub.Package, is.version), Version: is.version,
		Catalog: src.ID, Notes: is.notes, object: o, chart: map[string]any{"package": sub.Package},
	}
	if is.digest != "" {
		op.Image = strings.TrimPrefix(src.Charts, "oci://") + "@" + is.digest
	}
	if sub.Range != "" {
		op.chart["version"] = sub.Range
	}
	if release != sub.Name {
		op.chart["releaseName"] = release
	}
	if values := decodeValues(sub); len(values) > 0 {
		op.chart["values"] = values
	}
	r.Operators = append(r.Operators, op)
}

// valuesDifference returns the top-level values of a chart that differ, as JSON: those of have, and those of want.
func valuesDifference(have, want declare.Subscription) (from, to string) {
	old, live := decodeValues(have), decodeValues(want)
	for key, value := range old {
		if other, both := live[key]; both && k8s.Equal(value, other) {
			delete(old, key)
			delete(live, key)
		}
	}
	encode := func(values map[string]any) string {
		if len(values) == 0 {
			return ""
		}
		raw, err := json.Marshal(values)
		if err != nil {
			panic("extend: values: " + err.Error()) // they were decoded from JSON
		}
		return string(raw)
	}
	return encode(old), encode(live)
}

// decodeValues returns the values of a chart, which declare has encoded.
func decodeValues(s declare.Subscription) map[string]any {
	var values map[string]any
	if len(s.ChartValues) == 0 {
		return nil
	}
	if err := utiljson.Unmarshal(s.ChartValues, &values); err != nil {
		panic("extend: values of " + s.Key() + ": " + err.Error())
	}
	return values
}

// isChart reports whether the operator is installed by a HelmRelease or an Application.
func (o Operator) isChart() bool { return o.chart != nil }

// declareChart returns the declarations of a chart and of its catalog. It parses a HelmRelease or an
// Application together with the sources and ConfigMaps of the cluster to which this object refers.
func (r *clusterReader) declareChart(o *snapshot.LiveObject) (declare.Subscription, declare.CatalogSource, error) {
	text := yamlnode.Encode(k8s.With(o.Body(), any("true"), "metadata", "labels", survey.SelectLabel))
	for _, key := range chartReferences(o) {
		if found := r.s.Get(key); found != nil {
			text = yamlnode.Append(text, yamlnode.Encode(found.Body()))
		} else if key.Kind != "ConfigMap" { // declare checks whether a ConfigMap is optional
			return declare.Subscription{}, declare.CatalogSource{}, fmt.Errorf("%s %s/%s is not in the cluster", key.Kind, key.Namespace, key.Name)
		}
	}
	set, err := declare.Parse(o.Name+".yaml", text)
	if err == nil {
		set = set.WithValues(func(string) ([]byte, error) {
			return nil, fmt.Errorf("helm.valueFiles are in Git, not in the cluster: list the file of the %s in spec.declarations instead", o.Kind)
		})
		err = declare.Faults(set.Unread)
	}
	if err != nil {
		return declare.Subscription{}, declare.CatalogSource{}, fmt.Errorf("%s", faultTexts(err))
	}
	if location := set.CatalogSources[0].Charts; !strings.Contains(location, "://") {
		return declare.Subscription{}, declare.CatalogSource{}, fmt.Errorf("its source %q is not a URL", location)
	}
	return set.Subscriptions[0], set.CatalogSources[0], nil
}

// faultTexts returns the messages of faults, without their positions.
func faultTexts(err error) string {
	var list diag.List
	if !errors.As(err, &list) {
		return err.Error()
	}
	texts := make([]string, len(list))
	for i, f := range list {
		texts[i] = firstFault(diag.List{f})
	}
	return strings.Join(texts, "; ")
}

// chartReferences returns the sources and ConfigMaps to which a HelmRelease refers.
func chartReferences(o *snapshot.LiveObject) []k8s.Key {
	if o.Kind != "HelmRelease" {
		return nil
	}
	spec := k8s.Map(o.Body(), "spec")
	ref := k8s.Map(spec, "chartRef")
	if len(ref) == 0 {
		ref = k8s.Map(spec, "chart", "spec", "sourceRef")
	}
	var out []k8s.Key
	if kind := k8s.Text(ref, "kind"); kind == "HelmRepository" || kind == "OCIRepository" {
		out = append(out, k8s.Key{Group: snapshot.FluxSources, Kind: kind, Namespace: cmp.Or(k8s.Text(ref, "namespace"), o.Namespace), Name: k8s.Text(ref, "name")})
	}
	for _, from := range k8s.Items(spec, "valuesFrom") {
		if k8s.Text(from, "kind") == "ConfigMap" {
			out = append(out, k8s.Key{Kind: "ConfigMap", Namespace: o.Namespace, Name: k8s.Text(from, "name")})
		}
	}
	return out
}

// installedChart is the chart that a GitOps tool reports as installed.
type installedChart struct {
	version string
	chart   string // name of the chart; empty: unknown
	release string // namespace/name of the release; empty: unknown
	digest  string // of the manifest in a registry; empty: unknown
	absent  bool   // whether nothing is installed in this cluster
	notes   []string
}

// installedByFlux returns the chart that a HelmRelease installed, or the reason why it is unknown.
func installedByFlux(o map[string]any) (is installedChart, why string) {
	history := k8s.Items(o, "status", "history")
	if version := k8s.Text(o, "status", "lastAppliedRevision"); len(history) == 0 && version != "" { // API version v2beta1
		history = []map[string]any{{"chartVersion": version, "status": "deployed"}}
	}
	if len(history) == 0 {
		return installedChart{absent: true}, "status.history is empty: Flux has installed no version"
	}
	last := history[0]
	is = installedChart{
		version: k8s.Text(last, "chartVersion"), chart: k8s.Text(last, "chartName"), digest: k8s.Text(last, "ociDigest"),
	}
	is.release = strings.TrimPrefix(k8s.Text(last, "namespace")+"/"+k8s.Text(last, "name"), "/")
	if hex := strings.TrimPrefix(is.digest, "sha256:"); len(hex) > 12 { // Flux adds the digest to the version of a chart in an OCIRepository
		is.version = strings.TrimSuffix(is.version, "+"+hex[:12])
	}
	switch status := k8s.Text(last, "status"); {
	case status == "uninstalled":
		is.absent = true
		return is, "status.history[0].status is uninstalled"
	case is.version == "":
		return is, "status.history[0].chartVersion is missing"
	case status != "deployed":
		return is, fmt.Sprintf("status.history[0].status is %q, not deployed: version %s may be installed in part", status, is.version)
	}
	if attempted := k8s.Text(o, "status", "lastAttemptedRevision"); attempted != "" && attempted != k8s.Text(last, "chartVersion") {
		is.notes = append(is.notes, "Flux attempted to install "+attempted+", which is ignored")
	}
	if k8s.True(o, "spec", "suspend") {
		is.notes = append(is.notes, "it is suspended in Flux")
	}
	if done := k8s.At(o, "status", "observedGeneration"); !k8s.Equal(done, k8s.At(o, "metadata", "generation")) {
		is.notes = append(is.notes, "Flux has not processed the current spec of the HelmRelease: the installed release may have other values")
	}
	return is, ""
}

// installedByArgo returns the chart that an Application installed, or the reason why it is unknown.
func installedByArgo(o map[string]any) (is installedChart, why string) {
	spec := k8s.Map(o, "spec")
	at := chartSources(o)
	if len(at) == 0 {
		return is, "spec.source.chart is missing"
	}
	if where := cmp.Or(k8s.Text(spec, "destination", "name"), k8s.Text(spec, "destination", "server")); !slices.Contains([]string{"", "in-cluster", "https://kubernetes.default.svc"}, where) {
		return installedChart{absent: true}, fmt.Sprintf("spec.destination is another cluster, %s", where)
	}
	// The compared revision is installed only if the status is Synced. Otherwise, the last sync counts.
	result, field := k8s.Map(o, "status", "sync"), "status.sync.revision"
	sources := k8s.Map(result, "comparedTo")
	if k8s.Text(result, "status") != "Synced" {
		history := k8s.Items(o, "status", "history")
		if len(history) == 0 {
			return installedChart{absent: true}, "status.history is empty: Argo CD has installed no version"
		}
		result, field = history[len(history)-1], "status.history.revision"
		sources = result
		is.notes = append(is.notes, "Argo CD reports that the cluster differs from its spec: the installed release may have other values")
	}
	is.chart = k8s.Text(sourceAt(sources, at[0]), "chart")
	is.version = k8s.Text(result, "revision")
	if k8s.At(spec, "sources") != nil {
		if revisions := k8s.Texts(result, "revisions"); at[0] < len(revisions) {
			is.version = revisions[at[0]]
		}
	}
	src := sourceAt(spec, at[0])
	if strings.HasPrefix(is.version, "sha256:") { // a chart at an oci:// URL
		is.digest, is.version = is.version, k8s.Text(src, "targetRevision")
		if !isExactVersion(is.version) {
			return is, fmt.Sprintf("%s is a digest, and spec.source.targetRevision %q is no version: set the installed version", field, is.version)
		}
	}
	if is.version == "" {
		return is, field + " is missing"
	}
	return is, ""
}

func isExactVersion(version string) bool {
	_, err := catalog.ParseVersion(strings.TrimPrefix(version, "v"))
	return err == nil
}

// chartSources returns the indexes of the sources of an Application that are charts.
func chartSources(o map[string]any) []int {
	var out []int
	for i := range max(1, len(k8s.Items(o, "spec", "sources"))) {
		src := sourceAt(k8s.Map(o, "spec"), i)
		if survey.IsChartSource(k8s.Text(src, "chart"), k8s.Text(src, "repoURL")) {
			out = append(out, i)
		}
	}
	return out
}

// sourceAt returns a source of the spec of an Application, or of an entry of its history. It returns nil if
// there is none.
func sourceAt(spec map[string]any, i int) map[string]any {
	sources := k8s.Items(spec, "sources")
	switch {
	case i < len(sources):
		return sources[i]
	case len(sources) == 0 && i == 0:
		return k8s.Map(spec, "source")
	}
	return nil
}

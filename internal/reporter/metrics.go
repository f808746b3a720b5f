package reporter

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quayside/quayside/api/v1alpha1"
)

// metricStore contains the metrics of each existing Installation. It is safe for concurrent use.
type metricStore struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]installationMetrics
}

type installationMetrics struct {
	pkg, version             string
	objects                  v1alpha1.ObjectCounts
	ready                    metav1.ConditionStatus // empty if unknown
	upgradeable, imagesMatch metav1.ConditionStatus
}

func newMetricStore() *metricStore {
	return &metricStore{byName: map[types.NamespacedName]installationMetrics{}}
}

func (f *metricStore) set(in *v1alpha1.Installation, status v1alpha1.InstallationStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byName[types.NamespacedName{Namespace: in.Namespace, Name: in.Name}] = installationMetrics{
		pkg: in.Spec.Package, version: in.Spec.Version, objects: status.Summary,
		ready:       condition(status, v1alpha1.Ready).Status,
		upgradeable: condition(status, v1alpha1.Upgradeable).Status,
		imagesMatch: condition(status, v1alpha1.ImagesMatch).Status,
	}
}

func (f *metricStore) forget(name types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byName, name)
}

// all returns the metrics, keyed by namespace and package, which together identify a series. If several
// Installations have the same key, it selects the first Installation by name.
func (f *metricStore) all() map[types.NamespacedName]installationMetrics {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[types.NamespacedName]installationMetrics, len(f.byName))
	for _, name := range slices.SortedFunc(maps.Keys(f.byName), byName) {
		key := types.NamespacedName{Namespace: name.Namespace, Name: f.byName[name].pkg}
		if _, ok := out[key]; !ok {
			out[key] = f.byName[name]
		}
	}
	return out
}

type buildInfo struct{ version, golang string }

// collector exports the current metrics to Prometheus, without series for deleted Installations.
type collector struct {
	metrics *metricStore
	kinds   func() map[string]int // number of kinds, by state
	build   buildInfo
}

type metricDescs struct{ ready, objects, upgradeable, match, kinds, build *prometheus.Desc }

func newMetricDescs() metricDescs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("quayside_"+name, help, labels, nil)
	}
	const ns, pkg, version = "namespace", "package", "version"
	return metricDescs{
		ready:       desc("installation_ready", "Whether all locked objects exist and are healthy.", ns, pkg, version),
		objects:     desc("installation_objects", "Number of rendered objects, by state.", ns, pkg, version, "status"),
		upgradeable: desc("installation_upgradeable", "Whether the operator reports that it can be upgraded.", ns, pkg, version),
		match:       desc("installation_images_match", "Whether the pods run the locked digests.", ns, pkg, version),
		kinds:       desc("reporter_kinds", "Number of kinds that Installations list, by the state of the reporter's watch of the kind.", "state"),
		build:       desc("reporter_build_info", "The reporter's version.", version, "goversion"),
	}
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	d := newMetricDescs()
	for _, desc := range []*prometheus.Desc{d.ready, d.objects, d.upgradeable, d.match, d.kinds, d.build} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	d := newMetricDescs()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for name, f := range c.metrics.all() {
		labels := []string{name.Namespace, f.pkg, f.version}
		flag := func(desc *prometheus.Desc, status metav1.ConditionStatus) {
			switch status {
			case metav1.ConditionTrue:
				gauge(desc, 1, labels...)
			case metav1.ConditionFalse:
				gauge(desc, 0, labels...)
			case metav1.ConditionUnknown: // no value
			}
		}
		ready := 0.0
		if f.ready == metav1.ConditionTrue {
			ready = 1
		}
		gauge(d.ready, ready, labels...)
		flag(d.upgradeable, f.upgradeable)
		flag(d.match, f.imagesMatch)
		for status, n := range countsByStatus(f.objects) {
			gauge(d.objects, float64(n), append(labels, string(status))...)
		}
	}
	for state, n := range c.kinds() {
		gauge(d.kinds, float64(n), state)
	}
	gauge(d.build, 1, c.build.version, c.build.golang)
}

func countsByStatus(c v1alpha1.ObjectCounts) map[v1alpha1.HealthStatus]int32 {
	return map[v1alpha1.HealthStatus]int32{
		v1alpha1.Current: c.Current, v1alpha1.InProgress: c.InProgress, v1alpha1.NotFound: c.NotFound, v1alpha1.Failed: c.Failed,
		v1alpha1.Terminating: c.Terminating, v1alpha1.Forbidden: c.Forbidden, v1alpha1.Unknown: c.Unknown,
	}
}

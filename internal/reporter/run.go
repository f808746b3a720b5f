package reporter

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/quayside/quayside/api/v1alpha1"
)

// Name is the field manager of the status, the source of Events, and the name of the Lease.
const Name = "quayside-reporter"

// StatusFunc determines the status of an Installation. got contains the observed objects in the order of
// spec.objects. If spec.objects does not list the OperatorCondition, it is the last object in got. pods are the
// pods of the workloads. A StatusFunc must not modify its arguments, and must return equal results for equal
// arguments.
type StatusFunc func(spec v1alpha1.InstallationSpec, generation int64, prev v1alpha1.InstallationStatus,
	got []v1alpha1.Observed, pods []map[string]any, now time.Time) v1alpha1.InstallationStatus

// Config configures the reporter. Judge and Log are required.
type Config struct {
	Judge StatusFunc
	Log   logr.Logger

	MetricsAddress          string // listen address of /metrics, such as "0.0.0.0:8080"; "0" or empty: none
	ProbeAddress            string // listen address of /healthz and /readyz, such as "0.0.0.0:8081"; "0" or empty: none
	LeaderElection          bool   // whether to wait for the Lease before starting
	LeaderElectionNamespace string // namespace of the Lease; empty: the namespace of the pod
	Version                 string // version of the program, exported as a metric
}

// Run runs the reporter until ctx ends, and then returns nil. It returns an error if the API server is
// unreachable at the start, if the reporter cannot listen on an address, or if it loses the Lease.
func Run(ctx context.Context, config *rest.Config, opt Config) error {
	strip := newStripper().strip
	mgr, err := newManager(config, opt, strip)
	if err != nil {
		return fmt.Errorf("starting the reporter: %w", err)
	}
	r := &reporter{
		judge: opt.Judge, now: time.Now, log: opt.Log,
		installations: mgr.GetCache(), status: mgr.GetClient().Status(), events: mgr.GetEventRecorder(Name),
		index: newInstallationIndex(), metrics: newMetricStore(), pods: podReader{list: listPods(mgr.GetAPIReader())},
	}
	r.watches = newWatches(openKind(mgr, strip), r.kindChanged, r.objectChanged, opt.Log)
	if err := r.register(mgr); err != nil {
		return fmt.Errorf("starting the reporter: %w", err)
	}
	build := buildInfo{version: opt.Version, golang: runtime.Version()}
	if err := metrics.Registry.Register(collector{metrics: r.metrics, kinds: r.watches.countByState, build: build}); err != nil {
		return fmt.Errorf("starting the reporter: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the reporter: %w", err)
	}
	return nil
}

// newManager returns a controller-runtime manager whose cache contains only Installations.
func newManager(config *rest.Config, opt Config, strip toolscache.TransformFunc) (manager.Manager, error) {
	scheme := apiruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 100, 200
	config.UserAgent = Name
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme,
		Logger: opt.Log,
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true,
			ByObject: map[client.Object]cache.ByObject{
				&v1alpha1.Installation{}: {Transform: strip, UnsafeDisableDeepCopy: new(true), SyncPeriod: new(resyncInterval)},
			},
		},
		Metrics:                       metricsserver.Options{BindAddress: cmp.Or(opt.MetricsAddress, "0")},
		HealthProbeBindAddress:        cmp.Or(opt.ProbeAddress, "0"),
		LeaderElection:                opt.LeaderElection,
		LeaderElectionID:              Name,
		LeaderElectionNamespace:       opt.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(10 * time.Second),
	})
	if err != nil {
		return nil, err
	}
	return mgr, mgr.AddHealthzCheck("ping", healthz.Ping)
}

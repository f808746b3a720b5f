package kube

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

	"github.com/quayside/quayside/report/v1alpha1"
)

// Name is what the reporter is called where it writes: the field manager of
// the status, the source of Events, the Lease.
const Name = "quayside-reporter"

// Judge says how an Installation is: from what it expects, the status that it
// has, what was read of each expected object in the order of spec.objects (and
// after them the OperatorCondition, where it is not among them), and the pods
// of its workloads. It must not modify its arguments. The same observation has
// to give the same status.
type Judge func(spec v1alpha1.InstallationSpec, generation int64, prev v1alpha1.InstallationStatus,
	got []v1alpha1.Observed, pods []map[string]any, now time.Time) v1alpha1.InstallationStatus

// Options says how to run. Judge and Log have to be set.
type Options struct {
	Judge Judge
	Log   logr.Logger

	MetricsAddress          string // "0.0.0.0:8080"; "0" or empty: no metrics are served
	ProbeAddress            string // "0.0.0.0:8081", of /healthz and /readyz; "0" or empty: none
	LeaderElection          bool   // stand by until the Lease is ours
	LeaderElectionNamespace string // of the Lease; empty: the pod's own
	Version                 string // of the program, for its metric
}

// Run reports until ctx ends; the error is nil then. It returns early when
// the API server cannot be asked at the start, an address cannot be listened
// on, or leadership is lost.
func Run(ctx context.Context, config *rest.Config, opt Options) error {
	strip := newStripper().strip
	mgr, err := newManager(config, opt, strip)
	if err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	r := &reporter{
		judge: opt.Judge, now: time.Now, log: opt.Log,
		installations: mgr.GetCache(), status: mgr.GetClient().Status(), events: mgr.GetEventRecorder(Name),
		roster: newRoster(), figures: newFigures(), pods: podReader{list: listPods(mgr.GetAPIReader())},
	}
	r.watches = newWatches(openKind(mgr, strip), r.kindSettled, r.objectChanged, opt.Log)
	if err := r.register(mgr); err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	build := buildInfo{version: opt.Version, golang: runtime.Version()}
	if err := metrics.Registry.Register(collector{figures: r.figures, kinds: r.watches.states, build: build}); err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// newManager returns a manager that caches Installations and nothing else.
func newManager(config *rest.Config, opt Options, strip toolscache.TransformFunc) (manager.Manager, error) {
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
				&v1alpha1.Installation{}: {Transform: strip, UnsafeDisableDeepCopy: new(true), SyncPeriod: new(resync)},
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

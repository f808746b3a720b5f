// Command argosync synchronizes a file of manifests to a cluster with Argo CD's
// own engine, as its application controller would for one Application: compare,
// apply objects that are out of sync, wave by wave, prune removed ones, assess health.
//
//	argosync -kubeconfig FILE -application FILE [-started TIME] [-timeout 1m] MANIFESTS
//
// It prints one JSON document: see [Outcome]. If the engine waits for the confirmation of
// a deletion, the command ends. To continue the operation, run it again with the time at
// which the operation started.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/syncwaves"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/yaml"
)

// Outcome is the outcome of the operation.
type Outcome struct {
	Started   time.Time // when it began, to the second
	Phase     string    // "Succeeded"; "Running" if it waits for a confirmation
	Message   string    // the engine's message for the operation
	Synced    []Synced  // objects that were out of sync, in the order of application
	Unhealthy []string  // unhealthy objects with reasons, sorted
}

// Synced is one object that was applied or pruned.
type Synced struct {
	Object  string // "apps/Deployment/my-etcd/etcd-operator"
	Wave    int    // 0 if the object was pruned
	Status  string // "Synced" or "Pruned"
	Message string
}

// waiting is the beginning of the engine's message while it waits for confirmation.
const waiting = "waiting for pruning confirmation of "

// tracking is the annotation that names the Application that owns an object.
const tracking = "argocd.argoproj.io/tracking-id"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig `FILE` of the cluster")
	file := flag.String("application", "", "`FILE` with the manifest of the Application, which owns the applied objects")
	started := flag.String("started", "", "continue the operation that started at this `TIME` (RFC 3339); empty: start a new one")
	timeout := flag.Duration("timeout", time.Minute, "timeout of the operation and of the health check together")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	outcome, err := run(ctx, *kubeconfig, *file, *started, flag.Arg(0))
	cancel()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(outcome)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, file, started, manifests string) (Outcome, error) {
	a := application{started: metav1.NewTime(time.Now().Truncate(time.Second))}
	if started != "" {
		t, err := time.Parse(time.RFC3339, started)
		if err != nil {
			return Outcome{}, err
		}
		a.started = metav1.NewTime(t)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Outcome{}, err
	}
	config.QPS, config.Burst = 100, 200
	a.config = config
	if err := a.read(file, manifests); err != nil {
		return Outcome{}, err
	}
	if err := a.watch(); err != nil {
		return Outcome{}, err
	}
	defer a.cluster.Invalidate()
	outcome, err := a.sync(ctx)
	if err != nil || strings.HasPrefix(outcome.Message, waiting) {
		return outcome, err
	}
	outcome.Unhealthy, err = a.awaitHealth(ctx)
	return outcome, err
}

// application is an Application with its manifests and its target cluster.
type application struct {
	name     string
	options  syncOptions
	approved bool // the pruning by this operation was confirmed
	started  metav1.Time

	config   *rest.Config
	cluster  cache.ClusterCache
	targets  []*unstructured.Unstructured
	revision string
	log      logr.Logger
}

// syncOptions are the sync options of the Application, such as "PruneLast=true".
type syncOptions []string

func (s syncOptions) has(option string) bool { return slices.Contains(s, option) }

// read reads the Application's manifest like its controller, and the objects from the manifests.
func (a *application) read(file, manifests string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var app unstructured.Unstructured
	if err := yaml.Unmarshal(text, &app.Object); err != nil {
		return err
	}
	a.name = app.GetName()
	a.options, _, _ = unstructured.NestedStringSlice(app.Object, "spec", "syncPolicy", "syncOptions")
	if at, err := time.Parse(time.RFC3339, app.GetAnnotations()[common.AnnotationDeletionApproved]); err == nil {
		a.approved = !at.Before(a.started.Time)
	}
	if text, err = os.ReadFile(manifests); err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	a.revision = hex.EncodeToString(sum[:6])
	if a.targets, err = kube.SplitYAML(text); err != nil {
		return err
	}
	for _, o := range a.targets {
		if kube.IsCRD(o) {
			continue // as the repo server does: Argo CD does not track CRDs
		}
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[tracking] = a.name
		o.SetAnnotations(annotations)
	}
	return nil
}

// watch starts watching the objects of the cluster.
func (a *application) watch() error {
	a.log = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr)))
	a.cluster = cache.NewClusterCache(a.config, cache.SetLogr(a.log),
		cache.SetPopulateResourceInfoHandler(func(o *unstructured.Unstructured, _ bool) (any, bool) {
			owned := o.GetAnnotations()[tracking] == a.name
			return owned, owned
		}))
	return a.cluster.EnsureSynced()
}

// live returns the objects of the cluster that belong to the application.
func (a *application) live() (map[kube.ResourceKey]*unstructured.Unstructured, error) {
	return a.cluster.GetManagedLiveObjs(a.targets, func(r *cache.Resource) bool { return r.Info == true })
}

// sync applies objects that are out of sync until the operation is complete. The engine takes one
// step with one set of live objects, so every step begins with new ones and with the state of the
// last step, as in Argo CD's controller.
func (a *application) sync(ctx context.Context) (Outcome, error) {
	var phase common.OperationPhase
	var message string
	var results []common.ResourceSyncResult
	live, err := a.live()
	if err != nil {
		return Outcome{}, err
	}
	first := sync.Reconcile(a.targets, live, "", a.cluster)
	outOfSync, err := diff.DiffArray(first.Target, first.Live, diff.WithLogr(a.log))
	if err != nil {
		return Outcome{}, err
	}
	for !phase.Completed() && !strings.HasPrefix(message, waiting) && ctx.Err() == nil {
		if live, err = a.live(); err != nil {
			return Outcome{}, err
		}
		step, done, err := sync.NewSyncContext(a.revision, sync.Reconcile(a.targets, live, "", a.cluster), a.config, a.config,
			&kube.KubectlCmd{Log: a.log, Tracer: tracing.NopTracer{}}, "",
			sync.WithInitialState(phase, message, results, a.started), sync.WithPrune(true), sync.WithPruneConfirmed(a.approved),
			sync.WithPruneLast(a.options.has(common.SyncOptionPruneLast)),
			sync.WithServerSideApply(a.options.has(common.SyncOptionServerSideApply)),
			sync.WithResourceModificationChecker(a.options.has("ApplyOutOfSyncOnly=true"), outOfSync),
			sync.WithManifestValidation(true), sync.WithLogr(a.log))
		if err != nil {
			return Outcome{}, err
		}
		step.Sync()
		phase, message, results = step.GetState()
		done()
		pauseContext(ctx)
	}
	return a.outcome(phase, message, results), nil
}

func (a *application) outcome(phase common.OperationPhase, message string, results []common.ResourceSyncResult) Outcome {
	waves := map[string]int{}
	for _, o := range a.targets {
		key := kube.GetResourceKey(o)
		waves[key.String()] = syncwaves.Wave(o)
	}
	slices.SortStableFunc(results, func(x, y common.ResourceSyncResult) int { return x.Order - y.Order })
	out := Outcome{Started: a.started.Time, Phase: string(phase), Message: message}
	for _, r := range results {
		key := r.ResourceKey.String()
		out.Synced = append(out.Synced, Synced{Object: key, Wave: waves[key], Status: string(r.Status), Message: r.Message})
	}
	return out
}

// awaitHealth waits until all objects are healthy or ctx ends, and returns those that are not.
func (a *application) awaitHealth(ctx context.Context) ([]string, error) {
	for {
		live, err := a.live()
		if err != nil {
			return nil, err
		}
		var bad []string
		for key, o := range live {
			reason, err := unhealthyReason(o)
			if err != nil {
				return nil, err
			}
			if reason != "" {
				bad = append(bad, key.String()+": "+reason)
			}
		}
		if len(bad) == 0 || ctx.Err() != nil {
			slices.Sort(bad)
			return bad, nil
		}
		pauseContext(ctx)
	}
}

// unhealthyReason returns the engine's reason why an object is not healthy. It returns "" if the
// object is healthy, or if the engine has no rule for it.
func unhealthyReason(o *unstructured.Unstructured) (string, error) {
	if o == nil {
		return "not found", nil
	}
	status, err := health.GetResourceHealth(o, nil)
	if err != nil || status == nil || status.Status == health.HealthStatusHealthy {
		return "", err
	}
	return strings.TrimSpace(string(status.Status) + " " + status.Message), nil
}

// pauseContext waits briefly, because the engine learns of changes through watches.
func pauseContext(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

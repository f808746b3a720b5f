// Command argosync synchronizes a file of manifests to a cluster with Argo CD's
// own engine, as its application controller would for one Application: compare,
// apply what is out of sync wave by wave, assess health.
//
//	argosync -kubeconfig FILE -app NAME [-timeout 1m] MANIFESTS
//
// It prints one JSON document: see [Outcome]. The exit code is 1 where the
// operation did not succeed or something is not healthy in time.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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
)

// Outcome is what the operation came to.
type Outcome struct {
	Phase     string   // "Succeeded"
	Message   string   // what the engine says of the whole
	Synced    []Synced // what was out of sync, in the order in which it was applied
	Unhealthy []string // what is not healthy, and why; sorted
}

// Synced is one object that was applied.
type Synced struct {
	Object  string // "apps/Deployment/my-etcd/etcd-operator"
	Wave    int
	Status  string // "Synced"
	Message string
}

// tracking is the annotation that names the Application that owns an object.
const tracking = "argocd.argoproj.io/tracking-id"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "who applies, and where")
	name := flag.String("app", "", "the Application: it owns what was applied in its name")
	timeout := flag.Duration("timeout", time.Minute, "for the operation and for health together")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	outcome, err := run(ctx, *kubeconfig, *name, flag.Arg(0))
	cancel()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(outcome)
	}
	if err == nil && (outcome.Phase != string(common.OperationSucceeded) || len(outcome.Unhealthy) > 0) {
		err = errors.New("not synced and healthy")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, name, file string) (Outcome, error) {
	manifests, err := os.ReadFile(file)
	if err != nil {
		return Outcome{}, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Outcome{}, err
	}
	config.QPS, config.Burst = 100, 200
	a, err := newApplication(config, name, manifests)
	if err != nil {
		return Outcome{}, err
	}
	defer a.cluster.Invalidate()
	outcome, err := a.sync(ctx)
	if err != nil {
		return Outcome{}, err
	}
	outcome.Unhealthy, err = a.awaitHealth(ctx)
	return outcome, err
}

// application is a list of manifests and the cluster that they go to.
type application struct {
	config   *rest.Config
	cluster  cache.ClusterCache
	targets  []*unstructured.Unstructured
	revision string
	log      logr.Logger
}

func newApplication(config *rest.Config, name string, manifests []byte) (*application, error) {
	targets, err := kube.SplitYAML(manifests)
	if err != nil {
		return nil, err
	}
	for _, o := range targets {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[tracking] = name
		o.SetAnnotations(annotations)
	}
	sum := sha256.Sum256(manifests)
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr)))
	cluster := cache.NewClusterCache(config, cache.SetLogr(log),
		cache.SetPopulateResourceInfoHandler(func(o *unstructured.Unstructured, _ bool) (any, bool) {
			owned := o.GetAnnotations()[tracking] == name
			return owned, owned
		}))
	if err := cluster.EnsureSynced(); err != nil {
		return nil, err
	}
	return &application{config: config, cluster: cluster, targets: targets, revision: hex.EncodeToString(sum[:6]), log: log}, nil
}

// live returns the objects of the cluster that belong to the application.
func (a *application) live() (map[kube.ResourceKey]*unstructured.Unstructured, error) {
	return a.cluster.GetManagedLiveObjs(a.targets, func(r *cache.Resource) bool { return r.Info == true })
}

// sync applies what is out of sync until the operation is complete. The engine
// takes one step with one set of live objects, so that every step begins with
// fresh ones and with the state of the last, as Argo CD's controller does it.
func (a *application) sync(ctx context.Context) (Outcome, error) {
	var phase common.OperationPhase
	var message string
	var results []common.ResourceSyncResult
	began := metav1.Now()
	live, err := a.live()
	if err != nil {
		return Outcome{}, err
	}
	first := sync.Reconcile(a.targets, live, "", a.cluster)
	outOfSync, err := diff.DiffArray(first.Target, first.Live, diff.WithLogr(a.log))
	if err != nil {
		return Outcome{}, err
	}
	for !phase.Completed() && ctx.Err() == nil {
		if live, err = a.live(); err != nil {
			return Outcome{}, err
		}
		step, done, err := sync.NewSyncContext(a.revision, sync.Reconcile(a.targets, live, "", a.cluster), a.config, a.config,
			&kube.KubectlCmd{Log: a.log, Tracer: tracing.NopTracer{}}, "",
			sync.WithInitialState(phase, message, results, began), sync.WithPrune(true),
			sync.WithResourceModificationChecker(true, outOfSync), sync.WithManifestValidation(true), sync.WithLogr(a.log))
		if err != nil {
			return Outcome{}, err
		}
		step.Sync()
		phase, message, results = step.GetState()
		done()
		pause(ctx)
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
	out := Outcome{Phase: string(phase), Message: message}
	for _, r := range results {
		key := r.ResourceKey.String()
		out.Synced = append(out.Synced, Synced{Object: key, Wave: waves[key], Status: string(r.Status), Message: r.Message})
	}
	return out
}

// awaitHealth returns what is not healthy; nothing, or what is left when ctx
// ends.
func (a *application) awaitHealth(ctx context.Context) ([]string, error) {
	for {
		live, err := a.live()
		if err != nil {
			return nil, err
		}
		var bad []string
		for key, o := range live {
			reason, err := unhealthy(o)
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
		pause(ctx)
	}
}

// unhealthy returns why the engine finds an object not healthy; "" where it
// does, or has no opinion.
func unhealthy(o *unstructured.Unstructured) (string, error) {
	if o == nil {
		return "not there", nil
	}
	status, err := health.GetResourceHealth(o, nil)
	if err != nil || status == nil || status.Status == health.HealthStatusHealthy {
		return "", err
	}
	return strings.TrimSpace(string(status.Status) + " " + status.Message), nil
}

// pause waits a little: the engine's view of the cluster comes from watches.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

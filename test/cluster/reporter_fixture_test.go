package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/quayside/quayside/test/cluster/harness"
	"github.com/quayside/quayside/test/cluster/process"
)

func buildReporter(t *testing.T) string {
	t.Helper()
	return buildIn(t, "quayside-report", "./cmd/quayside-report")
}

const (
	reporterNamespace = "quayside-system"
	reporterAccount   = "system:serviceaccount:" + reporterNamespace + ":quayside-reporter"
)

// newBeacon returns a workspace with the reporter, and with an operator that has an object of each
// kind for which the reporter has special rules.
func newBeacon(t *testing.T, leaderElection bool) quayside {
	t.Helper()
	const dir = "bundles/beacon/0.1.0/"
	q := newWorkspace(t, build(t), map[string]string{
		"quayside.yaml": fmt.Sprintf(`
apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: own, namespace: olm, source: "bundles:bundles"}]
  kubernetesVersion: "1.36"
  profile: plain
  certificates: openshift-service-ca
  provides: {apis: [monitoring.coreos.com/v1]}
  reporter:
    enabled: true
    image: registry.example.com/quayside-report@sha256:%064d
    namespace: %s
    leaderElection: %v
`, 1, reporterNamespace, leaderElection),
		"subscriptions/beacon.yaml": `
apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: beacon, namespace: beacon}
spec: {package: beacon}
`,
		dir + "metadata/annotations.yaml": `
annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: beacon
  operators.operatorframework.io.bundle.channels.v1: stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
`,
		dir + "manifests/beacon.clusterserviceversion.yaml": beaconCSV,
		dir + "manifests/beacons.yaml":                      beaconCRD,
		dir + "manifests/settings.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: beacon-settings}
data: {colour: red}
`,
		dir + "manifests/monitor.yaml": `
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: beacon}
spec: {selector: {matchLabels: {app: beacon}}, endpoints: [{port: metrics}]}
`,
	})
	q.must(t, "resolve", "--offline")
	return q
}

const beaconImage = "registry.example.com/beacon@sha256:1111111111111111111111111111111111111111111111111111111111111111"

const beaconCSV = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: beacon.v0.1.0}
spec:
  version: 0.1.0
  installModes:
  - {type: AllNamespaces, supported: true}
  customresourcedefinitions:
    owned: [{name: beacons.example.com, kind: Beacon, version: v1}]
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    admissionReviewVersions: [v1]
    containerPort: 443
    deploymentName: beacon-operator
    failurePolicy: Ignore
    generateName: vbeacon.example.com
    sideEffects: None
    webhookPath: /validate
    rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [beacons]}]
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: beacon-operator
        rules: [{apiGroups: [example.com], resources: [beacons], verbs: ["*"]}]
      deployments:
      - name: beacon-operator
        spec:
          replicas: 1
          selector: {matchLabels: {app: beacon}}
          template:
            metadata: {labels: {app: beacon}}
            spec:
              serviceAccountName: beacon-operator
              containers:
              - {name: operator, image: ` + beaconImage + `}
  relatedImages: [{name: operator, image: ` + beaconImage + `}]
`

const beaconCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: beacons.example.com}
spec:
  group: example.com
  names: {kind: Beacon, listKind: BeaconList, plural: beacons, singular: beacon}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// reporter is the reporter program. As in a pod, it has exactly the permissions of its ServiceAccount.
type reporter struct {
	cluster *harness.Cluster
	proxy   *harness.Proxy
	spec    process.Spec
	process *process.Process
	metrics string // address
	probes  string
}

// startReporter starts the reporter, connected through the proxy. Its ServiceAccount must exist.
func startReporter(ctx context.Context, t *testing.T, cluster *harness.Cluster, program string, flags ...string) *reporter {
	t.Helper()
	token, err := client(t, cluster).CoreV1().ServiceAccounts(reporterNamespace).CreateToken(ctx, "quayside-reporter",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := &reporter{cluster: cluster, proxy: cluster.Proxy(t)}
	kubeconfig, err := cluster.WriteKubeconfig("reporter", r.proxy.Through(cluster.Token(token.Status.Token)))
	if err != nil {
		t.Fatal(err)
	}
	r.spec.Args = []string{program, "--kubeconfig=" + kubeconfig}
	return r.startAnother(ctx, t, "quayside-report", flags...)
}

// startAnother starts a second reporter with the same credentials as r, but with another name.
func (r *reporter) startAnother(ctx context.Context, t *testing.T, name string, flags ...string) *reporter {
	t.Helper()
	ports, err := harness.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	out := *r
	out.metrics, out.probes = fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	flags = append(flags, "--metrics-bind-address="+out.metrics, "--health-probe-bind-address="+out.probes)
	out.spec = process.Spec{Name: name, Args: append(r.spec.Args[:2:2], flags...)}
	out.start(ctx, t)
	return &out
}

// start starts or restarts the program, and waits until it is ready.
func (r *reporter) start(ctx context.Context, t *testing.T) {
	t.Helper()
	var err error
	if r.process, err = r.cluster.Run(r.spec); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "the reporter is ready", func() string {
		code, text := r.get(r.probes, "/readyz")
		if code == http.StatusOK {
			return ""
		}
		return text
	})
}

// get sends a request to one of the reporter's servers.
func (r *reporter) get(address, path string) (code int, text string) {
	client := http.Client{Timeout: 2 * time.Second}
	response, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// memory returns the current and the peak resident memory of the program, in KiB.
func (r *reporter) memory(t *testing.T) (now, peak int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.Pid()))
	if err != nil {
		t.Skipf("cannot read the memory of a process from /proc: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d", &now)
		_, _ = fmt.Sscanf(line, "VmHWM: %d", &peak)
	}
	return now, peak
}

// eventually waits until the function not returns "". Until then, its result is the reason why what is not reached.
func eventually(ctx context.Context, t *testing.T, what string, not func() string) {
	t.Helper()
	for {
		why := not()
		if why == "" {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("waiting until %s: %s", what, why)
		}
	}
}

// The fields of an Installation that the tests read.
type (
	seenStatus struct {
		ObservedGeneration int64
		Conditions         []metav1.Condition
		Summary            map[string]int
		Objects            []seenObject
	}
	seenObject struct{ Kind, Namespace, Name, Health, Message string }
)

func (s seenStatus) condition(kind string) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// objectStatus returns the entry of an unhealthy object.
func (s seenStatus) objectStatus(kind, name string) seenObject {
	for _, o := range s.Objects {
		if o.Kind == kind && o.Name == name {
			return o
		}
	}
	return seenObject{}
}

func installations(t *testing.T, cluster *harness.Cluster) dynamic.NamespaceableResourceInterface {
	t.Helper()
	c, err := dynamic.NewForConfig(cluster.RESTConfig)
	if err != nil {
		t.Fatal(err)
	}
	return c.Resource(schema.GroupVersionResource{Group: "quayside.dev", Version: "v1alpha1", Resource: "installations"})
}

// statusOf reads the status of an Installation.
func statusOf(ctx context.Context, t *testing.T, cluster *harness.Cluster, namespace, name string) (seenStatus, *unstructured.Unstructured) {
	t.Helper()
	o, err := installations(t, cluster).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return readStatus(t, o), o
}

func readStatus(t *testing.T, o *unstructured.Unstructured) seenStatus {
	t.Helper()
	text, err := json.Marshal(o.Object["status"])
	if err != nil {
		t.Fatal(err)
	}
	var s seenStatus
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

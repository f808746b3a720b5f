// Package harness starts a real Kubernetes control plane on the loopback
// interface for the length of a test: etcd and kube-apiserver with TLS and RBAC
// authorization and, unless told otherwise, kube-controller-manager,
// kube-scheduler and kwok, which plays the nodes and their pods. No container
// runs and nothing listens outside the machine.
//
// It also applies manifests as a GitOps engine does: server-side, validated
// strictly, pruned by label. See [Applier].
//
// Start from [Start], [Cluster] and [Applier].
package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/process"
)

// Mode is the variable of the environment that says what to do where the
// servers are not built: "always" fails the test, "never" skips every test
// here; "auto" and nothing skip it and say so.
const Mode = "QUAYSIDE_CLUSTER_TEST"

// Options says which cluster to start. The zero value is a whole one with one
// node, at the newest API level.
type Options struct {
	APIOnly         bool   // etcd and kube-apiserver alone: no controllers, no nodes
	EmulatedVersion string // "1.34": serve the APIs of an older Kubernetes
	Nodes           int    // simulated nodes; 0 is one, unless APIOnly
	NoWebhooks      bool   // call no admission webhook: nothing runs that could answer
	Migrations      bool   // serve StorageVersionMigration, which is a beta, and have the controller do them
	Services        string // socket of an HTTP proxy through which Services are called; "" calls them directly

	AuditUsers []string // whose requests are written down, for Requests to return
}

// Cluster is a control plane that runs.
type Cluster struct {
	Kubeconfig string       // file that names the cluster and its administrator
	RESTConfig *rest.Config // the same for Go clients; copy before changing it

	opt      Options
	dir      string // certificates, logs and data
	bin      string // the multi-call binary
	ports    ports
	ca       *authority
	children []*process.Process // in the order in which they were started
}

// Require returns the cache directory of a target, or ends the test as [Mode]
// says where it is not built.
func Require(t testing.TB, target string) string {
	t.Helper()
	mode := os.Getenv(Mode)
	if mode == "never" {
		t.Skipf("%s=never: no test runs against a real control plane", Mode)
	}
	dir, err := binaries.Find(target)
	switch {
	case errors.Is(err, binaries.ErrNotBuilt) && mode != "always":
		t.Skipf("%v; `make cluster-test` builds it", err)
	case err != nil:
		t.Fatal(err)
	}
	return dir
}

// Start starts a cluster that ends with the test. A test that fails shows the
// end of every server's log.
func Start(t testing.TB, opt Options) *Cluster {
	t.Helper()
	bin := filepath.Join(Require(t, "control-plane"), "testcluster")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := launchCluster(ctx, bin, t.TempDir(), opt)
	if err != nil {
		t.Fatalf("starting a control plane: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.showLogs(t)
		}
		if err := c.Stop(); err != nil {
			t.Errorf("stopping the control plane: %v", err)
		}
	})
	return c
}

// launchCluster starts the servers. A free port may be taken by another process
// between the moment it is chosen and the moment the server listens: another
// choice is made then, twice at most.
func launchCluster(ctx context.Context, bin, dir string, opt Options) (*Cluster, error) {
	for attempt := 0; ; attempt++ {
		home := filepath.Join(dir, fmt.Sprintf("attempt-%d", attempt))
		c, err := launchOnce(ctx, bin, home, opt)
		if err == nil {
			return c, nil
		}
		err = errors.Join(err, c.Stop())
		if attempt == 2 || !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
}

// launchOnce returns the cluster in any case, so that what did start can be
// stopped.
func launchOnce(ctx context.Context, bin, dir string, opt Options) (*Cluster, error) {
	c := &Cluster{dir: dir, bin: bin, opt: opt}
	steps := []func(context.Context) error{c.prepare, c.startAPI}
	if !opt.APIOnly {
		steps = append(steps, c.startControllers, c.addNodes, c.awaitControllers)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return c, err
		}
	}
	return c, nil
}

// prepare makes the certificates and chooses the ports.
func (c *Cluster) prepare(context.Context) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	var err error
	if c.ca, err = newAuthority(); err != nil {
		return err
	}
	if err := c.ca.writePKI(c.dir); err != nil {
		return err
	}
	if c.ports, err = freePorts(); err != nil {
		return err
	}
	policy, err := auditPolicy(c.opt.AuditUsers)
	if err != nil {
		return err
	}
	if err := writeFiles(c.dir, map[string][]byte{"audit.json": policy, "egress.yaml": []byte(egressConfig(c.opt.Services))}); err != nil {
		return err
	}
	if c.RESTConfig, err = c.User("quayside-test-admin", "system:masters"); err != nil {
		return err
	}
	c.Kubeconfig, err = c.WriteKubeconfig("admin", c.RESTConfig)
	return err
}

// User returns the configuration of a client that logs in by that name and
// with those groups. What it may do is RBAC's to say.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	login, err := c.ca.client(name, groups...)
	if err != nil {
		return nil, err
	}
	config := c.anonymous()
	config.CertData, config.KeyData = login.cert, login.key
	return config, nil
}

// Token returns the configuration of a client that logs in with a bearer
// token, such as a ServiceAccount's.
func (c *Cluster) Token(token string) *rest.Config {
	config := c.anonymous()
	config.BearerToken = token
	return config
}

// anonymous returns a configuration without a login. The client's own rate
// limit is off: the server's is what counts.
func (c *Cluster) anonymous() *rest.Config {
	return &rest.Config{
		Host:            "https://" + c.ports.address(c.ports.api),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem},
		QPS:             -1,
	}
}

// WriteKubeconfig writes the configuration into a file in the cluster's own
// directory and returns the file's name.
func (c *Cluster) WriteKubeconfig(name string, config *rest.Config) (string, error) {
	file := filepath.Join(c.dir, name+".kubeconfig")
	return file, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: name}},
		CurrentContext: "test",
	}, file)
}

// Client returns a typed client of the administrator.
func (c *Cluster) Client() (*kubernetes.Clientset, error) {
	return kubernetes.NewForConfig(c.RESTConfig)
}

// Dir returns the directory of the cluster's files. It goes with the cluster.
func (c *Cluster) Dir() string { return c.dir }

// Run starts one more server beside the cluster. It is stopped with it, before
// the cluster's own, and its log is shown with theirs.
func (c *Cluster) Run(spec process.Spec) (*process.Process, error) {
	p, err := process.Start(spec, c.dir)
	if err != nil {
		return nil, err
	}
	c.children = append(c.children, p)
	return p, nil
}

// Stop ends every server, the last one started first, and returns once all
// are gone.
func (c *Cluster) Stop() error {
	var errs []error
	for i := len(c.children) - 1; i >= 0; i-- {
		errs = append(errs, c.children[i].Stop(15*time.Second))
	}
	c.children = nil
	return errors.Join(errs...)
}

func (c *Cluster) showLogs(t testing.TB) {
	t.Helper()
	for _, p := range c.children {
		t.Logf("the end of the log of %s:\n%s", p.Spec.Name, p.Tail(25))
	}
}

// Package harness starts a real Kubernetes control plane on the loopback interface for a test:
// etcd and kube-apiserver with TLS and RBAC authorization and, by default,
// kube-controller-manager, kube-scheduler and kwok, which simulates nodes and pods. It runs no
// containers, and listens only on the local machine.
//
// It also applies manifests like a GitOps engine: server-side, with strict validation, and with
// pruning by label. See [Applier].
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

// Mode is the environment variable that controls the tests. If the servers are not built, "always"
// fails a test, and "auto" and "" skip it with a message. "never" skips every test with a cluster.
const Mode = "QUAYSIDE_CLUSTER_TEST"

// Options configures a cluster. The zero value configures a complete cluster with one node, at the newest API
// level.
type Options struct {
	APIOnly         bool   // etcd and kube-apiserver alone: no controllers, no nodes
	EmulatedVersion string // "1.34": serve the APIs of an older Kubernetes
	Nodes           int    // simulated nodes; 0 is one, unless APIOnly
	NoWebhooks      bool   // disable admission webhooks, because no program serves them
	Migrations      bool   // serve StorageVersionMigration (beta), and run its controller
	Services        string // socket of an HTTP proxy for calls to Services; "" calls them directly

	AuditUsers []string // users whose requests are logged; see Requests
}

// Cluster is a running control plane.
type Cluster struct {
	Kubeconfig string       // file that names the cluster and its administrator
	RESTConfig *rest.Config // copy it before changing it

	opt      Options
	dir      string // certificates, logs and data
	bin      string // the multi-call binary
	ports    ports
	ca       *authority
	children []*process.Process // in the order in which they were started
}

// Require returns the cache directory of a target. If the target is not built, it ends the test
// according to [Mode].
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

// Start starts a cluster that ends with the test. If the test fails, it prints the end of every
// server's log.
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

// launchCluster starts the servers. Another process may take a free port between its selection and the start of
// the server. In this case, launchCluster tries again with other ports, at most twice.
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

// launchOnce starts the servers. It returns the cluster even with an error, so that the caller can
// stop the started servers.
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

// prepare creates the certificates and selects the ports.
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

// User returns a client configuration for a user with that name and these groups. The permissions
// of the user are defined by RBAC.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	login, err := c.ca.client(name, groups...)
	if err != nil {
		return nil, err
	}
	config := c.anonymousConfig()
	config.CertData, config.KeyData = login.cert, login.key
	return config, nil
}

// Token returns a client configuration with a bearer token, such as the token of a ServiceAccount.
func (c *Cluster) Token(token string) *rest.Config {
	config := c.anonymousConfig()
	config.BearerToken = token
	return config
}

// anonymousConfig returns a configuration without a login. The rate limit of the client is off, so
// that only the server limits requests.
func (c *Cluster) anonymousConfig() *rest.Config {
	return &rest.Config{
		Host:            "https://" + c.ports.address(c.ports.api),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem},
		QPS:             -1,
	}
}

// WriteKubeconfig writes the configuration to a file in the cluster's directory, and returns the
// file's name.
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

// Dir returns the directory of the cluster's files. The directory is removed with the cluster.
func (c *Cluster) Dir() string { return c.dir }

// Run starts an additional server. It is stopped with the cluster, before the cluster's own servers. Its log is
// printed together with the logs of the cluster's servers.
func (c *Cluster) Run(spec process.Spec) (*process.Process, error) {
	p, err := process.Start(spec, c.dir)
	if err != nil {
		return nil, err
	}
	c.children = append(c.children, p)
	return p, nil
}

// Stop stops all servers in reverse order, and returns when all have ended.
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

package harness

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	node "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"

	"github.com/quayside/quayside/test/cluster/process"
)

// startAPI starts etcd and the API server, and waits until the API server is ready.
func (c *Cluster) startAPI(ctx context.Context) error {
	if err := c.run("etcd", c.etcdFlags()...); err != nil {
		return err
	}
	if err := c.run("kube-apiserver", c.apiFlags()...); err != nil {
		return err
	}
	return c.awaitAPI(ctx)
}

// startControllers starts the other components of a cluster: controllers, scheduler and simulated nodes. These
// components have the permissions of the administrator, because tests check only the permissions of installed
// objects.
func (c *Cluster) startControllers(context.Context) error {
	stages := filepath.Join(c.dir, "stages.yaml")
	if err := writeFiles(c.dir, map[string][]byte{"stages.yaml": []byte(kwokStages())}); err != nil {
		return err
	}
	loopback := []string{"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0", "--cert-dir=" + c.file("run")}
	login := "--kubeconfig=" + c.Kubeconfig
	manager := append(loopback, login, "--kube-api-qps=500", "--kube-api-burst=1000")
	if c.opt.Migrations {
		manager = append(manager, migrator)
	}
	if err := c.run("kube-controller-manager", append(manager,
		"--service-account-private-key-file="+c.file("sa.key"), "--root-ca-file="+c.file("ca.crt"),
		"--cluster-signing-cert-file="+c.file("ca.crt"), "--cluster-signing-key-file="+c.file("ca.key"))...); err != nil {
		return err
	}
	if err := c.run("kube-scheduler", append(loopback, login)...); err != nil {
		return err
	}
	// Without leases, kwok's nodes count as lost after 50 seconds.
	return c.run("kwok", login, "--manage-all-nodes=true", "--node-lease-duration-seconds=40", "--config="+stages)
}

// migrator enables the controller that rewrites objects in their storage version.
const migrator = "--feature-gates=StorageVersionMigrator=true"

// kwokStages returns kwok's rules for nodes and pods, as published by its authors. Nodes become ready and stay
// ready. Pods run immediately, and complete or end on request.
func kwokStages() string {
	return strings.Join([]string{
		node.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease,
		pod.DefaultPodReady, pod.DefaultPodComplete, pod.DefaultPodDelete,
	}, "\n---\n")
}

func (c *Cluster) etcdFlags() []string {
	client, peer := "https://"+c.ports.address(c.ports.etcd), "http://"+c.ports.address(c.ports.peer)
	return []string{
		"--name=test", "--data-dir=" + c.file("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=test=" + peer,
		"--cert-file=" + c.file("etcd.crt"), "--key-file=" + c.file("etcd.key"),
		"--trusted-ca-file=" + c.file("ca.crt"), "--client-cert-auth",
	}
}

func (c *Cluster) apiFlags() []string {
	flags := []string{
		"--etcd-servers=https://" + c.ports.address(c.ports.etcd), "--etcd-cafile=" + c.file("ca.crt"),
		"--etcd-certfile=" + c.file("etcd.crt"), "--etcd-keyfile=" + c.file("etcd.key"),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + strconv.Itoa(c.ports.api),
		"--endpoint-reconciler-type=none", // it would reject a loopback address
		"--tls-cert-file=" + c.file("apiserver.crt"), "--tls-private-key-file=" + c.file("apiserver.key"),
		"--client-ca-file=" + c.file("ca.crt"), "--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=10.0.0.0/16,fd00:10::/108", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.file("sa.pub"), "--service-account-signing-key-file=" + c.file("sa.key"),
		"--allow-privileged=true", "--cert-dir=" + c.file("run"),
	}
	if len(c.opt.AuditUsers) > 0 {
		flags = append(flags, "--audit-policy-file="+c.file("audit.json"), "--audit-log-path="+c.file("audit.log"))
	}
	if c.opt.EmulatedVersion != "" {
		flags = append(flags, "--emulated-version="+c.opt.EmulatedVersion)
	}
	if c.opt.Migrations {
		flags = append(flags, migrator, "--runtime-config=storagemigration.k8s.io/v1beta1=true")
	}
	if c.opt.Services != "" {
		flags = append(flags, "--egress-selector-config-file="+c.file("egress.yaml"))
	}
	if c.opt.NoWebhooks {
		flags = append(flags, "--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook")
	}
	return flags
}

// egressConfig returns a configuration of the API server. With this configuration, it calls Services through a
// proxy at a Unix socket.
func egressConfig(socket string) string {
	return fmt.Sprintf(`
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}}
`, socket)
}

// RestartAPI kills the API server while all watches are open, as in a crash. It starts the server again with
// the same data and port, and waits until the server is ready.
func (c *Cluster) RestartAPI(ctx context.Context) error {
	for i, p := range c.children {
		if p.Spec.Name != "kube-apiserver" {
			continue
		}
		p.Kill()
		again, err := process.Start(p.Spec, c.dir)
		if err != nil {
			return err
		}
		c.children[i] = again
		return c.awaitAPI(ctx)
	}
	return fmt.Errorf("no kube-apiserver was started")
}

func (c *Cluster) run(server string, flags ...string) error {
	_, err := c.Run(process.Spec{Name: server, Args: append([]string{c.bin, server}, flags...)})
	return err
}

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

// checkAlive returns an error if a server has ended unexpectedly.
func (c *Cluster) checkAlive() error {
	for _, p := range c.children {
		err := p.Ended()
		if err != nil && strings.Contains(err.Error(), "address already in use") {
			return fmt.Errorf("%w: %w", errPortTaken, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitAPI waits until the API server reports that it is ready.
func (c *Cluster) awaitAPI(ctx context.Context) error {
	client, err := rest.HTTPClientFor(c.RESTConfig)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return c.await(ctx, "the API server is ready", func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.RESTConfig.Host+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // not listening yet
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
}

// addNodes creates the nodes that kwok simulates.
func (c *Cluster) addNodes(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	for i := range max(1, c.opt.Nodes) {
		if _, err := client.CoreV1().Nodes().Create(ctx, simulatedNode(i), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func simulatedNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	room := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("512Gi"),
		corev1.ResourcePods:             resource.MustParse("1000"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelHostname: name,
				// Operators select such nodes, most of them by the newer label.
				"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/master": "", "node-role.kubernetes.io/worker": "",
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{Allocatable: room, Capacity: room},
	}
}

// awaitControllers waits until pods can be created and scheduled, because the default ServiceAccount exists and
// a node is ready.
func (c *Cluster) awaitControllers(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return c.await(ctx, "a node is ready", func(ctx context.Context) (bool, error) {
		if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return false, nil //nolint:nilerr // it does not exist yet
		}
		n, err := client.CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue, nil
			}
		}
		return false, nil
	})
}

// await calls yes every 50 ms until yes returns true or an error, or ctx is done. It returns an error if a
// server has ended.
func (c *Cluster) await(ctx context.Context, what string, yes func(context.Context) (bool, error)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := c.checkAlive(); err != nil {
			return err
		}
		if ok, err := yes(ctx); err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

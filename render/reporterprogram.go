package render

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/internal/k8s"
)

// reporterNamespace returns the Namespace of the reporter, or nil if this namespace is reserved or declared. The
// namespace of an operator is an error, because the reporter would be removed together with the operator.
func (t *tree) reporterNamespace(name string) (Object, error) {
	if _, declared := t.declared[name]; declared || k8s.IsReservedNamespace(name) {
		return nil, nil
	}
	for _, r := range t.objects {
		if r.Object.Is("", "Namespace") && r.Object.Name() == name {
			return nil, fmt.Errorf("spec.reporter.namespace: %q is an operator's namespace: the reporter needs a namespace for itself", name)
		}
	}
	return k8s.Label(k8s.New("v1", "Namespace", "", name), map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}), nil
}

// objects returns the reporter's Deployment, its permissions and, if namespace is not nil, its Namespace,
// sorted by key.
func (r *Reporter) objects(namespace Object, pullSecrets []string) []Object {
	account := k8s.New("v1", "ServiceAccount", r.Namespace, reporterName)
	account["automountServiceAccountToken"] = false // the reporter's pod mounts the token itself; other pods must not get it
	account = withPullSecrets(account, pullSecrets)
	service := k8s.New("v1", "Service", r.Namespace, reporterName)
	service["spec"] = map[string]any{
		"selector": map[string]any{"app.kubernetes.io/name": reporterName},
		"ports":    []any{map[string]any{"name": "metrics", "port": int64(8080), "targetPort": "metrics", "protocol": "TCP"}},
	}
	out := []Object{account, service, reporterRole(), newBinding("ClusterRole", "", reporterName, reporterName, r.Namespace, reporterName), r.deployment()}
	if namespace != nil {
		out = append(out, namespace)
	}
	if r.LeaderElection {
		lease := k8s.New(k8s.RBACGroup+"/v1", "Role", r.Namespace, reporterName)
		leases := apiRule("coordination.k8s.io", "leases", "", []string{"create"})
		own := apiRule("coordination.k8s.io", "leases", reporterName, []string{"get", "update", "patch"})
		lease["rules"] = []any{leases, own}
		out = append(out, lease, newBinding("Role", r.Namespace, reporterName, reporterName, r.Namespace, reporterName))
	}
	for i, o := range out {
		out[i] = r.own(o)
	}
	slices.SortFunc(out, func(a, b Object) int { return a.Key().Compare(b.Key()) })
	return out
}

func (r *Reporter) deployment() Object {
	args := k8s.Values("--metrics-bind-address=:8080", "--health-probe-bind-address=:8081")
	strategy := map[string]any{"type": "Recreate"} // two reporters must not write at the same time
	if r.LeaderElection {
		args = append(args, "--leader-elect", "--leader-election-namespace="+r.Namespace)
		strategy = map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(0), "maxSurge": int64(1)}}
	}
	probe := func(at string) map[string]any {
		return map[string]any{"httpGet": map[string]any{"path": at, "port": "health"}, "periodSeconds": int64(10)}
	}
	container := map[string]any{
		"name": "reporter", "image": r.Image, "args": args,
		"ports": []any{
			map[string]any{"name": "metrics", "containerPort": int64(8080), "protocol": "TCP"},
			map[string]any{"name": "health", "containerPort": int64(8081), "protocol": "TCP"},
		},
		"livenessProbe": probe("/healthz"), "readinessProbe": probe("/readyz"),
		"resources": map[string]any{
			"requests": map[string]any{"cpu": "10m", "memory": "32Mi"}, "limits": map[string]any{"memory": "128Mi"},
		},
		"securityContext": map[string]any{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": k8s.Values("ALL")},
		},
	}
	labels := map[string]any{"app.kubernetes.io/name": reporterName}
	o := k8s.New("apps/v1", "Deployment", r.Namespace, reporterName)
	o["spec"] = map[string]any{
		"replicas": int64(1), "strategy": strategy,
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{
				"serviceAccountName": reporterName, "automountServiceAccountToken": true, "enableServiceLinks": false,
				"securityContext": map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
				"nodeSelector":    map[string]any{"kubernetes.io/os": "linux"},
				"containers":      []any{container},
			},
		},
	}
	return o
}

package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// toolPrefixes returns name prefixes of ClusterRoles that common tools install and bind.
func toolPrefixes() []string {
	return []string{
		"argocd", "aws", "calico", "capi", "cattle", "cert-manager", "cilium", "cluster-autoscaler", "cluster-reconciler", "crd-controller", "crossplane", "eks",
		"external-dns", "external-secrets", "flux", "gatekeeper", "gke", "ingress-nginx", "istio", "istiod", "karmada", "karpenter", "keda", "knative",
		"kube-state-metrics", "kubeadm", "kubevirt", "kyverno", "linkerd", "longhorn", "metallb", "open-cluster-management", "prometheus", "rook",
		"sealed-secrets", "strimzi", "tekton", "tigera", "traefik", "vault", "velero",
	}
}

// toolRoles returns ClusterRoles without a binding in the state, by name, if the name belongs to
// another tool: one of toolPrefixes, or another operator of the state. In the cluster, the tool may
// bind them.
func toolRoles(v *view) map[string]*Object {
	bound := map[string]bool{}
	note := func(o *Object) {
		if o.Key().Group == "rbac.authorization.k8s.io" && k8s.Text(o.Content, "roleRef", "kind") == "ClusterRole" {
			bound[k8s.Text(o.Content, "roleRef", "name")] = true
		}
	}
	for _, o := range v.order {
		note(o)
	}
	for i := range v.Resources {
		note(&v.Resources[i])
	}
	words := toolPrefixes()
	for _, p := range v.Pins {
		words = append(words, p.Package)
	}
	plain := func(s string) string { return strings.ReplaceAll(s, "-", "") }
	out := map[string]*Object{}
	for _, o := range v.order {
		_, pkg, _ := strings.Cut(o.Operator, "/")
		name := o.Key().Name
		if o.Key().Is("ClusterRole.rbac.authorization.k8s.io") && !bound[name] && slices.ContainsFunc(words, func(word string) bool {
			rest, is := strings.CutPrefix(name, word)
			return is && (rest == "" || strings.ContainsAny(rest[:1], "-:")) && !strings.Contains(plain(pkg), plain(word))
		}) {
			out[name] = o
		}
	}
	return out
}

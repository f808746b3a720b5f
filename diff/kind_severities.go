package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// kindSeverity is the severity of added, changed and removed objects of a kind, if no other rule
// reports them.
type kindSeverity struct{ added, changed, removed Severity }

// kindSeverityOf returns the severities for the kind of an object.
func (c *comparison) kindSeverityOf(o *Object) kindSeverity {
	key := o.Key()
	if c.isPolicyParameter(o) {
		return kindSeverity{added: High, changed: High, removed: High}
	}
	if p, listed := c.powerOf(key); listed {
		return kindSeverity{p.added, p.changed, p.removed}
	}
	return unlistedSeverity(c, o)
}

// isSystemNamespace reports whether objects in a namespace may configure the cluster, because the namespace
// belongs to Kubernetes, OpenShift, OLM, or a tool that installs objects.
func (c *comparison) isSystemNamespace(name string) bool {
	if slices.Contains(systemNamespaces(), name) || strings.HasPrefix(name, "openshift-") {
		return true
	}
	return slices.ContainsFunc([]*view{c.before, c.after}, func(v *view) bool { return v.engineNamespaces[name] })
}

// systemNamespaces returns the namespaces of Kubernetes and OLM, and the usual namespaces of tools
// that install objects (see powers).
func systemNamespaces() []string {
	return []string{
		"kube-system", "kube-public", "kube-node-lease", "olm", "olmv1-system",
		"argocd", "argo-cd", "flux-system", "crossplane-system", "upbound-system", "kapp-controller", "tanzu-package-repo-global", "projectsveltos",
		"cattle-system", "cattle-fleet-system", "cattle-fleet-local-system", "fleet-system", "fleet-local", "fleet-default", "system-upgrade",
		"open-cluster-management", "open-cluster-management-agent", "open-cluster-management-hub", "config-management-system",
		"kyverno", "gatekeeper-system", "cert-manager", "tekton-pipelines", "velero", "istio-system",
	}
}

// addedSeverity returns the severity of an added object by its kind.
func (c *comparison) addedSeverity(o *Object) Severity {
	if o.Follows {
		return Low
	}
	return c.kindSeverityOf(o).added
}

// contentSeverity returns the severity of an object whose content gives somebody power, and the reason for the
// severity. It returns Off for other objects.
func (c *comparison) contentSeverity(o *Object) (Severity, string) {
	switch key := o.Key(); {
	case key.Is("Secret") && k8s.Text(o.Content, "type") == "kubernetes.io/service-account-token":
		return High, "the API server adds a token of ServiceAccount " + k8s.Text(o.Content, "metadata", "annotations", "kubernetes.io/service-account.name")
	case key.Is("Service") && k8s.Text(o.Content, "spec", "type") == "ExternalName":
		return High, "it resolves to " + k8s.Text(o.Content, "spec", "externalName")
	case key.Is("EndpointSlice.discovery.k8s.io") && !c.ownsService(o, k8s.Text(o.Content, "metadata", "labels", "kubernetes.io/service-name")), key.Is("Endpoints") && !c.ownsService(o, key.Name):
		return High, "it directs the traffic of a Service that does not belong to this operator"
	case key.Is("ConfigMap") && slices.Contains([]string{"kube-root-ca.crt", "openshift-service-ca.crt"}, key.Name):
		return High, "pods of the namespace trust the authorities in it"
	case key.Group == "monitoring.coreos.com":
		if field := monitorAccess(o); field != "" {
			return Medium, field + " lets Prometheus send its own credentials, or read other namespaces"
		}
	case key.Is("PersistentVolumeClaim", "StatefulSet.apps"):
		claims := append(k8s.Items(o.Content, "spec", "volumeClaimTemplates"), o.Content)
		for _, claim := range claims {
			if from := claimSources(c, o, k8s.Map(claim, "spec")); len(from) > 0 {
				return High, "it has the data of " + strings.Join(from, " and ") + ", which does not belong to this operator"
			}
		}
	case key.Is("APIService.apiregistration.k8s.io") && c.servesForeignGroup(o):
		return Critical, "it serves an API group of another component: " + k8s.Text(o.Content, "spec", "group")
	}
	return Off, ""
}

// monitorAccess returns the first field of a monitor that makes Prometheus read its own files, or the
// Services and pods of all namespaces. It returns "" if there is none.
func monitorAccess(o *Object) string {
	found := ""
	forEachField(k8s.At(o.Content, "spec"), "", func(in, name string, v any) {
		if _, isText := v.(string); isText && strings.HasSuffix(name, "File") || in == "namespaceSelector" && name == "any" && v == true {
			found = cmp.Or(found, name)
		}
	})
	return found
}

// servesForeignGroup reports whether an APIService serves a built-in API group, or the API group of
// another operator's CRD.
func (c *comparison) servesForeignGroup(o *Object) bool {
	group := k8s.Text(o.Content, "spec", "group")
	if k8s.IsBuiltinGroup(group) || k8s.IsReserved(o.Content) {
		return true
	}
	for kind, crd := range c.after.crds {
		if kind.Group == group && crd.Operator != o.Operator {
			return true
		}
	}
	return false
}

func (c *comparison) removedSeverity(o *Object) Severity {
	if o.Follows || !c.after.hasOperator(o.Operator) && o.Operator != "" {
		return Low // rule upgrade.removed reports the uninstalled operator
	}
	return c.kindSeverityOf(o).removed
}

// isOwnService reports whether config, the client configuration of a webhook, refers to a Service
// of the operator that o belongs to.
func (c *comparison) isOwnService(o *Object, config map[string]any) bool {
	service := k8s.Map(config, "service")
	if service == nil || config["url"] != nil {
		return false
	}
	to := c.after.byKey[k8s.Key{Kind: "Service", Namespace: k8s.Text(service, "namespace"), Name: k8s.Text(service, "name")}]
	return to != nil && to.Operator == o.Operator
}

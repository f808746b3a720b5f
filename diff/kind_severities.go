package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// kindSeverity is the severity of added, changed and removed objects of some kinds, if no other
// rule reports them.
type kindSeverity struct {
	kinds                   string // kinds with groups, separated by spaces; "*.group" means every kind of the group and of its subgroups
	added, changed, removed Severity
}

// severityTable returns the severities by kind. The first matching row applies. kindSeverityOf
// rates kinds without a row.
func severityTable() []kindSeverity {
	return []kindSeverity{
		{"ConfigMap ServiceAccount Service Role.rbac.authorization.k8s.io RoleBinding.rbac.authorization.k8s.io ClusterRole.rbac.authorization.k8s.io ClusterRoleBinding.rbac.authorization.k8s.io", Info, Info, Info},
		{"Deployment.apps StatefulSet.apps ReplicaSet.apps ReplicationController Job.batch HorizontalPodAutoscaler.autoscaling PersistentVolumeClaim Namespace", Info, Info, Low},
		{"Pod CronJob.batch DaemonSet.apps Secret", Medium, Low, Medium},
		{"Certificate.cert-manager.io Issuer.cert-manager.io OperatorCondition.operators.coreos.com Lease.coordination.k8s.io", Info, Low, Low},
		{"ServiceMonitor.monitoring.coreos.com PodMonitor.monitoring.coreos.com PrometheusRule.monitoring.coreos.com Ingress.networking.k8s.io Route.route.openshift.io", Low, Low, Low},
		{"ConsoleYAMLSample.console.openshift.io ConsoleQuickStart.console.openshift.io ConsoleCLIDownload.console.openshift.io ConsoleLink.console.openshift.io", Low, Low, Low},
		{"ResourceQuota LimitRange", Low, Medium, High},
		{"PodDisruptionBudget.policy NetworkPolicy.networking.k8s.io CiliumNetworkPolicy.cilium.io", Low, High, High},
		{"CustomResourceDefinition.apiextensions.k8s.io", Info, Low, High},
		{"PriorityClass.scheduling.k8s.io", Medium, Medium, Medium},
		{"SecurityContextConstraints.security.openshift.io *.machineconfiguration.openshift.io *.authorization.openshift.io *.config.openshift.io", High, High, Medium},
		{"*.admissionregistration.k8s.io APIService.apiregistration.k8s.io *.kyverno.io *.gatekeeper.sh EnvoyFilter.networking.istio.io *.security.istio.io", High, High, High},
		{"Rollout.argoproj.io", Low, Low, Low},
		{"*.argoproj.io *.fluxcd.io *.fluxcd.controlplane.io", High, High, High},
		{fileKind + " *.operators.coreos.com *.olm.operatorframework.io", High, High, Medium},
		{"PersistentVolume ClusterIssuer.cert-manager.io CertificateSigningRequest.certificates.k8s.io ClusterTrustBundle.certificates.k8s.io", High, High, Medium},
	}
}

// kindSeverityOf returns the severities for the kind of an object.
func (c *comparison) kindSeverityOf(o *Object) kindSeverity {
	key := o.Key()
	for _, p := range severityTable() {
		if slices.ContainsFunc(strings.Fields(p.kinds), func(kind string) bool {
			group, every := strings.CutPrefix(kind, "*.")
			return every && (group == key.Group || strings.HasSuffix(key.Group, "."+group)) || kind == key.GroupKind()
		}) {
			return p
		}
	}
	return c.unlistedSeverity(o)
}

// addedSeverity returns the severity of an added object. If it depends on the content of the
// object, the second result is the reason.
func (c *comparison) addedSeverity(o *Object) (Severity, string) {
	switch key := o.Key(); {
	case o.Follows:
		return Low, ""
	case key.Is("Secret") && k8s.Text(o.Content, "type") == "kubernetes.io/service-account-token":
		return High, "the API server adds a token of ServiceAccount " + k8s.Text(o.Content, "metadata", "annotations", "kubernetes.io/service-account.name")
	case key.Is("Service") && k8s.Text(o.Content, "spec", "type") == "ExternalName":
		return High, "it resolves to " + k8s.Text(o.Content, "spec", "externalName")
	case key.Is(certificateKind) && isMasterCertificate(o):
		return Critical, "its holder is cluster-admin"
	case key.Is("NetworkPolicy.networking.k8s.io") && allowsAllIngress(o):
		return High, "it allows all traffic"
	case key.Is("APIService.apiregistration.k8s.io") && c.servesForeignGroup(o):
		return Critical, "it serves an API group of another component: " + k8s.Text(o.Content, "spec", "group")
	}
	return c.kindSeverityOf(o).added, ""
}

const certificateKind = "Certificate.cert-manager.io"

// isMasterCertificate reports whether the owner of a certificate is cluster-admin.
func isMasterCertificate(o *Object) bool {
	return slices.Contains(k8s.Texts(o.Content, "spec", "subject", "organizations"), "system:masters")
}

// allowsAllIngress reports whether a NetworkPolicy allows ingress from all peers on all ports, or
// from all IP addresses.
func allowsAllIngress(o *Object) bool {
	return slices.ContainsFunc(k8s.Items(o.Content, "spec", "ingress"), func(rule map[string]any) bool {
		if len(k8s.List(rule, "from")) == 0 && len(k8s.List(rule, "ports")) == 0 {
			return true
		}
		return slices.ContainsFunc(k8s.Items(rule, "from"), func(peer map[string]any) bool {
			return slices.Contains([]string{"0.0.0.0/0", "::/0"}, k8s.Text(peer, "ipBlock", "cidr"))
		})
	})
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
		return Low // rule upgrade.removed reports the operator
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

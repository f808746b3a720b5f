package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// power is a row of the table of powers. It rates the power that objects of some kinds give to their author if
// they are added, changed or removed. It also rates the permission to write these kinds, which gives the same
// power, and permissions for other requests.
type power struct {
	kinds                   string   // kinds with groups, separated by spaces; "*.group" means every kind of the group and of its subgroups
	added, changed, removed Severity // severities for objects of the kinds, if no other rule reports them

	rule     string   // rule of a permission; empty if it is ordinary
	verbs    string   // verbs of such a permission
	requests string   // resources with groups, such as "pods/exec", if the power is not to write an object of a kind
	effect   string   // common effect of all kinds and requests of the row; empty if they differ
	rate     rateFunc // severity of the permission; nil: the severity of the rule, but at most medium for a single namespace or object
}

const (
	writeVerbs  = "create update patch"
	deleteVerbs = writeVerbs + " delete deletecollection"
)

// powers returns the table. The first row with a kind applies to the kind. For a kind without a row,
// kindSeverityOf rates the objects, and a permission to write them is ordinary.
func powers() []power {
	const rbac = ".rbac.authorization.k8s.io"
	return []power{
		// Workloads. Their pods use any account and any Secret of the namespace.
		{kinds: "Deployment.apps StatefulSet.apps ReplicaSet.apps ReplicationController Job.batch", added: Info, changed: Info, removed: Low, rule: "rbac.workload-write", verbs: writeVerbs, effect: "pods", rate: accountsSeverity},
		{kinds: "Pod CronJob.batch DaemonSet.apps", added: Medium, changed: Low, removed: Medium, rule: "rbac.workload-write", verbs: writeVerbs, effect: "pods", rate: accountsSeverity},
		{kinds: "Rollout.argoproj.io", added: Low, changed: Low, removed: Low, rule: "rbac.workload-write", verbs: writeVerbs, effect: "pods", rate: accountsSeverity},

		// Ordinary kinds.
		{kinds: "ConfigMap ServiceAccount Service", added: Info, changed: Info, removed: Info},
		{kinds: "HorizontalPodAutoscaler.autoscaling PersistentVolumeClaim", added: Info, changed: Info, removed: Low},
		{kinds: "Certificate.cert-manager.io Issuer.cert-manager.io OperatorCondition.operators.coreos.com Lease.coordination.k8s.io", added: Info, changed: Low, removed: Low},
		{kinds: "ServiceMonitor.monitoring.coreos.com PodMonitor.monitoring.coreos.com PrometheusRule.monitoring.coreos.com", added: Low, changed: Low, removed: Low},
		{kinds: "Ingress.networking.k8s.io Route.route.openshift.io ConsoleCLIDownload.console.openshift.io ConsoleLink.console.openshift.io", added: Medium, changed: Medium, removed: Low},
		{kinds: "ConsoleYAMLSample.console.openshift.io ConsoleQuickStart.console.openshift.io", added: Low, changed: Low, removed: Low},
		{kinds: "ResourceQuota LimitRange", added: Medium, changed: Medium, removed: High},
		{kinds: "PodDisruptionBudget.policy", added: Low, changed: High, removed: High},
		{kinds: networkPolicyKind, added: Low, changed: Low, removed: High}, // rule network.allowed reports changed traffic
		{kinds: "PriorityClass.scheduling.k8s.io", added: Medium, changed: Medium, removed: Medium},

		// Objects that the cluster or another controller acts on.
		{kinds: "Secret", added: Medium, changed: Low, removed: Medium, rule: "rbac.secrets", verbs: writeVerbs + " get list watch", rate: accountsSeverity},
		{kinds: "Role" + rbac + " RoleBinding" + rbac + " ClusterRole" + rbac + " ClusterRoleBinding" + rbac, added: Info, changed: Info, removed: Info, rule: "rbac.rbac-write", verbs: writeVerbs},
		{kinds: "*.authorization.openshift.io *.user.openshift.io *.oauth.openshift.io RBACDefinition.rbacmanager.reactiveops.io", added: High, changed: High, removed: Medium, rule: "rbac.rbac-write", verbs: writeVerbs},
		{kinds: "Namespace", added: Info, changed: Info, removed: Low, rule: "rbac.namespace-write", verbs: writeVerbs + " delete", rate: clusterWideSeverity},
		{kinds: "Node", added: High, changed: High, removed: Medium, rule: "rbac.node-write", verbs: writeVerbs + " delete"},
		{kinds: "PersistentVolume", added: High, changed: High, removed: Medium, rule: "rbac.volume-write", verbs: writeVerbs},
		{kinds: "CustomResourceDefinition." + k8s.CRDGroup, added: Info, changed: Low, removed: High, rule: "rbac.crd-write", verbs: deleteVerbs},
		{kinds: "APIService.apiregistration.k8s.io", added: High, changed: High, removed: High, rule: "rbac.apiservice-write", verbs: writeVerbs},
		{kinds: strings.Join(admissionKinds(), " "), added: High, changed: High, removed: High, rule: "rbac.webhook-write", verbs: deleteVerbs, rate: limitedSeverity(High, High)},
		{kinds: "SecurityContextConstraints.security.openshift.io", added: High, changed: High, removed: Medium, rule: "rbac.constraints-use", verbs: writeVerbs, rate: fixedSeverity(High)},
		{kinds: "ClusterIssuer.cert-manager.io CertificateRequestPolicy.policy.cert-manager.io CertificateSigningRequest.certificates.k8s.io ClusterTrustBundle.certificates.k8s.io Bundle.trust.cert-manager.io", added: High, changed: High, removed: Medium, rule: "rbac.certificate-write", verbs: writeVerbs},
		{kinds: strings.Join(workloadKinds(), " "), added: Medium, changed: Medium, removed: Medium, rule: "rbac.workload-write", verbs: writeVerbs, effect: "pods", rate: accountsSeverity},
		{kinds: fileKind, added: High, changed: High, removed: Medium},
		{kinds: strings.Join(deliveryKinds(), " "), added: High, changed: High, removed: High, rule: "rbac.engine-write", verbs: writeVerbs, rate: fixedSeverity(High)},
		{kinds: strings.Join(installerKinds(), " "), added: High, changed: High, removed: Medium, rule: "rbac.engine-write", verbs: writeVerbs, rate: fixedSeverity(High)},
		{kinds: strings.Join(configurationKinds(), " "), added: High, changed: High, removed: Medium, rule: "rbac.configuration-write", verbs: writeVerbs},
		{kinds: "Endpoints EndpointSlice.discovery.k8s.io", added: High, changed: High, removed: Medium, rule: "rbac.traffic-write", verbs: writeVerbs, effect: "endpoints"},
		{kinds: strings.Join(trafficKinds(), " "), added: High, changed: High, removed: High, rule: "rbac.traffic-write", verbs: deleteVerbs},

		// Requests that write no object.
		{requests: "roles" + rbac + " clusterroles" + rbac, verbs: "escalate", rule: "rbac.escalate", rate: fixedSeverity(Critical)},
		{requests: "roles" + rbac + " clusterroles" + rbac, verbs: "bind", rule: "rbac.escalate", rate: bindSeverity},
		{requests: "users groups", verbs: "impersonate", rule: "rbac.impersonate", rate: userSeverity},
		{requests: "serviceaccounts", verbs: "impersonate", rule: "rbac.impersonate", rate: accountSeverity},
		{requests: "uids.authentication.k8s.io userextras/scopes.authentication.k8s.io", verbs: "impersonate", rule: "rbac.impersonate", rate: limitedSeverity(Critical, High)},
		{requests: "users.authentication.k8s.io groups.authentication.k8s.io uids.authentication.k8s.io serviceaccounts.authentication.k8s.io nodes.authentication.k8s.io", verbs: "impersonate:user-info impersonate:serviceaccount impersonate:arbitrary-node", rule: "rbac.impersonate", rate: fixedSeverity(High)},
		{requests: "nodes/proxy nodes/checkpoint", verbs: "get create update patch delete", rule: "rbac.nodes-proxy", rate: limitedSeverity(Critical, High)},
		{requests: "nodes/status", verbs: writeVerbs + " delete", rule: "rbac.node-write"},
		{requests: "pods/exec pods/attach pods/ephemeralcontainers pods/portforward pods/proxy services/proxy", verbs: "create get update patch delete", rule: "rbac.pods-exec", rate: accountsSeverity},
		{requests: "serviceaccounts/token", verbs: "create", rule: "rbac.tokens", rate: accountSeverity},
		{requests: "certificatesigningrequests/approval.certificates.k8s.io certificatesigningrequests/status.certificates.k8s.io", verbs: "update patch", rule: "rbac.csr-approve"},
		{requests: "signers.certificates.k8s.io", verbs: "approve sign", rule: "rbac.csr-approve", rate: signerSeverity},
		{requests: "securitycontextconstraints.security.openshift.io", verbs: "use", rule: "rbac.constraints-use", rate: constraintSeverity},
	}
}

// workloadKinds returns kinds of other tools that create pods with any content.
func workloadKinds() []string {
	return strings.Fields("DeploymentConfig.apps.openshift.io Build.build.openshift.io BuildConfig.build.openshift.io *.shipwright.io " +
		"*.apps.kruise.io *.jobset.x-k8s.io *.leaderworkerset.x-k8s.io *.batch.volcano.sh ScaledJob.keda.sh *.serving.knative.dev *.sources.knative.dev *.serving.kserve.io " +
		"VirtualMachine.kubevirt.io VirtualMachineInstance.kubevirt.io *.kubeflow.org *.ray.io *.sparkoperator.k8s.io *.flink.apache.org *.tekton.dev " +
		"*.actions.summerwind.dev *.actions.github.com *.agones.dev *.openfaas.com *.fission.io *.k8up.io")
}

// admissionKinds returns the kinds whose objects make a controller read, change or refuse the writes of others.
func admissionKinds() []string {
	return strings.Fields("*.admissionregistration.k8s.io *.kyverno.io *.gatekeeper.sh *.kubewarden.io *.jspolicy.com *.kubemod.io *.styra.com SidecarSet.apps.kruise.io Instrumentation.opentelemetry.io")
}

// deliveryKinds returns the kinds of the GitOps tools for which quayside writes objects.
func deliveryKinds() []string {
	return strings.Fields("*.argoproj.io *.fluxcd.io *.fluxcd.controlplane.io")
}

// installerKinds returns the kinds whose controllers install or run something for the author of an object,
// with the controllers' permissions. These are kinds of GitOps tools, package managers, provisioners of
// clusters and clouds, tools that restore backups, and tools that run commands in the pods of others.
func installerKinds() []string {
	return strings.Fields("*.operators.coreos.com *.olm.operatorframework.io *.cattle.io *.harvesterhci.io *.projectsveltos.io *.k14s.io *.carvel.dev *.crossplane.io *.upbound.io " +
		"*.open-cluster-management.io *.karmada.io *.clusternet.io *.kcp.io *.kubestellar.io *.kurator.dev *.gardener.cloud *.oam.dev *.kluctl.io *.kro.run *.weave.works *.kpt.dev " +
		"*.configsync.gke.io *.configmanagement.gke.io *.cnrm.cloud.google.com *.services.k8s.aws *.azure.com *.pulumi.com *.app.terraform.io *.galleybytes.com *.deckhouse.io *.kubeapps.com " +
		"*.helm.openshift.io *.template.openshift.io *.cloudcredential.openshift.io *.hypershift.openshift.io *.hive.openshift.io *.metacontroller.k8s.io *.redhatcop.redhat.io *.hnc.x-k8s.io *.capsule.clastix.io " +
		"*.cluster.x-k8s.io *.addons.x-k8s.io *.metal3.io *.karpenter.sh *.karpenter.k8s.aws *.machine.openshift.io *.machineconfiguration.openshift.io *.tuned.openshift.io *.performance.openshift.io *.talos.dev " +
		"*.velero.io *.kasten.io *.kanister.io *.stork.libopenstorage.org *.chaos-mesh.org *.litmuschaos.io *.inspektor-gadget.io *.bpfman.io *.aadpodidentity.k8s.io " +
		"PushSecret.external-secrets.io ClusterExternalSecret.external-secrets.io ClusterPushSecret.external-secrets.io ClusterSecretStore.external-secrets.io")
}

// configurationKinds returns the kinds that configure the cluster itself or its nodes. They include the kinds
// for drivers and plugins, which run as root on the nodes.
func configurationKinds() []string {
	return strings.Fields("CSIDriver.storage.k8s.io DeviceClass.resource.k8s.io DeviceTaintRule.resource.k8s.io ResourceSlice.resource.k8s.io *.k8s.cni.cncf.io " +
		"*.config.openshift.io *.operator.openshift.io *.security.openshift.io *.security-profiles-operator.x-k8s.io RuntimeClass.node.k8s.io *.flowcontrol.apiserver.k8s.io PodSecurityPolicy.policy PodSecurityPolicy.extensions")
}

// trafficKinds returns the kinds that direct, read or allow the traffic of others.
func trafficKinds() []string {
	return strings.Fields("EnvoyFilter.networking.istio.io *.extensions.istio.io *.security.istio.io *.policy.linkerd.io *.consul.hashicorp.com " +
		"*.cilium.io *.projectcalico.org *.antrea.io *.policy.networking.k8s.io ReferenceGrant.gateway.networking.k8s.io")
}

// isDeliveryGroup reports whether a group belongs to a GitOps tool for which quayside writes objects.
func isDeliveryGroup(group string) bool {
	return slices.ContainsFunc(deliveryKinds(), func(kind string) bool { return inGroup(group, strings.TrimPrefix(kind, "*.")) })
}

// matchesKind reports whether kinds, separated by spaces, contain a kind or its group.
func matchesKind(kinds string, kind k8s.Key) bool {
	return slices.ContainsFunc(strings.Fields(kinds), func(k string) bool {
		group, every := strings.CutPrefix(k, "*.")
		return every && inGroup(kind.Group, group) || k == kind.GroupKind()
	})
}

// inGroup reports whether the API group equals of, or is a subgroup of it, as "a.b" is a subgroup of "b".
func inGroup(group, of string) bool { return group == of || strings.HasSuffix(group, "."+of) }

// powerOf returns the row of a kind, and whether there is one.
func (c *comparison) powerOf(kind k8s.Key) (power, bool) {
	kind = k8s.Key{Group: kind.Group, Kind: kind.Kind}
	i, known := c.powerIndex[kind]
	if !known {
		i = slices.IndexFunc(c.powers, func(p power) bool { return matchesKind(p.kinds, kind) })
		c.powerIndex[kind] = i
	}
	if i < 0 {
		return power{}, false
	}
	return c.powers[i], true
}

// resourceOf returns the resource of a kind. It is the resource in the CRD of the kind or, without a CRD, the
// usual plural.
func (c *comparison) resourceOf(group, kind string) string {
	if crd := c.after.crds[k8s.Key{Group: group, Kind: kind}]; crd != nil {
		return k8s.Text(crd.Content, "spec", "names", "plural")
	}
	return k8s.Resource(group, kind)
}

// danger is a permission with a larger effect than the permitted request itself.
type danger struct {
	power
	group     string
	subgroups bool   // also requests in subgroups of the group
	resource  string // such as "pods/exec"; empty means every resource without its subresources
	isKind    bool   // the first danger that matches a resource and isKind applies to it
}

// dangers returns the permissions that give the power of a row in the table of powers, in the order of the table.
// plural returns the resource of a kind.
func dangers(plural func(group, kind string) string) []danger {
	var out []danger
	for _, p := range powers() {
		for _, kind := range strings.Fields(p.kinds) {
			name, group, _ := strings.Cut(kind, ".")
			if name == "*" {
				out = append(out, danger{power: p, group: group, subgroups: true, isKind: true})
				continue
			}
			out = append(out, danger{power: p, group: group, resource: plural(group, name), isKind: true})
		}
		for _, request := range strings.Fields(p.requests) {
			resource, group, _ := strings.Cut(request, ".")
			out = append(out, danger{power: p, group: group, resource: resource})
		}
	}
	return out
}

// target returns the requests that both the grant and the danger cover, as a grant without a verb. It returns
// false if there are none.
func (d danger) target(g k8s.Grant) (k8s.Grant, bool) {
	t := k8s.Grant{Namespace: g.Namespace, Group: d.group, Resource: d.resource, Name: g.Name}
	if d.subgroups && inGroup(g.Group, d.group) {
		t.Group = g.Group
	}
	if d.resource == "" {
		t.Resource = "objects"
		if g.Resource != "*" && !strings.Contains(g.Resource, "/") {
			t.Resource = g.Resource
		}
	}
	return t, (g.Group == "*" || g.Group == t.Group)
}

// isGrantedBy reports whether a grant allows one of the verbs of the danger on target.
func (d danger) isGrantedBy(g, target k8s.Grant) bool {
	return slices.ContainsFunc(strings.Fields(d.verbs), func(verb string) bool {
		target.Verb = verb
		return g.Covers(target)
	})
}

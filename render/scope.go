package render

import (
	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/kobj"
)

// clusterScoped lists the kinds, by group, whose objects have no namespace.
// Every other kind that is not a bundle's own counts as namespaced.
func clusterScoped() map[string][]string {
	return map[string][]string{
		"":                                  {"Namespace", "Node", "PersistentVolume", "ComponentStatus"},
		"rbac.authorization.k8s.io":         {"ClusterRole", "ClusterRoleBinding"},
		"apiextensions.k8s.io":              {"CustomResourceDefinition"},
		"apiregistration.k8s.io":            {"APIService"},
		"admissionregistration.k8s.io":      {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
		"scheduling.k8s.io":                 {"PriorityClass"},
		"storage.k8s.io":                    {"StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "VolumeAttributesClass"},
		"networking.k8s.io":                 {"IngressClass", "IPAddress", "ServiceCIDR"},
		"node.k8s.io":                       {"RuntimeClass"},
		"policy":                            {"PodSecurityPolicy"},
		"certificates.k8s.io":               {"CertificateSigningRequest", "ClusterTrustBundle"},
		"flowcontrol.apiserver.k8s.io":      {"FlowSchema", "PriorityLevelConfiguration"},
		"resource.k8s.io":                   {"DeviceClass", "ResourceSlice"},
		"snapshot.storage.k8s.io":           {"VolumeSnapshotClass", "VolumeSnapshotContent"},
		"gateway.networking.k8s.io":         {"GatewayClass"},
		"cert-manager.io":                   {"ClusterIssuer"},
		"console.openshift.io":              {"ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin", "ConsoleNotification", "ConsoleExternalLogLink", "ConsoleSample"},
		"security.openshift.io":             {"SecurityContextConstraints"},
		"project.openshift.io":              {"Project", "ProjectRequest"},
		"user.openshift.io":                 {"User", "Group", "Identity"},
		"oauth.openshift.io":                {"OAuthClient"},
		"image.openshift.io":                {"Image"},
		"machineconfiguration.openshift.io": {"MachineConfig", "MachineConfigPool", "KubeletConfig", "ContainerRuntimeConfig"},
		"config.openshift.io":               {"APIServer", "Authentication", "ClusterOperator", "ClusterVersion", "Console", "DNS", "FeatureGate", "Image", "ImageDigestMirrorSet", "ImageTagMirrorSet", "Infrastructure", "Ingress", "Network", "Node", "OAuth", "OperatorHub", "Project", "Proxy", "Scheduler"},
		"operators.coreos.com":              {"Operator", "OLMConfig"},
		"olm.operatorframework.io":          {"ClusterExtension", "ClusterCatalog"},
		"external-secrets.io":               {"ClusterSecretStore", "ClusterExternalSecret"},
		"kyverno.io":                        {"ClusterPolicy"},
		"monitoring.coreos.com":             {},
		"apiserver.openshift.io":            {"APIRequestCount"},
		"security.internal.openshift.io":    {"RangeAllocation"},
	}
}

// scopes answers which kinds have a namespace: the bundle's CRDs first, then
// the table.
type scopes struct {
	own   map[[2]string]bool // group, kind → namespaced
	table map[[2]string]bool // group, kind → cluster-scoped
}

func newScopes(objects []bundle.Object) scopes {
	s := scopes{own: map[[2]string]bool{}, table: map[[2]string]bool{}}
	for group, kinds := range clusterScoped() {
		for _, kind := range kinds {
			s.table[[2]string{group, kind}] = true
		}
	}
	for _, o := range objects {
		if kobj.IsCRD(Object(o.Fields)) {
			spec := kobj.Map(o.Fields, "spec")
			s.own[[2]string{kobj.Text(spec, "group"), kobj.Text(spec, "names", "kind")}] = kobj.Text(spec, "scope") != "Cluster"
		}
	}
	return s
}

// namespaced reports whether objects of the group and kind have a namespace.
func (s scopes) namespaced(group, kind string) bool {
	if namespaced, ok := s.own[[2]string{group, kind}]; ok {
		return namespaced
	}
	return !s.table[[2]string{group, kind}]
}

package diff

import (
	"net/url"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// kindSeverity is the severity of changes to some kinds that no other rule reports.
type kindSeverity struct {
	kinds                   string // group kinds, separated by spaces; "*.group" means every kind of a group and of its subgroups
	added, changed, removed Severity
}

// severityTable returns the severities by kind. The first matching row applies. For kinds without a
// row, kindSeverityOf considers the scope and the operator.
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
		{"File.quayside.dev *.operators.coreos.com *.olm.operatorframework.io", High, High, Medium},
		{"PersistentVolume ClusterIssuer.cert-manager.io CertificateSigningRequest.certificates.k8s.io ClusterTrustBundle.certificates.k8s.io", High, High, Medium},
	}
}

// kindSeverityOf returns the severities for an object. They are lower for a custom resource whose CRD
// belongs to the same operator.
func (c *comparison) kindSeverityOf(o *Object) kindSeverity {
	key := o.Key()
	var crd *Object
	for _, v := range []*view{c.after, c.before} {
		if crd == nil {
			crd = v.crds[k8s.Key{Group: key.Group, Kind: key.Kind}]
		}
	}
	own := crd != nil && crd.Operator == o.Operator && o.Operator != ""
	if key.Is("ConfigMap", "Secret") && isSystemNamespace(key.Namespace) && !strings.HasPrefix(o.Operator, key.Namespace+"/") {
		return kindSeverity{added: High, changed: High, removed: High} // settings of the cluster
	}
	for _, p := range severityTable() {
		if slices.ContainsFunc(strings.Fields(p.kinds), func(kind string) bool {
			group, every := strings.CutPrefix(kind, "*.")
			return every && (group == key.Group || strings.HasSuffix(key.Group, "."+group)) || kind == key.GroupKind()
		}) {
			if own {
				p.added, p.changed, p.removed = min(p.added, Medium), min(p.changed, Medium), min(p.removed, Medium)
			}
			return p
		}
	}
	if own {
		return kindSeverity{added: Info, changed: Info, removed: Low}
	}
	namespaced := k8s.Namespaced(key.Group, key.Kind) && key.Namespace != ""
	if crd != nil {
		namespaced = k8s.Text(crd.Content, "spec", "scope") == "Namespaced"
	}
	if namespaced {
		return kindSeverity{added: Medium, changed: Medium, removed: Medium}
	}
	return kindSeverity{added: High, changed: High, removed: Medium}
}

// isSystemNamespace reports whether a namespace contains settings of the cluster.
func isSystemNamespace(name string) bool {
	return slices.Contains([]string{"kube-system", "kube-public", "kube-node-lease"}, name) || strings.HasPrefix(name, "openshift-")
}

// addedSeverity returns the severity of an added object, and the reason if it depends on the content.
func (c *comparison) addedSeverity(o *Object) (Severity, string) {
	switch key := o.Key(); {
	case o.Follows:
		return Low, ""
	case key.Is("Secret") && k8s.Text(o.Content, "type") == "kubernetes.io/service-account-token":
		return High, "the API server adds a token of ServiceAccount " + k8s.Text(o.Content, "metadata", "annotations", "kubernetes.io/service-account.name")
	case key.Is("Service") && k8s.Text(o.Content, "spec", "type") == "ExternalName":
		return High, "it resolves to " + k8s.Text(o.Content, "spec", "externalName")
	case key.Is("Certificate.cert-manager.io") && slices.Contains(organizations(o), "system:masters"):
		return Critical, "its holder is cluster-admin"
	case key.Is("NetworkPolicy.networking.k8s.io") && allowsAllIngress(o):
		return High, "it allows all traffic"
	case key.Is("APIService.apiregistration.k8s.io") && c.servesForeignGroup(o):
		return Critical, "it serves an API group of another component: " + k8s.Text(o.Content, "spec", "group")
	}
	return c.kindSeverityOf(o).added, ""
}

// organizations returns the subject organizations of a certificate.
func organizations(o *Object) []string {
	return k8s.Texts(o.Content, "spec", "subject", "organizations")
}

// allowsAllIngress reports whether a NetworkPolicy allows ingress from all peers on all ports, or from
// all addresses.
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

// servesForeignGroup reports whether an APIService serves a built-in API group, or a group of another
// operator's CRDs.
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

// removedSeverity returns the severity of a removed object.
func (c *comparison) removedSeverity(o *Object) Severity {
	if o.Follows || !c.after.hasOperator(o.Operator) && o.Operator != "" {
		return Low // another rule reports the removal of the operator
	}
	return c.kindSeverityOf(o).removed
}

// changedSeverity returns the severity of a changed field that no other rule reports.
func (c *comparison) changedSeverity(p pair, ch change) Severity {
	field := ch.path[0].key
	if field == "metadata" {
		return metadataSeverity(ch.path)
	}
	if _, spec, to := podTemplate(p.after.Content); spec != nil && hasPrefix(ch.path, to) {
		if isHardening(ch) {
			return Info
		}
		return podFieldSeverity(fieldKeys(ch, len(to)))
	}
	key := p.after.Key()
	switch {
	case key.Is(webhookKinds()...) && (field != "webhooks" || len(ch.path) < 3 || slices.Contains(comparedWebhookFields(), ch.path[2].key)):
		return Low
	case key.Is(webhookKinds()...) && c.isOwnServiceChange(p.after, ch, "clientConfig"), key.Is(crdKind) && c.isOwnServiceChange(p.after, ch, "conversion"):
		return Low
	case key.Is(crdKind) && slices.ContainsFunc(ch.path, func(s step) bool { return s.key == "conversion" }):
		if last := ch.path[len(ch.path)-1].key; last == "conversionReviewVersions" {
			return Low
		}
		if k8s.At(p.after.Content, "spec", "conversion", "webhook") == nil {
			return Low // no webhook is called; another rule reports the strategy
		}
		return High
	case key.Is("Service") && strings.HasPrefix(formatPath(ch.path), "spec.externalName"), key.Is("Service") && ch.after == "ExternalName":
		return High
	case key.Is("Service") && len(ch.path) > 1 && (ch.path[1].key == "selector" || ch.path[1].key == "loadBalancerSourceRanges"):
		return Medium // it may lead to other pods, or become reachable for other clients
	case key.Is("ClusterRole.rbac.authorization.k8s.io") && field == "aggregationRule":
		return High
	case strings.HasPrefix(key.Group, "rbac."):
		return Low
	case key.Is("File.quayside.dev"):
		if last := ch.path[len(ch.path)-1].key; slices.Contains([]string{"prefix", "overlays", "values", "resources"}, last) || len(ch.path) < 3 {
			return Low // an entry of a cluster; other rules report its objects
		}
		return engineSeverity(ch)
	case key.Is("Certificate.cert-manager.io") && slices.Contains(organizations(p.after), "system:masters") && field == "spec":
		return High
	}
	worst := c.kindSeverityOf(p.after).changed
	if worst == High && (strings.HasSuffix(key.Group, "argoproj.io") || strings.Contains(key.Group, "fluxcd.")) {
		return engineSeverity(ch)
	}
	if key.Is(crdKind) && len(ch.path) > 3 && (ch.path[3].key == "schema" || ch.path[3].key == "additionalPrinterColumns") {
		worst = Info
	}
	return worst
}

// comparedWebhookFields returns the webhook fields that dedicated rules compare. Changes to these
// fields that no such rule reports only make defaults explicit or reorder items.
func comparedWebhookFields() []string {
	return []string{"admissionReviewVersions", "failurePolicy", "matchPolicy", "objectSelector", "namespaceSelector", "reinvocationPolicy", "rules", "sideEffects", "timeoutSeconds"}
}

// metadataSeverity returns the severity of a changed field of the metadata.
func metadataSeverity(path []step) Severity {
	if len(path) < 3 {
		return Medium // such as owners or finalizers
	}
	switch name := path[2].key; {
	case slices.ContainsFunc(sensitiveAnnotations(), func(pattern string) bool { return diag.Matches(pattern, name) }):
		return High
	case path[1].key == "ownerReferences", path[1].key == "finalizers", strings.Contains(name, "aggregate-to-"):
		return Medium
	}
	return Info
}

// sensitiveAnnotations returns the annotations and labels, or prefixes followed by "*", that grant
// trust or a cloud identity, or disable protection.
func sensitiveAnnotations() []string {
	return []string{
		"cert-manager.io/inject-*", "service.beta.openshift.io/inject-*", "service.alpha.openshift.io/inject-*",
		"eks.amazonaws.com/*", "iam.amazonaws.com/*", "iam.gke.io/*", "azure.workload.identity/*",
		"kubernetes.io/service-account.name", "container.apparmor.security.beta.kubernetes.io/*", "seccomp.security.alpha.kubernetes.io/*",
		"openshift.io/run-level", "openshift.io/sa.scc.*", "security.openshift.io/*", "admission.gatekeeper.sh/*", "policies.kyverno.io/*",
	}
}

// isHardening reports whether a change sets a security setting to its strictest value.
func isHardening(ch change) bool {
	text := formatPath(ch.path)
	text = text[strings.LastIndexByte(text, '.')+1:] + "=" + formatValue(ch.after)
	return slices.Contains([]string{
		`seccompProfile={"type":"RuntimeDefault"}`, "type=RuntimeDefault", "runAsNonRoot=true", "allowPrivilegeEscalation=false", "readOnlyRootFilesystem=true",
		"privileged=false", `drop=["ALL"]`, `capabilities={"drop":["ALL"]}`, "automountServiceAccountToken=false", "hostUsers=false",
	}, text)
}

// fieldKeys returns the keys in the path of a change, without the first n, and the keys in its
// values.
func fieldKeys(ch change, n int) []string {
	var out []string
	for _, s := range ch.path[n:] {
		if s.by == "" {
			out = append(out, s.key)
		}
	}
	for _, v := range []any{ch.before, ch.after} {
		forEachField(v, "", func(_, name string, _ any) { out = append(out, name) })
	}
	return out
}

// podFieldSeverity returns the severity of a change of fields in a pod spec.
func podFieldSeverity(keys []string) Severity {
	worst := Info
	for _, key := range keys {
		switch key {
		case "exec", "podCertificate":
			return High
		case "hostAliases", "dnsConfig", "dnsPolicy", "securityContext", "shareProcessNamespace", "automountServiceAccountToken", "runtimeClassName", "image", "secret", "secretRef", "secretKeyRef", "hostUsers":
			worst = Medium
		}
	}
	return worst
}

// isOwnServiceChange reports whether a changed client configuration refers to a Service of the same
// operator, and the change does not affect the CA.
func (c *comparison) isOwnServiceChange(o *Object, ch change, field string) bool {
	i := slices.IndexFunc(ch.path, func(s step) bool { return s.key == field })
	if i < 0 {
		return false
	}
	var config map[string]any
	if field == "conversion" {
		config = k8s.Map(o.Content, "spec", "conversion", "webhook", "clientConfig")
	} else {
		for _, h := range k8s.Items(o.Content, "webhooks") {
			if k8s.Text(h, "name") == ch.path[1].key {
				config = k8s.Map(h, "clientConfig")
			}
		}
	}
	return c.isOwnService(o, config) && ch.path[len(ch.path)-1].key != "caBundle"
}

// isOwnService reports whether a client configuration refers to a Service of o's operator.
func (c *comparison) isOwnService(o *Object, config map[string]any) bool {
	service := k8s.Map(config, "service")
	if service == nil || config["url"] != nil {
		return false
	}
	to := c.after.byKey[k8s.Key{Kind: "Service", Namespace: k8s.Text(service, "namespace"), Name: k8s.Text(service, "name")}]
	return to != nil && to.Operator == o.Operator
}

// haveDifferentHosts reports whether two values are URLs with different hosts.
func haveDifferentHosts(a, b any) bool {
	host := func(v any) string {
		s, _ := v.(string)
		u, err := url.Parse(s)
		if err != nil {
			return ""
		}
		return u.Host
	}
	return host(a) != "" && host(b) != "" && host(a) != host(b)
}

package k8s

import (
	"slices"
	"strings"
)

// IsDefaultNamespace reports whether every new cluster has the namespace.
func IsDefaultNamespace(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-")
}

// IsReservedNamespace reports whether the namespace is created by the cluster or its vendor.
func IsReservedNamespace(name string) bool {
	return IsDefaultNamespace(name) || strings.HasPrefix(name, "openshift")
}

// reservedKind is a kind with reserved names. isReserved reports whether an object has such a name.
type reservedKind struct {
	group, kind string
	isReserved  func(o Object) bool
}

func reservedKinds() []reservedKind {
	role := func(o Object) bool {
		return strings.HasPrefix(o.Name(), "system:") || slices.Contains(bootstrapRoles(), o.Name())
	}
	flow := func(o Object) bool {
		return strings.HasPrefix(o.Name(), "system") || strings.HasPrefix(o.Name(), "kube-") || slices.Contains(builtinFlowControl(), o.Name())
	}
	return []reservedKind{
		{"", "Namespace", func(o Object) bool { return IsReservedNamespace(o.Name()) }},
		{"rbac.authorization.k8s.io", "ClusterRole", role},
		{"rbac.authorization.k8s.io", "ClusterRoleBinding", role},
		{"scheduling.k8s.io", "PriorityClass", func(o Object) bool { return strings.HasPrefix(o.Name(), "system-") }},
		{"flowcontrol.apiserver.k8s.io", "FlowSchema", flow},
		{"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", flow},
		{"apiregistration.k8s.io", "APIService", func(o Object) bool {
			_, group, _ := strings.Cut(o.Name(), ".")
			return isServedGroup(group) || isServedGroup(Text(o, "spec", "group"))
		}},
		{"security.openshift.io", "SecurityContextConstraints", func(o Object) bool {
			return slices.Contains(openShiftConstraints(), strings.TrimRight(o.Name(), "-v0123456789"))
		}},
	}
}

// IsReserved reports whether o has the kind and name of an object that belongs to the cluster or its vendor.
// Installing o would replace that object.
func IsReserved(o Object) bool {
	return slices.ContainsFunc(reservedKinds(), func(c reservedKind) bool { return o.Is(c.group, c.kind) && c.isReserved(o) })
}

// IsReservedName is IsReserved for an object given as "Kind/name".
func IsReservedName(id string) bool {
	kind, name, _ := strings.Cut(id, "/")
	return name != "" && slices.ContainsFunc(reservedKinds(), func(c reservedKind) bool { return c.kind == kind && c.isReserved(New("", kind, "", name)) })
}

// isServedGroup reports whether Kubernetes, OpenShift or OLM serves an API group. An APIService for
// such a group would receive the requests of the group.
func isServedGroup(group string) bool {
	builtin := IsBuiltinGroup(group)
	return builtin || group == "packages.operators.coreos.com" || slices.Contains(openShiftGroups(), group)
}

// openShiftGroups returns the API groups that OpenShift serves by APIServices.
func openShiftGroups() []string {
	return []string{
		"apps.openshift.io", "authorization.openshift.io", "build.openshift.io", "image.openshift.io", "oauth.openshift.io", "project.openshift.io",
		"quota.openshift.io", "route.openshift.io", "security.openshift.io", "template.openshift.io", "user.openshift.io",
	}
}

// bootstrapRoles returns the names of the roles and bindings that Kubernetes or OpenShift creates
// and restores. It omits names with the prefix "system:".
func bootstrapRoles() []string {
	return []string{
		"admin", "cluster-admin", "edit", "view",
		"basic-user", "basic-users", "cluster-admins", "cluster-debugger", "cluster-reader", "cluster-readers", "cluster-status", "cluster-status-binding",
		"registry-admin", "registry-editor", "registry-viewer", "self-access-reviewer", "self-access-reviewers", "self-provisioner", "self-provisioners",
		"storage-admin", "sudoer",
	}
}

// builtinFlowControl returns the names of the flow schemas and priority levels that the API server
// creates.
func builtinFlowControl() []string {
	return []string{
		"catch-all", "endpoint-controller", "exempt", "global-default", "leader-election", "node-high", "probes", "service-accounts", "workload-high",
		"workload-leader-election", "workload-low",
	}
}

// openShiftConstraints returns the names of the SecurityContextConstraints of OpenShift, without
// version suffixes such as "-v2".
func openShiftConstraints() []string {
	return []string{
		"anyuid", "hostaccess", "hostmount-anyuid", "hostnetwork", "nested-container", "node-exporter", "nonroot", "privileged", "restricted",
	}
}

// Labels of rendered objects that identify the operator that they belong to. Deployments and CRDs
// also have an annotation with the exact version.
const (
	LabelPackage   = "quayside.dev/package"
	LabelNamespace = "quayside.dev/install-namespace"
	LabelVersion   = "quayside.dev/version"
	LabelManagedBy = "app.kubernetes.io/managed-by"
)

// Domain is the domain of the labels and annotations that quayside writes.
const Domain = "quayside.dev"

// IsOwnKey reports whether a label or annotation key has the domain of quayside, or a subdomain.
func IsOwnKey(key string) bool {
	domain, _, ok := strings.Cut(strings.ToLower(key), "/")
	return ok && (domain == Domain || strings.HasSuffix(domain, "."+Domain))
}

// Manager is the default value of [LabelManagedBy].
const Manager = "quayside"

// LabelValue converts s, such as a version, to a valid value of a label.
func LabelValue(s string) string {
	s = strings.ReplaceAll(s, "+", "_")
	if len(s) > MaxLabel {
		s = s[:MaxLabel]
	}
	return strings.TrimRight(s, "-._")
}

package k8s

import (
	"slices"
	"strings"
)

// IsDefaultNamespace reports whether a namespace exists in every new cluster.
func IsDefaultNamespace(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-")
}

// IsReservedNamespace reports whether the cluster or its vendor creates a namespace.
func IsReservedNamespace(name string) bool {
	return IsDefaultNamespace(name) || strings.HasPrefix(name, "openshift")
}

// reservedKind is a kind with names that belong to the cluster.
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

// IsReserved reports whether the cluster or its vendor owns objects of this kind and name.
// Installing such an object would replace the cluster's own object.
func IsReserved(o Object) bool {
	return slices.ContainsFunc(reservedKinds(), func(c reservedKind) bool { return o.Is(c.group, c.kind) && c.isReserved(o) })
}

// IsReservedName is IsReserved for "Kind/name".
func IsReservedName(id string) bool {
	kind, name, _ := strings.Cut(id, "/")
	return name != "" && slices.ContainsFunc(reservedKinds(), func(c reservedKind) bool { return c.kind == kind && c.isReserved(New("", kind, "", name)) })
}

// isServedGroup reports whether Kubernetes, OpenShift or OLM serves a group. An APIService for
// the group would receive all its requests.
func isServedGroup(group string) bool {
	_, _, builtin := builtinKinds(group)
	return builtin || group == "packages.operators.coreos.com" || slices.Contains(openShiftGroups(), group)
}

// openShiftGroups lists the groups that OpenShift serves through APIServices.
func openShiftGroups() []string {
	return []string{
		"apps.openshift.io", "authorization.openshift.io", "build.openshift.io", "image.openshift.io", "oauth.openshift.io", "project.openshift.io",
		"quota.openshift.io", "route.openshift.io", "security.openshift.io", "template.openshift.io", "user.openshift.io",
	}
}

// bootstrapRoles lists the roles and bindings that Kubernetes or OpenShift creates and restores, except
// those with the prefix "system:".
func bootstrapRoles() []string {
	return []string{
		"admin", "cluster-admin", "edit", "view",
		"basic-user", "basic-users", "cluster-admins", "cluster-debugger", "cluster-reader", "cluster-readers", "cluster-status", "cluster-status-binding",
		"registry-admin", "registry-editor", "registry-viewer", "self-access-reviewer", "self-access-reviewers", "self-provisioner", "self-provisioners",
		"storage-admin", "sudoer",
	}
}

// builtinFlowControl lists the flow schemas and priority levels that API servers create.
func builtinFlowControl() []string {
	return []string{
		"catch-all", "endpoint-controller", "exempt", "global-default", "leader-election", "node-high", "probes", "service-accounts", "workload-high",
		"workload-leader-election", "workload-low",
	}
}

// openShiftConstraints lists OpenShift's own SecurityContextConstraints, without the version suffix of
// newer ones.
func openShiftConstraints() []string {
	return []string{
		"anyuid", "hostaccess", "hostmount-anyuid", "hostnetwork", "nested-container", "node-exporter", "nonroot", "privileged", "restricted",
	}
}

package k8s

import (
	"slices"
	"strings"
)

// AllNamespaces reports whether every cluster has the namespace from the start.
func AllNamespaces(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-")
}

// ReservedNamespace reports whether the cluster or its vendor makes a namespace.
func ReservedNamespace(name string) bool {
	return AllNamespaces(name) || strings.HasPrefix(name, "openshift")
}

// claim is one kind with names that belong to the cluster.
type claim struct {
	group, kind string
	own         func(o Object) bool
}

func claims() []claim {
	role := func(o Object) bool {
		return strings.HasPrefix(o.Name(), "system:") || slices.Contains(roles(), o.Name())
	}
	flow := func(o Object) bool {
		return strings.HasPrefix(o.Name(), "system") || strings.HasPrefix(o.Name(), "kube-") || slices.Contains(flows(), o.Name())
	}
	return []claim{
		{"", "Namespace", func(o Object) bool { return ReservedNamespace(o.Name()) }},
		{"rbac.authorization.k8s.io", "ClusterRole", role},
		{"rbac.authorization.k8s.io", "ClusterRoleBinding", role},
		{"scheduling.k8s.io", "PriorityClass", func(o Object) bool { return strings.HasPrefix(o.Name(), "system-") }},
		{"flowcontrol.apiserver.k8s.io", "FlowSchema", flow},
		{"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", flow},
		{"apiregistration.k8s.io", "APIService", func(o Object) bool {
			_, group, _ := strings.Cut(o.Name(), ".")
			return standing(group) || standing(Text(o, "spec", "group"))
		}},
		{"security.openshift.io", "SecurityContextConstraints", func(o Object) bool {
			return slices.Contains(constraints(), strings.TrimRight(o.Name(), "-v0123456789"))
		}},
	}
}

// Reserved reports whether the name of an object belongs to the cluster: whoever
// brings an object of that name takes the place of the cluster's own.
func Reserved(o Object) bool {
	return slices.ContainsFunc(claims(), func(c claim) bool { return o.Is(c.group, c.kind) && c.own(o) })
}

// ReservedName reports whether "Kind/name" is that of an object whose name
// belongs to the cluster.
func ReservedName(id string) bool {
	kind, name, _ := strings.Cut(id, "/")
	return name != "" && slices.ContainsFunc(claims(), func(c claim) bool { return c.kind == kind && c.own(New("", kind, "", name)) })
}

// standing reports whether a group is one that the cluster, OpenShift or an OLM
// in it serves, so that an APIService for it would see all that goes there.
func standing(group string) bool {
	_, _, own := builtinKinds(group)
	return own || group == "packages.operators.coreos.com" || slices.Contains(aggregated(), group)
}

// aggregated lists the groups that OpenShift serves through APIServices.
func aggregated() []string {
	return []string{
		"apps.openshift.io", "authorization.openshift.io", "build.openshift.io", "image.openshift.io", "oauth.openshift.io", "project.openshift.io",
		"quota.openshift.io", "route.openshift.io", "security.openshift.io", "template.openshift.io", "user.openshift.io",
	}
}

// roles lists the roles and their bindings, beside those of "system:", that
// Kubernetes or OpenShift makes and puts right again.
func roles() []string {
	return []string{
		"admin", "cluster-admin", "edit", "view",
		"basic-user", "basic-users", "cluster-admins", "cluster-debugger", "cluster-reader", "cluster-readers", "cluster-status", "cluster-status-binding",
		"registry-admin", "registry-editor", "registry-viewer", "self-access-reviewer", "self-access-reviewers", "self-provisioner", "self-provisioners",
		"storage-admin", "sudoer",
	}
}

// flows lists the flow schemas and priority levels that API servers make.
func flows() []string {
	return []string{
		"catch-all", "endpoint-controller", "exempt", "global-default", "leader-election", "node-high", "probes", "service-accounts", "workload-high",
		"workload-leader-election", "workload-low",
	}
}

// constraints lists OpenShift's own SecurityContextConstraints, without the
// number that later ones have.
func constraints() []string {
	return []string{
		"anyuid", "hostaccess", "hostmount-anyuid", "hostnetwork", "nested-container", "node-exporter", "nonroot", "privileged", "restricted",
	}
}

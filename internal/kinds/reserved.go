package kinds

import "strings"

// Everywhere reports whether every cluster has the namespace from the start.
func Everywhere(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-")
}

// ReservedNamespace reports whether the cluster or its vendor makes a namespace.
func ReservedNamespace(name string) bool {
	return Everywhere(name) || strings.HasPrefix(name, "openshift")
}

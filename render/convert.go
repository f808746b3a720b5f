package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/profile"
)

// apiConversion converts objects from a removed version of an API to its successor.
type apiConversion struct {
	from    string // such as "policy/v1beta1"
	kinds   []string
	removed int    // first minor version of Kubernetes without it
	to      string // such as "policy/v1"; empty: no successor
	convert func(Object) (Object, error)
}

// conversions returns the API versions that Kubernetes has removed, with their successors. If the field convert
// is nil, a conversion changes only the apiVersion.
func (in *install) conversions(file bundle.ManifestObject) []apiConversion {
	convertCRD := func(o Object) (Object, error) { return in.convertCRD(file, o) }
	return []apiConversion{
		{"apiextensions.k8s.io/v1beta1", []string{"CustomResourceDefinition"}, 22, "apiextensions.k8s.io/v1", convertCRD},
		{"admissionregistration.k8s.io/v1beta1", []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}, 22, "admissionregistration.k8s.io/v1", convertWebhooks},
		{"apiregistration.k8s.io/v1beta1", []string{"APIService"}, 22, "apiregistration.k8s.io/v1", nil},
		{k8s.RBACGroup + "/v1alpha1", []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}, 22, k8s.RBACGroup + "/v1", nil},
		{k8s.RBACGroup + "/v1beta1", []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}, 22, k8s.RBACGroup + "/v1", nil},
		{"scheduling.k8s.io/v1alpha1", []string{"PriorityClass"}, 17, "scheduling.k8s.io/v1", nil},
		{"scheduling.k8s.io/v1beta1", []string{"PriorityClass"}, 22, "scheduling.k8s.io/v1", nil},
		{"coordination.k8s.io/v1beta1", []string{"Lease"}, 22, "coordination.k8s.io/v1", nil},
		{"storage.k8s.io/v1beta1", []string{"StorageClass", "CSIDriver"}, 22, "storage.k8s.io/v1", nil},
		{"node.k8s.io/v1beta1", []string{"RuntimeClass"}, 25, "node.k8s.io/v1", nil},
		{"batch/v1beta1", []string{"CronJob"}, 25, "batch/v1", nil},
		{"policy/v1beta1", []string{"PodDisruptionBudget"}, 25, "policy/v1", convertBudget},
		{"policy/v1beta1", []string{"PodSecurityPolicy"}, 25, "", nil},
		{"extensions/v1beta1", []string{"NetworkPolicy"}, 16, "networking.k8s.io/v1", nil},
		{"extensions/v1beta1", []string{"PodSecurityPolicy"}, 16, "", nil},
		{"extensions/v1beta1", []string{"Deployment", "DaemonSet", "ReplicaSet"}, 16, "apps/v1", convertWorkload},
		{"apps/v1beta1", []string{"Deployment", "StatefulSet"}, 16, "apps/v1", convertWorkload},
		{"apps/v1beta2", []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, 16, "apps/v1", convertWorkload},
		{"extensions/v1beta1", []string{"Ingress"}, 22, "networking.k8s.io/v1", convertIngress},
		{"networking.k8s.io/v1beta1", []string{"Ingress"}, 22, "networking.k8s.io/v1", convertIngress},
		{"networking.k8s.io/v1beta1", []string{"IngressClass"}, 22, "networking.k8s.io/v1", nil},
		{"autoscaling/v2beta2", []string{"HorizontalPodAutoscaler"}, 26, "autoscaling/v2", nil},
		{"autoscaling/v2beta1", []string{"HorizontalPodAutoscaler"}, 25, "", nil},
	}
}

// convertToServed returns o with an API version that the clusters serve. If their Kubernetes version is
// unknown, it assumes the current version. A CRD is always converted to v1: CRDs are validated as v1, and
// Kubernetes serves v1 since 1.16.
func (in *install) convertToServed(file bundle.ManifestObject, o Object) (Object, error) {
	for _, c := range in.conversions(file) {
		if c.from != o.APIVersion() || !slices.Contains(c.kinds, o.Kind()) || in.newestMinor() < c.removed && !k8s.IsCRD(o) {
			continue
		}
		lossy := func(why string) error {
			return diag.Errorf(file.Pos(), "%s %q uses %s, which Kubernetes 1.%d no longer serves: %s", o.Kind(), o.Name(), c.from, c.removed, why)
		}
		if c.to == "" {
			return nil, lossy("no API version with the same fields")
		}
		converted := k8s.With(o, c.to, "apiVersion")
		if c.convert != nil {
			var err error
			if converted, err = c.convert(converted); err != nil {
				return nil, lossy(fmt.Sprintf("it cannot be converted to %s without loss: %v", c.to, err))
			}
		}
		in.warnMinor(file.Pos(), "manifest-converted", "%s %q converted from %s to %s", o.Kind(), o.Name(), c.from, c.to)
		return converted, nil
	}
	return o, nil
}

// newestMinor returns the newest minor version of Kubernetes in the clusters. If the version of a cluster is
// unknown, the result is above any release. Objects converted for the newest version also suit older clusters,
// because Kubernetes introduces the successor of an API long before it removes the API.
func (in *install) newestMinor() int {
	newest := 0
	for _, c := range in.opt.Clusters {
		newest = max(newest, parseMinor(c.WithDefaults(profile.Cluster{KubernetesVersion: in.opt.KubernetesVersion}).KubernetesVersion))
	}
	return newest
}

// parseMinor returns the minor version in "1.34" or "v1.34.2". For other text, the result is above
// any release.
func parseMinor(version string) int {
	const unknown = 1 << 10
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return unknown
	}
	n, err := strconv.Atoi(strings.TrimRight(parts[1], "+"))
	if err != nil {
		return unknown
	}
	return n
}

// convertCRD converts a CRD from v1beta1 to v1. It adds a warning if it omits fields.
func (in *install) convertCRD(file bundle.ManifestObject, o Object) (Object, error) {
	spec, omitted, err := admit.Upgrade(k8s.Map(o, "spec"))
	if err != nil {
		return nil, err
	}
	if len(omitted) > 0 {
		in.warn(file.Pos(), "manifest-converted", "%s: fields without an equivalent in apiextensions.k8s.io/v1 omitted: %s", file, formatFirst(omitted))
	}
	o = k8s.With(k8s.Without(o, "status"), any(spec), "spec")
	if admit.NeedsApproval(k8s.Text(spec, "group")) {
		o = k8s.Annotate(o, map[string]string{admit.ApprovalAnnotation: "unapproved, converted from v1beta1, which needs no approval"})
	}
	return o, nil
}

// formatFirst formats the first three entries of a list, and the number of further entries.
func formatFirst(list []string) string {
	const most = 3
	if more := len(list) - most; more > 0 {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}

// convertWebhooks sets defaults of v1beta1 that are different in v1. A value of sideEffects that v1
// does not permit is an error.
func convertWebhooks(o Object) (Object, error) {
	var hooks []any
	for i, h := range k8s.Items(o, "webhooks") {
		h = maps.Clone(h)
		if effects := k8s.Text(h, "sideEffects"); effects != "None" && effects != "NoneOnDryRun" {
			return nil, fmt.Errorf("webhooks[%d].sideEffects is %q, but v1 allows only None and NoneOnDryRun", i, effects)
		}
		addMissing(h, map[string]any{
			"admissionReviewVersions": k8s.Values("v1beta1"), "failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": int64(30),
		})
		hooks = append(hooks, h)
	}
	return k8s.With(o, hooks, "webhooks"), nil
}

// convertBudget returns a PodDisruptionBudget unchanged. It returns an error for an empty selector, because v1
// changed the meaning of an empty selector.
func convertBudget(o Object) (Object, error) {
	if selector, ok := k8s.Map(o, "spec")["selector"].(map[string]any); ok && len(selector) == 0 {
		return nil, fmt.Errorf("spec.selector is empty: it selects no pods in v1beta1, all pods in v1")
	}
	return o, nil
}

// convertWorkload adds the selector if it is missing, because apps/v1 requires a selector.
func convertWorkload(o Object) (Object, error) {
	if k8s.Map(o, "spec", "selector") == nil {
		labels := k8s.Map(o, "spec", "template", "metadata", "labels")
		if len(labels) == 0 {
			return nil, fmt.Errorf("spec.selector and spec.template.metadata.labels are missing")
		}
		o = k8s.With(o, map[string]any{"matchLabels": labels}, "spec", "selector")
	}
	if _, ok := k8s.Map(o, "spec")["rollbackTo"]; ok {
		return nil, fmt.Errorf("spec.rollbackTo does not exist in apps/v1")
	}
	return o, nil
}

// convertIngress converts backends to the format of v1.
func convertIngress(o Object) (Object, error) {
	if backend := k8s.Map(o, "spec", "backend"); backend != nil {
		o = k8s.With(k8s.Without(o, "spec", "backend"), ingressBackend(backend), "spec", "defaultBackend")
	}
	var out []any
	for _, rule := range k8s.Items(o, "spec", "rules") {
		if http := k8s.Map(rule, "http"); http != nil {
			var paths []any
			for _, p := range k8s.Items(http, "paths") {
				p = maps.Clone(p)
				p["backend"] = ingressBackend(k8s.Map(p, "backend"))
				addMissing(p, map[string]any{"pathType": "ImplementationSpecific"})
				paths = append(paths, p)
			}
			rule = k8s.With(rule, paths, "http", "paths")
		}
		out = append(out, rule)
	}
	if out != nil {
		o = k8s.With(o, out, "spec", "rules")
	}
	return o, nil
}

func ingressBackend(b map[string]any) map[string]any {
	name, port := k8s.Text(b, "serviceName"), b["servicePort"]
	if name == "" {
		return b
	}
	target := map[string]any{"number": port}
	if s, ok := port.(string); ok {
		target = map[string]any{"name": s}
	}
	rest := k8s.Without(k8s.Without(b, "serviceName"), "servicePort")
	return k8s.With(rest, map[string]any{"name": name, "port": target}, "service")
}

package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
)

// conversion is the way from an old version of an API to the served one.
type conversion struct {
	from    string // "policy/v1beta1"
	kinds   []string
	removed int    // minor version of Kubernetes that no longer serves it
	to      string // "policy/v1"; empty where there is no successor
	convert func(Object) (Object, error)
}

// conversions lists the versions that Kubernetes has stopped serving and what
// became of them. A nil convert changes the version only.
func (in *install) conversions(file bundle.Object) []conversion {
	convertCRD := func(o Object) (Object, error) { return in.convertCRD(file, o) }
	return []conversion{
		{"apiextensions.k8s.io/v1beta1", []string{"CustomResourceDefinition"}, 22, "apiextensions.k8s.io/v1", convertCRD},
		{"admissionregistration.k8s.io/v1beta1", []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}, 22, "admissionregistration.k8s.io/v1", convertWebhooks},
		{"apiregistration.k8s.io/v1beta1", []string{"APIService"}, 22, "apiregistration.k8s.io/v1", nil},
		{rbacGroup + "/v1alpha1", []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}, 22, rbacGroup + "/v1", nil},
		{rbacGroup + "/v1beta1", []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}, 22, rbacGroup + "/v1", nil},
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

// served returns o at a version that the target Kubernetes serves. Without a
// target, a current one is meant.
func (in *install) served(file bundle.Object, o Object) (Object, error) {
	for _, c := range in.conversions(file) {
		if c.from != o.APIVersion() || !slices.Contains(c.kinds, o.Kind()) || in.minor() < c.removed {
			continue
		}
		lossy := func(why string) error {
			return diag.Errorf(file.Pos(), "%s %q at %s, which Kubernetes serves only before 1.%d: %s", o.Kind(), o.Name(), c.from, c.removed, why)
		}
		if c.to == "" {
			return nil, lossy("there is no successor that means the same")
		}
		converted := kobj.With(o, c.to, "apiVersion")
		if c.convert != nil {
			var err error
			if converted, err = c.convert(converted); err != nil {
				return nil, lossy(fmt.Sprintf("it cannot be turned into %s without a loss: %v", c.to, err))
			}
		}
		in.warn(file.Pos(), "manifest-converted", "%s %q converted from %s to %s", o.Kind(), o.Name(), c.from, c.to)
		return converted, nil
	}
	return o, nil
}

// minor returns the newest minor version of the clusters that the base is for,
// one beyond all tables where one of them does not say. A successor is served
// long before what it succeeds goes, so that it suits the older ones too.
func (in *install) minor() int {
	newest := 0
	for _, c := range in.opt.Clusters {
		newest = max(newest, minorOf(cmp.Or(c.KubernetesVersion, in.opt.KubernetesVersion)))
	}
	return newest
}

// minorOf returns the minor version of "1.34" or "v1.34.2".
func minorOf(version string) int {
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

// convertCRD turns a v1beta1 CRD into v1. It warns of the fields that are left
// out.
func (in *install) convertCRD(file bundle.Object, o Object) (Object, error) {
	spec, left, err := admit.Upgrade(kobj.Map(o, "spec"))
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		in.warn(file.Pos(), "manifest-converted", "%s: left out, for no CustomResourceDefinition at apiextensions.k8s.io/v1 can say it: %s", file, few(left))
	}
	o = kobj.With(kobj.Without(o, "status"), any(spec), "spec")
	if admit.NeedsApproval(kobj.Text(spec, "group")) {
		o = kobj.Annotate(o, map[string]string{admit.ApprovalAnnotation: "unapproved, converted from v1beta1, which asked for no approval"})
	}
	return o, nil
}

// few returns the first entries of a list, and how many more there are.
func few(list []string) string {
	const most = 3
	if more := len(list) - most; more > 0 {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}

// convertWebhooks writes out the defaults that v1 changed.
func convertWebhooks(o Object) (Object, error) {
	var hooks []any
	for i, h := range kobj.Items(o, "webhooks") {
		h = maps.Clone(h)
		if effects := kobj.Text(h, "sideEffects"); effects != "None" && effects != "NoneOnDryRun" {
			return nil, fmt.Errorf("webhooks[%d].sideEffects is %q, v1 takes None and NoneOnDryRun", i, effects)
		}
		addMissing(h, map[string]any{
			"admissionReviewVersions": kobj.Values("v1beta1"), "failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": int64(30),
		})
		hooks = append(hooks, h)
	}
	return kobj.With(o, hooks, "webhooks"), nil
}

// convertBudget refuses the one selector that changed its meaning.
func convertBudget(o Object) (Object, error) {
	if selector, ok := kobj.Map(o, "spec")["selector"].(map[string]any); ok && len(selector) == 0 {
		return nil, fmt.Errorf("spec.selector is empty: no pods before, all pods in v1")
	}
	return o, nil
}

// convertWorkload writes out the selector that apps/v1 demands.
func convertWorkload(o Object) (Object, error) {
	if kobj.Map(o, "spec", "selector") == nil {
		labels := kobj.Map(o, "spec", "template", "metadata", "labels")
		if len(labels) == 0 {
			return nil, fmt.Errorf("spec.selector and spec.template.metadata.labels are missing")
		}
		o = kobj.With(o, map[string]any{"matchLabels": labels}, "spec", "selector")
	}
	if _, ok := kobj.Map(o, "spec")["rollbackTo"]; ok {
		return nil, fmt.Errorf("spec.rollbackTo has no successor")
	}
	return o, nil
}

// convertIngress writes backends in their new form.
func convertIngress(o Object) (Object, error) {
	if backend := kobj.Map(o, "spec", "backend"); backend != nil {
		o = kobj.With(kobj.Without(o, "spec", "backend"), ingressBackend(backend), "spec", "defaultBackend")
	}
	var out []any
	for _, rule := range kobj.Items(o, "spec", "rules") {
		if http := kobj.Map(rule, "http"); http != nil {
			var paths []any
			for _, p := range kobj.Items(http, "paths") {
				p = maps.Clone(p)
				p["backend"] = ingressBackend(kobj.Map(p, "backend"))
				addMissing(p, map[string]any{"pathType": "ImplementationSpecific"})
				paths = append(paths, p)
			}
			rule = kobj.With(rule, paths, "http", "paths")
		}
		out = append(out, rule)
	}
	if out != nil {
		o = kobj.With(o, out, "spec", "rules")
	}
	return o, nil
}

func ingressBackend(b map[string]any) map[string]any {
	name, port := kobj.Text(b, "serviceName"), b["servicePort"]
	if name == "" {
		return b
	}
	target := map[string]any{"number": port}
	if s, ok := port.(string); ok {
		target = map[string]any{"name": s}
	}
	rest := kobj.Without(kobj.Without(b, "serviceName"), "servicePort")
	return kobj.With(rest, map[string]any{"name": name, "port": target}, "service")
}

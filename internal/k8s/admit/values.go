package admit

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// Values returns faults in the values of a Service, of webhooks, or of the pods of a workload. The API server
// rejects objects with these faults, but [Types.Check] does not find them:
//   - missing required fields
//   - unknown values of enumerations
//   - names that refer to nothing
//   - requests above limits
//
// It checks the fields that are usually written or patched by hand, like ValidatePodSpec and ValidateService
// in k8s.io/kubernetes/pkg/apis/core/validation.
func Values(o k8s.Object) []Fault {
	switch {
	case o.Is("", "Service"):
		return serviceFaults(o)
	case o.Group() == "admissionregistration.k8s.io":
		return webhookFaults(o)
	}
	pod := k8s.PodSpec(o)
	if len(pod) == 0 {
		return nil
	}
	volumes := map[string]bool{}
	for _, v := range append(k8s.Items(pod, "volumes"), claimTemplates(o)...) {
		volumes[k8s.Text(v, "name")] = true
	}
	var out []Fault
	at := "spec.template.spec"
	switch {
	case o.Is("", "Pod"):
		at = "spec"
	case o.Is("batch", "CronJob"):
		at = "spec.jobTemplate.spec.template.spec"
	}
	enum := func(field, value string, known ...string) {
		out = append(out, enumFaults(field, value, known...)...)
	}
	enum(at+".dnsPolicy", k8s.Text(pod, "dnsPolicy"), "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
	for i, t := range k8s.Items(pod, "tolerations") {
		field := diag.Item(at+".tolerations", i)
		enum(field+".effect", k8s.Text(t, "effect"), "NoSchedule", "PreferNoSchedule", "NoExecute")
		enum(field+".operator", k8s.Text(t, "operator"), "Equal", "Exists", "Lt", "Gt")
		if k8s.Text(t, "key") == "" && k8s.Text(t, "operator") != "Exists" {
			out = append(out, Fault{field + ".operator", "without a key, expected Exists"})
		}
	}
	for _, list := range []string{"containers", "initContainers"} {
		for i, c := range k8s.Items(pod, list) {
			field := diag.Item(at+"."+list, i)
			enum(field+".imagePullPolicy", k8s.Text(c, "imagePullPolicy"), "Always", "IfNotPresent", "Never")
			enum(field+".terminationMessagePolicy", k8s.Text(c, "terminationMessagePolicy"), "File", "FallbackToLogsOnError")
			for j, p := range k8s.Items(c, "ports") {
				enum(diag.Item(field+".ports", j)+".protocol", k8s.Text(p, "protocol"), "TCP", "UDP", "SCTP")
				if p["containerPort"] == nil {
					out = append(out, Fault{diag.Item(field+".ports", j) + ".containerPort", "missing"})
				}
			}
			for j, m := range k8s.Items(c, "volumeMounts") {
				if name := k8s.Text(m, "name"); name != "" && !volumes[name] {
					out = append(out, Fault{diag.Item(field+".volumeMounts", j) + ".name", fmt.Sprintf("the pod has no volume %q", name)})
				}
			}
			out = append(out, containerFaults(field, c)...)
		}
	}
	return out
}

// claimTemplates returns the metadata of the volume claims of a StatefulSet. The names of the claims are also
// names of volumes.
func claimTemplates(o k8s.Object) []map[string]any {
	var out []map[string]any
	for _, c := range k8s.Items(o, "spec", "volumeClaimTemplates") {
		out = append(out, k8s.Map(c, "metadata"))
	}
	return out
}

// containerFaults returns the faults of the probes and the resources of a container.
func containerFaults(field string, c map[string]any) []Fault {
	var out []Fault
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		p, set := c[probe].(map[string]any)
		n := 0
		for _, handler := range []string{"exec", "grpc", "httpGet", "tcpSocket"} {
			if p[handler] != nil {
				n++
			}
		}
		if set && n != 1 {
			out = append(out, Fault{field + "." + probe, fmt.Sprintf("has %d of exec, grpc, httpGet and tcpSocket: expected one", n)})
		}
	}
	limits := k8s.Map(c, "resources", "limits")
	for _, list := range []string{"limits", "requests"} {
		for name, value := range k8s.Map(c, "resources", list) {
			at := field + ".resources." + list + "[" + name + "]"
			if !isResource(name) {
				out = append(out, Fault{at, "no resource has this name: expected cpu, memory, ephemeral-storage, hugepages-… or a name with a domain"})
			}
			q, err1 := quantity(value)
			limit, err2 := quantity(limits[name])
			if _, limited := limits[name]; limited && list == "requests" && err1 == nil && err2 == nil && q.Cmp(limit) > 0 {
				out = append(out, Fault{at, fmt.Sprintf("%s is more than the limit %s", q.String(), limit.String())})
			}
		}
	}
	slices.SortFunc(out, Fault.compare)
	return out
}

// quantity parses a quantity. The API server decodes null as 0.
func quantity(v any) (resource.Quantity, error) {
	if v == nil {
		v = 0
	}
	return resource.ParseQuantity(fmt.Sprint(v))
}

// isResource reports whether a container may have limits and requests of a resource with this name.
func isResource(name string) bool {
	return strings.Contains(name, "/") || strings.HasPrefix(name, "hugepages-") || slices.Contains([]string{"cpu", "memory", "ephemeral-storage"}, name)
}

// webhookFaults returns the faults of webhooks, as validateWebhook and validateRuleWithOperations in
// k8s.io/kubernetes/pkg/apis/admissionregistration/validation.
func webhookFaults(o k8s.Object) []Fault {
	var out []Fault
	for i, hook := range k8s.Items(o, "webhooks") {
		at := diag.Item("webhooks", i)
		versions := k8s.Texts(hook, "admissionReviewVersions")
		for j, v := range versions {
			if slices.Contains(versions[:j], v) {
				out = append(out, Fault{diag.Item(at+".admissionReviewVersions", j), fmt.Sprintf("%q is listed twice", v)})
			}
		}
		enum := func(field string, known ...string) {
			out = append(out, enumFaults(at+"."+field, k8s.Text(hook, field), known...)...)
		}
		enum("failurePolicy", "Fail", "Ignore")
		enum("matchPolicy", "Equivalent", "Exact")
		enum("sideEffects", "None", "NoneOnDryRun")
		enum("reinvocationPolicy", "IfNeeded", "Never")
		if n, ok := hook["timeoutSeconds"].(int64); ok && (n < 1 || n > 30) {
			out = append(out, Fault{at + ".timeoutSeconds", fmt.Sprintf("unsupported value %d: expected 1 to 30", n)})
		}
		for j, rule := range k8s.Items(hook, "rules") {
			field := diag.Item(at+".rules", j)
			out = append(out, enumFaults(field+".scope", k8s.Text(rule, "scope"), "*", "Cluster", "Namespaced")...)
			for k, op := range k8s.Texts(rule, "operations") {
				out = append(out, enumFaults(diag.Item(field+".operations", k), op, "*", "CONNECT", "CREATE", "DELETE", "UPDATE")...)
			}
			for _, list := range []string{"operations", "apiGroups", "apiVersions"} {
				if values := k8s.Texts(rule, list); len(values) > 1 && slices.Contains(values, "*") {
					out = append(out, Fault{field + "." + list, `"*" must be the only value`})
				}
			}
		}
	}
	return out
}

// enumFaults returns a fault if a value is set but not known.
func enumFaults(field, value string, known ...string) []Fault {
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	return []Fault{{field, fmt.Sprintf("unsupported value %q: expected one of %s", value, strings.Join(known, ", "))}}
}

// serviceFaults returns a fault if a Service needs ports but has none.
func serviceFaults(o k8s.Object) []Fault {
	needs := k8s.Text(o, "spec", "type") != "ExternalName" && k8s.Text(o, "spec", "clusterIP") != "None"
	if needs && len(k8s.List(o, "spec", "ports")) == 0 {
		return []Fault{{"spec.ports", "is required, except for headless Services and ExternalName"}}
	}
	return nil
}

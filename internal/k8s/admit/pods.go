package admit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// Pods returns faults in the pods of a workload that the API server rejects, but [Types.Check] does
// not find: missing required fields, and unknown values of enumerations. It checks the fields that
// are usually patched, like ValidatePodSpec in k8s.io/kubernetes/pkg/apis/core/validation.
func Pods(o k8s.Object) []Fault {
	pod := k8s.PodSpec(o)
	if len(pod) == 0 {
		return nil
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
		if value != "" && !slices.Contains(known, value) {
			out = append(out, Fault{field, fmt.Sprintf("unsupported value %q: expected one of %s", value, strings.Join(known, ", "))})
		}
	}
	enum(at+".dnsPolicy", k8s.Text(pod, "dnsPolicy"), "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
	for i, t := range k8s.Items(pod, "tolerations") {
		field := diag.Item(at+".tolerations", i)
		enum(field+".effect", k8s.Text(t, "effect"), "NoSchedule", "PreferNoSchedule", "NoExecute")
		enum(field+".operator", k8s.Text(t, "operator"), "Equal", "Exists", "Lt", "Gt")
	}
	for _, list := range []string{"containers", "initContainers"} {
		for i, c := range k8s.Items(pod, list) {
			field := diag.Item(at+"."+list, i)
			for _, required := range []string{"name", "image"} {
				if k8s.Text(c, required) == "" {
					out = append(out, Fault{field + "." + required, "missing"})
				}
			}
			enum(field+".imagePullPolicy", k8s.Text(c, "imagePullPolicy"), "Always", "IfNotPresent", "Never")
			enum(field+".terminationMessagePolicy", k8s.Text(c, "terminationMessagePolicy"), "File", "FallbackToLogsOnError")
			for j, p := range k8s.Items(c, "ports") {
				enum(diag.Item(field+".ports", j)+".protocol", k8s.Text(p, "protocol"), "TCP", "UDP", "SCTP")
			}
		}
	}
	return out
}

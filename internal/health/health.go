package health

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
)

// Health is the health of one object.
type Health struct {
	Status  v1alpha1.HealthStatus
	Message string // reason for the status; may be empty
}

// Compute returns the health of an object as read from the API server, with numbers as int64 or float64. A
// nil object is NotFound, and a malformed one is Unknown. kstatus evaluates built-in kinds, and objects with
// a condition Reconciling, Stalled or Ready. For some kinds, ruleOf adds a check or replaces the check of
// kstatus.
func Compute(o map[string]any, now time.Time) Health {
	if o == nil {
		return Health{v1alpha1.NotFound, "it does not exist"}
	}
	if k8s.Text(o, "metadata", "deletionTimestamp") != "" {
		return Health{v1alpha1.Terminating, "it is being deleted"}
	}
	more, known := ruleOf(groupKind(o))
	if known && more.skipKstatus {
		return more.judge(o, now)
	}
	h := kstatusHealth(o)
	if h.Status != v1alpha1.Current {
		return explainMissingPods(o, h)
	}
	if !known {
		return h
	}
	return more.judge(o, now)
}

func kstatusHealth(o map[string]any) Health {
	res, err := status.Compute(&unstructured.Unstructured{Object: o})
	if err != nil {
		return Health{v1alpha1.Unknown, clipMessage(err.Error())}
	}
	h := Health{Message: clipMessage(res.Message)}
	switch res.Status {
	case status.CurrentStatus:
		return Health{Status: v1alpha1.Current}
	case status.InProgressStatus:
		h.Status = v1alpha1.InProgress
	case status.FailedStatus:
		h.Status = v1alpha1.Failed
	case status.TerminatingStatus:
		h.Status = v1alpha1.Terminating
	default:
		h.Status = v1alpha1.Unknown
	}
	if h.Message == "" {
		for _, c := range res.Conditions {
			h.Message = clipMessage(c.Reason)
		}
	}
	return h
}

// explainMissingPods extends the message in the health of a Deployment or ReplicaSet by the reason why pods are
// missing. kstatus only reports the number of pods.
func explainMissingPods(o map[string]any, h Health) Health {
	if c := k8s.Condition(o, "ReplicaFailure"); k8s.Text(c, "status") == "True" && k8s.Text(c, "message") != "" {
		h.Message = clipMessage(h.Message + "; " + k8s.Text(c, "message"))
	}
	return h
}

// kindRule is a check of one kind.
type kindRule struct {
	judge       func(o map[string]any, now time.Time) Health
	skipKstatus bool // the check replaces that of kstatus
}

// ruleOf returns the check for a kind, given as "group/Kind", and whether there is one.
func ruleOf(kind string) (kindRule, bool) {
	switch kind {
	case "apiextensions.k8s.io/CustomResourceDefinition":
		return kindRule{judge: crdHealth}, true
	case "storagemigration.k8s.io/StorageVersionMigration":
		return kindRule{judge: migrationHealth, skipKstatus: true}, true
	case "apiregistration.k8s.io/APIService":
		return kindRule{judge: availableHealth}, true
	case "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		return kindRule{judge: webhooksHealth}, true
	case "cert-manager.io/Certificate":
		return kindRule{judge: certificateHealth}, true
	case "cert-manager.io/Issuer", "cert-manager.io/ClusterIssuer":
		return kindRule{judge: readyHealth}, true
	case "/Pod": // replaces kstatus, which uses the current time
		return kindRule{judge: podHealth, skipKstatus: true}, true
	case "operators.coreos.com/OperatorCondition": // its conditions describe the operator, not the object
		return kindRule{judge: alwaysCurrent, skipKstatus: true}, true
	default:
		return kindRule{}, false
	}
}

func alwaysCurrent(map[string]any, time.Time) Health { return Health{Status: v1alpha1.Current} }

func readyHealth(o map[string]any, _ time.Time) Health { return conditionHealth(o, "Ready") }

func availableHealth(o map[string]any, _ time.Time) Health { return conditionHealth(o, "Available") }

// conditionHealth returns Current if the condition of type kind is True, otherwise InProgress. A
// missing condition is InProgress, too, because the controllers of these kinds always set it.
func conditionHealth(o map[string]any, kind string) Health {
	c := k8s.Condition(o, kind)
	switch {
	case c == nil:
		return Health{v1alpha1.InProgress, "waiting for the condition " + kind}
	case k8s.Text(c, "status") != "True":
		return Health{v1alpha1.InProgress, conditionMessage(c, "not "+kind)}
	default:
		return Health{Status: v1alpha1.Current}
	}
}

// migrationHealth returns the health of a StorageVersionMigration: Current if all objects were
// rewritten. A failed migration is not retried: the user must examine and delete it.
func migrationHealth(o map[string]any, _ time.Time) Health {
	if c := k8s.Condition(o, "Failed"); k8s.Text(c, "status") == "True" {
		return Health{v1alpha1.Failed, conditionMessage(c, "the migration failed")}
	}
	if k8s.HasCondition(o, "Succeeded") {
		return Health{Status: v1alpha1.Current}
	}
	return Health{v1alpha1.InProgress, "objects are being rewritten"}
}

// conditionMessage returns the message of a condition. Without a message, it returns the reason, and without a
// reason, other.
func conditionMessage(c map[string]any, other string) string {
	for _, key := range []string{"message", "reason"} {
		if s := k8s.Text(c, key); s != "" {
			return clipMessage(s)
		}
	}
	return other
}

const noCA = "waiting for a CA"

// crdHealth checks that the names of an established CRD were accepted, and that its conversion
// webhook has a CA bundle. It replaces the check of kstatus, which depends on the order of the
// conditions.
func crdHealth(o map[string]any, _ time.Time) Health {
	if c := k8s.Condition(o, "NamesAccepted"); k8s.Text(c, "status") == "False" {
		return Health{v1alpha1.Failed, conditionMessage(c, "its names conflict with another CRD")}
	}
	config := k8s.Map(o, "spec", "conversion", "webhook", "clientConfig")
	if k8s.Map(config, "service") != nil && k8s.Text(config, "caBundle") == "" {
		return Health{v1alpha1.InProgress, "conversion webhook: " + noCA}
	}
	return Health{Status: v1alpha1.Current}
}

// webhooksHealth returns InProgress if a webhook that calls a Service has no CA bundle. The call would fail,
// because certificates of Services are from a private CA.
func webhooksHealth(o map[string]any, _ time.Time) Health {
	var names []string
	for _, w := range k8s.Items(o, "webhooks") {
		if k8s.Map(w, "clientConfig", "service") != nil && k8s.Text(w, "clientConfig", "caBundle") == "" {
			names = append(names, fmt.Sprintf("%q", k8s.Text(w, "name")))
		}
	}
	if len(names) == 0 {
		return Health{Status: v1alpha1.Current}
	}
	return Health{v1alpha1.InProgress, clipMessage("webhook " + strings.Join(names, ", ") + ": " + noCA)}
}

// certificateHealth checks that a Certificate is ready and has not expired. The expiry is checked
// separately, because the Ready condition is not updated while cert-manager does not run.
func certificateHealth(o map[string]any, now time.Time) Health {
	if h := conditionHealth(o, "Ready"); h.Status != v1alpha1.Current {
		return h
	}
	end, err := time.Parse(time.RFC3339, k8s.Text(o, "status", "notAfter"))
	if err == nil && now.After(end) {
		return Health{v1alpha1.Failed, "it expired at " + end.UTC().Format(time.RFC3339)}
	}
	return Health{Status: v1alpha1.Current}
}

// scheduleWindow is how long a pod may be unschedulable before it counts as failed. kstatus has the same limit.
const scheduleWindow = 15 * time.Second

// podHealth evaluates a pod as kstatus does, but uses now as the current time.
func podHealth(o map[string]any, now time.Time) Health {
	switch phase := k8s.Text(o, "status", "phase"); phase {
	case "Succeeded":
		return Health{Status: v1alpha1.Current}
	case "Failed":
		return Health{v1alpha1.Failed, conditionMessage(k8s.Map(o, "status"), "the pod failed")}
	case "Running":
		return runningPodHealth(o)
	default:
		c := k8s.Condition(o, "PodScheduled")
		if k8s.Text(c, "reason") != "Unschedulable" {
			return Health{v1alpha1.InProgress, "the pod is not running yet"}
		}
		created, err := time.Parse(time.RFC3339, k8s.Text(o, "metadata", "creationTimestamp"))
		if err != nil || now.Before(created.Add(scheduleWindow)) {
			return Health{v1alpha1.InProgress, conditionMessage(c, "the pod is not scheduled yet")}
		}
		return Health{v1alpha1.Failed, conditionMessage(c, "the pod cannot be scheduled")}
	}
}

func runningPodHealth(o map[string]any) Health {
	if c := k8s.Condition(o, "Ready"); k8s.Text(c, "status") == "True" {
		return Health{Status: v1alpha1.Current}
	}
	for _, c := range k8s.Items(o, "status", "containerStatuses") {
		if k8s.Text(c, "state", "waiting", "reason") == "CrashLoopBackOff" {
			return Health{v1alpha1.Failed, clipMessage(fmt.Sprintf("container %q is crash-looping", k8s.Text(c, "name")))}
		}
	}
	return Health{v1alpha1.InProgress, "the pod is not ready"}
}

// JudgeObjects returns the health of all objects in spec, worst first, then by group, kind, namespace and
// name. (Judge returns only objects that are not Current, and only a limited number.)
func JudgeObjects(spec v1alpha1.InstallationSpec, got []v1alpha1.Observed, now time.Time) []v1alpha1.ObjectHealth {
	found := indexObserved(got)
	out := make([]v1alpha1.ObjectHealth, 0, len(spec.Objects))
	for _, ref := range spec.Objects {
		o, read := found[keyOf(ref)]
		out = append(out, newObjectHealth(ref, judgeObject(ref, o, read, now)))
	}
	sortWorstFirst(out)
	return out
}

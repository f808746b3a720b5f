package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// Health is the state of one object and why.
type Health struct {
	Status  v1alpha1.HealthStatus
	Message string // empty where there is nothing to say
}

// Compute returns the health of an object as the API server returned it, with
// numbers as int64 or float64; nil is an object that is not there. What is
// built in is judged as kstatus does, and so is any object that has the
// conditions Reconciling, Stalled or Ready; ruleOf names the kinds of which
// more is asked. It never panics, whatever the object holds; what makes no
// sense is Unknown.
func Compute(o map[string]any, now time.Time) Health {
	if o == nil {
		return Health{v1alpha1.NotFound, "it does not exist"}
	}
	if kobj.Text(o, "metadata", "deletionTimestamp") != "" {
		return Health{v1alpha1.Terminating, "it is being deleted"}
	}
	more, known := ruleOf(groupKind(o))
	if known && more.alone {
		return more.judge(o, now)
	}
	h := standard(o)
	if h.Status != v1alpha1.Current {
		return noPods(o, h)
	}
	if !known {
		return h
	}
	return more.judge(o, now)
}

// standard returns what kstatus says.
func standard(o map[string]any) Health {
	res, err := status.Compute(&unstructured.Unstructured{Object: o})
	if err != nil {
		return Health{v1alpha1.Unknown, short(err.Error())}
	}
	h := Health{Message: short(res.Message)}
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
			h.Message = short(c.Reason)
		}
	}
	return h
}

// noPods adds to the health of a Deployment or ReplicaSet that has no pods why
// they are refused, of which kstatus says only how many there are.
func noPods(o map[string]any, h Health) Health {
	if c, ok := findCondition(o, "ReplicaFailure"); ok && kobj.Text(c, "status") == "True" && kobj.Text(c, "message") != "" {
		h.Message = short(h.Message + "; " + kobj.Text(c, "message"))
	}
	return h
}

// rule is what is asked of a kind beyond kstatus, or in its place.
type rule struct {
	judge func(o map[string]any, now time.Time) Health
	alone bool // kstatus is not asked
}

// ruleOf returns the rule of a kind, "group/Kind".
func ruleOf(kind string) (rule, bool) {
	switch kind {
	case "apiextensions.k8s.io/CustomResourceDefinition":
		return rule{judge: definition}, true
	case "storagemigration.k8s.io/StorageVersionMigration":
		return rule{judge: migration, alone: true}, true
	case "apiregistration.k8s.io/APIService":
		return rule{judge: isAvailable}, true
	case "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		return rule{judge: webhooksHaveCA}, true
	case "cert-manager.io/Certificate":
		return rule{judge: certificate}, true
	case "cert-manager.io/Issuer", "cert-manager.io/ClusterIssuer":
		return rule{judge: isReady}, true
	case "/Pod": // kstatus asks the clock
		return rule{judge: pod, alone: true}, true
	case "operators.coreos.com/OperatorCondition": // its conditions are the operator's own
		return rule{judge: present, alone: true}, true
	default:
		return rule{}, false
	}
}

func present(map[string]any, time.Time) Health { return Health{Status: v1alpha1.Current} }

func isReady(o map[string]any, _ time.Time) Health { return condition(o, "Ready") }

func isAvailable(o map[string]any, _ time.Time) Health { return condition(o, "Available") }

// condition asks for a condition that is True, which whoever reconciles the
// kind always sets.
func condition(o map[string]any, kind string) Health {
	c, ok := findCondition(o, kind)
	switch {
	case !ok:
		return Health{v1alpha1.InProgress, "waiting for the condition " + kind}
	case kobj.Text(c, "status") != "True":
		return Health{v1alpha1.InProgress, because(c, "not "+kind)}
	default:
		return Health{Status: v1alpha1.Current}
	}
}

// migration asks whether all objects were rewritten. One that failed is not tried
// again: a person has to look, and delete it.
func migration(o map[string]any, _ time.Time) Health {
	if c, ok := findCondition(o, "Failed"); ok && kobj.Text(c, "status") == "True" {
		return Health{v1alpha1.Failed, because(c, "the migration failed")}
	}
	c, ok := findCondition(o, "Succeeded")
	if ok && kobj.Text(c, "status") == "True" {
		return Health{Status: v1alpha1.Current}
	}
	return Health{v1alpha1.InProgress, "objects are being rewritten"}
}

// findCondition returns the condition of a type in status.conditions.
func findCondition(o map[string]any, kind string) (map[string]any, bool) {
	for _, c := range kobj.Items(o, "status", "conditions") {
		if kobj.Text(c, "type") == kind {
			return c, true
		}
	}
	return nil, false
}

// because returns the condition's message, else its reason, else other.
func because(c map[string]any, other string) string {
	for _, key := range []string{"message", "reason"} {
		if s := kobj.Text(c, key); s != "" {
			return short(s)
		}
	}
	return other
}

const noCA = "waiting for a CA"

// definition looks at the names of an established CRD, in whatever order its
// conditions are, and at its conversion webhook.
func definition(o map[string]any, _ time.Time) Health {
	if c, ok := findCondition(o, "NamesAccepted"); ok && kobj.Text(c, "status") == "False" {
		return Health{v1alpha1.Failed, because(c, "its names are taken")}
	}
	config := kobj.Map(o, "spec", "conversion", "webhook", "clientConfig")
	if kobj.Map(config, "service") != nil && kobj.Text(config, "caBundle") == "" {
		return Health{v1alpha1.InProgress, "conversion webhook: " + noCA}
	}
	return Health{Status: v1alpha1.Current}
}

// webhooksHaveCA looks at every webhook that calls a service of the cluster,
// whose certificate no public authority has signed.
func webhooksHaveCA(o map[string]any, _ time.Time) Health {
	var names []string
	for _, w := range kobj.Items(o, "webhooks") {
		if kobj.Map(w, "clientConfig", "service") != nil && kobj.Text(w, "clientConfig", "caBundle") == "" {
			names = append(names, fmt.Sprintf("%q", kobj.Text(w, "name")))
		}
	}
	if len(names) == 0 {
		return Health{Status: v1alpha1.Current}
	}
	return Health{v1alpha1.InProgress, short("webhook " + strings.Join(names, ", ") + ": " + noCA)}
}

// certificate is ready, and not expired: who would say so may be gone.
func certificate(o map[string]any, now time.Time) Health {
	if h := condition(o, "Ready"); h.Status != v1alpha1.Current {
		return h
	}
	end, err := time.Parse(time.RFC3339, kobj.Text(o, "status", "notAfter"))
	if err == nil && now.After(end) {
		return Health{v1alpha1.Failed, "it expired at " + end.UTC().Format(time.RFC3339)}
	}
	return Health{Status: v1alpha1.Current}
}

// scheduleWindow is how long a pod may wait for a node, as in kstatus.
const scheduleWindow = 15 * time.Second

// pod judges a pod as kstatus does, at a time that is said.
func pod(o map[string]any, now time.Time) Health {
	switch phase := kobj.Text(o, "status", "phase"); phase {
	case "Succeeded":
		return Health{Status: v1alpha1.Current}
	case "Failed":
		return Health{v1alpha1.Failed, because(kobj.Map(o, "status"), "the pod failed")}
	case "Running":
		return runningPod(o)
	default:
		c, _ := findCondition(o, "PodScheduled")
		if kobj.Text(c, "reason") != "Unschedulable" {
			return Health{v1alpha1.InProgress, "the pod is not running yet"}
		}
		created, err := time.Parse(time.RFC3339, kobj.Text(o, "metadata", "creationTimestamp"))
		if err != nil || now.Before(created.Add(scheduleWindow)) {
			return Health{v1alpha1.InProgress, because(c, "no node takes the pod yet")}
		}
		return Health{v1alpha1.Failed, because(c, "no node takes the pod")}
	}
}

func runningPod(o map[string]any) Health {
	if c, ok := findCondition(o, "Ready"); ok && kobj.Text(c, "status") == "True" {
		return Health{Status: v1alpha1.Current}
	}
	for _, c := range kobj.Items(o, "status", "containerStatuses") {
		if kobj.Text(c, "state", "waiting", "reason") == "CrashLoopBackOff" {
			return Health{v1alpha1.Failed, short(fmt.Sprintf("container %q crashes again and again", kobj.Text(c, "name")))}
		}
	}
	return Health{v1alpha1.InProgress, "the pod is not ready"}
}

package clustertest

import (
	"encoding/base64"

	"github.com/quayside/quayside/internal/k8s"
)

// Settle sets the status of all objects as the controllers of a cluster would. Deployments are available and
// have running pods, CRDs are established, APIServices are available, certificates are ready, and webhooks have
// a CA.
func (s *Server) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []Object
	for _, o := range s.objects {
		meta, _ := o["metadata"].(Object)
		if meta["generation"] == nil {
			meta["generation"] = 1
		}
		switch o["kind"] {
		case "Deployment":
			setAvailable(o)
			pods = append(pods, newPod(o))
		case "CustomResourceDefinition":
			o["status"] = Object{"conditions": []any{newCondition("NamesAccepted"), newCondition("Established")}}
			settleConversion(o)
		case "APIService":
			o["status"] = Object{"conditions": []any{newCondition("Available")}}
		case "Certificate", "Issuer":
			o["status"] = Object{"conditions": []any{newCondition("Ready")}}
		case "Namespace":
			o["status"] = Object{"phase": "Active"}
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			settleWebhooks(o)
		}
	}
	for _, p := range pods {
		s.objects[objectKey(p)] = p
	}
}

func newCondition(name string) Object {
	return Object{"type": name, "status": "True", "reason": "Settled", "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

func setAvailable(o Object) {
	replicas := k8s.At(o, "spec", "replicas")
	if replicas == nil {
		replicas = 1
		o["spec"].(Object)["replicas"] = replicas
	}
	generation := k8s.At(o, "metadata", "generation")
	progressing := newCondition("Progressing")
	progressing["reason"] = "NewReplicaSetAvailable"
	o["status"] = Object{
		"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas,
		"availableReplicas": replicas, "conditions": []any{newCondition("Available"), progressing},
	}
}

// newPod returns a running pod of a Deployment.
func newPod(o Object) Object {
	var statuses []any
	for _, c := range k8s.Items(o, "spec", "template", "spec", "containers") {
		statuses = append(statuses, Object{"name": c["name"], "image": c["image"], "imageID": c["image"], "ready": true, "state": Object{"running": Object{}}})
	}
	labels := k8s.Copy(k8s.Map(o, "spec", "template", "metadata", "labels"))
	return Object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": Object{"name": k8s.Text(o, "metadata", "name") + "-0", "namespace": k8s.Text(o, "metadata", "namespace"), "labels": labels},
		"spec":     k8s.At(o, "spec", "template", "spec"),
		"status":   Object{"phase": "Running", "conditions": []any{newCondition("Ready")}, "containerStatuses": statuses},
	}
}

// caBundle returns a value for a field caBundle, in base64 as in JSON.
func caBundle() string { return base64.StdEncoding.EncodeToString([]byte("CA")) }

func settleWebhooks(o Object) {
	for _, h := range k8s.Items(o, "webhooks") {
		if config := k8s.Map(h, "clientConfig"); config["service"] != nil {
			config["caBundle"] = caBundle()
		}
	}
}

func settleConversion(o Object) {
	if config := k8s.Map(o, "spec", "conversion", "webhook", "clientConfig"); config != nil {
		config["caBundle"] = caBundle()
	}
}

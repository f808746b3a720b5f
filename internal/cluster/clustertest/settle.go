package clustertest

import (
	"encoding/base64"

	"github.com/quayside/quayside/internal/kobj"
)

// Settle does to every object what the controllers of a cluster would do in the
// end: Deployments are available and their pods run, definitions are
// established, API services available, certificates ready, webhooks have a CA.
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
			available(o)
			pods = append(pods, podOf(o))
		case "CustomResourceDefinition":
			o["status"] = Object{"conditions": []any{condition("NamesAccepted"), condition("Established")}}
			settleConversion(o)
		case "APIService":
			o["status"] = Object{"conditions": []any{condition("Available")}}
		case "Certificate", "Issuer":
			o["status"] = Object{"conditions": []any{condition("Ready")}}
		case "Namespace":
			o["status"] = Object{"phase": "Active"}
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			settleWebhooks(o)
		}
	}
	for _, p := range pods {
		s.objects[key(p)] = p
	}
}

func condition(name string) Object {
	return Object{"type": name, "status": "True", "reason": "Settled", "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

func available(o Object) {
	replicas := kobj.At(o, "spec", "replicas")
	if replicas == nil {
		replicas = 1
		o["spec"].(Object)["replicas"] = replicas
	}
	generation := kobj.At(o, "metadata", "generation")
	progressing := condition("Progressing")
	progressing["reason"] = "NewReplicaSetAvailable"
	o["status"] = Object{
		"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas,
		"availableReplicas": replicas, "conditions": []any{condition("Available"), progressing},
	}
}

// podOf returns one pod of a Deployment, which runs what the template says.
func podOf(o Object) Object {
	var statuses []any
	for _, c := range kobj.Items(o, "spec", "template", "spec", "containers") {
		statuses = append(statuses, Object{"name": c["name"], "image": c["image"], "imageID": c["image"], "ready": true, "state": Object{"running": Object{}}})
	}
	labels := kobj.Copy(kobj.Map(o, "spec", "template", "metadata", "labels"))
	return Object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": Object{"name": kobj.Text(o, "metadata", "name") + "-0", "namespace": kobj.Text(o, "metadata", "namespace"), "labels": labels},
		"spec":     kobj.At(o, "spec", "template", "spec"),
		"status":   Object{"phase": "Running", "conditions": []any{condition("Ready")}, "containerStatuses": statuses},
	}
}

// bundle is a CA as an API server shows it.
func bundle() string { return base64.StdEncoding.EncodeToString([]byte("CA")) }

func settleWebhooks(o Object) {
	for _, h := range kobj.Items(o, "webhooks") {
		if config := kobj.Map(h, "clientConfig"); config["service"] != nil {
			config["caBundle"] = bundle()
		}
	}
}

func settleConversion(o Object) {
	if config := kobj.Map(o, "spec", "conversion", "webhook", "clientConfig"); config != nil {
		config["caBundle"] = bundle()
	}
}

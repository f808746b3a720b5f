package render

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
)

const defaultAPIServicePort = 443

// webhookServices generates a Service for each Deployment that serves webhooks or APIs.
func webhookServices(in *install) ([]Object, error) {
	var out []Object
	for _, deployment := range slices.Sorted(maps.Keys(in.services)) {
		service := k8s.New("v1", "Service", in.pin.Namespace, in.services[deployment])
		service["spec"] = map[string]any{
			"ports":    in.servicePorts(deployment),
			"selector": k8s.Copy(k8s.Map(in.deployment(deployment).Spec, "selector", "matchLabels")),
		}
		out = append(out, in.opt.provider.Serve(service))
	}
	return out, nil
}

// deployment returns the Deployment with the given name in the CSV, or the zero value.
func (in *install) deployment(name string) bundle.Deployment {
	for _, d := range in.b.CSV.Deployments {
		if d.Name == name {
			return d
		}
	}
	return bundle.Deployment{}
}

// servicePorts returns the ports of a Deployment's webhooks and APIs, sorted by number, without
// duplicates.
func (in *install) servicePorts(deployment string) []any {
	target := map[int64]any{}
	for _, w := range in.b.CSV.Webhooks {
		if _, ok := target[w.ContainerPort]; w.DeploymentName == deployment && !ok {
			target[w.ContainerPort] = w.TargetPort
		}
	}
	for _, a := range in.b.CSV.OwnedAPIs {
		port := cmp.Or(a.ContainerPort, defaultAPIServicePort)
		if _, ok := target[port]; a.DeploymentName == deployment && !ok {
			target[port] = nil
		}
	}
	var out []any
	for _, port := range slices.Sorted(maps.Keys(target)) {
		to := target[port]
		if to == nil {
			to = port
		}
		out = append(out, map[string]any{"name": strconv.FormatInt(port, 10), "port": port, "targetPort": to})
	}
	return out
}

// webhookConfigurations generates a configuration for each validating or mutating webhook in the
// CSV.
func webhookConfigurations(in *install) ([]Object, error) {
	kinds := map[string]string{bundle.Validating: "ValidatingWebhookConfiguration", bundle.Mutating: "MutatingWebhookConfiguration"}
	var out []Object
	for _, w := range in.b.CSV.Webhooks {
		if kind, ok := kinds[w.Type]; ok {
			o := k8s.New("admissionregistration.k8s.io/v1", kind, "", in.globalName(strings.TrimRight(w.GenerateName, "-")))
			o["webhooks"] = []any{in.webhookEntry(w)}
			out = append(out, in.injectCA(o, in.services[w.DeploymentName]))
		}
	}
	return out, nil
}

// webhookEntry returns the entry of a webhook in its configuration. It contains the Service, a selector for the
// watched namespaces, and the fields in the CSV, except the fields that only OLM uses.
func (in *install) webhookEntry(w bundle.Webhook) map[string]any {
	out := k8s.Copy(w.Fields)
	for _, key := range []string{"type", "generateName", "deploymentName", "containerPort", "targetPort", "webhookPath", "conversionCRDs"} {
		delete(out, key)
	}
	out["name"] = strings.TrimRight(w.GenerateName, "-")
	service := map[string]any{"name": in.services[w.DeploymentName], "namespace": in.pin.Namespace, "port": w.ContainerPort}
	if w.Path != "" {
		service["path"] = w.Path
	}
	out["clientConfig"] = map[string]any{"service": service}
	if !in.watchesAll {
		out["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{
			"key": "kubernetes.io/metadata.name", "operator": "In", "values": k8s.Values(in.watch...),
		}}}
	}
	return out
}

// apiServices generates an APIService for each group and version that the CSV owns as an API service.
func apiServices(in *install) ([]Object, error) {
	var out []Object
	seen := map[string]bool{}
	for _, a := range in.b.CSV.OwnedAPIs {
		name := a.Version + "." + a.Group
		if seen[name] {
			continue
		}
		seen[name] = true
		o := k8s.New("apiregistration.k8s.io/v1", "APIService", "", name)
		o["spec"] = map[string]any{
			"group": a.Group, "version": a.Version, "groupPriorityMinimum": int64(2000), "versionPriority": int64(15),
			"service": map[string]any{
				"name": in.services[a.DeploymentName], "namespace": in.pin.Namespace, "port": cmp.Or(a.ContainerPort, defaultAPIServicePort),
			},
		}
		out = append(out, in.injectCA(o, in.services[a.DeploymentName]))
	}
	return out, nil
}

// authDelegation generates bindings that let the accounts of an APIService delegate authentication and
// authorization to the API server. OLM also generates the bindings for accounts that serve only webhooks. An
// adopted operator keeps these bindings, because the operator may depend on them.
func authDelegation(in *install) ([]Object, error) {
	accounts := map[string]bool{}
	serves := func(deployment string) { accounts[deploymentAccount(in.deployment(deployment))] = true }
	for _, a := range in.b.CSV.OwnedAPIs {
		serves(a.DeploymentName)
	}
	if in.pin.Adopted != nil {
		for deployment := range in.services {
			serves(deployment)
		}
	}
	var out []Object
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		out = append(out,
			newBinding("ClusterRole", "", in.globalName(account+".auth-delegator"), "system:auth-delegator", in.pin.Namespace, account),
			newBinding("Role", "kube-system", in.globalName(account+".auth-reader"), "extension-apiserver-authentication-reader", in.pin.Namespace, account))
	}
	return out, nil
}

// servingCertificates generates the objects that request certificates for the Services.
func servingCertificates(in *install) ([]Object, error) {
	if len(in.services) == 0 {
		return nil, nil
	}
	var out []Object
	for _, service := range slices.Compact(slices.Sorted(maps.Values(in.services))) {
		out = append(out, in.opt.provider.Issue(in.pin.Namespace, service)...)
	}
	return out, in.opt.provider.Check()
}

// injectCA returns a webhook configuration, CRD or APIService with the CA of a Service's certificate. If a
// controller injects the CA, injectCA adds the annotation for the controller instead.
func (in *install) injectCA(o Object, service string) Object {
	return in.opt.provider.Trust(o, in.pin.Namespace, service)
}

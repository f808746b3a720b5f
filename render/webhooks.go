package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
)

const defaultAPIServicePort = 443

// webhookServices makes the Service in front of each deployment that serves
// webhooks or APIs.
func webhookServices(in *install) ([]Object, error) {
	var errs diag.List
	var out []Object
	for _, deployment := range slices.Sorted(maps.Keys(in.services)) {
		i := slices.IndexFunc(in.b.CSV.Deployments, func(d bundle.Deployment) bool { return d.Name == deployment })
		if i < 0 {
			errs.Addf(in.csvPos(), "a webhook or API service names deployment %q, which the CSV has not", deployment)
			continue
		}
		service := newObject("v1", "Service", in.pin.Namespace, in.services[deployment])
		service["spec"] = map[string]any{
			"ports":    in.servicePorts(deployment),
			"selector": deepCopy(sub(in.b.CSV.Deployments[i].Spec, "selector", "matchLabels")),
		}
		if in.opt.Certificates == OpenShiftServiceCA {
			service = annotate(service, map[string]string{"service.beta.openshift.io/serving-cert-secret-name": in.secretName(service.Name())})
		}
		out = append(out, service)
	}
	return out, errs.Err()
}

// servicePorts returns one port for each that the deployment's webhooks and
// APIs are reached at, by number.
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

// webhookConfigurations makes one configuration for each validating and
// mutating webhook of the CSV.
func webhookConfigurations(in *install) ([]Object, error) {
	var errs diag.List
	var out []Object
	for _, w := range in.b.CSV.Webhooks {
		kind := ""
		switch w.Type {
		case bundle.Validating:
			kind = "ValidatingWebhookConfiguration"
		case bundle.Mutating:
			kind = "MutatingWebhookConfiguration"
		case bundle.Conversion:
			continue
		default:
			errs.Addf(in.csvPos(), "%s.type: %q is none of %s, %s, %s", w.Field, w.Type, bundle.Validating, bundle.Mutating, bundle.Conversion)
			continue
		}
		name := strings.TrimRight(w.GenerateName, "-")
		if name == "" {
			errs.Addf(in.csvPos(), "%s.generateName is missing", w.Field)
			continue
		}
		o := newObject("admissionregistration.k8s.io/v1", kind, "", in.globalName(name))
		o["webhooks"] = []any{in.webhook(w)}
		out = append(out, in.injectCA(o, in.services[w.DeploymentName]))
	}
	return out, errs.Err()
}

// webhook returns the entry of a configuration: what the CSV says of it, but
// for the fields that only describe how to make it.
func (in *install) webhook(w bundle.Webhook) map[string]any {
	out := deepCopy(w.Fields)
	for _, key := range []string{"type", "generateName", "deploymentName", "containerPort", "targetPort", "webhookPath", "conversionCRDs"} {
		delete(out, key)
	}
	out["name"] = strings.TrimRight(w.GenerateName, "-")
	service := map[string]any{"name": in.services[w.DeploymentName], "namespace": in.pin.Namespace, "port": w.ContainerPort}
	if w.Path != "" {
		service["path"] = w.Path
	}
	out["clientConfig"] = map[string]any{"service": service}
	if !in.all {
		out["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{
			"key": "kubernetes.io/metadata.name", "operator": "In", "values": texts(in.watch...),
		}}}
	}
	return out
}

// apiServices makes an APIService for each API that the CSV owns, and lets
// their accounts delegate authentication.
func apiServices(in *install) ([]Object, error) {
	var out []Object
	seen, accounts := map[string]bool{}, map[string]bool{}
	for _, a := range in.b.CSV.OwnedAPIs {
		name := a.Version + "." + a.Group
		if a.Group == "" || a.Version == "" {
			return nil, diag.Errorf(in.csvPos(), "%s: group and version are needed", a.Field)
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		o := newObject("apiregistration.k8s.io/v1", "APIService", "", name)
		o["spec"] = map[string]any{
			"group": a.Group, "version": a.Version, "groupPriorityMinimum": int64(2000), "versionPriority": int64(15),
			"service": map[string]any{
				"name": in.services[a.DeploymentName], "namespace": in.pin.Namespace, "port": cmp.Or(a.ContainerPort, defaultAPIServicePort),
			},
		}
		out = append(out, in.injectCA(o, in.services[a.DeploymentName]))
		accounts[in.accountOf(a.DeploymentName)] = true
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		out = append(out,
			in.binding("ClusterRole", "", in.globalName(account+".auth-delegator"), "system:auth-delegator", account),
			in.binding("Role", "kube-system", in.globalName(account+".auth-reader"), "extension-apiserver-authentication-reader", account))
	}
	return out, nil
}

// accountOf returns the account that a deployment's pods run as.
func (in *install) accountOf(deployment string) string {
	for _, d := range in.b.CSV.Deployments {
		if d.Name == deployment {
			return deploymentAccount(d)
		}
	}
	return "default"
}

// certificates makes what cert-manager needs to issue the serving
// certificates. The other providers need no objects.
func certificates(in *install) ([]Object, error) {
	if len(in.services) == 0 {
		return nil, nil
	}
	switch in.opt.Certificates {
	case CertManager:
	case OpenShiftServiceCA:
		return nil, nil
	case SecretProvider:
		if len(in.opt.CABundle) == 0 && in.opt.CASecret == "" {
			return nil, fmt.Errorf("certificates by secret need the CA that signed them: spec.certificateSecret.caFile or .caSecret in quayside.yaml")
		}
		return nil, nil
	default:
		return nil, fmt.Errorf("certificates: %q is none of %s, %s, %s", in.opt.Certificates, CertManager, OpenShiftServiceCA, SecretProvider)
	}
	var out []Object
	for _, service := range slices.Compact(slices.Sorted(maps.Values(in.services))) {
		out = append(out, in.certificate(service)...)
	}
	return out, nil
}

// certificate returns a self-signed issuer and the certificate of a Service.
func (in *install) certificate(service string) []Object {
	name := certificateName(service)
	issuer := newObject("cert-manager.io/v1", "Issuer", in.pin.Namespace, suffixed(name, "selfsigned-issuer"))
	issuer["spec"] = map[string]any{"selfSigned": map[string]any{}}
	host := service + "." + in.pin.Namespace
	spec := map[string]any{
		"dnsNames":    texts(host, host+".svc", host+".svc.cluster.local"),
		"duration":    "17520h0m0s",
		"renewBefore": "24h0m0s",
		"issuerRef":   map[string]any{"name": issuer.Name()},
		"secretName":  name,
		"usages":      texts("server auth"),
	}
	if len(host) <= 64 { // the limit of X.509
		spec["commonName"] = host
	}
	cert := newObject("cert-manager.io/v1", "Certificate", in.pin.Namespace, name)
	cert["spec"] = spec
	return []Object{issuer, cert}
}

// injectCA says on a webhook configuration, CRD or APIService where the CA of
// a Service's certificate comes from.
func (in *install) injectCA(o Object, service string) Object {
	set := func(key, value string) Object { return with(o, value, "metadata", "annotations", key) }
	switch {
	case in.opt.Certificates == CertManager:
		return set("cert-manager.io/inject-ca-from", in.pin.Namespace+"/"+certificateName(service))
	case in.opt.Certificates == OpenShiftServiceCA:
		return set("service.beta.openshift.io/inject-cabundle", "true")
	case len(in.opt.CABundle) > 0:
		return withCA(o, in.opt.CABundle)
	default:
		return set("cert-manager.io/inject-ca-from-secret", in.opt.CASecret)
	}
}

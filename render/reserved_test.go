package render

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/lockfile"
)

// TestReservedNames ships objects with reserved names. Each object must cause an error that names its file,
// unless the workspace allows exactly that name.
func TestReservedNames(t *testing.T) {
	const authz = "apiVersion: rbac.authorization.k8s.io/v1, "
	for id, manifest := range map[string]string{
		"ClusterRole/cluster-admin":             "{kind: ClusterRole, metadata: {name: cluster-admin}, rules: []}",
		"ClusterRole/system:node":               "{" + authz + "kind: ClusterRole, metadata: {name: 'system:node'}, rules: []}",
		"ClusterRole/view":                      "{apiVersion: v1, kind: AnyList, items: [{" + authz + "kind: ClusterRole, metadata: {name: view}, rules: []}]}",
		"ClusterRoleBinding/cluster-admin":      "{" + authz + "kind: ClusterRoleBinding, metadata: {name: cluster-admin}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: sa}]}",
		"Namespace/kube-system":                 "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}",
		"Namespace/openshift-monitoring":        "{apiVersion: v1, kind: Namespace, metadata: {name: openshift-monitoring}}",
		"Namespace/default":                     "{apiVersion: v1, kind: Namespace, metadata: {name: default, namespace: ns}}",
		"PriorityClass/system-cluster-critical": "{apiVersion: scheduling.k8s.io/v1beta1, kind: PriorityClass, metadata: {name: system-cluster-critical}, value: 1}",
		"APIService/v1.apps":                    "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.apps}, spec: {group: apps, version: v1, groupPriorityMinimum: 100, versionPriority: 1}}",
		"FlowSchema/exempt":                     "{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: exempt}, spec: {priorityLevelConfiguration: {name: exempt}}}",
		"SecurityContextConstraints/privileged": "{apiVersion: security.openshift.io/v1, kind: SecurityContextConstraints, metadata: {name: privileged}}",
	} {
		bundles := map[string]fstest.MapFS{"ns/x": newBundle("x", "1.0.0", "v1", manifest)}
		_, err := renderBundles(bundles, nil, Options{AllowNames: []string{"ClusterRole/edit", id + "x"}})
		if err == nil || !strings.Contains(err.Error(), "manifests/x0.yaml: ") || !strings.Contains(err.Error(), `would replace a built-in object of the cluster`) || !strings.Contains(err.Error(), `add "`+id+`" to spec.allowNames`) {
			t.Errorf("%s: got %v", id, err)
		}
		res, err := renderBundles(bundles, nil, Options{AllowNames: []string{id}})
		if err != nil {
			t.Errorf("%s, allowed: %v", id, err)
			continue
		}
		if !slices.ContainsFunc(res.Objects, func(r Rendered) bool { return r.Object.Kind()+"/"+r.Object.Name() == id }) {
			t.Errorf("%s is allowed, but not rendered", id)
		}
	}
}

// TestShippedNamespaces checks that objects are rendered in the install namespace, even if the bundle ships
// them in other namespaces.
func TestShippedNamespaces(t *testing.T) {
	res, err := renderBundles(map[string]fstest.MapFS{"ns/x": newBundle("x", "1.0.0", "v1",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: kube-system}, roleRef: {kind: Role, name: c}, subjects: [{kind: ServiceAccount, name: sa, namespace: kube-system}]}",
		"{apiVersion: example.com/v1, kind: Unheard, metadata: {name: d, namespace: openshift-config}}")}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res.Objects {
		if ns := r.Object.Namespace(); ns != "" && ns != "ns" {
			t.Errorf("%s is in namespace %s", r.Object.Key(), ns)
		}
		for _, s := range k8s.Items(r.Object, "subjects") {
			if k8s.Text(s, "namespace") != "ns" {
				t.Errorf("%s binds %v", r.Object.Key(), s)
			}
		}
	}
}

// TestShippedWebhookRules checks which rules of shipped webhook configurations are rejected.
func TestShippedWebhookRules(t *testing.T) {
	for rule, want := range map[string]string{
		"{apiGroups: [''], resources: [pods]}":                                                  "",
		"{apiGroups: [admissionregistration.k8s.io], resources: [validatingadmissionpolicies]}": "",
		"{apiGroups: ['*'], resources: [pods]}":                                                 `apiGroups: a webhook on group "*" is not allowed`,
		"{apiGroups: [apps, operators.coreos.com], resources: [pods]}":                          `apiGroups: a webhook on group "operators.coreos.com" is not allowed`,
		"{apiGroups: [admissionregistration.k8s.io], resources: ['*/*']}":                       `resources: a webhook on "*/*" is not allowed`,
	} {
		manifest := "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{name: a.b.io, clientConfig: {url: 'https://a.b.io'}, sideEffects: None, admissionReviewVersions: [v1], rules: [" + strings.Replace(rule, "{", "{apiVersions: [v1], operations: [CREATE], ", 1) + "]}]}"
		_, err := renderBundles(map[string]fstest.MapFS{"ns/x": newBundle("x", "1.0.0", "v1", manifest)}, nil, Options{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "manifests/x0.yaml: ValidatingWebhookConfiguration w: webhooks[0].rules[0]."+want) {
			t.Errorf("%s: got %v, want %q", rule, err, want)
		}
	}
}

// TestReporterNamesAreReserved checks that an object with the name of a reporter's object is an error.
func TestReporterNamesAreReserved(t *testing.T) {
	bundles := map[string]fstest.MapFS{"ns/x": newBundle("x", "1.0.0", "v1", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: quayside-reporter}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}")}
	_, err := renderBundles(bundles, nil, Options{Reporter: reporterOptions()})
	const want = "spec.reporter: ClusterRole.rbac.authorization.k8s.io quayside-reporter belongs to the reporter, but is also in operators/ns.x/clusterrole-quayside-reporter.yaml"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := renderBundles(bundles, nil, Options{}); err != nil {
		t.Errorf("without a reporter: %v", err)
	}
}

// TestOpenShift checks that the CRDs of OpenShift are neither rendered nor listed in Installations.
func TestOpenShift(t *testing.T) {
	for _, platform := range []bool{false, true} {
		res, err := renderBundles(map[string]fstest.MapFS{"ns/x": newBundle("x", "1.0.0", "v1")}, nil, Options{OpenShift: platform}, lockfile.Namespace{Name: "ns"})
		if err != nil {
			t.Fatal(err)
		}
		has := func(kind, name string) bool {
			return slices.ContainsFunc(res.Objects, func(r Rendered) bool { return r.Object.Kind() == kind && r.Object.Name() == name })
		}
		if has("CustomResourceDefinition", conditionCRD) == platform || !has("OperatorCondition", "x") || !has("CustomResourceDefinition", "things.x.io") {
			t.Errorf("OpenShift %v: the CRD of OperatorConditions is rendered: %v", platform, has("CustomResourceDefinition", conditionCRD))
		}
		all, err := res.Installations("default")
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range all[0].Spec.Objects {
			if ref.Name == conditionCRD && platform {
				t.Error("the Installation expects the platform's CRD")
			}
		}
	}
}

// TestInjectedCA checks that the CA of a bundle is removed only if a controller in the cluster injects a CA.
func TestInjectedCA(t *testing.T) {
	for _, c := range []struct {
		annotation string
		opt        Options
		kept       bool
	}{
		{"other", Options{}, true},
		{"cert-manager.io/inject-ca-from", Options{}, false},
		{"service.beta.openshift.io/inject-cabundle", Options{}, true},
		{"service.beta.openshift.io/inject-cabundle", Options{OpenShift: true}, false},
		{"service.beta.openshift.io/inject-cabundle", Options{Certificates: certificates.OpenShiftServiceCA}, false},
	} {
		files := newBundle("x", "1.0.0", "v1")
		files["manifests/crd.yaml"].Data = []byte(strings.NewReplacer(
			"metadata: {", "metadata: {annotations: {"+c.annotation+": \"true\"}, ",
			"spec: {", "spec: {conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: \"https://example.com\", caBundle: LS0t}}}, ",
		).Replace(string(files["manifests/crd.yaml"].Data)))
		res, err := renderBundles(map[string]fstest.MapFS{"ns/x": files}, nil, c.opt, lockfile.Namespace{Name: "ns"})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(res.Objects, func(r Rendered) bool { return r.Object.Name() == "things.x.io" })
		config := k8s.Map(res.Objects[i].Object, "spec", "conversion", "webhook", "clientConfig")
		if k8s.Text(config, "url") == "" || (k8s.Text(config, "caBundle") != "") != c.kept {
			t.Errorf("%s with %+v: %v, want a CA: %v", c.annotation, c.opt, config, c.kept)
		}
	}
}

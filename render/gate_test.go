package render

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/bundle"
)

// renderManifest renders a bundle into a tree, and also calls Validate. It checks that both give the same errors
// and warnings. It returns the errors or, if there are none, the warnings as text.
func renderManifest(t *testing.T, fsys fstest.MapFS) string {
	t.Helper()
	res, err := renderBundles(map[string]fstest.MapFS{"ns/x": fsys}, nil, Options{})
	b, loadErr := bundle.Load(fsys)
	if loadErr != nil {
		t.Fatal(loadErr)
	}
	warnings, everyMode := Validate(b)
	if err != nil {
		want := strings.TrimPrefix(err.Error(), "rendering ns/x (x.v1.0.0):\n")
		if everyMode == nil || strings.ReplaceAll(everyMode.Error(), " operators/", " ns/") != want {
			t.Errorf("All returns %v, validation %v", err, everyMode)
		}
		return want
	}
	var said, saidInTree []string
	for _, w := range res.Warnings {
		saidInTree = append(saidInTree, strings.TrimPrefix(w.String(), "x.v1.0.0/"))
	}
	for _, w := range warnings {
		said = append(said, strings.ReplaceAll(w.String(), " operators/", " ns/"))
	}
	if d := cmp.Diff(saidInTree, said); d != "" || everyMode != nil {
		t.Errorf("warnings (-rendered +validated; error of the validation: %v):\n%s", everyMode, d)
	}
	return strings.Join(said, "\n")
}

// TestShippedIsTyped checks that unknown fields are removed with a warning, and that values of a wrong
// type are rejected.
func TestShippedIsTyped(t *testing.T) {
	for manifest, want := range map[string]string{
		`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80, targetPort: http}]}}`:                                                                    "",
		`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80, portName: a}], sort: b}}`:                                                                "manifests/x0.yaml: Service s: removed fields that v1 does not have: spec.ports[0].portName; spec.sort",
		`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: {port: 80}, selector: [a]}}`:                                                                         "manifests/x0.yaml: Service s: spec.ports: expected a list, got an object\nmanifests/x0.yaml: Service s: spec.selector: expected an object, got a list",
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: s}, imagePullSecrets: text}`:                                                                                    "manifests/x0.yaml: ServiceAccount s: imagePullSecrets: expected a list, got a string",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}, subjects: [a]}`: "manifests/x0.yaml: RoleBinding.rbac.authorization.k8s.io s: subjects[0]: expected an object, got a string",
		`{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: s}, spec: {minAvailable: [1], selector: {matchLabels: {a: b}}}}`:                               "manifests/x0.yaml: PodDisruptionBudget.policy s: spec.minAvailable: json: cannot unmarshal array into Go value of type int32",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: s, labels: {a: 1}, annotations: {a: [b]}}}`:                                                                          `manifests/x0.yaml: ConfigMap s: metadata.annotations[a]: expected a string, got a list`,
		`{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: s, labels: text}, spec: text}`:                                                            `manifests/x0.yaml: ServiceMonitor.monitoring.coreos.com s: metadata.labels: expected an object, got a string`,
		`{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: s, labels: {a: b c}}}`:                                                                    `manifests/x0.yaml: ServiceMonitor.monitoring.coreos.com ns/s: metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
		`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.x.io}, spec: {group: x.io, version: v1, groupPriorityMinimum: many, versionPriority: 1}}`: "manifests/x0.yaml: APIService.apiregistration.k8s.io v1.x.io: spec.groupPriorityMinimum: expected a whole number, got a string",
		`{apiVersion: v1, kind: Secret, metadata: {name: A_b}}`:                                                                                                                  `manifests/x0.yaml: Secret ns/A_b: metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
	} {
		if got := renderManifest(t, newBundle("x", "1.0.0", "v1", manifest)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", manifest, got, want)
		}
	}
}

// TestDefinitionsAreApplied checks that a CRD that no API server accepts is rejected. The error must name the
// file and the field.
func TestDefinitionsAreApplied(t *testing.T) {
	for edit, want := range map[string]string{
		"schema: {openAPIV3Schema: {type: object => schema: {openAPIV3Schema: {type: object, properties: {a: {type: array}}":    `spec.versions[0].schema.openAPIV3Schema.properties[a].items: Required value: must be specified`,
		"schema: {openAPIV3Schema: {type: object => schema: {openAPIV3Schema: {type: object, properties: {a: {format: int}}":    `spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields`,
		"schema: {openAPIV3Schema: {type: object => schema: {openAPIV3Schema: {type: object, properties: {a: {type: [string]}}": `spec.versions[0].schema.openAPIV3Schema.properties[a].type: expected a string, got a list`,
		"scope: Namespaced => scope: Everywhere":          `spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced"`,
		"storage: true => storage: false":                 `spec.versions: Invalid value: must have exactly one version marked as storage version`,
		"schema: {openAPIV3Schema => x: {openAPIV3Schema": `spec.versions[0].schema.openAPIV3Schema: Required value`,
		"scope: Namespaced => scope: Namespaced, conversion: {strategy: Webhook, webhook: {clientConfig: {url: 'https://a.b'}}}": `spec.conversion.webhook.conversionReviewVersions: Required value`,
	} {
		fsys := newBundle("x", "1.0.0", "v1")
		old, now, _ := strings.Cut(edit, " => ")
		fsys["manifests/crd.yaml"].Data = []byte(strings.Replace(string(fsys["manifests/crd.yaml"].Data), old, now, 1))
		if got := renderManifest(t, fsys); got != "manifests/crd.yaml: CustomResourceDefinition.apiextensions.k8s.io things.x.io: "+want {
			t.Errorf("%s: got %s", edit, got)
		}
	}
}

// TestConfigIsTyped checks that a value of a wrong type in a Subscription's config is rejected.
func TestConfigIsTyped(t *testing.T) {
	fsys := newBundle("x", "1.0.0", "v1")
	b, err := bundle.Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	pin := pinOf(b, "ns")
	pin.Config = []byte(`{"tolerations":[{"key":1}],"resources":{"limits":{"cpu":"one"}}}`)
	_, _, err = Manifests(b, pin, Options{})
	if err == nil || !strings.Contains(err.Error(), "config.resources.limits[cpu]: ") || !strings.Contains(err.Error(), "config.tolerations[0].key: expected a string, got a number") {
		t.Errorf("got %v", err)
	}
}

// addAccepted sets known to true for the digests of the CRDs that a rendering has accepted.
func addAccepted(known map[string]bool, res *Result) {
	for _, digest := range res.AcceptedCRDs {
		known[digest] = true
	}
}

// TestAcceptedCRDs checks that All returns the digest of each accepted CRD once, and no digest of a rejected
// CRD. All must not validate known CRDs again.
func TestAcceptedCRDs(t *testing.T) {
	known := map[string]bool{}
	bad := newBundle("x", "1.0.0", "v1")
	bad["manifests/crd.yaml"].Data = []byte(strings.Replace(string(bad["manifests/crd.yaml"].Data), "type: object", "type: objekt", 1))
	if _, err := renderBundles(map[string]fstest.MapFS{"ns/x": bad}, nil, Options{AcceptedCRDs: known}); err == nil || len(known) != 0 {
		t.Fatalf("got %v, and %d cached CRDs", err, len(known))
	}
	var text string
	for i := range 2 {
		res, err := renderBundles(map[string]fstest.MapFS{"ns/x": newBundle("x", "1.0.0", "v1")}, nil, Options{AcceptedCRDs: known})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.AcceptedCRDs) != 1-i {
			t.Errorf("rendering %d accepted %v", i, res.AcceptedCRDs)
		}
		addAccepted(known, res)
		data, _ := res.Tree.Get("crds/x/customresourcedefinition-things.x.io.yaml")
		text = string(data)
	}
	known[fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Replace(text, "type: object", "type: objekt", 1))))] = true
	if _, err := renderBundles(map[string]fstest.MapFS{"ns/x": bad}, nil, Options{AcceptedCRDs: known}); err != nil {
		t.Errorf("a known CRD was validated: %v", err)
	}
}

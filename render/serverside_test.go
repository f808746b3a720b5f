package render

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// arrival renders bundle b as package x in namespace ns. It returns the rendered objects by kind and name, and
// the codes of the warnings.
func arrival(t *testing.T, b fstest.MapFS, opt Options) (map[string]Object, []string) {
	t.Helper()
	res, err := renderBundles(map[string]fstest.MapFS{"ns/x": b}, nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Object{}
	for _, r := range res.Objects {
		out[r.Object.Kind()+" "+r.Object.Name()] = r.Object
	}
	var codes []string
	for _, w := range res.Warnings {
		codes = append(codes, w.Code)
	}
	return out, codes
}

// TestRepeatedItems checks which of several items with the same key is rendered.
func TestRepeatedItems(t *testing.T) {
	b := newBundle("x", "1.0.0", "v1", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {a: b}, ports: [{port: 443, targetPort: https}]}\n")
	b["manifests/csv.yaml"].Data = []byte(strings.Replace(string(b["manifests/csv.yaml"].Data), "containers: [{name: c, image: i}]", `imagePullSecrets: [{name: a}, {name: a}],
        hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b]}],
        containers: [{name: c, image: i, env: [{name: MODE, value: a}, {name: OTHER}, {name: MODE, value: b}],
          ports: [{name: metrics, containerPort: 8443, protocol: TCP}, {name: https, containerPort: 8443}, {name: last, containerPort: 8443}]}]`, 1))
	for tool, want := range map[profile.Name]string{
		profile.Flux:   "ports=https env=OTHER,MODE:b secrets=a hosts=a,b repeated-item=4",
		profile.ArgoCD: "ports=https env=OTHER,MODE:b secrets=a hosts=a,b repeated-item=4",
		profile.Plain:  "ports=metrics,https,last env=MODE:a,OTHER,MODE:b secrets=a,a hosts=a repeated-item=0",
	} {
		objects, codes := arrival(t, b, Options{Profile: tool})
		pod := k8s.PodSpec(objects["Deployment d"])
		c := k8s.Containers(pod)[0]
		names := func(list []map[string]any) string {
			var out []string
			for _, m := range list {
				if name := k8s.Text(m, "name"); name != conditionVariable {
					out = append(out, strings.TrimSuffix(name+":"+k8s.Text(m, "value"), ":"))
				}
			}
			return strings.Join(out, ",")
		}
		repeated := len(slices.DeleteFunc(codes, func(code string) bool { return code != "repeated-item" }))
		got := "ports=" + names(k8s.Items(c, "ports")) + " env=" + names(k8s.Items(c, "env")) + " secrets=" + names(k8s.Items(pod, "imagePullSecrets")) +
			" hosts=" + strings.Join(k8s.Texts(k8s.Items(pod, "hostAliases")[0], "hostnames"), ",") + " repeated-item=" + string(rune('0'+repeated))
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", tool, got, want)
		}
	}
}

// TestForeignFields checks that fields of controllers and fields that the API server drops are not rendered.
func TestForeignFields(t *testing.T) {
	b := newBundle("x", "1.0.0", "v1",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: sum}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n",
		"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}\nstatus: {desiredReplicas: 1}\n",
		"apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: thing, creationTimestamp: null}\nspec: {a: null, b: [{c: null, d: null, e: {f: null}}], g: {h: null}}\nstatus: {ready: true}\n",
		"apiVersion: other.io/v1\nkind: Other\nmetadata: {name: other}\nspec: {a: null, b: 1}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: none}\nrules: []\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {a: b}, ports: [{port: 443, targetPort: 0}]}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {}}\nimmutable: null\ndata: {a: \"\"}\n")
	csv := strings.Replace(string(b["manifests/csv.yaml"].Data), "spec: {selector: {matchLabels", "spec: {replicas: 2, paused: false, selector: {matchLabels", 1)
	csv = strings.Replace(csv, "{name: c, image: i}", "{name: c, image: i, stdin: false, resources: {limits: {cpu: 1000m, memory: 1024Mi}}}", 1)
	b["manifests/csv.yaml"].Data = []byte(csv)
	crd := strings.Replace(string(b["manifests/crd.yaml"].Data), "spec: {group: x.io", "status: {storedVersions: [v1]}\nspec: {preserveUnknownFields: false, conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: \"https://h.example.com\", caBundle: Cg==}}}, group: x.io", 1)
	crd = strings.Replace(crd, "plural: things}", "plural: things, shortNames: [], categories: []}", 1)
	crd = strings.Replace(crd, "storage: true,", "storage: true, subresources: {status: {}},", 1)
	crd = strings.Replace(crd, "openAPIV3Schema: {type: object}", `openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string, enum: []},
    b: {type: array, items: {type: object, properties: {c: {type: string}, d: {type: string, nullable: true}, e: {type: object, x-kubernetes-preserve-unknown-fields: true}}}},
    g: {type: object, additionalProperties: {type: string}}}}}}`, 1)
	b["manifests/crd.yaml"].Data = []byte(crd)
	objects, _ := arrival(t, b, Options{Profile: profile.Flux})
	for key, paths := range map[string][]string{
		"ClusterRole sum":           {"rules"},
		"HorizontalPodAutoscaler h": {"status"},
		"Thing thing":               {"status", "metadata.creationTimestamp", "spec.a"},
		"Other other":               {"spec.a"},
		"ClusterRole none":          {"rules"},
		"ConfigMap c":               {"immutable"},
		"Deployment d":              {"spec.replicas", "spec.paused"},
		"CustomResourceDefinition things.x.io": {
			"status", "spec.preserveUnknownFields", "spec.names.shortNames", "spec.names.categories", "spec.conversion.webhook.clientConfig.caBundle",
		},
	} {
		o, rendered := objects[key]
		if !rendered {
			t.Errorf("%s is not rendered", key)
		}
		for _, at := range paths {
			steps := strings.Split(at, ".")
			if _, set := k8s.Map(o, steps[:len(steps)-1]...)[steps[len(steps)-1]]; set {
				t.Errorf("%s has %s", key, at)
			}
		}
	}
	nullable := map[string]any{"b": []any{map[string]any{"d": nil, "e": map[string]any{"f": nil}}}, "g": map[string]any{}}
	if d := cmp.Diff(nullable, k8s.Map(objects["Thing thing"], "spec")); d != "" {
		t.Errorf("spec of a custom resource differs (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]map[string]any{{"port": int64(443)}}, k8s.Items(objects["Service s"], "spec", "ports")); d != "" {
		t.Errorf("ports differ (-want +got):\n%s", d)
	}
	want := map[string]any{"cpu": "1", "memory": "1Gi"}
	if d := cmp.Diff(want, k8s.Map(k8s.Containers(k8s.PodSpec(objects["Deployment d"]))[0], "resources", "limits")); d != "" {
		t.Errorf("limits differ (-want +got):\n%s", d)
	}
	if k8s.At(objects["Thing thing"], "spec") == nil || k8s.Text(objects["CustomResourceDefinition things.x.io"], "spec", "conversion", "webhook", "clientConfig", "url") == "" {
		t.Error("a field beside the dropped ones is missing")
	}
}

// TestReferencesMove checks that a reference to an object of the same bundle names the namespace in which that
// object is rendered, and that other references do not change.
func TestReferencesMove(t *testing.T) {
	hooks := `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks, annotations: {cert-manager.io/inject-ca-from: placeholder/serving}}
webhooks:
- {name: a.x.io, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: hook, namespace: placeholder, path: /v}}}
- {name: b.x.io, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: theirs, namespace: placeholder}}}
- {name: c.x.io, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://h.example.com"}}
`
	b := newBundle("x", "1.0.0", "v1", hooks,
		"apiVersion: v1\nkind: Service\nmetadata: {name: hook, namespace: placeholder}\nspec: {selector: {a: b}, ports: [{port: 443}]}\n",
		"apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.y.io}\nspec: {group: y.io, version: v1, groupPriorityMinimum: 1, versionPriority: 1, service: {name: hook, namespace: placeholder}}\n",
		"apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: serving, namespace: placeholder}\nspec: {secretName: s, issuerRef: {name: i}, dnsNames: [hook.placeholder.svc, hook.placeholder.svc.cluster.local, theirs.placeholder.svc, hook.elsewhere.svc]}\n",
		"apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m, namespace: placeholder}\nspec: {selector: {}, endpoints: [], namespaceSelector: {matchNames: [placeholder, elsewhere]}}\n",
		"apiVersion: console.openshift.io/v1\nkind: ConsolePlugin\nmetadata: {name: p}\nspec: {backend: {service: {name: hook, namespace: placeholder}}, proxy: {service: {name: theirs, namespace: placeholder}}}\n",
		"apiVersion: security.openshift.io/v1\nkind: SecurityContextConstraints\nmetadata: {name: c}\nusers: [\"system:serviceaccount:placeholder:own\", \"system:serviceaccount:placeholder:theirs\"]\n",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: own, namespace: placeholder}\n")
	objects, codes := arrival(t, b, Options{Profile: profile.Flux})
	var got []string
	for _, hook := range k8s.Items(objects["ValidatingWebhookConfiguration hooks"], "webhooks") {
		got = append(got, k8s.Text(hook, "name")+" "+k8s.Text(hook, "clientConfig", "service", "namespace"))
	}
	got = append(got, k8s.Text(objects["ValidatingWebhookConfiguration hooks"], "metadata", "annotations", "cert-manager.io/inject-ca-from"),
		k8s.Text(objects["APIService v1.y.io"], "spec", "service", "namespace"))
	got = append(got, k8s.Texts(objects["Certificate serving"], "spec", "dnsNames")...)
	got = append(got, k8s.Texts(objects["ServiceMonitor m"], "spec", "namespaceSelector", "matchNames")...)
	plugin, scc := objects["ConsolePlugin p"], objects["SecurityContextConstraints c"]
	got = append(got, k8s.Text(plugin, "spec", "backend", "service", "namespace"), k8s.Text(plugin, "spec", "proxy", "service", "namespace"))
	got = append(got, k8s.Texts(scc, "users")...)
	want := []string{
		"a.x.io ns", "b.x.io placeholder", "c.x.io ", "ns/serving", "ns",
		"hook.ns.svc", "hook.ns.svc.cluster.local", "theirs.placeholder.svc", "hook.elsewhere.svc", "ns", "elsewhere",
		"ns", "placeholder", "system:serviceaccount:ns:own", "system:serviceaccount:placeholder:theirs",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("references differ (-want +got):\n%s", d)
	}
	if !slices.Contains(codes, "expected-from-outside") {
		t.Errorf("no warning for the Service outside of the bundle: %v", codes)
	}
}

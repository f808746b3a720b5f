package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/test/cluster/harness"
)

// validBundle is a valid bundle with built-in objects, a CRD and a custom resource.
var validBundle = bundleFiles{
	"metadata/annotations.yaml": `
annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: lamp
  operators.operatorframework.io.bundle.channels.v1: stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
`,
	"metadata/properties.yaml": `
properties:
- {type: olm.maxOpenShiftVersion, value: "4.99"}
- {type: example.com/anything, value: {a: b}}
`,
	"manifests/csv.yaml": `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: lamp.v1.0.0, annotations: {capabilities: Basic Install, containerImage: registry.example.com/lamp:1}}
spec:
  displayName: Lamp
  description: Lamps.
  version: 1.0.0
  minKubeVersion: 1.20.0
  maturity: alpha
  provider: {name: Example}
  maintainers: [{name: Somebody, email: somebody@example.com}]
  links: [{name: Lamp, url: https://example.com}]
  icon: [{base64data: iVBORw0KGgo=, mediatype: image/png}]
  keywords: [lamp]
  installModes: [{type: OwnNamespace, supported: true}, {type: SingleNamespace, supported: true}, {type: MultiNamespace, supported: false}, {type: AllNamespaces, supported: true}]
  relatedImages: [{name: lamp, image: "registry.example.com/lamp:1"}]
  customresourcedefinitions: {owned: [{name: lamps.example.com, kind: Lamp, version: v1, displayName: Lamp, description: A lamp.}]}
  webhookdefinitions:
  - {type: ValidatingAdmissionWebhook, generateName: vlamp.example.com, deploymentName: lamp, containerPort: 443, targetPort: 9443, sideEffects: None, failurePolicy: Ignore,
    webhookPath: /validate, admissionReviewVersions: [v1], rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [UPDATE], resources: [lamps]}]}
  install:
    strategy: deployment
    spec:
      permissions: [{serviceAccountName: lamp, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]}]
      clusterPermissions: [{serviceAccountName: lamp, rules: [{apiGroups: [example.com], resources: [lamps], verbs: ["*"]}, {nonResourceURLs: [/metrics], verbs: [get]}]}]
      deployments:
      - name: lamp
        label: {app: lamp}
        spec:
          replicas: 1
          selector: {matchLabels: {app: lamp}}
          strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
          template:
            metadata: {labels: {app: lamp}, annotations: {a: b}}
            spec:
              serviceAccountName: lamp
              nodeSelector: {kubernetes.io/os: linux}
              tolerations: [{key: a, operator: Exists, effect: NoSchedule}]
              securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
              initContainers: [{name: first, image: "registry.example.com/lamp:1"}]
              containers:
              - name: manager
                image: registry.example.com/lamp:1
                args: [--leader-elect]
                env: [{name: A, value: a}, {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
                ports: [{name: https, containerPort: 9443, protocol: TCP}]
                resources: {limits: {cpu: 100m, memory: 64Mi}, requests: {cpu: 50m}}
                securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
                livenessProbe: {httpGet: {path: /healthz, port: 8081}, initialDelaySeconds: 5}
                volumeMounts: [{name: tmp, mountPath: /tmp}]
              volumes: [{name: tmp, emptyDir: {sizeLimit: 1Mi}}, {name: conf, configMap: {name: lamp, optional: true, items: [{key: a, path: a}]}}]
`,
	"manifests/crd.yaml": `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com, labels: {app: lamp}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Lamp, listKind: LampList, plural: lamps, singular: lamp, shortNames: [lp], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, default: 1}
              mode: {type: string, enum: [fast, slow], pattern: "^[a-z]*$"}
              list: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}}}}
            x-kubernetes-validations: [{rule: self.size < 10, message: too many}]
          status: {type: object, properties: {size: {type: integer}}}
`,
	"manifests/lamp.yaml":      "apiVersion: example.com/v1\nkind: Lamp\nmetadata: {name: first}\nspec: {size: 3, mode: fast, list: [{name: a}]}\n",
	"manifests/service.yaml":   "apiVersion: v1\nkind: Service\nmetadata: {name: lamp, labels: {app: lamp}}\nspec: {type: ClusterIP, sessionAffinity: None, selector: {app: lamp}, ports: [{name: https, port: 443, targetPort: https, protocol: TCP}]}\n",
	"manifests/configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamp, annotations: {a: b}}\ndata: {a: b}\nbinaryData: {c: YQ==}\n",
	"manifests/secret.yaml":    "apiVersion: v1\nkind: Secret\nmetadata: {name: lamp}\ntype: Opaque\nstringData: {a: b}\n",
	"manifests/class.yaml":     "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: lamp}\nvalue: 100\nglobalDefault: false\npreemptionPolicy: Never\ndescription: For lamps.\n",
	"manifests/role.yaml":      "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: lamp-reader}\nrules: [{apiGroups: [example.com], resources: [lamps], verbs: [get]}]\n",
	"manifests/binding.yaml":   "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: lamp-reader}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lamp-reader}\nsubjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: readers}]\n",
	"manifests/pdb.yaml":       "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: lamp}\nspec: {minAvailable: 1, selector: {matchLabels: {app: lamp}}}\n",
}

// bundleFiles are the files of a bundle, by name.
type bundleFiles map[string]string

// in returns the files below a directory.
func (f bundleFiles) in(dir string) map[string]string {
	out := map[string]string{}
	for name, text := range f {
		out[dir+name] = text
	}
	return out
}

// mutation replaces the value at a path of a file of validBundle.
type mutation struct {
	file string
	path []string // keys, and indices of lists
	do   string
}

// mutants returns all mutations of validBundle, shuffled with a fixed seed.
func mutants(t *testing.T) []mutation {
	t.Helper()
	var out []mutation
	for _, file := range slices.Sorted(maps.Keys(validBundle)) {
		var walk func(path []string, v any)
		walk = func(path []string, v any) {
			if len(path) > 0 {
				for _, do := range []string{"delete", "null", "number", "list", "map", "true", "twice", "rename"} {
					out = append(out, mutation{file, slices.Clone(path), do})
				}
			}
			switch v := v.(type) {
			case map[string]any:
				for _, key := range slices.Sorted(maps.Keys(v)) {
					walk(append(path, key), v[key])
				}
			case []any:
				for i := range v {
					walk(append(path, fmt.Sprint(i)), v[i])
				}
			}
		}
		var parsed any
		if err := yaml.Unmarshal([]byte(validBundle[file]), &parsed); err != nil {
			t.Fatal(err)
		}
		walk(nil, parsed)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// apply returns the text of the mutated file.
func (m mutation) apply(t *testing.T) string {
	t.Helper()
	var parsed any
	if err := yaml.Unmarshal([]byte(validBundle[m.file]), &parsed); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(m.change(parsed, m.path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (m mutation) change(v any, path []string) any {
	values := map[string]any{
		"null": nil, "number": 7, "list": []any{"a"}, "map": map[string]any{"a": "b"}, "true": true,
	}
	switch v := v.(type) {
	case map[string]any:
		value, fixed := values[m.do]
		switch {
		case len(path) > 1:
			v[path[0]] = m.change(v[path[0]], path[1:])
		case m.do == "delete":
			delete(v, path[0])
		case m.do == "rename":
			v[path[0]+"s"] = v[path[0]]
			delete(v, path[0])
		case m.do == "twice":
			if list, isList := v[path[0]].([]any); isList {
				v[path[0]] = append(slices.Clone(list), list...)
			}
		case fixed:
			v[path[0]] = value
		}
		return v
	case []any:
		var i int
		if _, err := fmt.Sscan(path[0], &i); err != nil {
			panic(err)
		}
		value, fixed := values[m.do]
		switch {
		case len(path) > 1:
			v[i] = m.change(v[i], path[1:])
		case m.do == "delete":
			return slices.Delete(v, i, i+1)
		case m.do == "twice":
			return append(v, v[i])
		case fixed:
			v[i] = value
		}
		return v
	}
	return v
}

// valueRules contains parts of the API server's messages about rules for values. No library of Kubernetes checks
// these rules.
var valueRules = []string{
	"empty selector is invalid", "must specify one of", "must be between 1 and 65535", "must include at least one of v1, v1beta1",
}

// TestValidIsAccepted mutates the structure of a bundle. If `quayside bundle validate` reports a mutant as valid,
// resolve and render must accept the mutant. The API server must then accept all of its objects, except objects
// that render reports or that violate valueRules. The test tries 250 mutants, or all if QUAYSIDE_ARRIVAL is "all".
func TestValidIsAccepted(t *testing.T) {
	t.Parallel() // has its own servers
	cluster := harness.Start(t, harness.Options{APIOnly: true, NoWebhooks: true})
	live, program := applier(t, cluster), build(t)
	all := mutants(t)
	if os.Getenv("QUAYSIDE_ARRIVAL") != "all" {
		all = all[:250]
	}
	q := newWorkspace(t, program, validBundle.in("bundles/lamp/"))
	if _, stderr, code := q.run(t, "bundle", "validate", "bundles/lamp"); code != 0 {
		t.Fatalf("the bundle is invalid:\n%s", stderr)
	}
	valid := 0
	for i, m := range all {
		q := newWorkspace(t, program, validBundle.in("bundles/lamp/"))
		q.write(t, "bundles/lamp/"+m.file, m.apply(t))
		if _, _, code := q.run(t, "bundle", "validate", "bundles/lamp"); code != 0 {
			continue
		}
		valid++
		name := fmt.Sprintf("%s %s %s", m.file, strings.Join(m.path, "."), m.do)
		q.declareOnly(t, `namespace: olm, source: "bundles:bundles"`, "lamp", fmt.Sprintf("n%d", i), "")
		if _, stderr, code := q.run(t, "resolve", "--offline"); code != 0 {
			t.Errorf("%s: valid, but resolve refuses it:\n%s", name, stderr)
			continue
		}
		_, stderr, code := q.run(t, "render", "--offline")
		if code != 0 {
			t.Errorf("%s: valid, but render refuses it:\n%s", name, stderr)
			continue
		}
		checkAccepted(t, live, name, stderr, q.rendered(t))
	}
	t.Logf("%d of %d mutants are valid", valid, len(all))
}

// checkAccepted applies objects, and deletes them. stderr (of render) or valueRules must contain each rejection.
func checkAccepted(t *testing.T, live *harness.Applier, name, stderr string, list []*unstructured.Unstructured) {
	t.Helper()
	ctx := within(t, time.Minute)
	var accepted []*unstructured.Unstructured
	for _, o := range list {
		if o.GroupVersionKind().Group == "cert-manager.io" {
			continue
		}
		_, err := live.Apply(ctx, []*unstructured.Unstructured{o})
		if err != nil {
			if !strings.Contains(stderr, "will reject "+harness.Name(o)+",") && !slices.ContainsFunc(valueRules, func(rule string) bool { return strings.Contains(err.Error(), rule) }) {
				t.Errorf("%s: valid, but %v", name, err)
			}
			continue
		}
		accepted = append(accepted, o)
	}
	i := installation{applier: live, objects: accepted}
	if err := i.remove(context.WithoutCancel(ctx)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

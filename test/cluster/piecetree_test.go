package cluster_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// pieceState declares an environment: its clusters and their operators.
type pieceState struct {
	environment string
	asOneUnit   bool // granularity cluster: one Application, or the stages of Flux, for all operators
	clusters    []pieceCluster
	operators   []tinyOperator
	leaving     []string // removed operators that are not uninstalled yet
	extra       string   // other manifests of the cluster "local"
	recreate    string   // entries of spec.recreate
}

// pieceCluster is an entry of spec.clusters.
type pieceCluster struct {
	name        string
	destination string // ", server: …" or ", kubeConfig: …"; "" for the engine's own cluster
}

// tinyOperator is an operator with a ConfigMap and a Deployment.
type tinyOperator struct {
	namespace, name, version string

	noDeployment   bool     // it has no Deployment
	hasCRD         bool     // it has a CRD
	hasWebhook     bool     // it has a webhook
	isChart        bool     // it is a Helm chart with hooks instead
	isRelease      bool     // it is a release with manifests instead
	hasKept        bool     // the chart has a claim, a ConfigMap and a Secret that Helm keeps
	service        string   // it has a Service: "cluster" or "headless", which is an immutable field
	crdCA          string   // CA of its CRD, which is converted by another operator's Service
	takesConfigMap bool     // it takes over the ConfigMap of another operator
	takesCRD       bool     // it takes over the CRD of another operator
	fault          string   // "unhealthy", "CRD refused" or "object refused"
	requires       []string // packages
}

// key returns "<namespace>.<name>".
func (o tinyOperator) key() string { return o.namespace + "." + o.name }

// tinyBundle is a bundle of an operator.
const tinyBundle = `
-- metadata/annotations.yaml --
annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: NAME
  operators.operatorframework.io.bundle.channels.v1: stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
-- manifests/configmap.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, labels: {example.com/version: VERSION}}
data: {version: VERSION}
-- manifests/csv.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: NAME.vSEMVER, annotations: {olm.skipRange: "<SEMVER"}}
spec:
  version: SEMVER
  installModes: [{type: AllNamespaces, supported: true}]
  install: {strategy: deployment, spec: {deployments: [DEPLOYMENT]}}
  webhookdefinitions: [WEBHOOKS]
  customresourcedefinitions: {owned: [OWNED]}
`

// tinyWebhook is the webhook in a bundle.
const tinyWebhook = `
  {type: ValidatingAdmissionWebhook, generateName: vthing.example.com, deploymentName: NAME, containerPort: 443, sideEffects: None, failurePolicy: Ignore,
  webhookPath: /validate, admissionReviewVersions: [v1], rules: [{apiGroups: [GROUP.example.com], apiVersions: [v1], operations: [UPDATE], resources: [things]}]}`

// tinyConversion is the conversion of the CRD in a bundle, with a CA.
const tinyConversion = `  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: elsewhere, namespace: NAMESPACE}, caBundle: CABUNDLE}
`

// tinyDeployment is the Deployment in a bundle. No node has the label "nowhere".
const tinyDeployment = `
  {name: NAME, label: {example.com/version: VERSION, example.com/fault: FAULT}, spec: {selector: {matchLabels: {app: NAME}},
  template: {metadata: {labels: {app: NAME}}, spec: {NODES
  containers: [{name: manager, image: "registry.example.com/NAME:VERSION"}]}}}}`

// tinyCRD is the CRD in a bundle.
const tinyCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: PLURAL.GROUP.example.com
  labels: {example.com/version: VERSION, example.com/fault: FAULT}
spec:
  group: GROUP.example.com
  names: {kind: KIND, plural: PLURAL}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// rejectionPolicy is an admission policy that makes the API server reject objects with a certain label.
const rejectionPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refusal}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps, apiextensions.k8s.io], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [deployments, customresourcedefinitions]}
    objectSelector: {matchLabels: {example.com/fault: refused}}
  validations: [{expression: "false", message: it is to be refused}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refusal}
spec: {policyName: refusal, validationActions: [Deny]}
`

// tinyService is the Service in a bundle.
const tinyService = `-- manifests/service.yaml --
apiVersion: v1
kind: Service
metadata: {name: NAME, labels: {example.com/version: VERSION}}
spec: {ADDRESS selector: {app: NAME}, ports: [{port: 443}]}
`

// tinyChart is a chart with a hook of each kind.
const tinyChart = `
-- Chart.yaml --
apiVersion: v2
name: NAME
version: SEMVER
-- templates/configmap.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, labels: {example.com/version: VERSION}}
data: {version: VERSION}
-- templates/hooks.yaml --
apiVersion: v1
kind: ServiceAccount
metadata: {name: NAME-hook, labels: {example.com/version: VERSION}, annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-5"}}
{{- range $job, $events := dict "before" "pre-install,pre-upgrade" "upgrade" "pre-upgrade" "after" "post-install" }}
---
apiVersion: batch/v1
kind: Job
metadata: {name: NAME-{{ $job }}, labels: {example.com/version: VERSION}, annotations: {helm.sh/hook: {{ $events | quote }}}}
spec:
  template:
    spec:
      serviceAccountName: NAME-hook
      restartPolicy: Never
      containers: [{name: hook, image: "registry.example.com/NAME:VERSION"}]
{{- end }}
`

// tinyRelease contains the manifests of a release.
const tinyRelease = `-- configmap.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, labels: {example.com/version: VERSION}}
data: {version: VERSION}
-- things.yaml --
` + tinyCRD

// tinyKept is a template of objects that Helm keeps.
const tinyKept = `-- templates/kept.yaml --
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME-kept, labels: {example.com/version: kept}, annotations: {helm.sh/resource-policy: keep}}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: "{{ .Release.Namespace }}-NAME", resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-kept, labels: {example.com/version: kept}, annotations: {helm.sh/resource-policy: keep}}
data: {a: b}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME-kept, labels: {example.com/version: kept}, annotations: {helm.sh/resource-policy: keep}}
stringData: {a: b}
`

// bundle returns the files of the operator's bundle or chart. They contain a placeholder for the semantic
// version.
func (o tinyOperator) bundle() map[string]string {
	fault := map[bool]string{true: "refused", false: "none"}
	nodes, deployment := "", tinyDeployment
	if o.fault == "unhealthy" {
		nodes = "nodeSelector: {nowhere: nothing},"
	}
	if o.noDeployment {
		deployment = ""
	}
	deployment = strings.NewReplacer("FAULT", fault[o.fault == "object refused"], "NODES", nodes).Replace(deployment)
	webhooks := ""
	if o.hasWebhook {
		webhooks = strings.ReplaceAll(tinyWebhook, "GROUP", o.key())
	}
	owned := ""
	if o.hasCRD {
		owned += "{name: things." + o.key() + ".example.com, kind: Thing, version: v1}, "
	}
	if o.takesCRD {
		owned += "{name: shareds.shared." + o.namespace + ".example.com, kind: Shared, version: v1}"
	}
	text := strings.NewReplacer("DEPLOYMENT", deployment, "WEBHOOKS", webhooks, "OWNED", owned).Replace(tinyBundle)
	if o.hasCRD {
		text += "-- manifests/things.yaml --\n" + strings.NewReplacer("PLURAL", "things", "GROUP", o.key(), "KIND", "Thing", "FAULT", fault[o.fault == "CRD refused"]).Replace(tinyCRD)
		if o.crdCA != "" {
			text = strings.Replace(text, "  labels: {", "  annotations: {service.beta.openshift.io/inject-cabundle: \"true\"}\n  labels: {", 1)
			text += strings.NewReplacer("NAMESPACE", o.namespace, "CABUNDLE", o.crdCA).Replace(tinyConversion)
		}
	}
	if o.takesCRD {
		text += "-- manifests/shareds.yaml --\n" + strings.NewReplacer("PLURAL", "shareds", "GROUP", "shared."+o.namespace, "KIND", "Shared", "FAULT", "none", "VERSION", "none").Replace(tinyCRD)
	}
	if o.service != "" {
		address := map[string]string{"cluster": "", "headless": "clusterIP: None,"}[o.service]
		text += strings.ReplaceAll(tinyService, "ADDRESS", address)
	}
	if o.takesConfigMap {
		text += "-- manifests/shared.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\n"
	}
	for i, required := range o.requires {
		if i == 0 {
			text += "-- metadata/dependencies.yaml --\ndependencies:\n"
		}
		text += fmt.Sprintf("- {type: olm.package, value: {packageName: %s, version: \">=0.0.0\"}}\n", required)
	}
	if o.isChart {
		text = tinyChart
	}
	if o.isRelease {
		text = strings.NewReplacer("PLURAL", "things", "GROUP", o.key(), "KIND", "Thing", "FAULT", "none").Replace(tinyRelease)
	}
	if o.hasKept {
		text += tinyKept
	}
	files := map[string]string{}
	text = strings.NewReplacer("NAME", o.name, "VERSION", o.version).Replace(text)
	for _, file := range strings.Split(text, "-- ")[1:] {
		name, content, _ := strings.Cut(file, " --\n")
		files[name] = content
	}
	return files
}

// operator returns a pointer to the operator with that key, so that the caller can change the operator.
func (s pieceState) operator(key string) *tinyOperator {
	i := slices.IndexFunc(s.operators, func(o tinyOperator) bool { return o.key() == key })
	return &s.operators[i]
}

// clone returns a deep copy.
func (s pieceState) clone() pieceState {
	s.clusters, s.operators, s.leaving = slices.Clone(s.clusters), slices.Clone(s.operators), slices.Clone(s.leaving)
	return s
}

// without returns a copy without the operators with these keys.
func (s pieceState) without(keys ...string) pieceState {
	s = s.clone()
	s.operators = slices.DeleteFunc(s.operators, func(o tinyOperator) bool { return slices.Contains(keys, o.key()) })
	return s
}

// pieceTree is the workspace of an environment.
type pieceTree struct {
	quayside
	bundles  map[string]map[string]string // by operator
	revision map[string]int               // number of bundle changes, by operator
	last     pieceState
}

// newPieceTree returns a workspace in a directory.
func newPieceTree(t *testing.T, dir string) *pieceTree {
	t.Helper()
	p := &pieceTree{quayside: quayside{build(t), dir}, bundles: map[string]map[string]string{}, revision: map[string]int{}}
	p.write(t, ".gitignore", ".cache/\n")
	return p
}

// render updates the workspace to a state, as the workspace's team does: it writes the declarations and runs
// quayside.
func (p *pieceTree) render(t *testing.T, s pieceState, engine engineSettings) {
	t.Helper()
	p.write(t, "quayside.yaml", settings(s, engine))
	for _, dir := range []string{"bundles", "subscriptions", "overlays"} {
		if err := os.RemoveAll(filepath.Join(p.dir, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if s.extra != "" {
		p.write(t, "overlays/local/resources/kustomization.yaml", "resources: [extra.yaml]\n")
		p.write(t, "overlays/local/resources/extra.yaml", s.extra)
	}
	args := []string{"resolve", "--offline"}
	if slices.ContainsFunc(p.last.leaving, func(key string) bool { return !s.has(key) }) {
		args = append(args, "--prune")
	}
	if slices.ContainsFunc(p.last.operators, func(o tinyOperator) bool { return !s.has(o.key()) }) {
		p.remove(t, "quayside.lock") // as if the commit that added it was reverted
	}
	for _, o := range s.operators {
		p.declare(t, o)
	}
	p.must(t, args...)
	p.must(t, "render", "--offline")
	p.must(t, "verify", "--offline")
	p.last = s
}

// has reports whether an operator is installed or leaving.
func (s pieceState) has(key string) bool {
	return slices.Contains(s.leaving, key) || slices.ContainsFunc(s.operators, func(o tinyOperator) bool { return o.key() == key })
}

// declare writes an operator's Subscription and bundle, with a new version if the content has
// changed.
func (p *pieceTree) declare(t *testing.T, o tinyOperator) {
	t.Helper()
	files := o.bundle()
	if !maps.Equal(files, p.bundles[o.key()]) {
		p.bundles[o.key()] = files
		p.revision[o.key()]++
	}
	version := fmt.Sprintf("1.%d.0", p.revision[o.key()])
	content, catalog := path.Join("bundles", o.name), "bundles"
	if o.isChart { // a catalog of charts keeps all versions
		content, catalog = path.Join("charts", o.name+"-"+version), "charts"
		buildIn(t, "quayside-charts", "./cmd/quayside-charts")
	}
	for name, text := range files {
		p.write(t, path.Join(content, name), strings.ReplaceAll(text, "SEMVER", version))
	}
	p.write(t, path.Join("subscriptions", o.key()+".yaml"), fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: %s, namespace: %s}
spec: {package: %[1]s, version: %[3]s, catalog: %[4]s}
`, o.name, o.namespace, version, catalog))
}

// settings returns quayside.yaml with the engine's profile, the engine's settings in spec.gitops, and the
// clusters of the state.
func settings(s pieceState, engine engineSettings) string {
	charts := ""
	if slices.ContainsFunc(s.operators, func(o tinyOperator) bool { return o.isChart }) {
		charts = `, {name: charts, helm: "dir:charts"}`
	}
	granularity := "operator"
	if s.asOneUnit {
		granularity = "cluster"
	}
	text := fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: %s}
spec:
  catalogs: [{name: bundles, source: "bundles:bundles"}%s]
  kubernetesVersion: "1.36"
  certificates: openshift-service-ca
  profile: %s
  gitops: {granularity: %s, path: rendered, %s}
  clusters:
`, s.environment, charts, engine.profile, granularity, engine.gitops)
	for _, c := range s.clusters {
		text += fmt.Sprintf("  - {name: %s%s}\n", c.name, c.destination)
	}
	if s.recreate != "" {
		text += "  recreate: [" + s.recreate + "]\n"
	}
	return text
}

// engineSettings are the engine's parts of quayside.yaml.
type engineSettings struct{ profile, gitops string }

// manifestsOf returns the objects of all manifests in and below directories of the tree. Missing
// directories are ignored.
func (p *pieceTree) manifestsOf(t *testing.T, dirs ...string) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	for _, dir := range dirs {
		root := filepath.Join(p.dir, "rendered", filepath.FromSlash(dir))
		_ = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
			if err == nil && path.Ext(name) == ".yaml" && e.Name() != "kustomization.yaml" {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, objects(t, string(text))...)
			}
			return nil
		})
	}
	return list
}

// desired returns the rendered objects of operators.
func (p *pieceTree) desired(t *testing.T, operators []tinyOperator) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, o := range operators {
		isOwn := func(of *unstructured.Unstructured) bool { return of.GetLabels()["quayside.dev/package"] == o.name }
		out = append(out, p.manifestsOf(t, "crds/"+o.name)...)
		out = append(out, only(p.manifestsOf(t, "operators"), isOwn)...)
	}
	return out
}

// members returns the entries of clusters.yaml.
func (p *pieceTree) members(t *testing.T) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "rendered", "clusters.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

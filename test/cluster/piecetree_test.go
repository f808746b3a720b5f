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

// pieceState declares an environment: its clusters, and the operators that each
// of them gets.
type pieceState struct {
	environment string
	whole       bool // granularity cluster: one Application, or the stages of Flux, for all operators
	clusters    []pieceCluster
	operators   []tinyOperator
	leaving     []string // removed operators that are still to be uninstalled
	extra       string   // manifests of the cluster "local" beside the operators
}

// pieceCluster is an entry of spec.clusters.
type pieceCluster struct {
	name  string
	place string // ", server: …" or ", kubeConfig: …"; empty: the engine's own
}

// tinyOperator is an operator of a ConfigMap and a Deployment.
type tinyOperator struct {
	namespace, name, version string

	idle     bool     // it has no Deployment
	api      bool     // it has a CRD
	webhook  bool     // it has a webhook
	ca       string   // its CRD is converted by another's Service, with this CA
	shared   bool     // it has the ConfigMap that another operator had
	sharing  bool     // it has the CRD that another operator had
	fault    string   // "unhealthy", "CRD refused" or "object refused"
	requires []string // packages
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

// tinyWebhook is the webhook of a bundle.
const tinyWebhook = `
  {type: ValidatingAdmissionWebhook, generateName: vthing.example.com, deploymentName: NAME, containerPort: 443, sideEffects: None, failurePolicy: Ignore,
  webhookPath: /validate, admissionReviewVersions: [v1], rules: [{apiGroups: [GROUP.example.com], apiVersions: [v1], operations: [UPDATE], resources: [things]}]}`

// tinyConversion is how the CRD of a bundle is converted, with a CA in Git.
const tinyConversion = `  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: elsewhere, namespace: NAMESPACE}, caBundle: CABUNDLE}
`

// tinyDeployment is the Deployment of a bundle. No node has the label "nowhere".
const tinyDeployment = `
  {name: NAME, label: {example.com/version: VERSION, example.com/fault: FAULT}, spec: {selector: {matchLabels: {app: NAME}},
  template: {metadata: {labels: {app: NAME}}, spec: {NODES
  containers: [{name: manager, image: "registry.example.com/NAME:VERSION"}]}}}}`

// tinyCRD is a CRD of a bundle.
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

// refusing has the API server refuse objects that are labelled so.
const refusing = `
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

// bundle returns the files of the operator's bundle. What stands for its semantic
// version is left to be filled in.
func (o tinyOperator) bundle() map[string]string {
	fault := map[bool]string{true: "refused", false: "none"}
	nodes, deployment := "", tinyDeployment
	if o.fault == "unhealthy" {
		nodes = "nodeSelector: {nowhere: nothing},"
	}
	if o.idle {
		deployment = ""
	}
	deployment = strings.NewReplacer("FAULT", fault[o.fault == "object refused"], "NODES", nodes).Replace(deployment)
	webhooks := ""
	if o.webhook {
		webhooks = strings.ReplaceAll(tinyWebhook, "GROUP", o.key())
	}
	owned := ""
	if o.api {
		owned += "{name: things." + o.key() + ".example.com, kind: Thing, version: v1}, "
	}
	if o.sharing {
		owned += "{name: shareds.shared." + o.namespace + ".example.com, kind: Shared, version: v1}"
	}
	text := strings.NewReplacer("DEPLOYMENT", deployment, "WEBHOOKS", webhooks, "OWNED", owned).Replace(tinyBundle)
	if o.api {
		text += "-- manifests/things.yaml --\n" + strings.NewReplacer("PLURAL", "things", "GROUP", o.key(), "KIND", "Thing", "FAULT", fault[o.fault == "CRD refused"]).Replace(tinyCRD)
		if o.ca != "" {
			text = strings.Replace(text, "  labels: {", "  annotations: {service.beta.openshift.io/inject-cabundle: \"true\"}\n  labels: {", 1)
			text += strings.NewReplacer("NAMESPACE", o.namespace, "CABUNDLE", o.ca).Replace(tinyConversion)
		}
	}
	if o.sharing {
		text += "-- manifests/shareds.yaml --\n" + strings.NewReplacer("PLURAL", "shareds", "GROUP", "shared."+o.namespace, "KIND", "Shared", "FAULT", "none", "VERSION", "none").Replace(tinyCRD)
	}
	if o.shared {
		text += "-- manifests/shared.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\n"
	}
	for i, required := range o.requires {
		if i == 0 {
			text += "-- metadata/dependencies.yaml --\ndependencies:\n"
		}
		text += fmt.Sprintf("- {type: olm.package, value: {packageName: %s, version: \">=0.0.0\"}}\n", required)
	}
	files := map[string]string{}
	text = strings.NewReplacer("NAME", o.name, "VERSION", o.version).Replace(text)
	for _, file := range strings.Split(text, "-- ")[1:] {
		name, content, _ := strings.Cut(file, " --\n")
		files[name] = content
	}
	return files
}

// operator returns the operator with that key, to be changed.
func (s pieceState) operator(key string) *tinyOperator {
	i := slices.IndexFunc(s.operators, func(o tinyOperator) bool { return o.key() == key })
	return &s.operators[i]
}

// clone returns a copy that shares nothing with s.
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
	revision map[string]int               // how often the bundle of an operator has changed
	last     pieceState
}

// newPieceTree returns a workspace in a directory.
func newPieceTree(t *testing.T, dir string) *pieceTree {
	t.Helper()
	p := &pieceTree{quayside: quayside{build(t), dir}, bundles: map[string]map[string]string{}, revision: map[string]int{}}
	p.write(t, ".gitignore", ".cache/\n")
	return p
}

// render makes the workspace that of a state, as its team does: it writes the declarations
// and has quayside do the rest.
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
		p.remove(t, "quayside.lock") // as where the commit that added it is reverted
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

// declare writes an operator's bundle, of a new version when its content is new, and
// the Subscription to it.
func (p *pieceTree) declare(t *testing.T, o tinyOperator) {
	t.Helper()
	files := o.bundle()
	if !maps.Equal(files, p.bundles[o.key()]) {
		p.bundles[o.key()] = files
		p.revision[o.key()]++
	}
	version := fmt.Sprintf("1.%d.0", p.revision[o.key()])
	for name, text := range files {
		p.write(t, path.Join("bundles", o.name, name), strings.ReplaceAll(text, "SEMVER", version))
	}
	p.write(t, path.Join("subscriptions", o.key()+".yaml"), fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: %s, namespace: %s}
spec: {package: %[1]s, version: %[3]s}
`, o.name, o.namespace, version))
}

// settings returns quayside.yaml. An engine adds its profile, its settings of
// spec.gitops and its clusters.
func settings(s pieceState, engine engineSettings) string {
	granularity := "operator"
	if s.whole {
		granularity = "cluster"
	}
	text := fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Workspace
metadata: {name: %s}
spec:
  catalogs: [{name: bundles, source: "bundles:bundles"}]
  kubernetesVersion: "1.36"
  certificates: openshift-service-ca
  profile: %s
  gitops: {granularity: %s, path: rendered, %s}
  clusters:
`, s.environment, engine.profile, granularity, engine.gitops)
	for _, c := range s.clusters {
		text += fmt.Sprintf("  - {name: %s%s}\n", c.name, c.place)
	}
	return text
}

// engineSettings are those of quayside.yaml that depend on the engine.
type engineSettings struct{ profile, gitops string }

// manifestsOf returns the objects of all manifests in directories of the tree and below
// them. A directory that there is not has none.
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

// desired returns the objects of operators, as rendered.
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

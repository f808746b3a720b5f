package needs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/provided"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/render/needs"
)

// parse returns the objects of a YAML stream. Namespaces and CRDs are returned as shared objects.
func parse(t *testing.T, text string) (own, shared []k8s.Object) {
	t.Helper()
	list, err := yamlnode.Objects("objects.yaml", []byte(text), yamlnode.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if o := k8s.Object(o); k8s.IsCRD(o) || o.Is("", "Namespace") {
			shared = append(shared, o)
		} else {
			own = append(own, o)
		}
	}
	return own, shared
}

// deployment returns a Deployment with a pod.
func deployment(pod string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: ns}\nspec: {template: {spec: %s}}\n", pod)
}

const (
	widget     = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: ns}\n"
	widgetCRD  = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec: {group: example.com, names: {kind: Widget}, versions: [{name: v1beta1, served: true}, {name: v1, served: %t}]}\n"
	apiService = "---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.example.com}\nspec: {group: example.com, version: v1}\n"
	namespace  = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ns, labels: {%s}}\n"
	role       = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [%s], resources: [%s], verbs: [%s]}]\n"
	binding    = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: r}\nroleRef: {kind: ClusterRole, name: r}\nsubjects: [{kind: ServiceAccount, namespace: ns, name: sa}]\n"
	claim      = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c, namespace: ns}\nspec: {storageClassName: fast}\n"
	safePod    = "{securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}"
)

func object(apiVersion, kind, namespace, name string) string {
	return "---\n" + string(yamlnode.Encode(k8s.New(apiVersion, kind, namespace, name)))
}

// TestNeeds has a case for each kind of need, and a case for each way to meet a need.
func TestNeeds(t *testing.T) {
	restricted := fmt.Sprintf(namespace, "pod-security.kubernetes.io/enforce: restricted")
	hostPath := deployment("{volumes: [{name: h, hostPath: {path: /}}], containers: [{name: c}]}")
	secretEnv := deployment("{containers: [{name: c, env: [{name: E, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}")
	for name, c := range map[string]struct {
		objects   string
		apis      string // provided
		provides  string // objects
		openshift bool
		want      string // needs
	}{
		"an API":                     {objects: widget, want: "api example.com/v1 [Widget] Widget.example.com ns/w"},
		"its CRD":                    {objects: widget + fmt.Sprintf(widgetCRD, true)},
		"its CRD does not serve it":  {objects: widget + fmt.Sprintf(widgetCRD, false), want: "api example.com/v1 [Widget] Widget.example.com ns/w"},
		"its APIService":             {objects: widget + apiService},
		"its API is provided":        {objects: widget, apis: "example.com/v1"},
		"another version":            {objects: widget, apis: "example.com/v2", want: "api example.com/v1 [Widget] Widget.example.com ns/w"},
		"two kinds, one CRD":         {objects: widget + "---\n" + strings.Replace(widget, "Widget", "Gadget", 1) + fmt.Sprintf(widgetCRD, true), want: "api example.com/v1 [Gadget Widget] Gadget.example.com ns/w, Widget.example.com ns/w"},
		"an alpha API of Kubernetes": {objects: object("resource.k8s.io/v1alpha3", "DeviceTaintRule", "", "x"), want: "api resource.k8s.io/v1alpha3 [DeviceTaintRule] DeviceTaintRule.resource.k8s.io x"},
		"permissions for an API":     {objects: fmt.Sprintf(role, "route.openshift.io", "routes", "create") + binding},

		"a ServiceAccount":         {objects: deployment("{serviceAccountName: sa}"), want: "object  ServiceAccount ns/sa [] Deployment.apps ns/d"},
		"in the tree":              {objects: deployment("{serviceAccountName: sa}") + object("v1", "ServiceAccount", "ns", "sa")},
		"in another namespace":     {objects: deployment("{serviceAccountName: sa}") + object("v1", "ServiceAccount", "other", "sa"), want: "object  ServiceAccount ns/sa [] Deployment.apps ns/d"},
		"the default one":          {objects: deployment("{serviceAccountName: default}")},
		"a PriorityClass":          {objects: deployment("{priorityClassName: high}"), want: "object  PriorityClass.scheduling.k8s.io high [] Deployment.apps ns/d"},
		"is provided":              {objects: deployment("{priorityClassName: high}"), provides: "PriorityClass//high"},
		"may be created":           {objects: deployment("{priorityClassName: high}") + fmt.Sprintf(role, "scheduling.k8s.io", "priorityclasses", "create"), want: "config  PriorityClass.scheduling.k8s.io high [] Deployment.apps ns/d"},
		"of Kubernetes":            {objects: deployment("{priorityClassName: system-cluster-critical}")},
		"a RuntimeClass":           {objects: deployment("{runtimeClassName: gvisor}"), want: "object  RuntimeClass.node.k8s.io gvisor [] Deployment.apps ns/d"},
		"a StorageClass":           {objects: claim, want: "object  StorageClass.storage.k8s.io fast [] PersistentVolumeClaim ns/c"},
		"a PersistentVolume":       {objects: claim + "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {storageClassName: fast}\n"},
		"the default StorageClass": {objects: strings.Replace(claim, "storageClassName: fast", "", 1)},
		"a claim":                  {objects: deployment("{volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}"), want: "object  PersistentVolumeClaim ns/c [] Deployment.apps ns/d volumes[v]"},
		"a claim in the tree":      {objects: deployment("{volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}") + "---\n" + claim, provides: "StorageClass//fast"},
		"claim templates":          {objects: "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s, namespace: ns}\nspec: {volumeClaimTemplates: [{metadata: {name: v}, spec: {storageClassName: fast}}]}\n", want: "object  StorageClass.storage.k8s.io fast [] StatefulSet.apps ns/s volumeClaimTemplates[v]"},

		"a Secret":           {objects: secretEnv, want: "config  Secret ns/s [] Deployment.apps ns/d containers[c].env[E]"},
		"a Secret there":     {objects: secretEnv + object("v1", "Secret", "ns", "s")},
		"a Certificate":      {objects: secretEnv + "---\napiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c, namespace: ns}\nspec: {secretName: s}\n", apis: "cert-manager.io/v1"},
		"of the service CA":  {objects: secretEnv + "---\napiVersion: v1\nkind: Service\nmetadata: {name: c, namespace: ns, annotations: {service.beta.openshift.io/serving-cert-secret-name: s}}\n", openshift: true},
		"no service CA":      {objects: secretEnv + "---\napiVersion: v1\nkind: Service\nmetadata: {name: c, namespace: ns, annotations: {service.beta.openshift.io/serving-cert-secret-name: s}}\n", want: "config  Secret ns/s [] Deployment.apps ns/d containers[c].env[E]"},
		"a provided Secret":  {objects: secretEnv, provides: "Secret/ns/s"},
		"an optional Secret": {objects: deployment("{volumes: [{name: v, secret: {secretName: s, optional: true}}]}")},
		"volumes and envFrom": {
			objects: deployment("{volumes: [{name: v, projected: {sources: [{secret: {name: s}}, {configMap: {name: m}}]}}], initContainers: [{name: i, envFrom: [{configMapRef: {name: m}}]}]}"),
			want:    "config  ConfigMap ns/m [] Deployment.apps ns/d initContainers[i].envFrom, Deployment.apps ns/d volumes[v]; config  Secret ns/s [] Deployment.apps ns/d volumes[v]",
		},
		"the CA of Kubernetes":     {objects: deployment("{volumes: [{name: v, configMap: {name: kube-root-ca.crt}}]}")},
		"the CA of OpenShift":      {objects: deployment("{volumes: [{name: v, configMap: {name: openshift-service-ca.crt}}]}"), openshift: true},
		"no OpenShift":             {objects: deployment("{volumes: [{name: v, configMap: {name: openshift-service-ca.crt}}]}"), want: "config  ConfigMap ns/openshift-service-ca.crt [] Deployment.apps ns/d volumes[v]"},
		"a custom kind with a pod": {objects: strings.Replace(secretEnv, "apps/v1", "example.com/v1", 1), apis: "example.com/v1"},

		"OLM by permission":       {objects: fmt.Sprintf(role, "operators.coreos.com", "subscriptions", "create") + binding, want: "olm [] ServiceAccount ns/sa may create subscriptions"},
		"OLM is provided":         {objects: fmt.Sprintf(role, "operators.coreos.com", "subscriptions", "create") + binding, apis: "operators.coreos.com/v1"},
		"OLM v1 is provided":      {objects: object("operators.coreos.com/v1alpha1", "Subscription", "ns", "s"), apis: "olm.operatorframework.io/v1"},
		"an API without a group":  {objects: object("operators.coreos.com/v1alpha1", "Subscription", "ns", "s"), apis: "v1", want: "olm [] Subscription.operators.coreos.com ns/s uses OLM's API"},
		"OLM by object":           {objects: object("operators.coreos.com/v1alpha1", "Subscription", "ns", "s"), want: "olm [] Subscription.operators.coreos.com ns/s uses OLM's API"},
		"OLM is only read":        {objects: fmt.Sprintf(role, "operators.coreos.com", "subscriptions", "get") + binding},
		"only the condition":      {objects: object("operators.coreos.com/v2", "OperatorCondition", "ns", "s"), apis: "operators.coreos.com/v2/OperatorCondition"},
		"the condition is no OLM": {objects: object("operators.coreos.com/v1alpha1", "Subscription", "ns", "s"), apis: "operators.coreos.com/v2/OperatorCondition", want: "olm [] Subscription.operators.coreos.com ns/s uses OLM's API"},

		"no namespace":              {objects: object("v1", "ServiceAccount", "nowhere", "s"), want: "namespace  Namespace nowhere [] ServiceAccount nowhere/s"},
		"a namespace of OpenShift":  {objects: object("v1", "ServiceAccount", "openshift-a", "s"), openshift: true},
		"a namespace of Kubernetes": {objects: object("v1", "ServiceAccount", "kube-system", "s")},
		"a provided namespace":      {objects: object("v1", "ServiceAccount", "nowhere", "s"), provides: "Namespace//nowhere"},
		"no namespace of OpenShift": {objects: object("v1", "ServiceAccount", "openshift-a", "s"), want: "namespace  Namespace openshift-a [] ServiceAccount openshift-a/s"},

		"a restricted Namespace": {objects: deployment("{containers: [{name: c}]}") + restricted, want: "podSecurity  Namespace ns [] Deployment.apps ns/d: allowPrivilegeEscalation != false, runAsNonRoot != true, seccompProfile, unrestricted capabilities"},
		"a pod for it":           {objects: deployment(safePod) + restricted},
		"only a warning":         {objects: hostPath + fmt.Sprintf(namespace, "pod-security.kubernetes.io/warn: restricted")},
		"a privileged Namespace": {objects: hostPath + fmt.Sprintf(namespace, "pod-security.kubernetes.io/enforce: privileged")},
		"an old version":         {objects: deployment("{containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true}}]}") + fmt.Sprintf(namespace, "pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/enforce-version: v1.8")},
		"OpenShift fills in":     {objects: deployment("{containers: [{name: c}]}") + restricted, openshift: true},
		"but not everything":     {objects: hostPath + restricted, openshift: true, want: "podSecurity  Namespace ns [] Deployment.apps ns/d: hostPath volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			own, shared := parse(t, c.objects)
			s := needs.NewSupply(c.openshift)
			s.AddAPIs(strings.Fields(c.apis)...)
			for _, text := range strings.Fields(c.provides) {
				key, err := provided.ParseObject(text)
				if err != nil {
					t.Fatal(err)
				}
				s.AddKeys(key)
			}
			for _, name := range []string{"ns", "other"} {
				s.AddKeys(k8s.Key{Kind: "Namespace", Name: name})
			}
			s.AddObjects(append(own, shared...)...)
			got := summarize(s.Unmet(needs.Find(render.ClusterOperator{Objects: own}, shared, c.openshift)))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func summarize(unmet []needs.Need) string {
	var out []string
	for _, n := range unmet {
		if n.Kind == needs.API || n.Kind == needs.OLM {
			n.Object = k8s.Key{}
		}
		line := strings.TrimRight(fmt.Sprintf("%s %s %s", n.Kind, n.APIVersion, n.Object), " ") + fmt.Sprintf(" %v %s", n.Kinds, strings.Join(n.By, ", "))
		if len(n.Why) > 0 {
			line += ": " + strings.Join(n.Why, ", ")
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

// TestNativeAPIs checks that the APIs that a ClusterServiceVersion requires are needs.
func TestNativeAPIs(t *testing.T) {
	o := render.ClusterOperator{NativeAPIs: []catalog.GVK{{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "example.com", Version: "v1", Kind: "Widget"}}}
	got := summarize(needs.NewSupply(false).Unmet(needs.Find(o, nil, false)))
	if want := "api example.com/v1 [Widget] spec.nativeAPIs of the ClusterServiceVersion"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

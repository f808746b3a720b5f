package admit

import (
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/quayside/quayside/internal/k8s"
)

// apiVersions returns the API versions that every cluster serves, each with the function that
// registers its Go types.
func apiVersions() map[string]func(*runtime.Scheme) error {
	return map[string]func(*runtime.Scheme) error{
		"v1":                              corev1.AddToScheme,
		"admissionregistration.k8s.io/v1": admissionregistrationv1.AddToScheme,
		"apiextensions.k8s.io/v1":         apiextensionsv1.AddToScheme,
		"apiregistration.k8s.io/v1":       apiregistrationv1.AddToScheme,
		"apps/v1":                         appsv1.AddToScheme,
		"autoscaling/v1":                  autoscalingv1.AddToScheme,
		"autoscaling/v2":                  autoscalingv2.AddToScheme,
		"batch/v1":                        batchv1.AddToScheme,
		"certificates.k8s.io/v1":          certificatesv1.AddToScheme,
		"coordination.k8s.io/v1":          coordinationv1.AddToScheme,
		"discovery.k8s.io/v1":             discoveryv1.AddToScheme,
		"flowcontrol.apiserver.k8s.io/v1": flowcontrolv1.AddToScheme,
		"networking.k8s.io/v1":            networkingv1.AddToScheme,
		"node.k8s.io/v1":                  nodev1.AddToScheme,
		"policy/v1":                       policyv1.AddToScheme,
		"rbac.authorization.k8s.io/v1":    rbacv1.AddToScheme,
		"resource.k8s.io/v1":              resourcev1.AddToScheme,
		"scheduling.k8s.io/v1":            schedulingv1.AddToScheme,
		"storage.k8s.io/v1":               storagev1.AddToScheme,
	}
}

// Types looks up the Go types of built-in kinds. It caches them and is not safe for concurrent use.
type Types struct {
	kinds  map[string]map[string]reflect.Type    // apiVersion → kind
	fields map[reflect.Type]map[string]typeField // struct → its fields by JSON name

	required map[reflect.Type]map[string]bool // see requiredFields
}

// typeField is a field of a Go type.
type typeField struct {
	of        reflect.Type
	omitEmpty bool     // the API server does not store an empty value
	keys      []string // for a list: the fields that form the key of an item in server-side apply; empty: the item itself; nil: items need no key
}

// NewTypes returns Types with an empty cache.
func NewTypes() *Types {
	return &Types{kinds: map[string]map[string]reflect.Type{}, fields: map[reflect.Type]map[string]typeField{}}
}

// Has reports whether the kind of an object is built in.
func (t *Types) Has(o k8s.Object) bool { return t.kind(o.APIVersion(), o.Kind()) != nil }

// kind returns the Go type of a kind, or nil if the kind is not built in.
func (t *Types) kind(apiVersion, kind string) reflect.Type {
	known, ok := t.kinds[apiVersion]
	if !ok {
		if register, builtin := apiVersions()[apiVersion]; builtin {
			s := runtime.NewScheme()
			gv, err := schema.ParseGroupVersion(apiVersion)
			if err == nil && register(s) == nil {
				known = s.KnownTypes(gv)
			}
		}
		t.kinds[apiVersion] = known
	}
	return known[kind]
}

// fieldsOf returns the fields of a struct by their JSON names, including the fields of embedded structs.
func (t *Types) fieldsOf(of reflect.Type) map[string]typeField {
	if known, ok := t.fields[of]; ok {
		return known
	}
	out := map[string]typeField{}
	keys := listKeys()[of.PkgPath()+"."+of.Name()]
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for name, inner := range t.fieldsOf(f.Type) {
				out[name] = inner
			}
		case name != "" && name != "-":
			out[name] = typeField{f.Type, slices.Contains(strings.Split(options, ","), "omitempty"), nil}
		}
	}
	for name, f := range out {
		if k, is := keys[name]; is {
			f.keys = k
			out[name] = f
		}
	}
	t.fields[of] = out
	return out
}

// Part is the Go type of one part of an object or CSV, such as the affinity of a pod.
type Part struct{ of reflect.Type }

// Fields returns the names of the part's fields, sorted.
func (p Part) Fields() []string { return slices.Sorted(maps.Keys(NewTypes().fieldsOf(p.of))) }

// Affinity returns the Part for the affinity of a pod.
func Affinity() Part { return Part{reflect.TypeFor[corev1.Affinity]()} }

// Config returns the Part for OLM's SubscriptionConfig.
func Config() Part {
	return Part{reflect.TypeFor[struct {
		Selector     *metav1.LabelSelector        `json:"selector"`
		NodeSelector map[string]string            `json:"nodeSelector"`
		Tolerations  []corev1.Toleration          `json:"tolerations"`
		Resources    *corev1.ResourceRequirements `json:"resources"`
		EnvFrom      []corev1.EnvFromSource       `json:"envFrom"`
		Env          []corev1.EnvVar              `json:"env"`
		Volumes      []corev1.Volume              `json:"volumes"`
		VolumeMounts []corev1.VolumeMount         `json:"volumeMounts"`
		Affinity     *corev1.Affinity             `json:"affinity"`
		Annotations  map[string]string            `json:"annotations"`
	}]()}
}

// EnvVarSource returns the Part for valueFrom of an environment variable.
func EnvVarSource() Part { return Part{reflect.TypeFor[corev1.EnvVarSource]()} }

// Resources returns the Part for the resources of a container.
func Resources() Part { return Part{reflect.TypeFor[corev1.ResourceRequirements]()} }

// FieldPath converts the field of a Fault to the format used for positions: "requests[cpu]" to
// "requests.cpu".
func FieldPath(field string) string {
	return regexp.MustCompile(`\[([^\]]*[^\]0-9][^\]]*)\]`).ReplaceAllString(field, ".$1")
}

// Volume returns the Part for a volume of a pod.
func Volume() Part { return Part{reflect.TypeFor[corev1.Volume]()} }

// DeploymentSpec returns the Part for the spec of a Deployment.
func DeploymentSpec() Part { return Part{reflect.TypeFor[appsv1.DeploymentSpec]()} }

// PolicyRule returns the Part for a rule of a Role.
func PolicyRule() Part { return Part{reflect.TypeFor[rbacv1.PolicyRule]()} }

// Webhook returns the Part for a webhook in a CSV: the fields of the API, and the fields that OLM
// adds.
func Webhook(mutating bool) Part {
	if mutating {
		return Part{reflect.TypeFor[struct {
			webhook                                 `json:",inline"`
			admissionregistrationv1.MutatingWebhook `json:",inline"`
		}]()}
	}
	return Part{reflect.TypeFor[struct {
		webhook                                   `json:",inline"`
		admissionregistrationv1.ValidatingWebhook `json:",inline"`
	}]()}
}

// webhook has those fields of WebhookDescription (operators.coreos.com/v1alpha1) that the webhook
// types of Kubernetes do not have.
type webhook struct {
	GenerateName   string             `json:"generateName"`
	Type           string             `json:"type"`
	DeploymentName string             `json:"deploymentName"`
	ContainerPort  int32              `json:"containerPort"`
	TargetPort     intstr.IntOrString `json:"targetPort"`
	WebhookPath    string             `json:"webhookPath"`
	ConversionCRDs []string           `json:"conversionCRDs"`
}

// ServedAPIs returns the stable APIs of Kubernetes 1.minor, sorted: each as "group/version" and as
// "group/version/Kind". It omits beta APIs, because clusters do not serve new beta APIs by default.
func ServedAPIs(minor int) []string {
	out := map[string]bool{}
	for kind, introduced := range served() {
		if introduced <= minor {
			out[path.Dir(kind)], out[kind] = true, true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// served returns the minor version of Kubernetes that introduced each kind, by apiVersion/kind. The result is
// cached, because a scheme of all APIs takes 25 ms of CPU time.
var served = sync.OnceValue(func() map[string]int { //nolint:gochecknoglobals // built once
	out := map[string]int{}
	for apiVersion, add := range apiVersions() {
		s := runtime.NewScheme()
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil || add(s) != nil {
			panic("admit: " + apiVersion) // the table is wrong
		}
		for kind, t := range s.KnownTypes(gv) {
			if !strings.HasSuffix(kind, "List") && !strings.HasSuffix(kind, "Options") && kind != "WatchEvent" {
				out[apiVersion+"/"+kind] = introducedIn(t)
			}
		}
	}
	return out
})

// introducedIn returns the minor version of Kubernetes that introduced a type. It returns 0 for a type that
// declares no such version: every supported version of Kubernetes has these types.
func introducedIn(t reflect.Type) int {
	if v, ok := reflect.New(t).Interface().(interface{ APILifecycleIntroduced() (major, minor int) }); ok {
		_, minor := v.APILifecycleIntroduced()
		return minor
	}
	return 0
}

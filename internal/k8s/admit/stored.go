package admit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/quayside/quayside/internal/k8s"
)

// Stored returns an object as the API server stores it, without a status. The object is encoded from its Go
// type. Kinds that bundles install get the API server's defaults. Values that only the API server can set, such
// as the address of a Service, are missing. If the kind is not built in, the object is only converted to JSON
// types. The error means that the object does not match the Go type of its kind.
func (t *Types) Stored(o k8s.Object) (k8s.Object, error) {
	o = k8s.Without(o, "status")
	of := t.kind(o.APIVersion(), o.Kind())
	if of == nil {
		return toPlainJSON(o)
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	typed := reflect.New(of).Interface()
	if err := json.Unmarshal(data, typed); err != nil {
		return nil, err
	}
	setDefaults(typed)
	stored, err := toPlainJSON(typed)
	return k8s.Without(k8s.Object(stored), "status"), err
}

// setDefaults sets the API server's defaults in an object.
func setDefaults(object any) {
	switch o := object.(type) {
	case *corev1.Pod:
		podDefaults(&o.Spec)
	case *corev1.PodTemplate:
		podDefaults(&o.Template.Spec)
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			podDefaults(&o.Spec.Template.Spec)
		}
	case *appsv1.Deployment:
		deploymentDefaults(&o.Spec)
	case *appsv1.ReplicaSet:
		setPointerDefault(&o.Spec.Replicas, 1)
		podDefaults(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		statefulSetDefaults(&o.Spec)
	case *appsv1.DaemonSet:
		daemonSetDefaults(&o.Spec)
	case *batchv1.Job:
		jobDefaults(&o.Spec)
	case *batchv1.CronJob:
		setDefault(&o.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
		setPointerDefault(&o.Spec.Suspend, false)
		setPointerDefault(&o.Spec.SuccessfulJobsHistoryLimit, 3)
		setPointerDefault(&o.Spec.FailedJobsHistoryLimit, 1)
		podDefaults(&o.Spec.JobTemplate.Spec.Template.Spec)
	case *corev1.Service:
		serviceDefaults(&o.Spec)
	case *corev1.Secret:
		for key, text := range o.StringData {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[key] = []byte(text)
		}
		o.StringData = nil
		setDefault(&o.Type, corev1.SecretTypeOpaque)
	case *rbacv1.RoleBinding:
		bindingDefaults(&o.RoleRef, o.Subjects)
	case *rbacv1.ClusterRoleBinding:
		bindingDefaults(&o.RoleRef, o.Subjects)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		validatingDefaults(o)
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		mutatingDefaults(o)
	case *apiextensionsv1.CustomResourceDefinition:
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(o)
	case *apiregistrationv1.APIService:
		apiregistrationv1.SetObjectDefaults_APIService(o)
	case *networkingv1.NetworkPolicy:
		networkPolicyDefaults(&o.Spec)
	case *schedulingv1.PriorityClass:
		setPointerDefault(&o.PreemptionPolicy, corev1.PreemptLowerPriority)
	case *corev1.PersistentVolumeClaim:
		setPointerDefault(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	case *corev1.PersistentVolume:
		setPointerDefault(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		setDefault(&o.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		if o.Spec.HostPath != nil {
			setPointerDefault(&o.Spec.HostPath.Type, corev1.HostPathUnset)
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		autoscalerDefaults(&o.Spec)
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		admissionPolicyDefaults(&o.Spec)
	case *storagev1.CSIDriver:
		driverDefaults(&o.Spec)
	case *storagev1.StorageClass:
		setPointerDefault(&o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
		setPointerDefault(&o.VolumeBindingMode, storagev1.VolumeBindingImmediate)
	}
}

func autoscalerDefaults(spec *autoscalingv2.HorizontalPodAutoscalerSpec) {
	setPointerDefault(&spec.MinReplicas, 1)
	if len(spec.Metrics) == 0 {
		percent := int32(80)
		spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
		}}}
	}
}

func admissionPolicyDefaults(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	setPointerDefault(&spec.FailurePolicy, admissionregistrationv1.Fail)
	if m := spec.MatchConstraints; m != nil {
		setPointerDefault(&m.MatchPolicy, admissionregistrationv1.Equivalent)
		setPointerDefault(&m.NamespaceSelector, metav1.LabelSelector{})
		setPointerDefault(&m.ObjectSelector, metav1.LabelSelector{})
		for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
			for i := range rules {
				setPointerDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
			}
		}
	}
}

func driverDefaults(spec *storagev1.CSIDriverSpec) {
	setPointerDefault(&spec.AttachRequired, true)
	setPointerDefault(&spec.PodInfoOnMount, false)
	setPointerDefault(&spec.StorageCapacity, false)
	setPointerDefault(&spec.RequiresRepublish, false)
	setPointerDefault(&spec.SELinuxMount, false)
	setPointerDefault(&spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(spec.VolumeLifecycleModes) == 0 {
		spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
}

// setDefault sets *field if it is the zero value.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// setPointerDefault sets *field if it is nil.
func setPointerDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func deploymentDefaults(spec *appsv1.DeploymentSpec) {
	setPointerDefault(&spec.Replicas, 1)
	setPointerDefault(&spec.RevisionHistoryLimit, 10)
	setPointerDefault(&spec.ProgressDeadlineSeconds, 600)
	setDefault(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setPointerDefault(&spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setPointerDefault(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setPointerDefault(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	podDefaults(&spec.Template.Spec)
}

func statefulSetDefaults(spec *appsv1.StatefulSetSpec) {
	setPointerDefault(&spec.Replicas, 1)
	setPointerDefault(&spec.RevisionHistoryLimit, 10)
	setDefault(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	setDefault(&spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		setPointerDefault(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		setPointerDefault(&spec.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	setPointerDefault(&spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	setDefault(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range spec.VolumeClaimTemplates {
		claim := &spec.VolumeClaimTemplates[i]
		claim.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
		setPointerDefault(&claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	}
	podDefaults(&spec.Template.Spec)
}

func daemonSetDefaults(spec *appsv1.DaemonSetSpec) {
	setPointerDefault(&spec.RevisionHistoryLimit, 10)
	setDefault(&spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setPointerDefault(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setPointerDefault(&spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setPointerDefault(&spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	podDefaults(&spec.Template.Spec)
}

func jobDefaults(spec *batchv1.JobSpec) {
	if spec.Parallelism == nil {
		setPointerDefault(&spec.Completions, 1)
	}
	setPointerDefault(&spec.Parallelism, 1)
	setPointerDefault(&spec.ManualSelector, false)
	if spec.PodFailurePolicy != nil {
		setPointerDefault(&spec.PodReplacementPolicy, batchv1.Failed)
	}
	setPointerDefault(&spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	setPointerDefault(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	setPointerDefault(&spec.BackoffLimit, 6)
	setPointerDefault(&spec.Suspend, false)
	podDefaults(&spec.Template.Spec)
}

func serviceDefaults(spec *corev1.ServiceSpec) {
	setDefault(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		setPointerDefault(&spec.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		setPointerDefault(&spec.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		setPointerDefault(&spec.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
	setDefault(&spec.Type, corev1.ServiceTypeClusterIP)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		setDefault(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	outside := spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer
	if outside {
		setDefault(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if outside || spec.Type == corev1.ServiceTypeClusterIP {
		setPointerDefault(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		setPointerDefault(&spec.AllocateLoadBalancerNodePorts, true)
	}
}

func bindingDefaults(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	setDefault(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if s := &subjects[i]; s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind {
			setDefault(&s.APIGroup, rbacv1.GroupName)
		}
	}
}

func networkPolicyDefaults(spec *networkingv1.NetworkPolicySpec) {
	ports := func(ports []networkingv1.NetworkPolicyPort) {
		for i := range ports {
			setPointerDefault(&ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
	for _, rule := range spec.Ingress {
		ports(rule.Ports)
	}
	for _, rule := range spec.Egress {
		ports(rule.Ports)
	}
	if len(spec.PolicyTypes) == 0 {
		spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(spec.Egress) > 0 {
			spec.PolicyTypes = append(spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}

const (
	webhookSeconds = int32(10)
	webhookPort    = int32(443)
)

func validatingDefaults(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		webhookDefaults(&w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.TimeoutSeconds, &w.NamespaceSelector, &w.ObjectSelector)
	}
}

func mutatingDefaults(o *admissionregistrationv1.MutatingWebhookConfiguration) {
	for i := range o.Webhooks {
		w := &o.Webhooks[i]
		webhookDefaults(&w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.TimeoutSeconds, &w.NamespaceSelector, &w.ObjectSelector)
		setPointerDefault(&w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
	}
}

// webhookDefaults sets the defaults that validating and mutating webhooks share.
func webhookDefaults(client *admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations,
	failure **admissionregistrationv1.FailurePolicyType, match **admissionregistrationv1.MatchPolicyType, seconds **int32, selectors ...**metav1.LabelSelector,
) {
	setPointerDefault(failure, admissionregistrationv1.Fail)
	setPointerDefault(match, admissionregistrationv1.Equivalent)
	setPointerDefault(seconds, webhookSeconds)
	for _, s := range selectors {
		setPointerDefault(s, metav1.LabelSelector{})
	}
	if client.Service != nil {
		setPointerDefault(&client.Service.Port, webhookPort)
	}
	for i := range rules {
		setPointerDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}

// listDefaulted compares a value before and after defaulting, and returns the added values, sorted. An added
// object is one value: its fields are not listed. at is the path of the value.
func listDefaulted(at string, before, after any) []Value {
	switch b := after.(type) {
	case map[string]any:
		a, _ := before.(map[string]any)
		var out []Value
		for _, name := range slices.Sorted(maps.Keys(b)) {
			where := strings.TrimPrefix(at+"."+name, ".")
			if old, had := a[name]; had && (old != nil || b[name] == nil) {
				out = append(out, listDefaulted(where, old, b[name])...)
			} else {
				out = append(out, Value{where, b[name]})
			}
		}
		return out
	case []any:
		a, _ := before.([]any)
		var out []Value
		for i := range b {
			if i < len(a) {
				out = append(out, listDefaulted(fmt.Sprintf("%s[%d]", at, i), a[i], b[i])...)
			}
		}
		return out
	}
	return nil
}

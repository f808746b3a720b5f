package admit

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/quayside/quayside/internal/imageref"
)

const (
	defaultFileMode = int32(0o644) // default mode of the files in a volume
	tokenSeconds    = int64(3600)  // default lifetime of a projected token
)

// podDefaults sets the defaults of a pod spec in a pod template. (The API server sets more defaults
// in pods themselves.)
func podDefaults(pod *corev1.PodSpec) {
	setDefault(&pod.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&pod.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&pod.SchedulerName, corev1.DefaultSchedulerName)
	setPointerDefault(&pod.SecurityContext, corev1.PodSecurityContext{})
	setPointerDefault(&pod.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	setDefault(&pod.ServiceAccountName, pod.DeprecatedServiceAccount)
	pod.DeprecatedServiceAccount = pod.ServiceAccountName
	for i := range pod.Volumes {
		volumeDefaults(&pod.Volumes[i].VolumeSource)
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containerDefaults(&containers[i])
		}
	}
}

func containerDefaults(c *corev1.Container) {
	pullDefaults(&c.ImagePullPolicy, c.Image)
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			fieldDefaults(from.FieldRef)
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		probeDefaults(p)
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				requestDefaults(h.HTTPGet)
			}
		}
	}
}

func pullDefaults(policy *corev1.PullPolicy, image string) {
	if ref := imageref.Split(image); ref.Tag == "latest" || ref.Tag == "" && ref.Digest == "" {
		setDefault(policy, corev1.PullAlways)
	}
	setDefault(policy, corev1.PullIfNotPresent)
}

func fieldDefaults(f *corev1.ObjectFieldSelector) {
	if f != nil {
		setDefault(&f.APIVersion, "v1")
	}
}

func requestDefaults(get *corev1.HTTPGetAction) {
	if get != nil {
		setDefault(&get.Path, "/")
		setDefault(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func probeDefaults(p *corev1.Probe) {
	if p == nil {
		return
	}
	setDefault(&p.TimeoutSeconds, 1)
	setDefault(&p.PeriodSeconds, 10)
	setDefault(&p.SuccessThreshold, 1)
	setDefault(&p.FailureThreshold, 3)
	requestDefaults(p.HTTPGet)
	if p.GRPC != nil {
		setPointerDefault(&p.GRPC.Service, "")
	}
}

// volumeDefaults sets the defaults of a volume, for the types that operators use. It does not
// support the storage types of single vendors.
func volumeDefaults(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.Secret != nil {
		setPointerDefault(&v.Secret.DefaultMode, defaultFileMode)
	}
	if v.ConfigMap != nil {
		setPointerDefault(&v.ConfigMap.DefaultMode, defaultFileMode)
	}
	if v.HostPath != nil {
		setPointerDefault(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Image != nil {
		pullDefaults(&v.Image.PullPolicy, v.Image.Reference)
	}
	if v.DownwardAPI != nil {
		setPointerDefault(&v.DownwardAPI.DefaultMode, defaultFileMode)
		downwardDefaults(v.DownwardAPI.Items)
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		setPointerDefault(&v.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
	if v.Projected != nil {
		setPointerDefault(&v.Projected.DefaultMode, defaultFileMode)
		for _, source := range v.Projected.Sources {
			if source.DownwardAPI != nil {
				downwardDefaults(source.DownwardAPI.Items)
			}
			if source.ServiceAccountToken != nil {
				setPointerDefault(&source.ServiceAccountToken.ExpirationSeconds, tokenSeconds)
			}
		}
	}
}

func downwardDefaults(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		fieldDefaults(items[i].FieldRef)
	}
}

package admit

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/quayside/quayside/internal/imageref"
)

const (
	readable     = int32(0o644) // what files of volumes are by default
	tokenSeconds = int64(3600)  // how long a projected token holds
)

// podDefaults sets the defaults of a template's pods, which are not all that a
// pod by itself gets.
func podDefaults(pod *corev1.PodSpec) {
	fill(&pod.DNSPolicy, corev1.DNSClusterFirst)
	fill(&pod.RestartPolicy, corev1.RestartPolicyAlways)
	fill(&pod.SchedulerName, corev1.DefaultSchedulerName)
	fillPointer(&pod.SecurityContext, corev1.PodSecurityContext{})
	fillPointer(&pod.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	fill(&pod.ServiceAccountName, pod.DeprecatedServiceAccount)
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
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = corev1.PullIfNotPresent
		if ref := imageref.Split(c.Image); ref.Tag == "latest" || ref.Tag == "" && ref.Digest == "" {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	fill(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	fill(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		fill(&c.Ports[i].Protocol, corev1.ProtocolTCP)
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

func fieldDefaults(f *corev1.ObjectFieldSelector) {
	if f != nil {
		fill(&f.APIVersion, "v1")
	}
}

func requestDefaults(get *corev1.HTTPGetAction) {
	if get != nil {
		fill(&get.Path, "/")
		fill(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func probeDefaults(p *corev1.Probe) {
	if p == nil {
		return
	}
	fill(&p.TimeoutSeconds, 1)
	fill(&p.PeriodSeconds, 10)
	fill(&p.SuccessThreshold, 1)
	fill(&p.FailureThreshold, 3)
	requestDefaults(p.HTTPGet)
	if p.GRPC != nil {
		fillPointer(&p.GRPC.Service, "")
	}
}

// volumeDefaults sets the defaults of the volumes that operators have: those of
// storage that some vendor attaches are left as they are.
func volumeDefaults(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.Secret != nil {
		fillPointer(&v.Secret.DefaultMode, readable)
	}
	if v.ConfigMap != nil {
		fillPointer(&v.ConfigMap.DefaultMode, readable)
	}
	if v.HostPath != nil {
		fillPointer(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.DownwardAPI != nil {
		fillPointer(&v.DownwardAPI.DefaultMode, readable)
		downwardDefaults(v.DownwardAPI.Items)
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		fillPointer(&v.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	}
	if v.Projected != nil {
		fillPointer(&v.Projected.DefaultMode, readable)
		for _, source := range v.Projected.Sources {
			if source.DownwardAPI != nil {
				downwardDefaults(source.DownwardAPI.Items)
			}
			if source.ServiceAccountToken != nil {
				fillPointer(&source.ServiceAccountToken.ExpirationSeconds, tokenSeconds)
			}
		}
	}
}

func downwardDefaults(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		fieldDefaults(items[i].FieldRef)
	}
}

package render

import (
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile/certificates"
)

// keepCertificates makes an adopted operator keep OLM's certificates, if the lock contains the CA of these
// certificates. Otherwise it does nothing.
func (in *install) keepCertificates() error {
	if in.pin.Adopted == nil || len(in.pin.Adopted.Certificates) == 0 {
		return nil
	}
	ca, err := certificates.PEM(in.pin.Adopted.Certificates)
	if err != nil {
		return diag.Errorf(in.pin.Fields.At("adopted", in.pin.Pos), "adopted: %w", err)
	}
	in.opt.provider = certificates.FromCA(ca)
	return nil
}

// addRecordedAnnotations sets the pod annotations that the lock records for a Deployment. It removes the
// annotations that the lock records as absent.
func (in *install) addRecordedAnnotations(deployment Object) {
	if in.pin.Adopted == nil {
		return
	}
	for _, a := range in.pin.Adopted.Annotations {
		if a.Deployment != deployment.Name() {
			continue
		}
		annotations := k8s.Ensure(deployment, "spec", "template", "metadata", "annotations")
		annotations[a.Name] = a.Value
		if a.Absent {
			delete(annotations, a.Name)
		}
	}
}

// addAsOLM adds the volume and its mounts in the same order as OLM, so that pods do not restart.
// Unlike [certificateMount.add], it replaces items in place, and keeps volumes that no container
// mounts.
func (m certificateMount) addAsOLM(pod map[string]any, secret string) {
	replaceNamed(pod, "volumes", m.volume(secret))
	for _, c := range k8s.Items(pod, "containers") {
		mounts := k8s.List(c, "volumeMounts")
		i := slices.IndexFunc(mounts, func(v any) bool {
			have, _ := v.(map[string]any)
			return k8s.Text(have, "name") == m.name || k8s.Text(have, "mountPath") == m.path
		})
		switch {
		case i < 0:
			c["volumeMounts"] = append(mounts, m.mount())
		case k8s.Text(mounts[i].(map[string]any), "name") != m.name:
			mounts[i] = m.mount()
		}
	}
}

// runsOLM reports whether an operator is being adopted. OLM then still runs in the clusters.
func runsOLM(installs []operator) bool {
	return slices.ContainsFunc(installs, func(in operator) bool { return in.pin.Adopted != nil })
}

package render

import (
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/render/certificates"
)

// keepCertificates leaves an adopted install the certificates that OLM has
// issued for it, as long as the lock has their CA.
func (in *install) keepCertificates() error {
	if in.pin.Adopted == nil || len(in.pin.Adopted.Certificates) == 0 {
		return nil
	}
	ca, err := certificates.PEM(in.pin.Adopted.Certificates)
	if err != nil {
		return diag.Errorf(in.pin.Fields.At("adopted", in.pin.Pos), "adopted: %w", err)
	}
	in.opt.provider, err = certificates.Of(certificates.Secret, certificates.Settings{CABundle: ca})
	return err
}

// addRecorded gives the pods of a Deployment the annotations that the lock
// records, and takes from them those that it records as absent.
func (in *install) addRecorded(deployment Object) {
	if in.pin.Adopted == nil {
		return
	}
	for _, a := range in.pin.Adopted.Annotations {
		if a.Deployment != deployment.Name() {
			continue
		}
		annotations := kobj.Ensure(deployment, "spec", "template", "metadata", "annotations")
		annotations[a.Name] = a.Value
		if a.Absent {
			delete(annotations, a.Name)
		}
	}
}

// addAsOLM does what OLM does where [certificateMount.add] does it otherwise: it
// keeps the places of what it replaces, and volumes that nobody mounts any more.
func (m certificateMount) addAsOLM(pod map[string]any, secret string) {
	replaceNamed(pod, "volumes", m.volume(secret))
	for _, c := range kobj.Items(pod, "containers") {
		mounts := kobj.List(c, "volumeMounts")
		i := slices.IndexFunc(mounts, func(v any) bool {
			have, _ := v.(map[string]any)
			return kobj.Text(have, "name") == m.name || kobj.Text(have, "mountPath") == m.path
		})
		switch {
		case i < 0:
			c["volumeMounts"] = append(mounts, m.mount())
		case kobj.Text(mounts[i].(map[string]any), "name") != m.name:
			mounts[i] = m.mount()
		}
	}
}

// besideOLM reports whether OLM is still there: some install is as it left it.
func (t *tree) besideOLM() bool {
	return slices.ContainsFunc(t.installs, func(in opened) bool { return in.pin.Adopted != nil })
}

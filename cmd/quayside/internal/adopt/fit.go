package adopt

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Begin returns a copy of the lock. It marks a pin as adopted if OLM installed the pinned version in the
// cluster. The mark contains the CAs of the certificates that OLM issued. Pins with a mark stay unchanged.
// Begin does not modify its arguments.
func Begin(s *snapshot.Snapshot, lock *lockfile.File) *lockfile.File {
	c := newCluster(s, lock)
	pins := slices.Clone(lock.Pins)
	for i, p := range pins {
		if op := c.byKey[p.Key()]; p.Adopted == nil && c.isFromOLM(op) {
			pins[i].Adopted = &lockfile.Adopted{Condition: p.Bundle, Certificates: c.caCertificates(op)}
		}
	}
	return lock.With(pins)
}

// isFromOLM reports whether OLM installed the pinned version of an operator.
func (c *clusterState) isFromOLM(op *operator) bool {
	if csv := op.csv(); csv != nil {
		return csv.Name == op.pin.Bundle
	}
	return slices.ContainsFunc(op.members, func(o *snapshot.LiveObject) bool {
		return o.Group == "apps" && o.Kind == "Deployment" && o.Labels[labelOwner] == op.pin.Bundle && !isOurs(o)
	})
}

// isOurs reports whether quayside rendered an object. It checks the package label, because a bundle can set the
// managed-by label itself.
func isOurs(o *snapshot.LiveObject) bool { return o.Labels[k8s.LabelPackage] != "" }

// caCertificates returns the CA certificates that OLM created for an operator. It finds them in the operator's
// Secrets and in its webhook and API configurations. It omits malformed certificates.
func (c *clusterState) caCertificates(op *operator) []string {
	found := map[string]bool{}
	take := func(text any) {
		encoded, _ := text.(string)
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return
		}
		for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
			if _, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
				found[base64.StdEncoding.EncodeToString(block.Bytes)] = true
			}
		}
	}
	for _, o := range op.members {
		switch o.Group + "/" + o.Kind {
		case "/Secret":
			take(o.At("data", "olmCAKey"))
		case "apiextensions.k8s.io/CustomResourceDefinition":
			client, _ := o.At("spec", "conversion", "webhook", "clientConfig").(map[string]any)
			if k8s.Text(client, "service", "namespace") == op.Namespace {
				take(client["caBundle"])
			}
		case "apiregistration.k8s.io/APIService", "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
			for _, c := range k8s.ClientConfigs(o.Body()) {
				take(c["caBundle"])
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Record completes Begin: it adds to the adopted pins those pod annotations that differ between the cluster and
// the tree. before and begun are the locks before and after Begin, and rendered is the rendered tree of begun.
// Record returns the new lock and its rendered tree. It does not modify its arguments.
//
// A pin that was adopted before Begin stays unchanged, with one exception: if it has no annotations and OLM still
// manages its operator, Record adds them. The operator's objects may have been missing from the tree until now.
func Record(s *snapshot.Snapshot, before, begun *lockfile.File, rendered []render.Rendered) (*lockfile.File, []render.Rendered) {
	found := map[string][]lockfile.Annotation{}
	c, out := newCluster(s, before), slices.Clone(rendered)
	for i, r := range rendered {
		pin, adopted := pinOf(begun, r)
		was, _ := before.Pin(pin.Namespace, pin.Package)
		live := s.Get(r.Object.Key())
		if !adopted || live == nil || !r.Object.Is("apps", "Deployment") {
			continue
		}
		if was.Adopted != nil && (len(was.Adopted.Annotations) > 0 || !c.isFromOLM(c.byKey[pin.Key()])) {
			continue
		}
		for _, a := range differingAnnotations(live.Body(), r.Object, pin) {
			found[pin.Key()] = append(found[pin.Key()], a)
			at := []string{"spec", "template", "metadata", "annotations", a.Name}
			if out[i].Object = k8s.With(out[i].Object, a.Value, at...); a.Absent {
				out[i].Object = k8s.Without(out[i].Object, at...)
			}
		}
	}
	pins := slices.Clone(begun.Pins)
	for i, p := range pins {
		if more := found[p.Key()]; more != nil {
			kept := *p.Adopted
			kept.Annotations = append(slices.Clone(kept.Annotations), more...)
			pins[i].Adopted = &kept
		}
	}
	return begun.With(pins), out
}

// pinOf returns the adopted pin of a rendered object.
func pinOf(lock *lockfile.File, r render.Rendered) (lockfile.Pin, bool) {
	namespace, pkg, _ := strings.Cut(operatorOf(r), "/")
	pin, ok := lock.Pin(namespace, pkg)
	return pin, ok && pin.Adopted != nil
}

// differingAnnotations compares the pod annotations of a live Deployment with those of ours, the rendered one.
// It returns the live annotations that are missing in ours or have another value there. Annotations that only
// ours has are returned marked as absent, except those that the pin's config sets.
func differingAnnotations(live, ours k8s.Object, pin lockfile.Pin) []lockfile.Annotation {
	at := []string{"spec", "template", "metadata", "annotations"}
	have, there := k8s.TextMap(ours, at...), k8s.TextMap(live, at...)
	var out []lockfile.Annotation
	for name, value := range there {
		if was, same := have[name]; !same || was != value {
			out = append(out, lockfile.Annotation{Deployment: ours.Name(), Name: name, Value: value})
		}
	}
	var config struct{ Annotations map[string]string }
	_ = json.Unmarshal(pin.Config, &config) // rendering has already validated it
	for name := range have {
		_, kept := there[name]
		if _, wanted := config.Annotations[name]; !kept && !wanted {
			out = append(out, lockfile.Annotation{Deployment: ours.Name(), Name: name, Absent: true})
		}
	}
	return out
}

// operatorOf returns the operator (namespace/package) of a rendered object, from the path of its file,
// or "" if the file belongs to no operator.
func operatorOf(r render.Rendered) string {
	if key, ok := layout.Operator(r.Path); ok {
		return key
	}
	return ""
}

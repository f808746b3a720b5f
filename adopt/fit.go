package adopt

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Begin returns the lock in which every pin that the cluster has from OLM says so,
// with the CA of the certificates that OLM issued. Pins that say it already stay
// as they are. The arguments are not modified.
func Begin(s *snapshot.Snapshot, lock *lockfile.File) *lockfile.File {
	c := find(s, lock)
	pins := slices.Clone(lock.Pins)
	for i, p := range pins {
		if op := c.byKey[p.Key()]; p.Adopted == nil && c.fromOLM(op) {
			pins[i].Adopted = &lockfile.Adopted{Condition: p.Bundle, Certificates: c.authorities(op)}
		}
	}
	return lock.With(pins)
}

// fromOLM reports whether what runs of an operator's pin is what OLM made of it.
func (c *cluster) fromOLM(op *operator) bool {
	if csv := op.csv(); csv != nil {
		return csv.Name == op.pin.Bundle
	}
	return slices.ContainsFunc(op.members, func(o *snapshot.Object) bool {
		return o.Group == "apps" && o.Kind == "Deployment" && o.Labels[labelOwner] == op.pin.Bundle && !ours(o)
	})
}

// ours reports whether quayside rendered an object. A bundle may say itself by whom
// it is managed, but not this.
func ours(o *snapshot.Object) bool { return o.Labels[kobj.LabelPackage] != "" }

// authorities returns the certificates of the CAs that OLM made for an operator:
// those of its Secrets, and those by which its webhooks and APIs are called. One
// that cannot be read is left out.
func (c *cluster) authorities(op *operator) []string {
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
		case "apiregistration.k8s.io/APIService":
			take(o.At("spec", "caBundle"))
		case "apiextensions.k8s.io/CustomResourceDefinition":
			client, _ := o.At("spec", "conversion", "webhook", "clientConfig").(map[string]any)
			if kobj.Text(client, "service", "namespace") == op.namespace {
				take(client["caBundle"])
			}
		case "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
			for _, w := range kobj.Items(o.Body(), "webhooks") {
				take(kobj.At(w, "clientConfig", "caBundle"))
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Record completes what Begin began: it returns the lock and what it renders to
// with the annotations of pods that the cluster has and rendered, which is what
// begun renders to, has not, or otherwise. Pins that were adopted before stay as
// they are. The arguments are not modified.
func Record(s *snapshot.Snapshot, before, begun *lockfile.File, rendered []render.Rendered) (*lockfile.File, []render.Rendered) {
	found := map[string][]lockfile.Annotation{}
	out := slices.Clone(rendered)
	for i, r := range rendered {
		pin, adopted := pinOf(begun, r)
		was, _ := before.Pin(pin.Namespace, pin.Package)
		live := s.Get(r.Object.Key())
		if !adopted || was.Adopted != nil || live == nil || !r.Object.Is("apps", "Deployment") {
			continue
		}
		for _, a := range unlike(live.Body(), r.Object, pin) {
			found[pin.Key()] = append(found[pin.Key()], a)
			at := []string{"spec", "template", "metadata", "annotations", a.Name}
			if out[i].Object = kobj.With(out[i].Object, a.Value, at...); a.Absent {
				out[i].Object = kobj.Without(out[i].Object, at...)
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

// pinOf returns the adopted pin that a rendered object is of.
func pinOf(lock *lockfile.File, r render.Rendered) (lockfile.Pin, bool) {
	namespace, pkg, _ := strings.Cut(operatorOf(r), "/")
	pin, ok := lock.Pin(namespace, pkg)
	return pin, ok && pin.Adopted != nil
}

// unlike returns the annotations of a live Deployment's pods that ours does not
// have, or otherwise, and as absent those that it has beyond what the pin's config
// says.
func unlike(live, ours kobj.Object, pin lockfile.Pin) []lockfile.Annotation {
	at := []string{"spec", "template", "metadata", "annotations"}
	have, there := kobj.TextMap(ours, at...), kobj.TextMap(live, at...)
	var out []lockfile.Annotation
	for name, value := range there {
		if was, same := have[name]; !same || was != value {
			out = append(out, lockfile.Annotation{Deployment: ours.Name(), Name: name, Value: value})
		}
	}
	var config struct{ Annotations map[string]string }
	_ = json.Unmarshal(pin.Config, &config) // rendering has read it
	for name := range have {
		_, kept := there[name]
		if _, wanted := config.Annotations[name]; !kept && !wanted {
			out = append(out, lockfile.Annotation{Deployment: ours.Name(), Name: name, Absent: true})
		}
	}
	return out
}

// operatorOf returns the operator whose base holds a rendered object, "" for what
// lies elsewhere in the tree.
func operatorOf(r render.Rendered) string {
	if key, ok := layout.Operator(r.Path); ok {
		return key
	}
	return ""
}

package render

import (
	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
)

// shipped passes the bundle's own manifests on, field by field, put in the
// install namespace where their kind has one.
func shipped(in *install) ([]Object, error) {
	var errs diag.List
	accounts := in.accounts()
	var out []Object
	for _, file := range in.b.Objects {
		o, err := in.versioned(file)
		errs.Add(file.Pos(), err)
		if err != nil || kobj.IsCRD(o) {
			continue
		}
		o = plainMetadata(o)
		if err := in.typed(file.Pos(), o); err != nil {
			errs.Add(file.Pos(), err)
			continue
		}
		if in.scopes.namespaced(o.Group(), o.Kind()) {
			o = kobj.With(o, in.pin.Namespace, "metadata", "namespace")
		} else {
			o = kobj.Without(o, "metadata", "namespace")
		}
		switch {
		case o.Is(rbacGroup, "RoleBinding"), o.Is(rbacGroup, "ClusterRoleBinding"):
			o = in.subjects(file, o, accounts)
		case o.Is("", "ServiceAccount"):
			o = pulling(o, in.opt.ImagePullSecrets)
		}
		out = append(out, o)
	}
	return out, errs.Err()
}

// subjects puts the subjects that are accounts of the bundle in the install
// namespace, wherever the file says they are.
func (in *install) subjects(file bundle.Object, o Object, accounts map[string]bool) Object {
	list := kobj.List(o, "subjects")
	changed := make([]any, len(list))
	for i, v := range list {
		changed[i] = v
		s, ok := v.(map[string]any)
		switch {
		case !ok || kobj.Text(s, "kind") != "ServiceAccount":
		case accounts[kobj.Text(s, "name")]:
			changed[i] = kobj.With(s, in.pin.Namespace, "namespace")
		default:
			in.warn(file.Pos(), "expected-from-outside", "%s names ServiceAccount %q in namespace %q, which is not the bundle's and is expected to exist",
				file, kobj.Text(s, "name"), kobj.Text(s, "namespace"))
		}
	}
	if len(list) == 0 {
		return o
	}
	return kobj.With(o, changed, "subjects")
}

// versioned returns the object with an apiVersion, and at a version that the
// target Kubernetes serves.
func (in *install) versioned(file bundle.Object) (Object, error) {
	o := file.Object
	if o.APIVersion() == "" {
		version, ok := typedKinds()[o.Kind()]
		if !ok {
			return nil, diag.Errorf(file.Pos(), "document %d: %s %q without apiVersion", file.Document+1, file.Kind(), file.Name())
		}
		in.warn(file.Pos(), "manifest-without-version", "%s %q has no apiVersion, %s is assumed", file.Kind(), file.Name(), version)
		o = kobj.With(o, version, "apiVersion")
	}
	return in.served(file, o)
}

// typedKinds lists the kinds that OLM installs without looking at their
// apiVersion, with the one that it takes.
func typedKinds() map[string]string {
	return map[string]string{
		"Secret": "v1", "ConfigMap": "v1", "ServiceAccount": "v1", "Service": "v1",
		"Role": rbacGroup + "/v1", "RoleBinding": rbacGroup + "/v1", "ClusterRole": rbacGroup + "/v1", "ClusterRoleBinding": rbacGroup + "/v1",
		"CustomResourceDefinition": "apiextensions.k8s.io/v1",
	}
}
